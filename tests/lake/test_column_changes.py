"""The columns of a relation after other programs added, renamed, dropped or restored columns of its
Delta table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from fix_cluster import relation_of
from fix_lake import Lake
from fix_replication import Database
from owners_log import OwnersLog, field

from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.storage_column import StorageColumn
from replctl.lake.column_changes import column_changes, names_around, stored_names
from replctl.lake.table_read import enter_foreign_versions, table_source, written_source
from replctl.lake.target import local_target
from replctl.session import Session

_VERSION = 5


def _field(name: str, physical: str | None = None, type_: Any = "string") -> dict[str, Any]:
    known = {} if physical is None else {"delta.columnMapping.physicalName": physical}
    return {"name": name, "type": type_, "nullable": True, "metadata": known}


def _known(
    number: int, name: str, physical: str | None = None, *, is_dropped: bool = False
) -> StorageColumn:
    renamed = 3 if is_dropped else None
    return StorageColumn(name, 0, number, physical, renamed, is_dropped)


@pytest.mark.parametrize(
    ("known", "found", "renamed", "new"),
    [
        pytest.param([_known(1, "v")], [_field("v")], {}, [], id="the same"),
        pytest.param(
            [_known(1, "v")], [_field("V")], {1: ("V", None, False)}, [], id="written otherwise"
        ),
        pytest.param([_known(1, "v")], [_field("v", "v")], {}, [], id="mapping switched on"),
        pytest.param(
            [_known(1, "v")], [_field("w", "v")], {1: ("w", "v", False)}, [], id="renamed"
        ),
        pytest.param(
            [_known(1, "w", "v")], [_field("v", "v")], {1: ("v", None, False)}, [], id="and back"
        ),
        pytest.param(
            [_known(1, "a"), _known(2, "b")],
            [_field("b", "a"), _field("a", "b")],
            {1: ("b", "a", False), 2: ("a", "b", False)},
            [],
            id="two names exchanged",
        ),
        pytest.param(
            [_known(1, "w", "v")],
            [_field("w", "v"), _field("v", "col-1")],
            {},
            ["v"],
            id="a former name given to another one",
        ),
        pytest.param(
            [_known(1, "id"), _known(2, "v")],
            [_field("id")],
            {2: ("v", None, True)},
            [],
            id="dropped",
        ),
        pytest.param(
            [_known(1, "v", is_dropped=True)],
            [_field("v", "col-1")],
            {},
            ["v"],
            id="dropped, then another one added",
        ),
        pytest.param(
            [_known(1, "v", is_dropped=True), _known(2, "v", "col-1")],
            [_field("v", "v")],
            {1: ("v", None, False), 2: ("v", "col-1", True)},
            [],
            id="and put back",
        ),
        pytest.param(
            [_known(1, "v", is_dropped=True)],
            [_field("v")],
            {1: ("v", None, False)},
            [],
            id="put back without column mapping",
        ),
        pytest.param(
            [_known(1, "v", is_dropped=True), _known(2, "v")],
            [_field("v", "v")],
            {},
            [],
            id="mapping switched on after another one was added",
        ),
        pytest.param(
            [_known(1, "v", "col-1")],
            [_field("v", "col-2")],
            {1: ("v", "col-2", False)},
            [],
            id="replaced with its table",
        ),
        pytest.param(
            [_known(1, "w", "v")], [_field("w")], {1: ("w", None, False)}, [], id="mapping removed"
        ),
        pytest.param(
            [StorageColumn("v", None, 1)], [], {}, [], id="not made yet by replctl itself"
        ),
        pytest.param([StorageColumn("v", 7, 1)], [], {}, [], id="made later"),
    ],
)
def test_which_columns_these_are(
    known: list[StorageColumn],
    found: list[dict[str, Any]],
    renamed: dict[int, tuple[str, str | None, bool]],
    new: list[str],
) -> None:
    changes = column_changes(known, found, _VERSION)
    assert {c.number: (c.name, c.physical_name, c.is_dropped) for c in changes.renamed} == renamed
    assert {c.renamed_version for c in changes.renamed} <= {_VERSION}
    assert [field["name"] for field in changes.new] == new


def _change_columns(lake: Lake, *fields: dict[str, Any], enters: bool = True) -> int:
    """Commit a schema to the table as another writer does, enter the version, and return it."""
    table = DeltaTable(lake.location)
    version = table.version() + 1
    metadata = {
        "id": str(table.metadata().id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
    }
    commit = Path(lake.location, "_delta_log", f"{version:020d}.json")
    commit.write_text(f"{json.dumps({'metaData': metadata})}\n")
    if enters:
        lake.enter()
    return version


def _clean_log(lake: Lake, first: int) -> None:
    """Write a checkpoint of the newest version, and remove the commits before version `first`."""
    DeltaTable(lake.location).create_checkpoint()
    for version in range(first):
        Path(lake.location, "_delta_log", f"{version:020d}.json").unlink()


def _relation(lake: Lake) -> Relation:
    with lake.session.read() as catalog:
        return load_relations(catalog, [lake.oid])[lake.oid]


def _stored(relation: Relation, version: int | None = None) -> dict[str, str | None]:
    source = table_source(relation, version)
    return {column.name: source.column(column.attnum).storage_name for column in relation.columns}


_ID = _field("id", "id", "integer")


def test_a_version_is_read_by_the_names_that_it_has(lake: Lake) -> None:
    first = _change_columns(lake, _ID, _field("w", "v"))
    second = _change_columns(lake, _ID, _field("x", "v"), _field("v", "col-1"))
    relation = _relation(lake)
    assert _stored(relation, first - 1) == {"id": "id", "v": "v", "v_1": None}
    assert _stored(relation, first) == {"id": "id", "v": "w", "v_1": None}
    assert _stored(relation, second) == {"id": "id", "v": "x", "v_1": "v"}
    assert _stored(relation) == {"id": "id", "v": "x", "v_1": "v"}


@pytest.mark.parametrize("physical", [None, "own", "col-1"])
@pytest.mark.parametrize("is_adopted", [False, True])
def test_a_column_that_others_add_before_replctl_does(
    lake: Lake, is_adopted: bool, physical: str | None
) -> None:
    """ALTER TABLE has added it to the relation; the next write would add it to the table."""
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql(f"UPDATE storage_table SET is_adopted = {is_adopted}")
    lake.run("ALTER TABLE t ADD COLUMN own text")
    fields = [_ID, _field("v", physical and "v")]
    first = _change_columns(lake, *fields)
    second = _change_columns(lake, *fields, _field("own", physical))
    relation = _relation(lake)
    assert _stored(relation, first) == {"id": "id", "v": "v", "own": None}
    assert _stored(relation, second) == {"id": "id", "v": "v", "own": "own"}


def test_the_changes_of_a_version_are_read_by_the_names_before_and_after(lake: Lake) -> None:
    first = _change_columns(lake, _ID, _field("w", "v"))
    second = _change_columns(lake, _ID, _field("x", "v"))
    relation = _relation(lake)
    for changed in ([first], [first, second], [first - 1], [second], [first, second + 3]):
        column = table_source(relation, None, changed).column(2)
        for version in changed:
            after = {first: "w", second: "x"}.get(version, "v" if version < first else "x")
            before = {first: "v", second: "w"}.get(version, after)
            assert column.at(version).storage_name == after
            assert column.at(version - 1).storage_name == (before if version else None)


def test_names_that_are_still_the_same_are_not_looked_up(lake: Lake) -> None:
    renamed = _change_columns(lake, _ID, _field("w", "v"))
    storage = _relation(lake).storage
    assert storage is not None
    assert names_around(storage, [renamed + 1]) == ()


def test_a_dropped_column_and_one_added_by_its_name_are_two(lake: Lake) -> None:
    dropped = _change_columns(lake, _ID)
    added = _change_columns(lake, _ID, _field("v", "col-1"))
    relation = _relation(lake)
    assert _stored(relation, dropped - 1) == {"id": "id", "v": "v", "v_1": None}
    assert _stored(relation, dropped) == {"id": "id", "v": None, "v_1": None}
    assert _stored(relation, added) == {"id": "id", "v": None, "v_1": "v"}


def test_a_column_that_was_put_back_is_not_the_one_that_had_its_name_meanwhile(
    lake: Lake,
) -> None:
    _change_columns(lake, _ID)
    other = _change_columns(lake, _ID, _field("v", "col-1"))
    restored = _change_columns(lake, _ID, _field("v", "v"))
    storage = _relation(lake).storage
    assert storage is not None
    assert stored_names(storage, other) == {1: "id", 2: None, 3: "v"}
    assert stored_names(storage, restored) == {1: "id", 2: "v", 3: None}


def test_a_column_whose_name_postgresql_lacks_gets_a_similar_one(lake: Lake) -> None:
    names = (f"{'n' * 62}éa", f"{'n' * 62}éb", "xmin")
    _change_columns(lake, _ID, _field("v", "v"), *map(_field, names))
    assert _stored(_relation(lake)) == {
        "id": "id",
        "v": "v",
        "n" * 62: names[0],
        f"{'n' * 61}_1": names[1],
        "xmin_1": "xmin",
    }


def test_a_column_that_cannot_be_read_is_none_of_the_relation(lake: Lake) -> None:
    struct = {"type": "struct", "fields": []}
    _change_columns(lake, _ID, _field("v"), _field("s", type_=struct), _field("n", type_="long"))
    assert [column.name for column in _relation(lake).columns] == ["id", "v", "n"]
    lake.run("ALTER TABLE t ADD COLUMN s int")
    storage = _relation(lake).storage
    assert storage is not None
    assert storage.columns[4].name == "s_1"


def test_a_column_that_can_be_read_comes_after_one_that_cannot(lake: Lake) -> None:
    struct = {"type": "struct", "fields": []}
    _change_columns(lake, _ID, _field("v", "v"), _field("s", "col-1", type_=struct))
    _change_columns(lake, _ID, _field("v", "v"))
    _change_columns(lake, _ID, _field("v", "v"), _field("s", "col-2"))
    assert _stored(_relation(lake)) == {"id": "id", "v": "v", "s": "s"}


@pytest.mark.parametrize("kept", [1, 2])
def test_columns_that_were_renamed_in_versions_that_were_cleaned(lake: Lake, kept: int) -> None:
    _change_columns(lake, _ID, _field("w", "v"), enters=False)
    newest = _change_columns(lake, _ID, _field("w", "v"), _field("n", "n", "long"), enters=False)
    later = Path(lake.location, "_delta_log", f"{newest + 1:020d}.json")
    later.write_text('{"commitInfo": {"operation": "OPTIMIZE"}}\n')
    _clean_log(lake, newest + 2 - kept)
    lake.enter()
    assert _stored(_relation(lake)) == {"id": "id", "v": "w", "n": "n"}


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ([_ID, _field("w", "v")], "w"),
        ([_ID, _field("z", "v"), _field("v", "col-1")], "z"),
        ([_ID, _field("V")], "V"),
        ([_ID], None),
    ],
)
@pytest.mark.parametrize("enters", [True, False])
def test_what_is_undone_is_written_by_the_newest_names(
    lake: Lake, fields: list[dict[str, Any]], name: str | None, *, enters: bool
) -> None:
    """Another program changes columns after the version to undo.  The commit log has the change, or
    not yet."""
    changed = _change_columns(lake, *fields, enters=enters)
    undone = changed - 1
    column = written_source(_relation(lake), undone, [undone]).column(2)
    assert column.storage_name == name
    assert column.at(undone).storage_name == "v"
    # Others have changed rows at the same time
    column = written_source(_relation(lake), undone, [undone, changed]).column(2)
    assert column.at(undone).storage_name == "v"
    assert column.at(changed).storage_name == name


@pytest.mark.parametrize(
    ("listed", "columns"), [("", ["id", "v", "n", "w"]), ("(id int, v text)", ["id", "v", "w"])]
)
def test_a_void_column_comes_when_it_gets_a_type(
    session: Session, tmp_path: Path, listed: str, columns: list[str]
) -> None:
    """Column n is void when the table is adopted, and column w is added as void later.  A column
    list leaves n out for ever."""
    first = [field("id", type_="integer"), field("v"), field("n", type_="void")]
    owner = OwnersLog(tmp_path / "t", is_mapped=False)
    owner.commit(first)
    Database(session).run(f"CREATE TABLE t {listed} USING delta LOCATION '{tmp_path / 't'}'")
    owner.commit([*first, field("w", type_="void")])
    enter_foreign_versions(session)
    assert [column.name for column in relation_of(session).columns] == ["id", "v"]
    typed = owner.commit([*first[:2], field("n"), field("w", type_="long")])
    enter_foreign_versions(session)
    relation = relation_of(session)
    assert [column.name for column in relation.columns] == columns
    before, after = table_source(relation, typed - 1), table_source(relation, typed)
    added = relation.columns[2:]
    assert [before.column(c.attnum).storage_name for c in added] == [None] * len(added)
    assert [after.column(c.attnum).storage_name for c in added] == columns[2:]


def test_an_adopted_column_has_the_spelling_of_its_table(session: Session, tmp_path: Path) -> None:
    """The rules of the Delta table are found by this spelling."""
    owner = OwnersLog(tmp_path / "t")
    owner.commit([field("id", "c1", "integer"), field("v", "c2")])
    database = Database(session)
    database.run(f"CREATE TABLE t USING delta LOCATION '{tmp_path / 't'}'")
    rule = {"delta.generationExpression": "CAST(id AS STRING)"}
    spelled = field("V", "c2")
    owner.commit([field("id", "c1", "integer"), spelled | {"metadata": spelled["metadata"] | rule}])
    enter_foreign_versions(session)
    relation = relation_of(session)
    assert [column.name for column in relation.columns] == ["id", "v"]
    assert _stored(relation) == {"id": "id", "v": "V"}
    assert _stored(relation, 0) == {"id": "id", "v": "v"}
    assert local_target(relation, {relation.oid: relation}).columns[1].generated is not None
    owner.commit([field("id", "c1", "integer"), field("w", "c2")])
    enter_foreign_versions(session)
    assert [column.name for column in relation_of(session).columns] == ["id", "w"]


@pytest.mark.parametrize(
    ("is_mapped", "replaces", "attnums"),
    [(False, False, {"id": 1, "v": 3}), (False, True, {"id": 1, "v": 2}), (True, True, None)],
    ids=["ADD COLUMN", "RESTORE", "with column mapping"],
)
def test_a_dropped_column_comes_back_if_all_rows_are_replaced(
    session: Session,
    tmp_path: Path,
    is_mapped: bool,
    replaces: bool,
    attnums: dict[str, int] | None,
) -> None:
    """Otherwise the new column has no values, but a subscriber has those of the dropped column."""
    names = ("c1", "c2", "c3") if is_mapped else (None, None, None)
    number = field("id", names[0], "integer")
    owner = OwnersLog(tmp_path / "t", is_mapped=is_mapped)
    owner.commit([number, field("v", names[1])], added=[{}])
    Database(session).run(f"CREATE TABLE t USING delta LOCATION '{tmp_path / 't'}'")
    owner.commit([number], added=[{}], removed=["0-0.parquet"])
    enter_foreign_versions(session)
    assert [column.name for column in relation_of(session).columns] == ["id"]
    removed = ["1-0.parquet"] if replaces else []
    owner.commit([number, field("v", names[2])], added=[{}] * len(removed), removed=removed)
    enter_foreign_versions(session)
    found = {column.name: column.attnum for column in relation_of(session).columns}
    assert found == (attnums or {"id": 1, "v": 3})
    assert _stored(relation_of(session), 2) == {"id": "id", "v": "v"}


def test_a_column_in_use_comes_back_when_a_column_with_its_name_is_added(
    session: Session, tmp_path: Path
) -> None:
    """Subscriptions that need it have stopped at the version without it."""
    owner = OwnersLog(tmp_path / "t", is_mapped=False)
    both = [field("id", type_="integer"), field("v")]
    owner.commit(both)
    database = Database(session)
    database.run(f"CREATE TABLE t USING delta LOCATION '{tmp_path / 't'}'")
    database.run("CREATE VIEW w AS SELECT v FROM t")
    owner.commit(both[:1])
    owner.commit(both)
    enter_foreign_versions(session)
    assert _stored(relation_of(session)) == {"id": "id", "v": "v"}


_B = field("b", "c2")


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ([_B], [[field("a", "c2"), field("b", "c9")]]),
        ([field("a", "c1"), _B], [[field("b", "c1")]]),
        ([field("a", "c1"), _B], [[field("a", "c1")], [field("b", "c1")]]),
        ([field("a", "c1"), _B], [[field("b", "c1"), field("a", "c2")]]),
    ],
    ids=["renamed, added", "dropped and renamed", "dropped, renamed", "exchanged"],
)
def test_restored_columns_have_their_former_names(
    session: Session, tmp_path: Path, first: list[dict[str, Any]], later: list[list[dict[str, Any]]]
) -> None:
    """RESTORE renames, drops and restores columns in one version."""
    owner = OwnersLog(tmp_path / "t")
    owner.commit([field("id", "c0", "integer"), *first])
    Database(session).run(f"CREATE TABLE t USING delta LOCATION '{tmp_path / 't'}'")
    before = relation_of(session).columns
    for fields in (*later, first):
        owner.commit([field("id", "c0", "integer"), *fields])
        enter_foreign_versions(session)
    assert relation_of(session).columns == before


@pytest.mark.parametrize(
    "later",
    [
        [[field("b", "c1"), field("a", "c2")]],
        [[field("x", "c1"), field("b", "c2")], [field("x", "c1"), field("a", "c2")]],
        [
            [field("b", "c2"), field("x", "c1")],
            [field("b", "c2"), field("x", "c1"), field("a", "c3")],
        ],
    ],
    ids=["exchanged", "renamed twice", "another one added"],
)
def test_earlier_versions_are_read_by_their_names_after_column_mapping_ends(
    session: Session, tmp_path: Path, later: list[list[dict[str, Any]]]
) -> None:
    """ALTER TABLE ... SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none') writes all files
    again: from then on, the names in files are those in the schema."""
    owner = OwnersLog(tmp_path / "t")
    versions = [[field("a", "c1"), field("b", "c2")], *later]
    owner.commit(versions[0])
    Database(session).run(f"CREATE TABLE t USING delta LOCATION '{tmp_path / 't'}'")
    for fields in later:
        owner.commit(fields)
    owner.is_mapped = False
    versions.append([field(item["name"]) for item in versions[-1]])
    for _ in range(2):
        owner.commit(versions[-1])
    enter_foreign_versions(session)
    relation = relation_of(session)
    storage = relation.storage
    assert storage is not None
    numbers = {column.attnum: f"c{column.attnum}" for column in relation.columns}
    for version, fields in enumerate(versions[:-1]):
        names = {
            item["metadata"]["delta.columnMapping.physicalName"]: item["name"] for item in fields
        }
        found = stored_names(storage, version)
        assert found == {attnum: names.get(known) for attnum, known in numbers.items()}
