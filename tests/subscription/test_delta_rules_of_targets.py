"""The rules that the owner of an adopted table has set in Delta apply to statements, copies and
replicated changes, like replctl's own constraints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from golden_script import answer_of

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark


class Owner:
    """Writes tables with Spark, as somebody who does not know replctl."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder

    def run(self, name: str, statement: str) -> None:
        self._engine.run(statement.format(t=f"delta.`{self._folder / name}`"))

    def follow(self, hint: str | None) -> None:
        """Run the statement of a HINT."""
        assert hint is not None
        self._engine.run(hint.partition("owner can use Spark: ")[2].removesuffix("."))

    def place(self, name: str) -> str:
        return f"USING delta LOCATION '{self._folder / name}'"

    def adopt(self, database: Database, name: str, constraints: str = "") -> None:
        database.run(f"CREATE TABLE {name} {constraints} {self.place(name)}")


@pytest.fixture
def owner(engine: Engine, tmp_path: Path) -> Owner:
    return Owner(engine, tmp_path)


def _failing(row: str) -> str:
    return f"DETAIL: Failing row contains ({row})."


def test_rules_hold_for_statements_copies_and_changes(
    owner: Owner, source: Database, target: Database
) -> None:
    owner.run(
        "t",
        "CREATE TABLE {t} (id INT, w1 INT NOT NULL, v STRING, g INT GENERATED ALWAYS AS (id * 2),"
        " p STRING) USING delta PARTITIONED BY (p)",
    )
    owner.run("t", "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (w1 > 0 OR v = 'any')")
    owner.adopt(target, "t", "(PRIMARY KEY (id))")
    insert = "insert into t (id, w1, v, p) values"
    check = 'ERROR 23514: new row for relation "t" violates check constraint "positive"'
    empty = 'ERROR 23514: new row for relation "t" has an empty text in partition column "p"'
    hint = "HINT: Delta would store NULL instead of this text. Use NULL, or another text."
    for statement, answer in [
        (f"{insert} (1, 1, 'x', 'a'), (2, -1, 'any', 'a')", ("INSERT 0 2",)),
        (f"{insert} (3, -1, 'x', 'a')", (check, _failing("3, -1, x, 6, a"))),
        (f"{insert} (3, 0, null, 'a')", (check, _failing("3, 0, null, 6, a"))),
        (f"{insert} (3, 1, 'x', '')", (empty, _failing("3, 1, x, 6, "), hint)),
        (
            f"{insert} (3, null, 'any', 'a')",
            (
                'ERROR 23502: null value in column "w1" of relation "t" violates not-null'
                " constraint",
                _failing("3, null, any, 6, a"),
            ),
        ),
        ("update t set w1 = -5 where id = 1", (check, _failing("1, -5, x, 2, a"))),
        ("update t set id = 7 where id = 1", ("UPDATE 1",)),
    ]:
        assert answer_of(target.session, statement) == answer, statement
    stored = "SELECT id, w1, v, g, p FROM t ORDER BY id"
    rows = [("2", "-1", "any", "4", "a"), ("7", "1", "x", "14", "a")]
    assert target.rows(stored) == rows

    source.run("CREATE TABLE t (id int PRIMARY KEY, w1 int, v text, p text)")
    source.run("INSERT INTO t VALUES (10, 1, 'x', 'b'), (11, -1, 'x', 'b')")
    source.run("CREATE PUBLICATION p FOR TABLE t")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    (failure,) = target.sync()
    assert failure.error.message == check.partition(": ")[2]
    assert target.rows(stored) == rows
    source.run("UPDATE t SET w1 = 1 WHERE id = 11")
    assert target.sync() == []
    rows += [("10", "1", "x", "20", "b"), ("11", "1", "x", "22", "b")]
    assert target.rows(stored) == sorted(rows, key=lambda row: int(str(row[0])))

    owner.run("t", "ALTER TABLE {t} ADD CONSTRAINT small CHECK (w1 < 100)")
    source.run("INSERT INTO t VALUES (12, 1000, 'x', 'b')")
    (failure,) = target.sync()
    assert failure.error.message == ('new row for relation "t" violates check constraint "small"')
    owner.run("t", "ALTER TABLE {t} DROP CONSTRAINT small")
    assert target.sync() == []
    assert ("12", "1000", "x", "24", "b") in target.rows(stored)


