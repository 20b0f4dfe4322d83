"""The rules for references between the queries of WITH RECURSIVE: makeDependencyGraph() and
checkWellFormedRecursion() of PostgreSQL's parse_cte.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from replctl.catalog.namespace import CatalogEnvironment
from replctl.errors import (
    CollationMismatch,
    DatatypeMismatch,
    DuplicateAlias,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidRecursion,
    PostgresError,
    UndefinedTable,
)
from replctl.expr import nodes
from replctl.expr.error_location import expr_location, raw_location
from replctl.parser import ast
from replctl.query.tree import FromCte, FromNode, Join, OutputColumn, Query


class _Place(Enum):
    """The place of a reference; the value completes the error's text."""

    ALLOWED = ""
    NON_RECURSIVE_TERM = "its non-recursive term"
    SUBQUERY = "a subquery"
    OUTER_JOIN = "an outer join"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


def ordered_ctes(clause: ast.WithClause) -> tuple[tuple[ast.CommonTableExpr, bool], ...]:
    """Return the queries of WITH, each with whether it reads itself.  Those of WITH RECURSIVE come
    in an order without forward references.

    Raises:
        DuplicateAlias: two queries have the same name.
        FeatureNotSupported: two queries read each other, or a query changes data.
        InvalidRecursion: a query reads itself in a wrong way.
    """
    names: set[str] = set()
    for cte in clause.ctes:
        if cte.name in names:
            raise DuplicateAlias(
                f'WITH query name "{cte.name}" specified more than once', position=cte.pos
            )
        names.add(cte.name)
    if not all(isinstance(cte.query, ast.SelectStmt) for cte in clause.ctes):
        raise FeatureNotSupported("data-modifying statements in WITH are not supported")
    if not clause.is_recursive:
        return tuple((cte, False) for cte in clause.ctes)
    read = {cte.name: {r.name for r, _ in _references(cte.query)} for cte in clause.ctes}
    recursive = {name for name, names in read.items() if name in names}
    ordered: list[ast.CommonTableExpr] = []
    pending = list(clause.ctes)
    while pending:
        waiting = {cte.name for cte in pending}
        ready = (i for i, cte in enumerate(pending) if not (read[cte.name] - {cte.name}) & waiting)
        found = next(ready, None)
        if found is None:
            raise FeatureNotSupported(
                "mutual recursion between WITH items is not implemented", position=pending[0].pos
            )
        # PostgreSQL swaps the entry with the first one that is left (TopologicalSort).
        pending[0], pending[found] = pending[found], pending[0]
        ordered.append(pending.pop(0))
    for cte in ordered:
        if cte.name in recursive:
            _check_form(cte)
    return tuple((cte, cte.name in recursive) for cte in ordered)


def _check_form(cte: ast.CommonTableExpr) -> None:
    """Check a query that reads itself: `base UNION [ALL] step`, where only the step reads it."""
    statement = cte.query
    assert isinstance(statement, ast.SelectStmt)
    if statement.set_op != "union":
        raise InvalidRecursion(
            f'recursive query "{cte.name}" does not have the form non-recursive-term UNION [ALL]'
            " recursive-term",
            position=cte.pos,
        )
    if statement.with_clause is not None:
        _check_references(cte.name, _of_with(statement.with_clause, _Place.SUBQUERY, frozenset()))
    sorted_by = statement.order_by[0].expr if statement.order_by else None
    for clause, raw in (
        ("ORDER BY", sorted_by),
        ("OFFSET", statement.offset),
        ("LIMIT", statement.limit),
    ):
        if raw is not None:
            raise FeatureNotSupported(
                f"{clause} in a recursive query is not implemented", position=raw_location(raw)
            )
    if statement.locking:
        raise FeatureNotSupported("FOR UPDATE/SHARE in a recursive query is not implemented")
    _check_references(cte.name, _references(statement.left, _Place.NON_RECURSIVE_TERM))
    _check_references(cte.name, _references(statement.right))


def _check_references(name: str, found: Iterator[tuple[ast.RangeVar, _Place]]) -> None:
    number = 0
    for reference, place in found:
        if reference.name != name:
            continue
        number += 1
        start = f'recursive reference to query "{name}" must not appear'
        if place is not _Place.ALLOWED:
            raise InvalidRecursion(f"{start} within {place.value}", position=reference.pos)
        if number > 1:
            raise InvalidRecursion(f"{start} more than once", position=reference.pos)


def _references(
    part: Any, place: _Place = _Place.ALLOWED, hidden: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.RangeVar, _Place]]:
    """Yield the names in FROM that may name a WITH query around `part`, and their places.

    Args:
        hidden: the names of inner WITH queries.
    """
    match part:
        case ast.RangeVar():
            if part.schema is None and part.name not in hidden:
                yield part, place
        case ast.SelectStmt():
            if part.with_clause is not None:
                yield from _of_with(part.with_clause, place, hidden)
                hidden |= {cte.name for cte in part.with_clause.ctes}
            yield from _of_select(part, place, hidden)
        case ast.JoinExpr():
            outer = _Place.OUTER_JOIN if place is _Place.ALLOWED else place
            is_left, is_right = part.kind in ("left", "full"), part.kind in ("right", "full")
            yield from _references(part.left, outer if is_right else place, hidden)
            yield from _references(part.right, outer if is_left else place, hidden)
            yield from _references(part.on, place, hidden)
        case ast.SubLink():
            yield from _references(part.query, _Place.SUBQUERY, hidden)
            yield from _references(part.test, place, hidden)
        case tuple():
            for item in part:
                yield from _references(item, place, hidden)
        case _:
            for name in getattr(part, "__dataclass_fields__", ()):
                yield from _references(getattr(part, name), place, hidden)


