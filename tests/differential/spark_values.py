"""Values that Spark computes, many expressions in one job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replctl import spark
from replctl.errors import PostgresError
from replctl.expr import nodes
from replctl.spark import StagedColumn, stored_sql, to_sql

from .comparison import Comparison, Difference, Evaluated

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_TOGETHER = 50  # expressions of one job
#: Number of failing expressions of a job whose errors are examined.  Each needs a job of its own.
_FAILURES = 2


@dataclass(frozen=True, slots=True)
class _Translated:
    item: Evaluated
    sql: str

    def keys(self, *, failing: bool) -> list[int]:
        """Return the numbers of the rows for which the server has an error, or has none."""
        return [
            number
            for number, result in enumerate(self.item.results, start=1)
            if result.startswith("!") is failing
        ]


@dataclass(frozen=True, slots=True)
class SparkValues:
    """Spark's side of a comparison; `table` is a view of the rows."""

    engine: Engine
    table: str
    comparison: Comparison

    def compare(self, items: Sequence[Evaluated]) -> None:
        """Find the rows for which the value or the error of Spark differs from that of the
        server."""
        translated = [found for item in items if (found := self._translated(item)) is not None]
        for start in range(0, len(translated), _TOGETHER):
            self._compare_batch(translated[start : start + _TOGETHER])

    def _translated(self, item: Evaluated) -> _Translated | None:
        try:
            value = to_sql(item.expr, lambda var: f"c{var.attnum}")
            return _Translated(item, stored_sql(value, item.expr.type, -1))
        except PostgresError as error:
            for number, expected in enumerate(item.results, start=1):
                self._note(item, number, expected, f"!{error.sqlstate}")
        return None

    def _compare_batch(self, batch: Sequence[_Translated]) -> None:
        try:
            values = self._values(batch, is_guarded=False)
        except PostgresError:  # Spark fails for a row, and the server does not
            try:
                values = self._values(batch, is_guarded=True)
            except PostgresError as error:  # not an error of a row: the job itself fails
                if len(batch) == 1:
                    self._note(batch[0].item, 0, "", f"{error.message}: {error.detail}")
                for i in range(len(batch) if len(batch) > 1 else 0):
                    self._compare_batch(batch[i : i + 1])
                return
        for one, results in zip(batch, values, strict=True):
            for number, (expected, actual) in enumerate(
                zip(one.item.results, results, strict=True), start=1
            ):
                is_error = expected.startswith("!") and actual == "!"
                self._note(one.item, number, expected, expected if is_error else actual)
        for one in [item for item in batch if item.keys(failing=True)][:_FAILURES]:
            number = one.keys(failing=True)[0]
            self._note(one.item, number, one.item.results[number - 1], self._failure(one, number))

    def _values(self, batch: Sequence[_Translated], *, is_guarded: bool) -> list[list[str]]:
        """Return the results of the rows for each expression, with `!` for an error."""
        selected, fields = ["c1"], [StagedColumn("c1", "int4")]
        for i, one in enumerate(batch):
            failing = range(1, len(one.item.results) + 1) if is_guarded else one.keys(failing=True)
            # try_to_binary() is NULL if its argument fails
            test = f"(try_to_binary(coalesce(CAST({one.sql} AS STRING), ''), 'utf-8') IS NULL)"
            fails = f"CASE WHEN {_is_one_of(failing)} THEN {test} ELSE FALSE END"
            value = one.sql if not is_guarded else f"CASE WHEN NOT {test} THEN {one.sql} END"
            succeeds = _is_one_of(one.keys(failing=False))
            selected += [f"{fails} AS e{i}", f"CASE WHEN {succeeds} THEN {value} END AS x{i}"]
            fields += [StagedColumn(f"e{i}", "bool"), StagedColumn(f"x{i}", one.item.expr.type)]
        found = self.engine.fetch(f"SELECT {', '.join(selected)} FROM {self.table}", fields)
        rows = sorted(found, key=lambda row: int(row[0] or 0))
        return [[_shown(row[1 + 2 * i], row[2 + 2 * i]) for row in rows] for i in range(len(batch))]

    def _failure(self, one: _Translated, number: int) -> str:
        query = f"SELECT {one.sql} AS x FROM {self.table} WHERE c1 = {number}"
        try:
            self.engine.fetch(query, [StagedColumn("x", one.item.expr.type)])
        except PostgresError as error:
            return f"!{error.sqlstate}"
        return "no error"

    def _note(self, item: Evaluated, number: int, expected: str, actual: str) -> None:
        is_error = (expected.startswith("!"), actual.startswith("!"))
        if is_error[0] != is_error[1] and _has_and_or(item.expr):
            return  # the computed operands of AND and OR are unspecified
        if actual != expected:
            self.comparison.differences.append(
                Difference("spark", item.expression, expected, actual, number)
            )


@contextmanager
def spark_values(engine: Engine, comparison: Comparison) -> Iterator[SparkValues]:
    """Yield Spark's side of the comparison, with the rows in a temporary view."""
    staged = [StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in comparison.columns]
    local = spark.LocalRows(staged)
    local.add(comparison.rows)
    with local.view(engine) as view:
        yield SparkValues(engine, view, comparison)


def _has_and_or(expr: nodes.Expr) -> bool:
    return any(isinstance(node, nodes.BoolExpr) and node.op != "not" for node in nodes.walk(expr))


def _is_one_of(keys: Sequence[int]) -> str:
    return f"c1 IN ({', '.join(map(str, keys))})" if keys else "FALSE"


def _shown(is_error: str | None, value: str | None) -> str:
    if is_error == "t":
        return "!"
    return "NULL" if value is None else f"={value}"
