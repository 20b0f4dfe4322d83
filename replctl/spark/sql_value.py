"""What a translated expression is: its Spark SQL and its types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from replctl.errors import PostgresError, error_class

#: What an expression raises on purpose: raise_error('replctl:22003|integer out of range|detail|end').
_RAISED = re.compile(r"replctl:(\w{5})\|([^|]*)\|([^|]*)\|end", re.S)

_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class SqlValue:
    """`text` is Spark SQL, safe to stand as an operand; `type` PostgreSQL's type, `spark` Spark's."""

    text: str
    type: str
    spark: str

    @property
    def decimal(self) -> tuple[int, int] | None:
        """(precision, scale) if the value is a DECIMAL."""
        found = _DECIMAL.fullmatch(self.spark)
        return (int(found[1]), int(found[2])) if found else None


def raise_error_sql(sqlstate: str, message: str, detail: str = "") -> str:
    """A Spark expression that ends the query with a PostgreSQL error."""
    text = raised_text(error_class(sqlstate)(message, detail=detail or None))
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"raise_error('{quoted}')"


def raised_text(error: PostgresError) -> str:
    """An error as text that comes back from Spark within its own message."""
    parts = (quote(part, safe=_SAFE) for part in (error.message, error.detail or ""))
    return f"replctl:{error.sqlstate}|{'|'.join(parts)}|end"


def raised_error(message: str) -> PostgresError | None:
    """The error that `raised_text` has put into a message of Spark's."""
    found = _RAISED.search(message)
    if found is None:
        return None
    return error_class(found[1])(unquote(found[2]), detail=unquote(found[3]) or None)


#: All of ASCII that can be read, but for the separator and the escape.
_SAFE = "".join(char for char in map(chr, range(32, 127)) if char not in "|%")
