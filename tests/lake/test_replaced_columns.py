"""The owner of a published table drops or renames a column, or a field of one, and gives its name
to another one.  This changes no row, so the subscription stops.  The tests run without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fix_cluster import relation_of
from fix_replication import Database
from owners_log import OwnersLog, field, struct
from sqlalchemy import select

from replctl.catalog.cluster import Cluster
from replctl.catalog.column_origin import ColumnOrigin, column_origins
from replctl.catalog.state_schema import pg_subscription_rel
from replctl.catalog.transaction import insert_lsn
from replctl.lake.published_tables import PublishedTables
from replctl.lake.table_read import enter_foreign_versions
from replctl.relation_name import RelationName
from replctl.replication.log_range import LogRange
from replctl.replication.replaced_column import ForeignColumns, OriginChange
from replctl.session import Session

_ID = field("id", "c1", "integer")
_Schema = Sequence[dict[str, Any]]


class _Copy:
    """A table of an owner, and a subscription that follows it."""

    def __init__(self, cluster: Cluster, folder: Path, fields: _Schema, options: str = "") -> None:
        self.owner = OwnersLog(folder / "t", last_id=2)
        self.owner.commit(fields)
        Database(Session.connect(cluster, "postgres", "postgres")).run("CREATE DATABASE source")
        self.source = Database(Session.connect(cluster, "source", "postgres"))
        self.target = Database(Session.connect(cluster, "postgres", "postgres"))
        self.source.run(
            f"CREATE TABLE t USING delta LOCATION '{folder / 't'}'; CREATE PUBLICATION p"
            " FOR TABLE t"
        )
        shown = self.source.rows(
            "SELECT attname, format_type(atttypid, atttypmod), attoptions[1] FROM pg_attribute"
            " WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum"
        )
        self.target.run(f"CREATE TABLE t ({', '.join(f'{n} {type_}' for n, type_, _ in shown)})")
        for name, _type, option in shown:
            if option is not None:
                native = option.removeprefix("delta_type=")
                self.target.run(f"ALTER TABLE t ALTER COLUMN {name} SET (delta_type = '{native}')")
        self.target.run(
            "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p"
            f" WITH (copy_data = false{options})"
        )

    def sync(self) -> str | None:
        """Sync, and return the error of the subscription, with its SQLSTATE."""
        failures = self.target.sync()
        return failures[0].error.sqlstate + " " + failures[0].error.message if failures else None


def _stopped(*names: str) -> str:
    noun, verb = ("column", "was") if len(names) == 1 else ("columns", "were")
    shown = ", ".join(f'"{name}"' for name in names)
    return f'55000 {noun} {shown} of published table "public.t" {verb} replaced by another program'


@pytest.mark.parametrize("syncs", [[], [1], [2], [1, 2]])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param([_ID], [_ID, field("v", "c3")], id="dropped and added"),
        pytest.param(
            [_ID, field("w", "c2")], [_ID, field("w", "c2"), field("v", "c3")], id="renamed"
        ),
    ],
)
def test_a_column_is_another_one_in_any_number_of_syncs(
    cluster: Cluster, tmp_path: Path, first: _Schema, second: _Schema, syncs: Sequence[int]
) -> None:
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c2")])
    assert copy.sync() is None
    copy.owner.commit([_ID, *first[1:]])
    if 1 in syncs:
        assert copy.sync() is None
    copy.owner.commit([*first, field("n", "c9")])
    if 2 in syncs:
        assert copy.sync() is None
    copy.owner.commit(second)
    assert copy.sync() == _stopped("v")
    assert copy.sync() == _stopped("v")


def test_a_column_that_the_target_renamed_too_is_no_other_one(
    cluster: Cluster, tmp_path: Path
) -> None:
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c2")])
    copy.owner.commit([_ID, field("w", "c2")])
    assert copy.sync() is None
    copy.target.run("ALTER TABLE t RENAME COLUMN v TO w; ALTER TABLE t ADD COLUMN v text")
    copy.owner.commit([_ID, field("w", "c2"), field("v", "c3")])
    assert copy.sync() is None
    copy.owner.commit([_ID, field("v", "c3")])
    assert copy.sync() is None
    copy.owner.commit([_ID, field("v", "c3"), field("w", "c4")])
    assert copy.sync() == _stopped("w")


def test_a_new_column_of_the_target_would_get_values_of_the_former_one(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The range may have changes from before the owner dropped the column."""
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c2")])
    copy.owner.commit([_ID])
    copy.owner.commit([_ID, field("v", "c3")])
    assert copy.sync() == _stopped("v")
    copy.target.run("ALTER TABLE t DROP COLUMN v; ALTER TABLE t ADD COLUMN v text")
    assert copy.sync() == _stopped("v")


