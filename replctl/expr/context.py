"""The place of an expression, and what it allows: PostgreSQL's ParseExprKind, with the messages of
parse_agg.c, parse_func.c and parse_expr.c.
"""

from __future__ import annotations

from enum import Enum

from replctl.errors import (
    FeatureNotSupported,
    GroupingError,
    PostgresError,
    WindowingError,
)
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class _Rules:
    """The kinds of expression that a place allows.

    Attributes:
        name: the place's name in messages.
        phrase: the words after `not allowed in`; the name if it is empty.
        aggregates, windows, sets: the place allows such functions.
        subquery, column: the complete message that refuses them; None if the place allows them.
        aggregate_phrase, window_phrase: words other than `phrase` for these functions.
    """

    name: str
    phrase: str = ""
    aggregates: bool = False
    windows: bool = False
    sets: bool = False
    subquery: str | None = None
    column: str | None = None
    aggregate_phrase: str = ""
    window_phrase: str = ""


class ExprContext(Enum):
    """The place of an expression in a statement."""

    SELECT_TARGET = _Rules("SELECT", aggregates=True, windows=True, sets=True)
    FROM_SUBSELECT = _Rules(
        "sub-SELECT in FROM", aggregate_phrase="FROM clause of their own query level"
    )
    FROM_FUNCTION = _Rules("function in FROM", "functions in FROM", sets=True)
    JOIN_ON = _Rules("JOIN/ON", "JOIN conditions")
    WHERE = _Rules("WHERE")  # also in row filters of publications
    HAVING = _Rules("HAVING", aggregates=True)
    FILTER = _Rules("FILTER")
    WINDOW_PARTITION = _Rules(
        "window PARTITION BY", aggregates=True, sets=True, window_phrase="window definitions"
    )
    WINDOW_ORDER = _Rules(
        "window ORDER BY", aggregates=True, sets=True, window_phrase="window definitions"
    )
    GROUP_BY = _Rules("GROUP BY", sets=True)
    ORDER_BY = _Rules("ORDER BY", aggregates=True, windows=True, sets=True)
    DISTINCT_ON = _Rules("DISTINCT ON", aggregates=True, windows=True, sets=True)
    LIMIT = _Rules("LIMIT")
    OFFSET = _Rules("OFFSET")
    INSERT = _Rules("INSERT", sets=True)
    UPDATE = _Rules("UPDATE")
    RETURNING = _Rules("RETURNING")
    VALUES = _Rules("VALUES")
    VALUES_SINGLE = _Rules("VALUES", sets=True)
    DEFAULT = _Rules(
        "DEFAULT",
        "DEFAULT expressions",
        subquery="cannot use subquery in DEFAULT expression",
        column="cannot use column reference in DEFAULT expression",
    )
    GENERATED = _Rules(
        "GENERATED AS",
        "column generation expressions",
        subquery="cannot use subquery in column generation expression",
    )
    CHECK = _Rules("CHECK", "check constraints", subquery="cannot use subquery in check constraint")
    INDEX_EXPRESSION = _Rules(
        "index expression",
        "index expressions",
        subquery="cannot use subquery in index expression",
    )
    INDEX_PREDICATE = _Rules(
        "index predicate",
        "index predicates",
        subquery="cannot use subquery in index predicate",
    )
    PARTITION_BOUND = _Rules(
        "partition bound",
        "partition bound",
        subquery="cannot use subquery in partition bound",
        column="cannot use column reference in partition bound expression",
    )
    PARTITION_EXPRESSION = _Rules(
        "PARTITION BY",
        "partition key expressions",
        subquery="cannot use subquery in partition key expression",
    )
    ALTER_TYPE = _Rules(
        "USING",
        "transform expressions",
        subquery="cannot use subquery in transform expression",
    )

    POLICY = _Rules("POLICY", "policy expressions")
    COPY_WHERE = _Rules(
        "WHERE",
        "COPY FROM WHERE conditions",
        subquery="cannot use subquery in COPY FROM WHERE condition",
    )

    @property
    def title(self) -> str:
        """Return the name of the place in messages: `WHERE`, `index predicate`
        (ParseExprKindName).
        """
        return self.value.name

    def aggregate_error(self, pos: int, *, grouping: bool = False) -> PostgresError | None:
        """Return the error that refuses an aggregate, or GROUPING; None if it is allowed here."""
        if self.value.aggregates:
            return None
        what = "grouping operations" if grouping else "aggregate functions"
        phrase = self.value.aggregate_phrase or self.value.phrase or self.title
        return GroupingError(f"{what} are not allowed in {phrase}", position=pos)

    def window_error(self, pos: int) -> PostgresError | None:
        """Return the error that refuses a call with OVER; None if it is allowed here."""
        if self.value.windows:
            return None
        phrase = self.value.window_phrase or self.value.phrase or self.title
        return WindowingError(f"window functions are not allowed in {phrase}", position=pos)

    def set_error(self, pos: int) -> PostgresError | None:
        """Return the error that refuses a set-returning function; None if it is allowed here."""
        if self.value.sets:
            return None
        phrase = self.value.phrase or self.title
        return FeatureNotSupported(
            f"set-returning functions are not allowed in {phrase}", position=pos
        )

    def subquery_error(self, pos: int) -> PostgresError | None:
        """Return the error that refuses a subquery; None if it is allowed here."""
        if self.value.subquery is None:
            return None
        return FeatureNotSupported(self.value.subquery, position=pos)

    def column_error(self, pos: int) -> PostgresError | None:
        """Return the error that refuses a column reference; None if it is allowed here."""
        if self.value.column is None:
            return None
        return FeatureNotSupported(self.value.column, position=pos)