def test_lengths_of_texts_hold_before_the_write(
    owner: Owner, source: Database, target: Database
) -> None:
    owner.run("t", "CREATE TABLE {t} (id INT, v VARCHAR(3), c CHAR(3), w VARCHAR(3)) USING delta")
    place = owner.place("t")
    target.run(f"CREATE TABLE t (id int PRIMARY KEY, v varchar(3), c text, w text) {place}")
    too_long = "ERROR 22001: value too long for type character varying(3)"
    insert = "insert into t values"
    wrong = 'ERROR 23514: new row for relation "t" has a text in column "c" that does not have 3'
    assert answer_of(target.session, f"{insert} (1, 'abcd', 'abc', 'a')")[0] == too_long
    for values in ("'abc', 'abc', 'abcd'", "'abc', 'abc', 'abc   '"):
        assert answer_of(target.session, f"{insert} (1, {values})")[0] == too_long
    refused = answer_of(target.session, f"{insert} (1, 'abc', 'ab', 'éèê')")
    assert refused[0] == f"{wrong} characters"
    assert refused[2] == "HINT: Spark would fill the text with blanks. Use rpad(value, 3)."
    filled = f"{insert} (1, 'abc', rpad('ab', 3), 'éèê'), (2, null, null, null)"
    assert answer_of(target.session, filled) == ("INSERT 0 2",)

    source.run("CREATE TABLE t (id int PRIMARY KEY, v text, c text, w text)")
    source.run("INSERT INTO t VALUES (3, 'abcd', 'abc', 'abc')")
    source.run("CREATE PUBLICATION p FOR TABLE t")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    for column in "vw":
        source.run(f"UPDATE t SET v = 'abc', w = 'abc'; UPDATE t SET {column} = 'abcd'")
        (failure,) = target.sync()
        assert failure.error.sqlstate == "22001", failure.error
    source.run("UPDATE t SET w = 'xyz'")
    assert target.sync() == []
    source.run("INSERT INTO t VALUES (4, 'abc', 'abc', 'toolong')")
    (failure,) = target.sync()
    assert failure.error.message == too_long.partition(": ")[2]
    source.run("DELETE FROM t WHERE id = 4")
    assert target.rows("SELECT * FROM t ORDER BY id") == [
        ("1", "abc", "ab ", "éèê"),
        ("2", None, None, None),
        ("3", "abc", "abc", "xyz"),
    ]


def test_identity_columns_keep_the_values_that_delta_assigns(
    owner: Owner, target: Database
) -> None:
    owner.run(
        "i", "CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING) USING delta"
    )
    owner.run(
        "d", "CREATE TABLE {t} (id BIGINT GENERATED BY DEFAULT AS IDENTITY, v STRING) USING delta"
    )
    for name in "id":
        owner.adopt(target, name, "(PRIMARY KEY (id))")
        target.run(f"INSERT INTO {name} (v) VALUES ('a'), ('b')")
    (a,), (b,) = target.rows("SELECT id FROM i ORDER BY v")
    assert a != b
    target.run("UPDATE i SET v = 'c' WHERE v = 'a'")
    assert target.rows("SELECT id FROM i WHERE v = 'c'") == [(a,)]
    target.run("INSERT INTO d VALUES (100, 'c'); UPDATE d SET v = 'e' WHERE id = 100")
    assert target.rows("SELECT v FROM d WHERE id = 100") == [("e",)]
    target.run("INSERT INTO d VALUES (default, generate_series(1, 2)::text); DELETE FROM d")
    target.run("INSERT INTO d VALUES (default, 'x'); INSERT INTO d DEFAULT VALUES")
    target.run("INSERT INTO d OVERRIDING USER VALUE VALUES (-1, 'y')")
    assert target.rows("SELECT v, id > 0 FROM d ORDER BY v") == [
        ("x", "t"),
        ("y", "t"),
        (None, "t"),
    ]