@pytest.mark.parametrize("options", ["", ", follow_schema = true"])
@pytest.mark.parametrize("how", ["adopted again", "swapped"])
def test_another_adopted_table_has_the_name(
    cluster: Cluster, tmp_path: Path, how: str, options: str
) -> None:
    """Its rows were not sent.  The target can be reconciled, or its user accepts it as it is."""
    copy = _Copy(cluster, tmp_path, [_ID], options)
    assert copy.sync() is None
    location = f"USING delta LOCATION '{tmp_path / 't'}'"
    if how == "adopted again":
        copy.source.run("DROP TABLE t")
        copy.owner.commit([_ID], added=[{}])
        copy.source.run(f"CREATE TABLE t {location}; ALTER PUBLICATION p ADD TABLE t")
    else:
        other = OwnersLog(tmp_path / "other", last_id=2)
        other.commit([_ID])
        copy.source.run(
            f"CREATE TABLE other USING delta LOCATION '{tmp_path / 'other'}';"
            " ALTER TABLE t RENAME TO former; ALTER TABLE other RENAME TO t;"
            " ALTER PUBLICATION p SET TABLE t"
        )
    error = '55000 published table "public.t" is no longer the same table'
    for _ in range(2):
        (failure,) = copy.target.sync()
        assert f"{failure.error.sqlstate} {failure.error.message}" == error
        assert failure.error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"
    copy.target.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (copy_data = false)")
    for _ in range(2):
        assert copy.sync() is None
        copy.source.run("ALTER TABLE t REPLICA IDENTITY FULL")


def test_a_user_accepts_a_replaced_column(cluster: Cluster, tmp_path: Path) -> None:
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c2")])
    copy.owner.commit([_ID])
    copy.owner.commit([_ID, field("v", "c3")])
    assert copy.sync() == _stopped("v")
    copy.target.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (copy_data = false)")
    assert copy.sync() is None
    copy.owner.commit([_ID, field("v", "c3"), field("w", "c4")])
    copy.target.run("ALTER TABLE t ADD COLUMN w text")
    assert copy.sync() is None


def test_a_column_that_was_put_back_is_the_same(cluster: Cluster, tmp_path: Path) -> None:
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c2")])
    copy.owner.commit([_ID])
    assert copy.sync() is None
    copy.owner.commit([_ID, field("v", "c2")])
    assert copy.sync() is None


@pytest.mark.parametrize("syncs", [1, 2])
def test_a_target_does_not_follow_a_column_that_was_put_back(
    cluster: Cluster, tmp_path: Path, syncs: int
) -> None:
    """The target has dropped its values, but the rows of unchanged files have them again."""
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c2")], ", follow_schema = true")
    copy.owner.commit([_ID])
    assert syncs == 1 or copy.sync() is None
    copy.owner.commit([_ID, field("v", "c2"), field("n", "c3")])
    error = '55000 column "v" of table "public.t" cannot follow the published column'
    assert copy.sync() == error
    copy.target.run("ALTER TABLE t ADD COLUMN v text")
    assert copy.sync() == _lacks_restored("v")  # the HINT also says REFRESH TABLE


