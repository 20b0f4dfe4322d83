"""Translated expressions: their Spark SQL and their types."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from urllib.parse import quote, unquote

from replctl.errors import FeatureNotSupported, PostgresError, error_class
from replctl.record import dataclass
from replctl.relation_name import DomainName
from replctl.spark.python_calls import uses_python, without_quoted

#: Matches an error that a translated expression has raised: raise_error('replctl:22003|integer out
#: of range|detail|end'), optionally with |hint=..., and
#: |domain|schema|name|name in messages|constraint before the end.
_RAISED = re.compile(
    r"replctl:(\w{5})\|([^|]*)\|([^|]*)(?:\|hint=([^|]*))?"
    r"(?:\|domain\|([^|]*)\|([^|]*)\|([^|]*)(?:\|([^|]*))?)?\|end",
    re.S,
)

#: Spark's DECIMAL types, with their precision and scale.
_DECIMALS = {f"DECIMAL({p},{s})": (p, s) for p in range(1, 39) for s in range(p + 1)}


@dataclass(frozen=True, slots=True)
class SqlValue:
    """A translated expression.

    Attributes:
        text: Spark SQL that can be an operand without further parentheses.
        type: PostgreSQL's type of the value.
        spark: Spark's type of the value.
    """

    text: str
    type: str
    spark: str

    @property
    def decimal(self) -> tuple[int, int] | None:
        """Return the precision and scale of a DECIMAL; None for other values."""
        return _DECIMALS.get(self.spark)


#: Matches a subquery outside of literals.
_SUBQUERY = re.compile(r"\((?:SELECT|WITH) ")
_SHORT = 60


def check_lambda(body: str) -> None:
    """Refuse a lambda whose body calls a function that runs in Python, or has a subquery.

    Raises:
        FeatureNotSupported: the body has one.
    """
    if uses_python(body):
        raise FeatureNotSupported("functions of Python inside a lambda are not supported")
    _check_subqueries(body)


def _check_subqueries(text: str) -> None:
    """Raise FeatureNotSupported for SQL with a subquery: Spark has none next to or in a lambda."""
    if _SUBQUERY.search(without_quoted(text)):
        raise FeatureNotSupported("subqueries are not supported in this place of an expression")


def bound(
    args: Sequence[SqlValue],
    build: Callable[[Sequence[SqlValue]], str],
    always: Collection[int] = (),
) -> str:
    """Return the result of `build` in a form that computes each long value only once.  It computes
    the values with indexes in `always` in any case, and first.

    f(x) || f(x) where f(x) is long  becomes  get(transform(array(f(x)), a0_ -> a0_ || a0_), 0)

    Raises:
        FeatureNotSupported: the result of `build` runs in Python.
    """
    plain = build(args)
    repeated = [
        i
        for i, arg in enumerate(args)
        if i in always or (len(arg.text) > _SHORT and plain.count(arg.text) > 1)
    ]
    if not repeated:
        return plain
    names = {i: f"bound_.a{i}" for i in repeated}
    inner = [
        SqlValue(names[i], arg.type, arg.spark) if i in names else arg for i, arg in enumerate(args)
    ]
    body = build(inner)
    check_lambda(body)
    inside = (arg.text for i, arg in enumerate(args) if i not in names)
    if any("bound_" in without_quoted(text) for text in inside):
        raise FeatureNotSupported("values are bound already")
    fields = ", ".join(f"'a{i}', {args[i].text}" for i in repeated)
    _check_subqueries(fields)
    return f"get(transform(array(named_struct({fields})), bound_ -> {body}), 0)"


def raise_error_sql(sqlstate: str, message: str, detail: str = "") -> str:
    """Return a Spark expression that raises the PostgreSQL error with an SQLSTATE and a message."""
    return raised_sql(error_class(sqlstate)(message, detail=detail or None))


def raised_sql(error: PostgresError) -> str:
    """Return a Spark expression that raises an error."""
    return f"raise_error({_literal(raised_text(error))})"


def raise_value_error_sql(sqlstate: str, before: str, value: str, after: str) -> str:
    """Return an expression like `raise_error_sql`.  The message is `before`, the value of the SQL
    `value`, and `after`.
    """
    start, end = raised_text(error_class(sqlstate)(f"{before}\0{after}")).split("%00")
    escaped = f"replace(url_encode({value}), '+', '%20')"
    return f"raise_error(concat({_literal(start)}, {escaped}, {_literal(end)}))"


def _literal(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"


def raised_text(error: PostgresError) -> str:
    """Encode an error as text.  Spark returns it inside its own message."""
    parts = [quote(part, safe=_SAFE) for part in (error.message, error.detail or "")]
    if error.hint is not None:
        parts.append(f"hint={quote(error.hint, safe=_SAFE)}")
    if error.domain is not None:
        names = (*error.domain, *filter(None, (error.constraint,)))
        parts += ["domain", *(quote(name, safe=_SAFE) for name in names)]
    return f"replctl:{error.sqlstate}|{'|'.join(parts)}|end"


def raised_error(message: str) -> PostgresError | None:
    """Return the error that `raised_text` has encoded in a message of Spark; None without one."""
    found = _RAISED.search(message)
    if found is None:
        return None
    hint = None if found[4] is None else unquote(found[4])
    schema, name, shown, constraint = (text and unquote(text) for text in found.group(5, 6, 7, 8))
    return error_class(found[1])(
        unquote(found[2]),
        detail=unquote(found[3]) or None,
        hint=hint,
        domain=None if schema is None else DomainName(schema, name, shown),
        constraint=constraint,
    )


#: All printable ASCII characters except the separator and the escape character.
_SAFE = "".join(char for char in map(chr, range(32, 127)) if char not in "|%")
