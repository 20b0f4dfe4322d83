"""The rows that a reconcile may delete, as a table of cases."""

from __future__ import annotations

import pytest

from replctl.catalog.table_copy import EVERY_ROW, AppliedFilter, Deletion
from replctl.expr import nodes, pg_node_tree
from replctl.replication.node import RemoteColumn, RemoteRelation
from replctl.replication.reconcile_rules import (
    LocalColumn,
    RowOwnership,
    Scope,
    deletion_of,
    loses_too_many,
    owned_conditions,
    scope_of,
    undecided_reasons,
)

ALL, SCOPE, NONE, ASK = Deletion.ALL, Deletion.SCOPE, Deletion.NONE, None
UNKNOWN = Scope(problem='Column "b" of a row filter is not replicated.')


def is_null(attnum: int, type_: str = "int4") -> nodes.Expr:
    return nodes.NullTest(nodes.Var(attnum, type_), True)


def applied(name: str, type_: str = "int4", typmod: int = -1) -> AppliedFilter:
    """Return the applied filter `name IS NULL`."""
    return AppliedFilter(pg_node_tree.dumps(is_null(1, type_)), ((name, type_, typmod),))


def ownership(
    *,
    publishes_delete: bool = True,
    is_own: bool = False,
    has_other_feeds: bool = False,
    has_any_origin: bool = True,
    scope: Scope = Scope((is_null(1),)),  # noqa: B008
) -> RowOwnership:
    return RowOwnership(publishes_delete, is_own, has_other_feeds, has_any_origin, scope)


CASES = [
    ("all rows are the subscription's", ownership(is_own=True), ALL),
    ("so they are with origin = none", ownership(is_own=True, has_any_origin=False), ALL),
    (
        "so they are where the filter's column is missing",
        ownership(is_own=True, scope=UNKNOWN),
        ALL,
    ),
    ("so they are without a key, which does not matter here", ownership(is_own=True), ALL),
    ("local rows inside and outside the filter", ownership(), SCOPE),
    ("local rows, no filter", ownership(scope=Scope()), ALL),
    ("an archive: delete is not published", ownership(publishes_delete=False, is_own=True), NONE),
    ("insert only, with local rows", ownership(publishes_delete=False), NONE),
    ("several subscriptions of one table", ownership(has_other_feeds=True), ASK),
    ("another subscription of a sibling partition", ownership(has_other_feeds=True), ASK),
    ("local rows, origin = none", ownership(has_any_origin=False), ASK),
    ("local rows, the target lacks the filter's column", ownership(scope=UNKNOWN), ASK),
]


@pytest.mark.parametrize(("case", "facts", "expected"), CASES, ids=[case for case, *_ in CASES])
def test_rows_to_delete(case: str, facts: RowOwnership, expected: Deletion | None) -> None:
    assert deletion_of(facts, None) is expected
    if expected is ASK:
        assert undecided_reasons(facts)


@pytest.mark.parametrize("said", list(Deletion))
@pytest.mark.parametrize(("case", "facts", "expected"), CASES, ids=[case for case, *_ in CASES])
def test_the_statement_decides_unless_deletes_are_not_published(
    case: str, facts: RowOwnership, expected: Deletion | None, said: Deletion
) -> None:
    assert deletion_of(facts, said) is (said if facts.publishes_delete else NONE)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (ownership(is_own=True), ()),
        (ownership(), (is_null(1),)),
        (ownership(publishes_delete=False), None),
        (ownership(has_other_feeds=True), (is_null(1),)),
        (ownership(scope=UNKNOWN), ()),
    ],
)
def test_the_rows_that_are_a_difference_if_they_are_not_published(
    facts: RowOwnership, expected: tuple[nodes.Expr, ...] | None
) -> None:
    assert owned_conditions(facts) == expected


REMOTE = RemoteRelation(
    "public", "t", (RemoteColumn("id", "int4", -1), RemoteColumn("a", "int4", -1)), ("id",)
)
COLUMNS = {
    "id": LocalColumn(1, "int4", -1),
    "own": LocalColumn(2, "int4", -1),
    "a": LocalColumn(5, "int4", -1),
    "b": LocalColumn(6, "int4", -1),
}


@pytest.mark.parametrize(
    ("filters", "columns", "expected"),
    [
        ([applied("a")], COLUMNS, Scope((is_null(5),))),
        ([applied("id"), applied("a")], COLUMNS, Scope((is_null(1), is_null(5)))),  # changed once
        ([applied("a"), applied("id"), applied("a")], COLUMNS, Scope((is_null(5), is_null(1)))),
        ([applied("a"), EVERY_ROW], COLUMNS, Scope()),
        ([applied("b"), EVERY_ROW], COLUMNS, Scope()),
        ([applied("b")], COLUMNS, UNKNOWN),
        ([applied("a"), applied("b")], COLUMNS, UNKNOWN),
        (
            [applied("a")],
            {**COLUMNS, "a": LocalColumn(5, "int8", -1)},
            Scope(problem='Column "a" of a row filter has another type at the publisher.'),
        ),
        (
            [applied("a", "numeric", 655366)],
            {**COLUMNS, "a": LocalColumn(5, "numeric", 655367)},
            Scope(problem='Column "a" of a row filter has another type at the publisher.'),
        ),
        (
            [applied("a")],
            {"id": COLUMNS["id"]},
            Scope(problem='Column "a" of a row filter is not replicated.'),
        ),
    ],
)
def test_the_scope_of_filters(
    filters: list[AppliedFilter], columns: dict[str, LocalColumn], expected: Scope
) -> None:
    assert scope_of(filters, REMOTE, columns) == expected


@pytest.mark.parametrize(
    ("deleted", "total", "percentage", "expected"),
    [
        (0, 0, 10, False),
        (0, 5, 0, False),
        (1, 10, 10, False),
        (1, 9, 10, True),
        (2, 10, 10, True),
        (1, 1_000_000, 0, True),
        (7, 7, 100, False),
        (7, 7, 99, True),
    ],
)
def test_how_many_rows_go_without_being_asked(
    deleted: int, total: int, percentage: int, expected: bool
) -> None:
    assert loses_too_many(deleted, total, percentage) == expected