@pytest.mark.parametrize("options", ["", ", follow_schema = true"])
@pytest.mark.parametrize("has_column", [False, True])
def test_a_copy_without_a_column_that_is_restored_lacks_its_values(
    cluster: Cluster, tmp_path: Path, options: str, has_column: bool
) -> None:
    """The table is copied after the owner has dropped the column."""
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c2")])
    copy.target.run("DROP SUBSCRIPTION s")
    if not has_column:
        copy.target.run("ALTER TABLE t DROP COLUMN v")
    copy.owner.commit([_ID])
    enter_foreign_versions(copy.source.session)
    copy.target.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p"
        f" WITH (copy_data = false{options})"
    )
    assert copy.sync() is None
    copy.owner.commit([_ID, field("n", "c3")])
    if not has_column or not options:
        copy.target.run("ALTER TABLE t ADD COLUMN n text")
    assert copy.sync() is None  # a new column has no values
    copy.owner.commit([_ID, field("v", "c2"), field("n", "c3")])
    error = _lacks_restored("v")
    if options and not has_column:
        error = '55000 column "v" of table "public.t" cannot follow the published column'
    for _ in range(2):
        assert copy.sync() == error


def _lacks_restored(name: str) -> str:
    return (
        f'55000 column "{name}" of published table "public.t" was dropped and restored by another'
        " program"
    )


@pytest.mark.parametrize("options", ["", ", follow_schema = true"])
@pytest.mark.parametrize("id_", [2, 3])
def test_a_column_that_was_dropped_before_adoption_is_restored(
    cluster: Cluster, tmp_path: Path, options: str, id_: int
) -> None:
    """Its id is not greater than the last id that Delta has given."""
    owner = OwnersLog(tmp_path / "t", last_id=2)
    first, second = field("id", "c1", "integer", id_=1), field("v", f"c{id_}", id_=id_)
    owner.commit([first, field("v", "c2", id_=2)], added=[{}])
    owner.commit([first])
    copy = _Copy(cluster, tmp_path, [first], options)
    assert copy.sync() is None
    if not options:
        copy.target.run("ALTER TABLE t ADD COLUMN v text")
    copy.owner.last_id = 3
    copy.owner.commit([first, second])
    if id_ == 3:
        assert copy.sync() is None
    elif options:
        error = '55000 column "v" of table "public.t" cannot follow the published column'
        assert copy.sync() == error
    else:
        assert copy.sync() == _lacks_restored("v")


@pytest.mark.parametrize("removed", [[], ["0-0.parquet"]])
def test_an_earlier_column_of_the_name_is_restored(
    cluster: Cluster, tmp_path: Path, removed: Sequence[str]
) -> None:
    """The owner has dropped a column and added one with its name before the table was adopted.

    Args:
        removed: the files that RESTORE removes.  The publisher sends the rows of these files.
    """
    owner = OwnersLog(tmp_path / "t")
    owner.commit([_ID, field("v", "c2")], added=[{}])
    owner.commit([_ID])
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c3")])
    copy.owner.commit([_ID, field("v", "c2")], removed=removed)
    if not removed:
        assert copy.sync() == _stopped("v")
    enter_foreign_versions(copy.source.session)
    found = [c.attnum for c in relation_of(copy.source.session).columns if c.name == "v"]
    assert found == [2 if removed else 3]


def test_a_copy_that_is_newer_than_a_range_has_no_origins_in_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    """With failover = true, a range ends at the standby's position, and a copy may be newer."""
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c2")])
    session, name = copy.source.session, RelationName("public", "t")
    tables = PublishedTables(session)

    def position() -> int:
        enter_foreign_versions(session)
        with session.read() as catalog:
            return insert_lsn(catalog.connection)

    start = position()
    copy.owner.commit([_ID])
    middle = position()
    copy.owner.commit([_ID, field("v", "c3")])
    end = position()
    for copied in (middle, end):
        assert tables.origin_change(LogRange(start, middle, ["p"], {name: copied}, "any")) is None
    change = tables.origin_change(LogRange(start, end, ["p"], {name: start}, "any"))
    assert change is not None
    before, after = change.before[name], change.after[name]
    assert before["v"].attnum != after["v"].attnum


