"""Columns of Delta types that PostgreSQL lacks are native: replctl copies their values unchanged,
and shows them as jsonb."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from follow_hint import follow_hint
from long_tests import LONG

from replctl.errors import FeatureNotSupported
from replctl.verify import verify

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_COLUMNS = (
    "s STRUCT<a: INT, `b-c`: ARRAY<DOUBLE>, d: DATE>",
    "ss ARRAY<STRUCT<x: STRING, t: TIMESTAMP>>",
    "aa ARRAY<ARRAY<INT>>",
    "m MAP<STRING, STRUCT<f: FLOAT, m: MAP<INT, BINARY>>>",
    "n TIMESTAMP_NTZ",
    "v VARIANT",
    "va ARRAY<STRUCT<v: VARIANT>>",
)
#: Two rows; None: NULL
_ROWS = (
    "named_struct('a', 1, 'b-c', array(1.5D, NULL), 'd', DATE'2024-02-29'),"
    " array(named_struct('x', 'it''s', 't', TIMESTAMP'2024-01-01 00:00:00.25Z'), NULL),"
    " array(array(1, NULL), NULL, array()),"
    " map('zz', named_struct('f', CAST(-0.0D AS FLOAT), 'm', map(2, X'00ff')), 'a', NULL),"
    " TIMESTAMP_NTZ'2024-01-01 12:00:00',"
    ' parse_json(\'{"q": [1, "x", null], "a": 1e300}\'),'
    " array(named_struct('v', to_variant_object(named_struct('d', DATE'2024-02-29', 'e', 1.5))))",
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    "named_struct('a', NULL, 'b-c', NULL, 'd', NULL), array(), array(), map(), NULL,"
    " parse_json('null'), array(named_struct('v', NULL), NULL)",
)
_SHOWN = (
    '{"a": 1, "d": "2024-02-29", "b-c": [1.5, null]}',
    '[{"t": "2024-01-01T00:00:00.25+00:00", "x": "it\'s"}, null]',
    "[[1, null], null, []]",
    '{"a": null, "zz": {"f": 0.0, "m": {"2": "\\\\x00ff"}}}',
    "2024-01-01 12:00:00",
    '{"a": 1' + "0" * 300 + ', "q": [1, "x", null]}',
    '[{"v": {"d": "2024-02-29", "e": 1.5}}]',
)


def _make(engine: Engine, folder: Path, rows: tuple[str, ...] = _ROWS) -> None:
    """Make a Delta table with an id and native columns, as somebody who does not know replctl."""
    table = f"delta.`{folder}`"
    engine.run(f"CREATE TABLE {table} (id INT, {', '.join(_COLUMNS)}) USING delta")
    for number, row in enumerate(rows, start=1):
        engine.run(f"INSERT INTO {table} SELECT {number}, {row}")


def _exact(engine: Engine, location: str) -> list[tuple[object, ...]]:
    """Return all rows of a Delta table, and their types.  The entries of a map are sorted."""
    shown = "id, s, ss, aa, m, n, v, va"
    variants = (
        "to_json(v), schema_of_variant(v),"
        " transform(va, i -> (to_json(i.v), schema_of_variant(i.v), i IS NULL))"
    )
    read = shown.replace("v, va", variants)  # Spark sends no NULLs of VARIANT to clients
    found = engine.rows(f"SELECT {read} FROM delta.`{location}` ORDER BY id")
    schema = engine.rows(f"SELECT typeof(struct({shown})) FROM delta.`{location}` LIMIT 1")
    rows = [(*row[:4], sorted(row[4] or (), key=str), *row[5:]) for row in found]
    return [tuple(map(repr, row)) for row in [*rows, *schema]]


def _path(database: Database, table: str) -> str:
    ((path,),) = database.rows(f"SELECT pg_relation_filepath('{table}')")
    assert path is not None
    return path


def _change(engine: Engine, folder: Path) -> None:
    """Change rows as their owner does."""
    table = f"delta.`{folder}`"
    engine.run(f"UPDATE {table} SET s.a = 2, m = map('q', NULL) WHERE id = 1")
    engine.run(f"UPDATE {table} SET aa = array(array(7)), v = parse_json('7') WHERE id = 2")
    engine.run(f"DELETE FROM {table} WHERE id = 3")
    engine.run(f"INSERT INTO {table} SELECT 4, {_ROWS[0]}")
    engine.run(f"UPDATE {table} SET ss = transform(ss, i -> named_struct('x', 'y', 't', i.t))")


@pytest.mark.parametrize("key", ["(PRIMARY KEY (id))", pytest.param("", marks=LONG)])
def test_native_values_are_copied_and_changed_exactly(
    engine: Engine, source: Database, target: Database, tmp_path: Path, key: str
) -> None:
    _make(engine, tmp_path / "t")
    source.run(f"CREATE TABLE t {key} USING delta LOCATION '{tmp_path / 't'}'")
    if not key:
        source.run("ALTER TABLE t REPLICA IDENTITY FULL")
    assert source.rows("SELECT * FROM t ORDER BY id")[0] == ("1", *_SHOWN)
    assert source.rows("SELECT s ->> 'a' FROM t WHERE aa -> 0 ->> 0 = '1'") == [("1",)]
    source.run("CREATE PUBLICATION p FOR TABLE t")
    target.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p WITH (create_tables = true)"
    )
    assert target.sync() == []
    copy = _path(target, "t")
    assert _exact(engine, copy) == _exact(engine, str(tmp_path / "t"))
    _change(engine, tmp_path / "t")
    assert target.sync() == []
    assert _exact(engine, copy) == _exact(engine, str(tmp_path / "t"))
    assert target.rows("SELECT * FROM t ORDER BY id") == source.rows("SELECT * FROM t ORDER BY id")


def test_statements_keep_native_values(engine: Engine, target: Database, tmp_path: Path) -> None:
    _make(engine, tmp_path / "keyed")
    _make(engine, tmp_path / "plain")
    target.run(f"CREATE TABLE keyed (PRIMARY KEY (id)) USING delta LOCATION '{tmp_path}/keyed'")
    target.run(f"CREATE TABLE plain USING delta LOCATION '{tmp_path}/plain'")
    before = _exact(engine, str(tmp_path / "keyed"))
    for table in ("keyed", "plain"):
        assert target.run(f"UPDATE {table} SET n = '2000-01-01' WHERE id = 2") == ["UPDATE 1"]
        assert target.run(f"UPDATE {table} SET id = id + 10 WHERE id = 1") == ["UPDATE 1"]
        assert target.run(f"DELETE FROM {table} WHERE id = 3") == ["DELETE 1"]
        assert target.run(f"INSERT INTO {table} (id) VALUES (4)") == ["INSERT 0 1"]
        assert target.run(f"UPDATE {table} SET s = DEFAULT WHERE id = 4") == ["UPDATE 1"]
        after = _exact(engine, str(tmp_path / table))
        assert [row[0] for row in after] == ["2", "4", "11", before[-1][0]]
        assert after[2][1:] == before[0][1:]
        assert after[0][1:5] == before[1][1:5]
        assert set(after[1][1:]) == {"None", "[]"}


@pytest.mark.parametrize("key", [pytest.param("(PRIMARY KEY (id))", marks=LONG), ""])
def test_reconcile_and_verify_see_each_difference(
    engine: Engine, source: Database, target: Database, tmp_path: Path, key: str
) -> None:
    rows = (_ROWS[0],) * 9
    for name, side in (("source", source), ("target", target)):
        folder = tmp_path / name
        _make(engine, folder, rows)
        side.run(f"CREATE TABLE t {key} USING delta LOCATION '{folder}'")
    source.run("ALTER TABLE t REPLICA IDENTITY FULL")
    source.run("CREATE PUBLICATION p FOR TABLE t")
    table = f"delta.`{tmp_path / 'target'}`"
    for number, change in enumerate(
        (
            "s.`b-c` = array(1.5D)",
            "m = map('a', NULL, 'zz', m['zz'])",  # the same entries in another order
            "m = map('zz', named_struct('f', CAST(0.0 AS FLOAT), 'm', map(2, X'00ff')), 'a', NULL)",
            "ss = array(ss[1], ss[0])",
            "aa = NULL",
            """v = parse_json('{"q": [1, "x", null], "a": 1}')""",
            "v = NULL",
            "va = array(named_struct('v',"
            " to_variant_object(named_struct('d', '2024-02-29', 'e', 1.5))))",
        ),
        start=1,
    ):
        engine.run(f"UPDATE {table} SET {change} WHERE id = {number}")
    target.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p"
        " WITH (copy_data = reconcile)"
    )
    before = engine.rows(f"DESCRIBE HISTORY {table}")
    failures = target.sync()
    assert failures == [], str(failures[0].error.__cause__)
    metrics = engine.rows(f"DESCRIBE HISTORY {table} LIMIT 1")
    assert len(engine.rows(f"DESCRIBE HISTORY {table}")) == len(before) + 1, metrics
    found, expected = (_exact(engine, str(tmp_path / name)) for name in ("target", "source"))
    assert found == expected
    engine.run(f"UPDATE {table} SET s = NULL WHERE id = 9")
    ((table_found,),) = (found.tables for found in verify(target.session))
    assert table_found.comparison is not None, table_found.error
    planted = {"different": 1} if key else {"missing": 1, "extra": 1}
    assert table_found.comparison.differences == planted
    target.run("ALTER SUBSCRIPTION s REFRESH TABLE t")
    assert target.sync() == []
    assert _exact(engine, str(tmp_path / "target"))[8] == expected[8]


def test_a_native_column_stops_only_what_it_does_not_fit(
    engine: Engine, source: Database, target: Database, tmp_path: Path
) -> None:
    for name in ("listed", "plain", "followed", "other"):
        engine.run(f"CREATE TABLE delta.`{tmp_path / name}` (id INT) USING delta")
        engine.run(f"INSERT INTO delta.`{tmp_path / name}` VALUES (1)")
        source.run(
            f"CREATE TABLE {name} (PRIMARY KEY (id)) USING delta LOCATION '{tmp_path / name}'"
        )
    for name, columns in (("listed", "(id)"), ("plain", ""), ("followed", "")):
        source.run(f"CREATE PUBLICATION {name} FOR TABLE {name} {columns}")
        target.run(f"CREATE TABLE {name} (id int PRIMARY KEY{', s jsonb' * (name == 'plain')})")
        target.run(f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=source' PUBLICATION {name}")
    target.run("ALTER SUBSCRIPTION followed SET (follow_schema = true)")
    assert target.sync() == []
    for name in ("listed", "plain", "followed", "other"):
        table = f"delta.`{tmp_path / name}`"
        engine.run(f"ALTER TABLE {table} ADD COLUMNS (s STRUCT<a: INT>)")
        engine.run(f"INSERT INTO {table} VALUES (2, named_struct('a', 3))")
    (failure,) = target.sync()
    assert (failure.subscription, failure.error.sqlstate) == ("plain", "0A000")
    message = "conversion of Delta type STRUCT<a: INT> to type jsonb is not supported"
    assert failure.error.message == message
    assert target.rows("SELECT * FROM listed ORDER BY id") == [("1",), ("2",)]
    assert target.rows("SELECT * FROM followed ORDER BY id") == [("1", None), ("2", '{"a": 3}')]
    assert source.rows("SELECT s FROM other WHERE id = 2") == [('{"a": 3}',)]
    source.run("ALTER TABLE other DROP COLUMN s")
    source.run("DROP TABLE other")


@pytest.mark.parametrize("follows", [pytest.param("false", marks=LONG), "true"])
def test_a_type_that_the_owner_changes_is_taken_over_by_the_hints(
    engine: Engine, source: Database, target: Database, tmp_path: Path, follows: str
) -> None:
    """Each end has a HINT of its own."""
    table = f"delta.`{tmp_path / 't'}`"
    engine.run(f"CREATE TABLE {table} (id INT, s STRUCT<a: INT>) USING delta")
    engine.run(f"INSERT INTO {table} VALUES (1, named_struct('a', 1)), (2, NULL)")
    source.run(f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{tmp_path / 't'}'")
    source.run("CREATE PUBLICATION p FOR TABLE t (id, s)")
    target.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p"
        f" WITH (create_tables = true, follow_schema = {follows})"
    )
    assert target.sync() == []
    for statements in (
        ("ALTER TABLE {} ADD COLUMNS (s.b INT)", "UPDATE {} SET s.b = 2 WHERE id = 1"),
        ("CREATE OR REPLACE TABLE {0} USING delta AS SELECT id, s.b AS s FROM {0}",),
        ("CREATE OR REPLACE TABLE {0} USING delta AS SELECT id, struct(s AS q) AS s FROM {0}",),
    ):
        for statement in statements:
            engine.run(statement.format(table))
        sqlstates = []
        while failures := target.sync():
            sqlstates.append(failures[0].error.sqlstate)
            assert len(sqlstates) < 3, failures[0].error
            try:
                follow_hint(failures[0].error.hint, target, {"source": source}.__getitem__)
            except FeatureNotSupported as error:  # of REFRESH TABLE, which has a HINT of its own
                follow_hint(error.hint, target, {"source": source}.__getitem__)
        assert sqlstates[0] in ("42804", "55000")
        rows = source.rows("SELECT * FROM t ORDER BY id")
        assert target.rows("SELECT * FROM t ORDER BY id") == rows
    assert rows == [("1", '{"q": 2}'), ("2", '{"q": null}')]