def test_defaults_of_delta_fill_new_rows(owner: Owner, source: Database, target: Database) -> None:
    owner.run(
        "t",
        "CREATE TABLE {t} (id INT, n INT NOT NULL DEFAULT 7, v STRING DEFAULT 'x',"
        " d DATE DEFAULT current_date()) USING delta"
        " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    )
    owner.adopt(target, "t", "(PRIMARY KEY (id))")
    target.run("INSERT INTO t (id, d) VALUES (1, NULL)")
    target.run("INSERT INTO t VALUES (2, DEFAULT, 'y', NULL)")
    target.run("INSERT INTO t (id, d) SELECT 3, NULL")
    target.run("UPDATE t SET v = DEFAULT WHERE id = 2")
    rows = [("1", "7", "x"), ("2", "7", "x"), ("3", "7", "x")]
    stored = "SELECT id, n, v FROM t ORDER BY id"
    assert target.rows(stored) == rows

    source.run("CREATE TABLE t (id int PRIMARY KEY, d date)")
    source.run("INSERT INTO t VALUES (4, NULL)")
    source.run("CREATE PUBLICATION p FOR TABLE t")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    assert target.sync() == []
    source.run("INSERT INTO t VALUES (5, NULL)")
    source.run("UPDATE t SET d = '2024-01-01' WHERE id = 4")
    assert target.sync() == []
    assert target.rows(stored) == [*rows, ("4", "7", "x"), ("5", "7", "x")]


def test_partitions_with_identity_columns(owner: Owner, target: Database) -> None:
    owner.run(
        "high",
        "CREATE TABLE {t} (a INT, id BIGINT GENERATED ALWAYS AS IDENTITY) USING delta",
    )
    owner.adopt(target, "high")
    target.run("CREATE TABLE parted (a int, id int8) PARTITION BY RANGE (a)")
    target.run("CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10)")
    target.run("ALTER TABLE parted ATTACH PARTITION high FOR VALUES FROM (10) TO (20)")
    answer = answer_of(target.session, "INSERT INTO parted (a) VALUES (1)")
    hint = answer[-1].removeprefix("HINT: ")
    assert answer[0].startswith('ERROR 0A000: cannot write partition "high"')
    itself, detach = hint.split(". To write the other partitions by public.parted, use ")
    insert = itself.partition(", as with ")[2]
    assert insert == "INSERT INTO public.high"
    target.run(f"{insert} (a) VALUES (11)")
    target.run(detach)
    target.run("INSERT INTO parted (a) VALUES (1)")
    assert target.rows("SELECT a FROM parted UNION ALL SELECT a FROM high") == [("1",), ("11",)]


def test_append_only_tables_take_new_rows(owner: Owner, source: Database, target: Database) -> None:
    owner.run(
        "a",
        "CREATE TABLE {t} (id INT, v STRING) USING delta"
        " TBLPROPERTIES ('delta.appendOnly' = 'true')",
    )
    owner.adopt(target, "a", "(PRIMARY KEY (id))")
    source.run("CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'x')")
    source.run("CREATE PUBLICATION p FOR TABLE a")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    assert target.sync() == []
    source.run("INSERT INTO a VALUES (2, 'x')")
    assert target.sync() == []
    source.run("DELETE FROM a WHERE id = 1")
    (failure,) = target.sync()
    assert failure.error.message == 'cannot delete from table "a"'
    assert target.rows("SELECT id FROM a ORDER BY id") == [("1",), ("2",)]
    target.run("BEGIN")
    assert answer_of(target.session, "INSERT INTO a VALUES (3, 'x')")[0] == (
        'ERROR 55000: cannot write table "a" in a transaction block'
    )
    target.run("ROLLBACK")
    owner.follow(failure.error.hint)
    assert target.sync() == []
    assert target.rows("SELECT id FROM a") == [("2",)]


def test_other_formats_are_refused_before_the_commit(owner: Owner, target: Database) -> None:
    """Delta itself fails after its commit, which stays."""
    properties = (
        "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'false',"
        " 'delta.enableIcebergCompatV2' = 'true'"
    )
    formats = "'delta.universalFormat.enabledFormats' = 'iceberg'"
    owner.run(
        "u", f"CREATE TABLE {{t}} (id INT) USING delta TBLPROPERTIES ({properties}, {formats})"
    )
    owner.adopt(target, "u")
    answer = answer_of(target.session, "INSERT INTO u VALUES (1)")
    assert answer[0] == (
        'ERROR 55000: cannot write table "u": Spark does not have the library "delta-iceberg"'
    )
    owner.follow(answer[2])
    assert answer_of(target.session, "INSERT INTO u VALUES (1)") == ("INSERT 0 1",)
    assert target.rows("SELECT id FROM u") == [("1",)]
