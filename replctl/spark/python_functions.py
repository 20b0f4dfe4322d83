"""Functions that Spark runs in Python with Arrow, because Spark has no exact equivalent: for
expressions (replctl_eval_...), for numerics as texts (replctl_numeric_...), and for the text forms
of types (replctl_in_..., replctl_out_..., replctl_stored_..., replctl_row).
"""

from __future__ import annotations

import tempfile
import uuid
import zipfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from replctl.adt import numeric_arithmetic
from replctl.errors import InvalidDatetimeFormat, PostgresError
from replctl.recursion_limit import raise_recursion_limit
from replctl.spark.data_type import (
    decimal_of,
    element_type,
    not_stored,
    text_of_wire,
    to_wire_value,
    wire,
)
from replctl.spark.python_calls import python_calls
from replctl.spark.received_row import read_row
from replctl.spark.sql_value import raised_text
from replctl.types import text
from replctl.types.hash import partition_hash
from replctl.types.numeric import numeric_out

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from replctl.spark.python_program import Program


class PythonFunctions:
    """The Python functions of an engine.  A session registers a function when a statement first
    uses it.

    Args:
        is_remote: the sessions are those of a Connect server.
        scratch: a directory for temporary files; None: the system's.
    """

    def __init__(self, *, is_remote: bool, scratch: Path | None) -> None:
        self._is_remote = is_remote
        self._scratch = scratch
        self._known: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()

    def make_known(self, session: SparkSession, statement: str) -> None:
        """Register the Python functions that `statement` uses in a session."""
        used = python_calls(statement)
        if not used:
            return
        known = self._known.setdefault(session, set())
        if self._is_remote and not known and session.conf.get(PACKAGE, "") != own_package():
            _send_package(session, self._scratch)
        for name in sorted(used - known):
            if name.startswith("replctl_eval_"):
                from replctl.spark.python_program import program_named

                session.udf.register(name, _program(program_named(name)))
                known.add(name)
                continue
            session.udf.register(name, _vectorised(*_definition(name)))
            known.add(name)


#: The Spark property in which a server names the replctl of its Python, in the form of
#: `own_package`.
PACKAGE = "spark.replctl.package"


def own_package() -> str:
    """Return the release and the location of this process's replctl."""
    return f"{version('replctl')} {_root()}"


def _root() -> Path:
    return Path(str(files("replctl")))


def _send_package(session: SparkSession, scratch: Path | None) -> None:
    """Send the modules that the functions need to the Python of a Connect server.

    Spark copies files to one folder for all sessions of a server, and a failed copy makes the jobs
    of all sessions fail.  Therefore the file name must be unique.
    """
    root = _root()
    if scratch is not None:
        scratch.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        archive = Path(folder) / f"replctl-{uuid.uuid4().hex}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
            for path in sorted(root.rglob("*")):
                if path.suffix in (".py", ".tsv", ".lark") and path.is_file():
                    package.write(path, Path("replctl") / path.relative_to(root))
        session.addArtifacts(str(archive), pyfile=True)


def _definition(name: str) -> tuple[Callable[..., Any], pa.DataType]:
    """Return the Python function that Spark knows as `name`, and its result type."""
    import pyarrow as pa

    kind, _, type_name = name.removeprefix("replctl_").partition("_")
    if kind == "in":
        return _reader(type_name), wire(type_name).arrow
    if kind == "stored":
        return _stored_reader(type_name), wire(type_name).arrow
    if kind == "out":
        return _writer(type_name), pa.string()
    function, result_type = _FUNCTIONS[name]
    return function, {int: pa.int32(), str: pa.string()}[result_type]


def _program(program: Program) -> Any:
    """Return a function over Arrow columns that computes an expression."""
    from replctl.spark import python_program  # the evaluator, which few commands need

    result = python_program.result_type(program)

    def evaluate(*columns: Any) -> Any:
        import pyarrow as pa

        rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        return pa.array(python_program.run(program, rows), result)

    return _arrow_function(evaluate, result)


def _vectorised(function: Callable[..., Any], result: pa.DataType) -> Any:
    """Convert a strict function of values to a function over Arrow columns."""

    def evaluate(*columns: Any) -> Any:
        import pyarrow as pa

        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        try:
            return pa.array([None if None in row else function(*row) for row in rows], result)
        except PostgresError as error:
            raise ValueError(raised_text(error)) from error

    return _arrow_function(evaluate, result)