@pytest.mark.parametrize(("cluster_of_now", "replaced"), [(1, ["s", "v"]), (2, [])])
def test_columns_of_another_cluster_are_no_replaced_columns(
    cluster_of_now: int, replaced: list[str]
) -> None:
    """ALTER SUBSCRIPTION ... CONNECTION names a cluster that the same script has made."""
    name = RelationName("public", "t")
    known = {
        "s": ColumnOrigin(5, 2, {"": "c2", ".b": "f1"}, 1),
        "v": ColumnOrigin(5, 3, {}, 1),
    }
    now = {
        "s": ColumnOrigin(5, 2, {"": "c2", ".b": "f2"}, cluster_of_now),
        "v": ColumnOrigin(5, 4, {}, cluster_of_now),
    }
    change = OriginChange({}, {name: now}, {5: [3]})
    found = change.lacking(name, known, known, is_followed=False)
    assert found == ForeignColumns(tuple(replaced))
    if not replaced:
        assert change.recorded(name, known, is_followed=False) == now


def test_the_cluster_of_an_origin_is_recorded(cluster: Cluster, tmp_path: Path) -> None:
    copy = _Copy(cluster, tmp_path, [_ID, field("v", "c2")])
    copy.owner.commit([_ID, field("v", "c2"), field("n", "c3")])
    assert copy.sync() is None
    session = copy.target.session
    with session.read() as catalog:
        (oid,) = catalog.connection.execute(select(pg_subscription_rel.c.srsubid)).scalars()
        relid = relation_of(session).oid
        found = column_origins(catalog.connection, oid, [relid])[relid]
    assert {origin.cluster for origin in found.values()} == {cluster.system_identifier}


def _with_s(*fields: dict[str, Any], physical: str = "c2", array: bool = False) -> _Schema:
    type_: Any = struct(*fields)
    if array:
        type_ = {"type": "array", "elementType": type_, "containsNull": True}
    return [_ID, field("s", physical, type_)]


@pytest.mark.parametrize("options", ["", ", follow_schema = true"])
@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize(
    ("fields", "is_replaced"),
    [
        pytest.param([field("a", "f1"), field("b", "f3")], True, id="dropped and added"),
        pytest.param([field("a", "f2"), field("b", "f1")], True, id="exchanged"),
        pytest.param([field("a", "f1"), field("b", "f2")], False, id="the same"),
    ],
)
def test_fields_are_known_by_their_names_in_files(
    cluster: Cluster,
    tmp_path: Path,
    fields: _Schema,
    is_replaced: bool,
    array: bool,
    options: str,
) -> None:
    before = _with_s(field("a", "f1"), field("b", "f2"), array=array)
    copy = _Copy(cluster, tmp_path, before, options)
    assert copy.sync() is None
    copy.owner.commit(_with_s(*fields, array=array))
    assert copy.sync() == (_stopped("s") if is_replaced else None)


def test_a_field_is_another_one_in_several_syncs(cluster: Cluster, tmp_path: Path) -> None:
    copy = _Copy(cluster, tmp_path, _with_s(field("a", "f1"), field("b", "f2")))
    assert copy.sync() is None
    for fields in ([field("a", "f1")], [field("a", "f1"), field("c", "f3")]):
        copy.owner.commit(_with_s(*fields))
        assert copy.sync() is None  # no row has changed
    copy.owner.commit(_with_s(field("a", "f1"), field("b", "f4")))
    assert copy.sync() == _stopped("s")


def _unmapped(*names: str) -> _Schema:
    return [field("id"), field("s", type_=struct(*map(field, names)))]


