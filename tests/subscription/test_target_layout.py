"""Tables that replctl makes with partition_by, cluster_by and properties of Delta: copies, changes,
changes of columns, undo, VACUUM FULL, and the values that partition columns cannot have."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_replication import Database
from golden_script import answer_of
from long_tests import LONG

from replctl.catalog.pg_class import load_relations, relation_oids
from replctl.catalog.relation_kind import RelKind
from replctl.errors import InternalError
from replctl.lake.delta_log import stored_columns
from replctl.lake.file_layout import current_layout
from replctl.lake.table_state import table_state
from replctl.spark import FileLayout

pytestmark = pytest.mark.spark

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, r text, d date, w int, v text)"
_ROWS = "SELECT * FROM t ORDER BY id"
_LAYOUTS = [
    ("partition_by", FileLayout(partitions=("r", "d"))),
    ("cluster_by", FileLayout(clusters=(("r",), ("d",)))),
]


def _layout(database: Database, table: str = "t") -> FileLayout:
    location = database.location(table)
    return current_layout(table_state(location), location)


def _renamed(name: str) -> str:
    return "region" if name == "r" else name


def _has_foreign(database: Database) -> bool:
    """Return whether replctl takes a commit to the table for one of another program."""
    with database.session.read() as catalog:
        (relation,) = load_relations(catalog, relation_oids(catalog, [RelKind.TABLE])).values()
    assert relation.storage is not None
    return relation.storage.has_foreign


def _subscribe(source: Database, target: Database, options: str) -> None:
    source.run("CREATE PUBLICATION p FOR TABLE t")
    place = source.session.cluster.path
    target.run(
        f"CREATE SUBSCRIPTION s CONNECTION 'host={place} dbname=source' PUBLICATION p"
        f" WITH (create_tables = true, {options})"
    )


def _same(source: Database, target: Database) -> list[tuple[str | None, ...]]:
    """Synchronize, and return the rows, which both tables and the Delta table have."""
    assert target.sync() == []
    rows = source.rows(_ROWS)
    assert target.rows(_ROWS) == rows
    names = [field["name"] for field in stored_columns(target.location())]
    shown = ", ".join(f"CAST(t.`{name}` AS STRING)" for name in names if name != "d")
    stored = target.session.engine().rows(
        f"SELECT {shown} FROM delta.`{target.location()}` t ORDER BY t.`id`"
    )
    place = names.index("d")
    assert stored == [(*row[:place], *row[place + 1 :]) for row in rows]
    return rows


@pytest.mark.parametrize(
    ("parameter", "layout", "changes"),
    [(*_LAYOUTS[0], "metadata"), pytest.param(*_LAYOUTS[1], "rewrite", marks=LONG)],
)
def test_copies_follow_all_changes(
    source: Database, target: Database, parameter: str, layout: FileLayout, changes: str
) -> None:
    source.run(_TABLE)
    source.run(
        "INSERT INTO t SELECT n, CASE n % 2 WHEN 0 THEN NULL ELSE 'r/1' END,"
        " CASE n % 3 WHEN 0 THEN 'infinity' ELSE date '2024-01-01' END, n, 'v'"
        " FROM generate_series(1, 9) n"
    )
    _subscribe(
        source,
        target,
        "follow_schema = true,"
        f" table_options = '{parameter} = ''r, d'', schema_changes = {changes}'",
    )
    _same(source, target)
    assert _layout(target) == layout
    source.run("UPDATE t SET r = 'other', w = w + 1 WHERE id < 5")
    source.run("UPDATE t SET id = id + 100 WHERE id = 7")
    source.run("DELETE FROM t WHERE d = 'infinity' AND id > 3")
    source.run("INSERT INTO t VALUES (200, 'new', '0001-01-01 BC', NULL, NULL)")
    source.run("ALTER TABLE t DROP COLUMN w")
    source.run("INSERT INTO t VALUES (201, 'new', NULL, 'x')")
    _same(source, target)
    source.run("ALTER TABLE t RENAME COLUMN r TO region")
    source.run("INSERT INTO t VALUES (202, NULL, '2024-01-01', 'x')")
    _same(source, target)
    renamed = FileLayout(
        tuple(map(_renamed, layout.partitions)),
        tuple((_renamed(name),) for (name,) in layout.clusters),
    )
    assert _layout(target) == renamed
    assert target.rows("SELECT reloptions::text FROM pg_class WHERE relname = 't'") == [
        (f'{{"{parameter}=region, d",schema_changes={changes}}}',)
    ]
    target.run("VACUUM FULL t")
    target.run("UPDATE t SET v = 'mine' WHERE id = 1; DELETE FROM t WHERE id = 2")
    target.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (delete = all)")
    _same(source, target)
    target.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (replace = true)")
    _same(source, target)
    assert _layout(target) == renamed
    source.run("TRUNCATE t; INSERT INTO t VALUES (1, 'a', '2024-01-01', 'x')")
    assert len(_same(source, target)) == 1
    assert _layout(target) == renamed


@pytest.mark.parametrize(
    ("parameter", "layout"), [pytest.param(*_LAYOUTS[0], marks=LONG), _LAYOUTS[1]]
)
def test_statements_and_rollback(target: Database, parameter: str, layout: FileLayout) -> None:
    target.run(f"{_TABLE} WITH ({parameter} = 'r, d')")
    target.run("INSERT INTO t VALUES (1, 'a', '2024-01-01', 1, 'v'), (2, NULL, NULL, 2, 'w')")
    before = target.rows(_ROWS)
    target.run("BEGIN; UPDATE t SET r = 'b'; INSERT INTO t VALUES (3, 'c'); ROLLBACK")
    assert target.rows(_ROWS) == before
    target.run("BEGIN; TRUNCATE t; INSERT INTO t VALUES (3, 'c'); ROLLBACK")
    assert target.rows(_ROWS) == before
    target.run("ALTER TABLE t ADD COLUMN n serial")
    target.run("ALTER TABLE t ALTER COLUMN w TYPE text")
    assert [row[:3] for row in target.rows(_ROWS)] == [row[:3] for row in before]
    target.run("ALTER TABLE t DROP COLUMN w; INSERT INTO t (id, r) VALUES (4, 'x y')")
    rows = target.rows("SELECT id, r FROM t ORDER BY id")
    assert rows == [("1", "a"), ("2", None), ("4", "x y")]
    assert target.rows("SELECT n FROM t ORDER BY n") == [("1",), ("2",), ("3",)]
    assert _layout(target) == layout


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_texts_that_delta_stores_as_null_are_refused(
    source: Database, target: Database, text: str
) -> None:
    source.run(f"{_TABLE}; INSERT INTO t VALUES (1, 'a')")
    _subscribe(source, target, "table_options = 'partition_by = r'")
    _same(source, target)
    shown = f'the text "{text}"' if text else "an empty text"
    message = f'new row for relation "t" has {shown} in partition column "r"'
    answer = answer_of(target.session, f"INSERT INTO t VALUES (2, '{text}')")
    assert answer[0] == f"ERROR 23514: {message}"
    source.run(f"INSERT INTO t VALUES (2, '{text}')")
    (failure,) = target.sync()
    assert message in str(failure.error)
    source.run("UPDATE t SET r = NULL WHERE id = 2")
    target.run("ALTER SUBSCRIPTION s REFRESH TABLE t")
    _same(source, target)


def test_texts_of_all_kinds_partition_a_table(target: Database) -> None:
    texts = [
        "a/b",
        "a%41",
        "x ",
        " ",
        'ü="q"',
        ".",
        "..",
        "A\nB",
        "null",
        "_x",
        "😀",
        "a:b",
        "a\\b",
    ]
    target.run("CREATE TABLE t (id int PRIMARY KEY, r text, v text) WITH (partition_by = 'r')")
    values = ", ".join(f"({n}, '{text}', '{text}')" for n, text in enumerate(texts))
    target.run(f"INSERT INTO t VALUES {values}")
    assert target.rows("SELECT r FROM t ORDER BY id") == [(text,) for text in texts]
    assert target.rows("SELECT count(*) FROM t WHERE r = v") == [(str(len(texts)),)]
    target.run("UPDATE t SET v = 'changed' WHERE r IN ('a%41', 'A\nB', '..')")
    assert target.rows("SELECT count(*) FROM t WHERE v = 'changed'") == [("3",)]


def test_properties_of_delta(target: Database) -> None:
    target.run("CREATE TABLE t (id int, v text) WITH (delta.checkpointInterval = 3)")
    target.run("INSERT INTO t VALUES (1, 'a')")
    state = table_state(target.location())
    assert state.properties["delta.checkpointInterval"] == "3"
    target.run(
        "ALTER TABLE t SET (delta.logRetentionDuration = '60 days',"
        " delta.dataSkippingNumIndexedCols = 1)"
    )
    target.run("ALTER TABLE t RESET (delta.checkpointInterval)")
    state = table_state(target.location())
    assert "delta.checkpointInterval" not in state.properties
    assert state.properties["delta.logRetentionDuration"] == "interval 60 days"
    assert target.rows("SELECT reloptions::text FROM pg_class WHERE relname = 't'") == [
        ('{"delta.logRetentionDuration=interval 60 days",delta.dataSkippingNumIndexedCols=1}',)
    ]
    assert not _has_foreign(target)
    target.run("BEGIN; ALTER TABLE t SET (delta.checkpointInterval = 4); INSERT INTO t VALUES (2)")
    target.run("ROLLBACK")
    target.run("INSERT INTO t VALUES (3, 'c')")
    assert target.rows("SELECT id FROM t ORDER BY id") == [("1",), ("3",)]


def test_a_subscription_does_not_drop_a_partition_column(
    source: Database, target: Database
) -> None:
    source.run(f"{_TABLE}; INSERT INTO t VALUES (1, 'a')")
    _subscribe(source, target, "follow_schema = true, table_options = 'partition_by = r'")
    _same(source, target)
    source.run("ALTER TABLE t DROP COLUMN r; INSERT INTO t VALUES (2)")
    (failure,) = target.sync()
    assert 'cannot drop column "r"' in str(failure.error)
    target.run("ALTER SUBSCRIPTION s SET (follow_schema = false)")
    assert target.sync() == []
    assert target.rows("SELECT id, r FROM t ORDER BY id") == [("1", "a"), ("2", None)]


def test_an_error_between_the_commits_of_a_rewrite_is_harmless(
    target: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.run("CREATE TABLE t (id int, r text, v text) WITH (cluster_by = 'r')")
    target.run("INSERT INTO t VALUES (1, 'a', 'x')")
    target.run("ALTER TABLE t DROP COLUMN v")
    monkeypatch.setenv("REPLCTL_INJECTION_POINT", "clustering.before-commit:error")
    with pytest.raises(InternalError):
        target.run("INSERT INTO t VALUES (2, 'b')")
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    target.run("INSERT INTO t VALUES (2, 'b')")
    target.run("VACUUM FULL t")
    assert _layout(target) == FileLayout(clusters=(("r",),))
    assert target.rows("SELECT * FROM t ORDER BY id") == [("1", "a"), ("2", "b")]
    assert [field["name"] for field in stored_columns(target.location())] == ["id", "r"]
    assert not _has_foreign(target)
    monkeypatch.setenv("REPLCTL_INJECTION_POINT", "properties.after-commit:error")
    with pytest.raises(InternalError):
        target.run("ALTER TABLE t SET (delta.checkpointInterval = 4)")
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    target.run("ALTER TABLE t SET (delta.checkpointInterval = 4)")
    assert target.rows("SELECT reloptions::text FROM pg_class WHERE relname = 't'") == [
        ("{cluster_by=r,delta.checkpointInterval=4}",)
    ]
    assert not _has_foreign(target)


def test_an_adopted_clustered_table_stays_clustered(
    source: Database, target: Database, tmp_path: Path
) -> None:
    engine = target.session.engine()
    engine.run(
        f"CREATE TABLE delta.`{tmp_path}/t` (id INT, r STRING, d DATE, w INT, v STRING,"
        " own STRUCT<`a.b`: INT>) USING delta CLUSTER BY (r, own.`a.b`)"
    )
    engine.run(f"CREATE TABLE delta.`{tmp_path}/u` (id INT, r STRING) USING delta CLUSTER BY (r)")
    target.run(
        "CREATE TABLE t (id int, r text, d date, w int, v text, PRIMARY KEY (id))"
        f" USING delta LOCATION '{tmp_path}/t';"
        f"CREATE TABLE u (PRIMARY KEY (id)) USING delta LOCATION '{tmp_path}/u'"
    )
    source.run(
        f"{_TABLE}; INSERT INTO t VALUES (1, 'a'); CREATE TABLE u (id int PRIMARY KEY, r text)"
    )
    source.run("INSERT INTO u VALUES (1, 'a'); CREATE PUBLICATION p FOR TABLE t, u")
    place = source.session.cluster.path
    target.run(f"CREATE SUBSCRIPTION s CONNECTION 'host={place} dbname=source' PUBLICATION p")
    assert target.sync() == []
    target.run("ALTER SUBSCRIPTION s REFRESH TABLE t, u WITH (replace = true)")
    assert target.sync() == []
    assert target.rows("SELECT id, r FROM t") == target.rows("SELECT * FROM u") == [("1", "a")]
    assert _layout(target) == FileLayout(clusters=(("r",), ("own", "a.b")))
    assert _layout(target, "u") == FileLayout(clusters=(("r",),))
