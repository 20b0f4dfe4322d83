"""Functions that Spark runs in Python, over Arrow, because nothing else of Spark's is exact: numeric as
text (replctl_numeric ...) and the text forms of types (replctl_in_..., replctl_out_...)."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
)
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from replctl.errors import DivisionByZero, NumericValueOutOfRange, PostgresError
from replctl.spark.data_type import text_of_wire, to_wire_value, wire
from replctl.spark.sql_value import raised_text
from replctl.types import text
from replctl.types.hash import partition_hash
from replctl.types.numeric import numeric_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONTEXT = Context(prec=2000, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MAX_SCALE = 1000

class PythonFunctions:
    """The functions, registered in a session when a statement uses them for the first time."""

    def __init__(self, *, is_remote: bool) -> None:
        self._is_remote = is_remote
        self._known: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()

    def make_known(self, session: SparkSession, statement: str) -> None:
        """Register what `statement` uses."""
        used = set(_NAME.findall(statement))
        if not used:
            return
        known = self._known.setdefault(session, set())
        if self._is_remote and not known:
            _send_package(session)
        for name in used - known:
            function, spark_type, arrow_type = _definition(name)
            session.udf.register(name, _vectorised(function, spark_type, arrow_type))
            known.add(name)


_NAME = re.compile(
    r"\b(replctl_(?:numeric|float4_numeric|float8_numeric|in|out|partition_hash)\w*)\("
)


def _send_package(session: SparkSession) -> None:
    """Give a Connect server's Python the modules that the functions are made of."""
    root = Path(str(files("replctl")))
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "replctl.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
            for path in sorted(root.rglob("*")):
                if path.suffix in (".py", ".tsv", ".lark") and path.is_file():
                    package.write(path, Path("replctl") / path.relative_to(root))
        session.addArtifacts(str(archive), pyfile=True)


def _definition(name: str) -> tuple[Callable[..., Any], str, Any]:
    """A function with the Spark type and the Arrow type of its result."""
    import pyarrow as pa

    kind, _, type_name = name.removeprefix("replctl_").partition("_")
    if kind == "in":
        return (_reader(type_name), *_wire_type(type_name))
    if kind == "out":
        return _writer(type_name), "string", pa.string()
    result = {int: ("int", pa.int32()), str: ("string", pa.string())}
    function, result_type = _FUNCTIONS[name]
    return (function, *result[result_type])


def _vectorised(function: Callable[..., Any], result: str, arrow_type: Any) -> Any:
    """A strict function of values as one of Arrow columns."""
    from pyspark.sql import functions

    def evaluate(*columns: Any) -> Any:
        import pyarrow as pa

        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        try:
            return pa.array([None if None in row else function(*row) for row in rows], arrow_type)
        except PostgresError as error:
            raise ValueError(raised_text(error)) from error

    return functions.arrow_udf(evaluate, result)


def _wire_type(type_name: str) -> tuple[str, Any]:
    """How a type's values travel, as Spark's type and as Arrow's."""
    arrow_type = wire(type_name).arrow
    names = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "bool": "BOOLEAN",
             "float": "FLOAT", "double": "DOUBLE", "string": "STRING", "binary": "BINARY"}  # fmt: skip
    if type_name == "interval":
        return "STRUCT<m: INT, d: INT, us: BIGINT>", arrow_type
    return names[str(arrow_type)], arrow_type


def _reader(type_name: str) -> Callable[[str], Any]:
    return lambda value: to_wire_value(type_name, -1, text.parse(type_name, value))


def _writer(type_name: str) -> Callable[[Any], str | None]:
    return lambda value: text_of_wire(type_name, value)


# ---------------------------------------------------------------------------------------------
# numeric


def _operation(name: str, left: str, right: str) -> str:
    return numeric_out(_OPERATIONS[name](Decimal(left), Decimal(right)))


def _compare(left: str, right: str) -> int:
    """-1, 0, 1; NaN is greater than everything, and equal to itself."""
    a, b = Decimal(left), Decimal(right)
    if a.is_nan() or b.is_nan():
        return int(a.is_nan()) - int(b.is_nan())
    return (a > b) - (a < b)


def _sort_key(value: str) -> str:
    """Text whose order is the numbers': sign, exponent, digits; all complemented for negative ones."""
    number = Decimal(value)
    if number.is_nan():
        return "4"
    if number.is_infinite():
        return "3" if number > 0 else "0"
    if not number:
        return "2"
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    key = f"{number.adjusted() + 50000:06d}{digits}"
    if number > 0:
        return f"2+{key}"
    return "1" + "".join(str(9 - int(char)) for char in key) + ":"


