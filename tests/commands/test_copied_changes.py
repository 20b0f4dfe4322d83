"""The columns of a subscription's table follow those of an adopted table before a copy: table
tests without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fix_cluster import relation_of
from golden_script import answer_of

from replctl.catalog.column_origin import ColumnOrigin
from replctl.commands.follow_schema import common_changes, copied_changes
from replctl.replication.table_definition import ColumnChanges, ColumnDefinition, TableDefinition
from replctl.session import Session

_CLUSTER, _RELID = 77, 5


def _column(attnum: int, name: str, type_: str = "text") -> ColumnDefinition:
    return ColumnDefinition(name, type_, attnum=attnum, type_name=type_)


_ID, _A, _B = _column(1, "id", "int4"), _column(2, "a"), _column(3, "b")
_NEW = _column(4, "a", "date")


def _table(*columns: ColumnDefinition, unpublished: tuple[int, ...] = ()) -> TableDefinition:
    attnums = frozenset([*(column.attnum for column in columns), *unpublished])
    return TableDefinition("public", "t", columns, oid=_RELID, attnums=attnums, cluster=_CLUSTER)


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        pytest.param(_table(_ID, _A, _B), ColumnChanges(), id="none"),
        pytest.param(_table(_ID, _A, unpublished=(3,)), ColumnChanges(), id="out of the list"),
        pytest.param(
            _table(_ID, _A, _B, _column(4, "c")),
            ColumnChanges(added=(_column(4, "c"),)),
            id="added",
        ),
        pytest.param(
            _table(_ID, _B, replace(_NEW, is_restored=True)),
            ColumnChanges(dropped=("a",), added=(_NEW,)),
            id="dropped, and another one added",
        ),
        pytest.param(
            _table(_ID, _column(2, "b"), _column(3, "a")),
            ColumnChanges(renamed=(("a", "b"), ("b", "a"))),
            id="two names exchanged",
        ),
        pytest.param(
            _table(_ID, _column(2, "own"), _column(3, "a")),
            ColumnChanges(),
            id="renamed to the name of a column that the user has added",
        ),
        pytest.param(
            _table(_column(1, "id", "int8"), _A, _B),
            ColumnChanges(retyped=((_column(1, "id", "int4"), _column(1, "id", "int8")),)),
            id="widened",
        ),
        pytest.param(
            _table(_column(1, "id", "int2"), _A, _column(3, "b", "date")),
            ColumnChanges(),
            id="types into which the copy converts",
        ),
        pytest.param(
            replace(_table(_ID, _column(2, "c"), _B), oid=_RELID + 1),
            ColumnChanges(),
            id="another published table",
        ),
    ],
)
def test_changes_before_a_copy(
    session: Session, published: TableDefinition, expected: ColumnChanges
) -> None:
    answer_of(session, "CREATE TABLE t (id int PRIMARY KEY, a text, b text, own text)")
    origins = {n: ColumnOrigin(_RELID, n, cluster=_CLUSTER) for n in (1, 2, 3)}
    found = copied_changes(relation_of(session), origins, published)
    assert _shown(found) == _shown(expected)


def _shown(changes: ColumnChanges) -> tuple[object, ...]:
    retyped = [(a.type_name, b.type_name, b.name) for a, b in changes.retyped]
    return changes.dropped, changes.renamed, retyped, changes.added


def test_two_columns_of_one_origin(session: Session) -> None:
    """The user added the renamed column by hand, and it was copied: the former one stays."""
    answer_of(session, "CREATE TABLE t (id int PRIMARY KEY, a text, c text)")
    origins = {n: ColumnOrigin(_RELID, min(n, 2), cluster=_CLUSTER) for n in (1, 2, 3)}
    found = copied_changes(relation_of(session), origins, _table(_ID, _column(2, "c")))
    assert found == ColumnChanges()
    found = copied_changes(relation_of(session), origins, _table(_ID, _column(2, "d")))
    assert found.renamed == (("c", "d"),)


def test_the_changes_of_a_partition_that_its_root_follows() -> None:
    """A column that other partitions still need stays, and columns change once for all."""
    both = ColumnChanges(dropped=("a",), renamed=(("b", "c"),), added=(_NEW,))
    only = ColumnChanges(dropped=("a", "z"), renamed=(("b", "c"), ("x", "y")), added=(_NEW,))
    assert common_changes(only, [only, both], is_first=True) == both
    assert common_changes(both, [only, both], is_first=False) == ColumnChanges(added=(_NEW,))
    assert common_changes(both, [both, None], is_first=True) == ColumnChanges(added=(_NEW,))