def _arrow_function(evaluate: Callable[..., Any], result: pa.DataType) -> Any:
    """Return a function of any number of columns, with the argument and result types that pyspark
    requires.  The types are objects, not names: to parse a name, pyspark would use its current
    session, which a Connect server may have ended.
    """
    import pyarrow as pa
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_type

    def evaluate_deep(*columns: Any) -> Any:
        raise_recursion_limit()
        return evaluate(*columns)

    evaluate_deep.__annotations__ = {"columns": pa.Array, "return": pa.Array}
    return functions.arrow_udf(evaluate_deep, from_arrow_type(result))  # type: ignore[attr-defined]


def _reader(type_name: str) -> Callable[[str, int], Any]:
    return lambda value, typmod: to_wire_value(type_name, -1, text.parse(type_name, value, typmod))


def _stored_reader(type_name: str) -> Callable[[Any, int, str], Any]:
    """Return a function that reads a stored value like the type's input function.

    Its last argument says where the value is, for the DETAIL of errors.
    """
    element = element_type(type_name)

    def read(value: Any, typmod: int) -> Any:
        if element is not None:
            return [None if item is None else read_item(item, typmod) for item in value]
        return read_item(value, typmod)

    def read_item(value: Any, typmod: int) -> Any:
        if isinstance(value, dict) and None in value.values():
            fields = " ".join(f"{name}={number}" for name, number in value.items())
            raise InvalidDatetimeFormat(f'invalid input syntax for type interval: "{fields}"')
        shown = text_of_wire(element or type_name, value) or ""
        parsed = text.parse(element or type_name, shown, typmod)
        return to_wire_value(element or type_name, -1, parsed)

    def read_at(value: Any, typmod: int, place: str) -> Any:
        try:
            return read(value, typmod)
        except PostgresError as error:
            error.detail = place if error.detail is None else f"{error.detail} {place}"
            raise

    return read_at


def _writer(type_name: str) -> Callable[[Any], str | None]:
    return lambda value: text_of_wire(type_name, value)


# ---------------------------------------------------------------------------------------------
# numeric


def _divide(left: str, right: str) -> str:
    return numeric_out(numeric_arithmetic.divide(Decimal(left), Decimal(right)))


def _canonical(value: str) -> str:
    return text.canonical("numeric", value)


def _sort_key(value: str) -> str:
    """Return a text that sorts like the numbers: sign, exponent and digits.  For negative numbers,
    exponent and digits are complemented."""
    number = Decimal(value)
    if number.is_nan():
        return "4"
    if number.is_infinite():
        return "3" if number > 0 else "0"
    if not number:
        return "2"
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    key = f"{number.adjusted() + 150000:06d}{digits}"
    if number > 0:
        return f"2+{key}"
    return "1" + "".join(str(9 - int(char)) for char in key) + ":"


def _coerce(value: str, typmod: int) -> str:
    number = text.coerce_typmod("numeric", text.parse("numeric", value), typmod, explicit=False)
    shown = text.render("numeric", number)
    if shown == "NaN" and decimal_of(typmod) is not None:
        raise not_stored(shown)
    return shown


def _of_list(function: Callable[[list[Decimal]], Decimal | None]) -> Callable[..., str | None]:
    """Return a function that aggregates a list of numerics."""

    def apply(values: Sequence[str]) -> str | None:
        answer = function([Decimal(value) for value in values])
        return None if answer is None else numeric_out(answer)

    return apply


def _hash_partition(types: str, values: list[str | None], modulus: int) -> int:
    """Return the remainder of the hash of a row's partition key."""
    return partition_hash(types.split(","), values) % modulus


#: Name in Spark -> the function, and the Python type of its result.
_FUNCTIONS: dict[str, tuple[Callable[..., Any], type]] = {
    "replctl_numeric_divide": (_divide, str),
    "replctl_numeric_canonical": (_canonical, str),
    "replctl_numeric_key": (_sort_key, str),
    "replctl_numeric_coerce": (_coerce, str),
    "replctl_numeric_sum": (_of_list(numeric_arithmetic.total), str),
    "replctl_numeric_avg": (_of_list(numeric_arithmetic.average), str),
    "replctl_partition_hash": (_hash_partition, int),
    "replctl_row": (read_row, str),
}