def _of_with(
    clause: ast.WithClause, place: _Place, hidden: frozenset[str]
) -> Iterator[tuple[ast.RangeVar, _Place]]:
    if clause.is_recursive:
        hidden |= {cte.name for cte in clause.ctes}
    for cte in clause.ctes:
        yield from _references(cte.query, place, hidden)
        hidden |= {cte.name}


#: The fields of SelectStmt whose references need rules of their own, or are none.
_APART = frozenset({"with_clause", "left", "right", "into"})


def _of_select(
    statement: ast.SelectStmt, place: _Place, hidden: frozenset[str]
) -> Iterator[tuple[ast.RangeVar, _Place]]:
    for name in ast.SelectStmt.__dataclass_fields__:
        if name not in _APART:
            yield from _references(getattr(statement, name), place, hidden)
    left = right = place
    if place is _Place.ALLOWED and statement.set_op == "intersect" and statement.all:
        left = right = _Place.INTERSECT
    elif place is _Place.ALLOWED and statement.set_op == "except":
        left, right = _Place.EXCEPT if statement.all else place, _Place.EXCEPT
    yield from _references(statement.left, left, hidden)
    yield from _references(statement.right, right, hidden)


def cte_columns(
    cte: ast.CommonTableExpr, columns: Sequence[OutputColumn]
) -> tuple[OutputColumn, ...]:
    """Return the columns of a WITH query with the names in its list of columns.

    Raises:
        InvalidColumnReference: the list is longer than the columns.
    """
    names = cte.columns
    if len(names) > len(columns):
        raise InvalidColumnReference(
            f'WITH query "{cte.name}" has {len(columns)} columns available but {len(names)} columns'
            " specified",
            position=cte.pos,
        )
    return tuple(
        replace(column, name=names[i]) if i < len(names) else column
        for i, column in enumerate(columns)
    )


def check_columns(
    environment: CatalogEnvironment, name: str, base: Sequence[OutputColumn], query: Query
) -> None:
    """Check that a recursive query has the types and collations of its non-recursive term `base`.

    Raises:
        DatatypeMismatch, CollationMismatch: a column differs.
    """
    for i, (before, column) in enumerate(zip(base, query.columns, strict=True)):
        position = expr_location(query.outputs[i].expr)
        start = f'recursive query "{name}" column {i + 1} has'
        if (before.type, before.typmod) != (column.type, column.typmod):
            was, is_ = (environment.format_type(c.type, c.typmod) for c in (before, column))
            raise DatatypeMismatch(
                f"{start} type {was} in non-recursive term but type {is_} overall",
                hint="Cast the output of the non-recursive term to the correct type.",
                position=position,
            )
        if before.collation != column.collation:
            was, is_ = (c.collation or "(null)" for c in (before, column))
            raise CollationMismatch(
                f'{start} collation "{was}" in non-recursive term but collation "{is_}" overall',
                hint="Use the COLLATE clause to set the collation of the non-recursive term.",
                position=position,
            )


def check_aggregates(query: Query) -> None:
    """Check that a query with aggregates is not a recursive term.

    Raises:
        InvalidRecursion: its FROM reads the recursive query.
    """
    if not any(map(_reads_itself, query.from_)):
        return
    exprs = (*(output.expr for output in query.outputs), *filter(None, (query.having,)))
    calls = (
        node
        for expr in exprs
        for node in nodes.walk(expr)
        if isinstance(node, nodes.Aggref) and not node.levels_up
    )
    call = next(calls, None)
    raise InvalidRecursion(
        "aggregate functions are not allowed in a recursive query's recursive term",
        position=-1 if call is None else call.pos,
    )


def _reads_itself(item: FromNode) -> bool:
    if isinstance(item, Join):
        return _reads_itself(item.left) or _reads_itself(item.right)
    return isinstance(item, FromCte) and item.is_recursive


def forward_reference(error: UndefinedTable, name: str) -> PostgresError:
    """Return the error of a missing table whose name a later WITH query has."""
    return UndefinedTable(
        error.message,
        detail=f'There is a WITH item named "{name}", but it cannot be referenced from this part of'
        " the query.",
        hint="Use WITH RECURSIVE, or re-order the WITH items to remove forward references.",
        position=error.position,
    )


def check_step(step: Query) -> None:
    """Check that the engines can compute a recursive term.

    Raises:
        FeatureNotSupported: the term has a clause that no engine computes.
    """
    _refuse_clauses(
        ("ORDER BY", step.order_by),
        ("LIMIT", step.limit),
        ("OFFSET", step.offset),
        ("WITH", step.ctes),
    )


def check_step_of_row(step: Query) -> None:
    """Check that the rows of a recursive term are those of separate queries of each earlier row.
    SQLite computes the term in this way.

    Raises:
        FeatureNotSupported: SQLite would return other rows for the term.
    """
    walked = (node for output in step.outputs for node in nodes.walk(output.expr))
    _refuse_clauses(
        ("set operations", step.set_operation is not None or step.values),
        ("GROUP BY", step.group_by),
        ("DISTINCT", step.distinct is not None),
        ("window functions", any(isinstance(node, nodes.WindowFunc) for node in walked)),
    )
    if not any(map(_reads_itself, step.from_)):
        raise FeatureNotSupported("subqueries that read a recursive query are not supported")


def _refuse_clauses(*clauses: tuple[str, Any]) -> None:
    for clause, is_used in clauses:
        if is_used:
            verb = "is" if clause.isupper() else "are"
            raise FeatureNotSupported(f"{clause} in a recursive term {verb} not supported")
