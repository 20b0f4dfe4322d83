"""The changes of the columns of a published table between two definitions, as a table of cases."""

from __future__ import annotations

import pytest

from replctl.replication.table_definition import (
    ColumnChanges,
    ColumnDefinition,
    TableDefinition,
    column_changes,
)


def _column(
    attnum: int, name: str, type_: str = "text", *, not_null: bool = False
) -> ColumnDefinition:
    return ColumnDefinition(name, type_, not_null=not_null, attnum=attnum, type_name=type_)


def _table(*columns: ColumnDefinition, unpublished: tuple[int, ...] = ()) -> TableDefinition:
    attnums = frozenset([column.attnum for column in columns] + list(unpublished))
    return TableDefinition("public", "t", columns, oid=1, attnums=attnums)


_A, _B = _column(1, "a"), _column(2, "b")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(_table(_A), _table(_A), ColumnChanges(), id="none"),
        pytest.param(_table(_A), _table(_A, _B), ColumnChanges(added=(_B,)), id="added"),
        pytest.param(_table(_A, _B), _table(_A), ColumnChanges(dropped=("b",)), id="dropped"),
        pytest.param(
            _table(_A, _B),
            _table(_A, _column(3, "b")),
            ColumnChanges(dropped=("b",), added=(_column(3, "b"),)),
            id="dropped, and another one added",
        ),
        pytest.param(
            _table(_A, _B),
            _table(_column(1, "b"), _column(2, "a")),
            ColumnChanges(renamed=(("a", "b"), ("b", "a"))),
            id="two names exchanged",
        ),
        pytest.param(
            _table(_A, _column(2, "b", "int4", not_null=True)),
            _table(_A, _column(2, "b", "int8")),
            ColumnChanges(
                retyped=((_column(2, "b", "int4", not_null=True), _column(2, "b", "int8")),),
                nullable=("b",),
            ),
            id="another type, and NULL allowed",
        ),
        pytest.param(
            _table(_A, unpublished=(2,)), _table(_A, _B), ColumnChanges(), id="into the column list"
        ),
        pytest.param(
            _table(_A, _B), _table(_A, unpublished=(2,)), ColumnChanges(), id="out of the list"
        ),
        pytest.param(
            _table(_A),
            TableDefinition("public", "t", (_B,), oid=2, attnums=frozenset({2})),
            ColumnChanges(),
            id="another table of the name",
        ),
    ],
)
def test_changes(before: TableDefinition, after: TableDefinition, expected: ColumnChanges) -> None:
    assert column_changes(before, after) == expected