@pytest.mark.parametrize("is_synced", [False, True])
def test_fields_stay_the_same_if_column_mapping_ends(
    cluster: Cluster, tmp_path: Path, is_synced: bool
) -> None:
    """ALTER TABLE ... DROP FEATURE columnMapping gives all fields their own names in files."""
    mapped = [field("id", "id"), field("s", "s", struct(field("a", "a"), field("b", "f2")))]
    copy = _Copy(cluster, tmp_path, mapped)
    assert copy.sync() is None
    for is_mapped, fields in (
        (False, _unmapped("a", "b")),
        (False, _unmapped("a", "b", "c")),
        (True, _mapped_by_names("a", "b", "c")),
    ):
        copy.owner.is_mapped = is_mapped
        copy.owner.commit(fields)
        assert not is_synced or copy.sync() is None
    assert copy.sync() is None
    both = struct(field("a", "a"), field("b", "f9"), field("c", "c"))
    copy.owner.commit([field("id", "id"), field("s", "s", both)])
    assert copy.sync() == _stopped("s")


def _mapped_by_names(*names: str) -> _Schema:
    """Return the columns after column mapping has begun: names in files are the fields' names."""
    return [field("id", "id"), field("s", "s", struct(*(field(name, name) for name in names)))]


def test_a_field_that_was_replaced_before_column_mapping_ends(
    cluster: Cluster, tmp_path: Path
) -> None:
    copy = _Copy(cluster, tmp_path, _with_s(field("a", "f1"), field("b", "f2")))
    assert copy.sync() is None
    copy.owner.commit(_with_s(field("a", "f1"), field("b", "f3")))
    copy.owner.is_mapped = False
    copy.owner.commit(_unmapped("a", "b"))
    assert copy.sync() == _stopped("s")


def test_a_table_that_was_written_again_sends_its_rows(cluster: Cluster, tmp_path: Path) -> None:
    copy = _Copy(cluster, tmp_path, _with_s(field("a", "f1"), field("b", "f2")))
    assert copy.sync() is None
    copy.owner.commit(_with_s(field("a", "g1"), field("b", "g2"), physical="c9"))
    assert copy.sync() is None


def _adopted_copy(cluster: Cluster, folder: Path) -> tuple[Database, OwnersLog]:
    """Return a database that replicates one adopted table into another, and the copy's log."""
    Database(Session.connect(cluster, "postgres", "postgres")).run("CREATE DATABASE source")
    logs = {}
    for name in ("source", "postgres"):
        logs[name] = OwnersLog(folder / name)
        logs[name].commit(_with_s(field("a", "f1"), field("b", "f2")))
        database = Database(Session.connect(cluster, name, "postgres"))
        database.run(f"CREATE TABLE t USING delta LOCATION '{folder / name}'")
        if name == "source":
            database.run("CREATE PUBLICATION p FOR TABLE t")
    database.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p WITH (copy_data = false)"
    )
    assert database.sync() == []
    return database, logs["postgres"]


def test_fields_of_a_target_stay_the_same_if_column_mapping_ends(
    cluster: Cluster, tmp_path: Path
) -> None:
    database, owner = _adopted_copy(cluster, tmp_path)
    owner.is_mapped = False
    owner.commit(_unmapped("a", "b"))
    assert database.sync() == []


@pytest.mark.parametrize("between", [[], [field("a", "f1")]])
def test_fields_that_a_target_loses_are_a_fault(
    cluster: Cluster, tmp_path: Path, between: _Schema
) -> None:
    """Another program drops a field of the copy, and adds one with its name."""
    database, owner = _adopted_copy(cluster, tmp_path)
    if between:
        owner.commit(_with_s(*between))
    owner.commit(_with_s(field("a", "f1"), field("b", "f3")))
    (failure,) = database.sync()
    assert failure.error.sqlstate == "55000"
    assert failure.error.message == (
        'rows of target table "public.t" were replaced by another program'
    )
    assert failure.error.detail == (
        'Another program dropped or renamed fields of "s" in version 1 of the Delta table'
        f' "{tmp_path / "postgres"}".'
    )