def _divide(left: Decimal, right: Decimal) -> Decimal:
    """At least 16 significant digits, at least either operand's scale (select_div_scale in numeric.c)."""
    special = _special(left, right)
    if special is not None:
        return special
    if left.is_infinite() or right.is_infinite():
        return _CONTEXT.divide(left, right) if left.is_infinite() else Decimal(0)
    if not right:
        raise DivisionByZero("division by zero")
    (weight1, first1), (weight2, first2) = _weight(left), _weight(right)
    quotient_weight = weight1 - weight2 - (first1 <= first2)
    scale = max(16 - quotient_weight * 4, _scale(left), _scale(right), 0)
    return _rounded(_CONTEXT.divide(left, right), min(scale, _MAX_SCALE))


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    special = _special(left, right)
    if special is not None:
        return special
    if not right:
        raise DivisionByZero("division by zero")
    if left.is_infinite():
        return Decimal("NaN")
    return left if right.is_infinite() else _CONTEXT.remainder(left, right)


def _special(left: Decimal, right: Decimal) -> Decimal | None:
    """NaN where an operand is, and for infinity divided by infinity."""
    if left.is_nan() or right.is_nan() or (left.is_infinite() and right.is_infinite()):
        return Decimal("NaN")
    return None


def _weight(value: Decimal) -> tuple[int, int]:
    """The exponent of the first digit in base 10000, and that digit."""
    value = abs(value)
    if not value:
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(
        _CONTEXT.divide(value, Decimal(10000) ** weight).to_integral_value(ROUND_FLOOR)
    )


def _scale(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _rounded(value: Decimal, scale: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    if not value.is_finite():
        return value
    return value.quantize(Decimal(1).scaleb(-scale), rounding, _CONTEXT)


def _shortened(rounding: str) -> Callable[[Decimal, Decimal], Decimal]:
    """round() and trunc(): to a number of places that may be negative."""

    def apply(value: Decimal, places: Decimal) -> Decimal:
        digits = int(places)
        result = _rounded(value, digits, rounding)
        return _rounded(result, 0) if digits < 0 else result

    return apply


_OPERATIONS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "add": _CONTEXT.add,
    "sub": _CONTEXT.subtract,
    "mul": _CONTEXT.multiply,
    "div": _divide,
    "mod": _remainder,
    "round": _shortened(ROUND_HALF_UP),
    "trunc": _shortened(ROUND_DOWN),
    "neg": lambda value, _: -value,
    "pos": lambda value, _: value,
    "abs": lambda value, _: abs(value),
    "sign": lambda value, _: value if value.is_nan() else Decimal((value > 0) - (value < 0)),
    "ceil": lambda value, _: _rounded(value, 0, ROUND_CEILING),
    "floor": lambda value, _: _rounded(value, 0, ROUND_FLOOR),
}


def _coerce(value: str, typmod: int) -> str:
    number = text.coerce_typmod("numeric", Decimal(value), typmod, explicit=False)
    return text.render("numeric", number)


def _to_integer(name: str, bits: int) -> Callable[[str], str]:
    def convert(value: str) -> str:
        number = Decimal(value)
        if not number.is_finite():
            raise NumericValueOutOfRange(f"cannot convert {numeric_out(number).lower()} to {name}")
        rounded = int(_rounded(number, 0))
        if not -(2**bits) <= rounded < 2**bits:
            raise NumericValueOutOfRange(f"{name} out of range")
        return str(rounded)

    return convert


def _from_float(value: float, digits: int) -> str:
    """The shortest decimal of that many significant digits, not the binary value."""
    return numeric_out(Decimal(f"{value:.{digits}g}"))


def _sum(values: list[str]) -> str | None:
    if not values:
        return None
    total = Decimal(values[0])
    for value in values[1:]:
        total = _CONTEXT.add(total, Decimal(value))
    return numeric_out(total)


def _average(values: list[str]) -> str | None:
    total = _sum(values)
    return None if total is None else numeric_out(_divide(Decimal(total), Decimal(len(values))))


def _hash_partition(types: str, values: list[str | None], modulus: int) -> int:
    """The remainder that a row leaves."""
    return partition_hash(types.split(","), values) % modulus


#: name -> the function, and the Python type of what it gives.
_FUNCTIONS: dict[str, tuple[Callable[..., Any], type]] = {
    "replctl_numeric": (_operation, str),
    "replctl_numeric_cmp": (_compare, int),
    "replctl_numeric_key": (_sort_key, str),
    "replctl_numeric_coerce": (_coerce, str),
    "replctl_numeric_int2": (_to_integer("smallint", 15), str),
    "replctl_numeric_int4": (_to_integer("integer", 31), str),
    "replctl_numeric_int8": (_to_integer("bigint", 63), str),
    "replctl_float4_numeric": (lambda value: _from_float(value, 6), str),
    "replctl_float8_numeric": (lambda value: _from_float(value, 15), str),
    "replctl_numeric_sum": (_sum, str),
    "replctl_numeric_avg": (_average, str),
    "replctl_partition_hash": (_hash_partition, int),
}
