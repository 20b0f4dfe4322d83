"""A relation may omit columns of its Delta table.  They are not published, no later version adds
them, and writes keep their values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from golden_script import answer_of

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark


def _make(engine: Engine, folder: Path) -> None:
    """Make Delta table t, as somebody who does not know replctl."""
    engine.run(
        f"CREATE TABLE delta.`{folder}` (id INT, v STRING, s STRUCT<a: INT>,"
        " w INT NOT NULL DEFAULT 7, g INT GENERATED ALWAYS AS (id * 2), p STRING) USING delta"
        " PARTITIONED BY (p) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    engine.run(
        f"INSERT INTO delta.`{folder}` (id, v, s, w, p) SELECT CAST(id AS INT), concat('v', id),"
        " named_struct('a', id * 10), CAST(id AS INT), 'a' FROM range(1, 6)"
    )


def _rows(engine: Engine, folder: Path) -> list[tuple[object, ...]]:
    shown = "id, v, s.a, w, g, p"
    return list(map(tuple, engine.rows(f"SELECT {shown} FROM delta.`{folder}` ORDER BY id")))


def test_writes_keep_the_values_of_columns_left_out(
    engine: Engine, source: Database, target: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    _make(engine, folder)
    target.run(f"CREATE TABLE t (v text, id int PRIMARY KEY) USING delta LOCATION '{folder}'")
    assert target.rows("SELECT * FROM t WHERE id < 3 ORDER BY id") == [("v1", "1"), ("v2", "2")]
    target.run("UPDATE t SET v = 'x' WHERE id = 1")
    target.run("UPDATE t SET id = 20 WHERE id = 2")
    target.run("DELETE FROM t WHERE id = 3")
    target.run("INSERT INTO t (id, v) VALUES (6, 'new')")
    rows = [
        (1, "x", 10, 1, 2, "a"),
        (4, "v4", 40, 4, 8, "a"),
        (5, "v5", 50, 5, 10, "a"),
        (6, "new", None, 7, 12, None),
        (20, "v2", 20, 2, 40, "a"),
    ]
    assert _rows(engine, folder) == rows

    source.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    source.run("INSERT INTO t VALUES (1, 'x'), (4, 'four'), (5, 'v5'), (20, 'v2'), (7, 'seven')")
    source.run("CREATE PUBLICATION p FOR TABLE t")
    target.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p"
        " WITH (copy_data = reconcile)"
    )
    assert target.sync() == []
    rows[1] = (4, "four", 40, 4, 8, "a")
    rows[3] = (7, "seven", None, 7, 14, None)
    assert _rows(engine, folder) == rows
    source.run("UPDATE t SET v = 'five' WHERE id = 5")
    source.run("UPDATE t SET id = 21 WHERE id = 20")
    source.run("DELETE FROM t WHERE id = 1")
    source.run("INSERT INTO t VALUES (8, 'eight')")
    assert target.sync() == []
    assert _rows(engine, folder) == [
        (4, "four", 40, 4, 8, "a"),
        (5, "five", 50, 5, 10, "a"),
        (7, "seven", None, 7, 14, None),
        (8, "eight", None, 7, 16, None),
        (21, "v2", 20, 2, 42, "a"),
    ]
    block = answer_of(target.session, "BEGIN; DELETE FROM t")
    assert block[1] == 'ERROR 55000: cannot write table "t" in a transaction block'
    assert block[2].endswith(
        'It leaves out column "g" of its Delta table, and ROLLBACK could not restore the column\'s'
        " values."
    )
    target.run("ROLLBACK")
    target.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (replace = true)")
    assert target.sync() == []
    assert _rows(engine, folder)[0] == (4, "four", None, 7, 8, None)


def test_columns_left_out_are_not_published(
    engine: Engine, source: Database, target: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    _make(engine, folder)
    source.run(f"CREATE TABLE t (id int PRIMARY KEY, v text) USING delta LOCATION '{folder}'")
    source.run("CREATE PUBLICATION p FOR TABLE t")
    target.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    assert target.sync() == []
    place = f"delta.`{folder}`"
    engine.run(f"UPDATE {place} SET w = 100 WHERE id = 1")
    engine.run(f"UPDATE {place} SET v = 'x', w = 101 WHERE id = 2")
    engine.run(f"DELETE FROM {place} WHERE w = 3")
    engine.run(f"ALTER TABLE {place} ADD COLUMNS (later INT)")
    engine.run(f"INSERT INTO {place} (id, v, later) VALUES (9, 'nine', 1)")
    source.run("VACUUM t")
    target.run("ALTER TABLE t ADD COLUMN later int")
    assert target.sync() == []
    assert source.rows("SELECT * FROM t WHERE id IN (1, 9) ORDER BY id") == [
        ("1", "v1", None),
        ("9", "nine", "1"),
    ]
    expected = [("1", "v1"), ("2", "x"), ("4", "v4"), ("5", "v5"), ("9", "nine")]
    assert target.rows("SELECT id, v FROM t ORDER BY id") == expected


def test_what_would_lose_values_is_refused(
    engine: Engine, source: Database, target: Database, tmp_path: Path
) -> None:
    for name in ("bare", "needy"):
        place = f"delta.`{tmp_path / name}`"
        rule = "NOT NULL" if name == "needy" else ""
        engine.run(f"CREATE TABLE {place} (id INT, v STRING, w INT {rule}) USING delta")
        engine.run(f"INSERT INTO {place} VALUES (1, 'a', 1), (1, 'a', 2)")
        target.run(f"CREATE TABLE {name} (id int, v text) USING delta LOCATION '{tmp_path / name}'")
        target.run(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    engine.run(f"ALTER TABLE delta.`{tmp_path / 'bare'}` ADD CONSTRAINT pos CHECK (w > 0)")
    random = "update bare set v = random()::text"
    assert answer_of(target.session, random) == (
        'ERROR 0A000: changing rows without a key in table "bare" is not supported, because it'
        " leaves columns of its Delta table out",
        'DETAIL: The values of column "w" would be lost.',
    )
    refused = answer_of(target.session, "insert into bare values (2, 'x')")
    assert refused[-2:] == (
        'ERROR 23514: new row violates check constraint "pos" of the Delta table',
        "DETAIL: Its condition is w > 0.",
    )
    target.run("UPDATE bare SET v = 'b' WHERE id = 1")
    place = f"delta.`{tmp_path / 'bare'}`"
    assert sorted(map(tuple, engine.rows(f"SELECT * FROM {place}"))) == [(1, "b", 1), (1, "b", 2)]
    assert answer_of(target.session, "insert into needy values (2, 'x')") == (
        'ERROR 23502: null value in column "w" of relation "needy" violates not-null constraint',
        'DETAIL: Table "public.needy" leaves this column of its Delta table out, and the Delta'
        " table has no default for it.",
    )
    source.run("CREATE TABLE bare (id int, v text)")
    source.run("ALTER TABLE bare REPLICA IDENTITY FULL")
    source.run("INSERT INTO bare VALUES (1, 'b')")
    source.run("CREATE PUBLICATION p FOR TABLE bare")
    target.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p WITH (copy_data = false)"
    )
    assert target.sync() == []
    source.run("UPDATE bare SET v = 'c'")
    (failure,) = target.sync()
    assert failure.error.message.startswith("changing rows without a key")
    assert sorted(map(tuple, engine.rows(f"SELECT * FROM {place}"))) == [(1, "b", 1), (1, "b", 2)]
