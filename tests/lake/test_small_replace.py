"""replctl writes small tables itself, with the same results as Spark: UPDATE, DELETE, TRUNCATE and
ALTER TABLE."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, QueryBuilder
from fix_lake import another_first, log_file, table_location
from fix_replication import Database
from golden_script import answer_of
from long_tests import with_long

from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

#: Types of keys, each with two values.
_KEYS = {
    "int8": ("9000000000", "-1"),
    "text": ("'it''s \\'", "''"),
    "char(4)": ("'ab'", "'abcd'"),
    "numeric(9,2)": ("1.5", "-0.01"),
    "bool": ("true", "false"),
    "date": ("'2024-02-29'", "'1999-01-01'"),
    "timestamp": ("'2024-02-29 12:00:00.000001'", "'1970-01-01'"),
    "timestamptz": ("'2024-02-29 12:00:00.123999+02'", "'2000-01-01 00:00+00'"),
    "uuid": (
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "'00000000-0000-0000-0000-000000000000'",
    ),
    "bytea": ("'\\x00ff'", "''"),
}


def _actions(location: Path, version: int) -> list[dict[str, Any]]:
    lines = log_file(location, version).read_text().splitlines()
    return [json.loads(line) for line in lines]


def _shape(location: Path, version: int) -> Mapping[str, list[list[str]]]:
    """Return the fields of the actions of a version, by the names of the actions."""
    found: dict[str, list[list[str]]] = {}
    for action in _actions(location, version):
        ((name, body),) = action.items()
        fields = {**body, **{f"vector {n}": v for n, v in body.get("deletionVector", {}).items()}}
        # Spark repeats the number of rows of a removed file, which no reader needs
        found.setdefault(name, []).append(sorted({*fields} - {"stats"}))
    return {name: sorted(found[name]) for name in sorted(found) if name != "commitInfo"}


#: The parts of a checksum that are the same for both writers.
_SUMS = ("numFiles", "numDeletedRecordsOpt", "numDeletionVectorsOpt", "domainMetadata")


def _checksum(location: Path, version: int) -> dict[str, Any]:
    found = json.loads(log_file(location, version, "crc").read_text())
    return {part: found[part] for part in _SUMS if part in found}


class Pair:
    """Two tables that get the same statements: replctl writes `own`, and Spark writes `other`."""

    def __init__(self, session: Session, definition: str) -> None:
        self.session = session
        for name in ("own", "other"):
            answer_of(session, f"CREATE TABLE {name} ({definition})")

    def run(self, statement: str) -> tuple[str, ...]:
        """Run statements for each table, {t}.  Return the answers, which must be equal."""
        answers = list[tuple[str, ...]]()
        for name, most in (("own", 1000), ("other", 0)):
            answer_of(self.session, f"SET replctl.small_table_rows = {most}")
            parts = statement.replace("{t}", name).split("; ")
            answers.append(tuple(line for part in parts for line in answer_of(self.session, part)))
        assert answers[0] == tuple(line.replace("other", "own") for line in answers[1])
        return answers[0]

    @property
    def locations(self) -> tuple[Path, Path]:
        return table_location(self.session, "own"), table_location(self.session, "other")

    def check_version(self, engine: Engine, version: int) -> None:
        """Check that a version has equal actions, changes and sums in both tables."""
        own, other = self.locations
        assert _shape(own, version) == _shape(other, version)
        assert _feed(engine, own, version) == _feed(engine, other, version)
        assert _checksum(own, version) == _checksum(other, version)


def _live_rows(engine: Engine, location: Path) -> list[tuple[Any, ...]]:
    return sorted(engine.rows(f"SELECT * FROM delta.`{location}`"), key=repr)


def _feed(engine: Engine, location: Path, version: int) -> list[tuple[Any, ...]]:
    rows = engine.rows(
        f"SELECT * EXCEPT (_commit_timestamp) FROM"
        f" table_changes_by_path('{location}', {version}, {version})"
    )
    return sorted(rows, key=repr)


def _writers(location: Path) -> list[str]:
    newest = max(int(path.stem) for path in (location / "_delta_log").glob("*.json"))
    infos = [_actions(location, version)[0]["commitInfo"] for version in range(newest + 1)]
    return [str(info["engineInfo"]).partition("/")[0] for info in infos]


def test_a_commit_has_the_actions_of_spark(spark_session: Session, engine: Engine) -> None:
    pair = Pair(spark_session, "id int PRIMARY KEY, v text")
    for statement in (
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
        "UPDATE {t} SET v = 'x' WHERE id = 2",
        "DELETE FROM {t} WHERE id = 1",
        "DELETE FROM {t} WHERE id IN (3, 4)",
        "INSERT INTO {t} VALUES (5, 'e')",
        "UPDATE {t} SET v = v || 'y'",
    ):
        pair.run(statement)
    own, other = pair.locations
    assert _writers(own) == ["replctl"] * 7
    assert _writers(other)[1:] == ["Apache-Spark"] * 6
    for version in range(1, 7):
        assert _shape(own, version) == _shape(other, version)
        assert _feed(engine, own, version) == _feed(engine, other, version)
    assert _live_rows(engine, own) == _live_rows(engine, other)
    hidden = "SELECT id, _metadata.row_id, _metadata.row_commit_version FROM delta.`{}`"
    ids = [sorted(engine.rows(hidden.format(location))) for location in (own, other)]
    assert ids[0] == ids[1]
    assert {*_checksum(own, 6)} == {*_SUMS}
    assert _checksum(own, 6) == _checksum(other, 6)


@pytest.mark.parametrize("type_", with_long(list(_KEYS), 3))
def test_rows_are_found_by_each_type(spark_session: Session, engine: Engine, type_: str) -> None:
    one, other = _KEYS[type_]
    pair = Pair(spark_session, f"k {type_}, part int, v int, PRIMARY KEY (k, part)")
    rows = ", ".join(f"({key}, {part}, 0)" for key in (one, other) for part in (1, 2))
    pair.run(f"INSERT INTO {{t}} VALUES {rows}")
    pair.run(f"UPDATE {{t}} SET v = 1 WHERE k = {one} AND part = 2")
    pair.run(f"DELETE FROM {{t}} WHERE k = {other} AND part = 1")
    assert _writers(pair.locations[0]) == ["replctl"] * 4
    own, other_rows = (_live_rows(engine, location) for location in pair.locations)
    assert own == other_rows
    assert len(own) == 3


def test_other_readers_find_the_same_rows(spark_session: Session) -> None:
    answer_of(spark_session, "CREATE TABLE r (id int PRIMARY KEY, v text)")
    values = ", ".join(f"({i}, 'v{i}')" for i in range(200))
    answer_of(spark_session, f"INSERT INTO r VALUES {values}")
    answer_of(spark_session, "DELETE FROM r WHERE id % 3 = 0")
    answer_of(spark_session, "UPDATE r SET v = 'x' WHERE id % 5 = 1")
    location = table_location(spark_session, "r")
    assert _writers(location) == ["replctl"] * 4
    expected = [(str(i), "x" if i % 5 == 1 else f"v{i}") for i in range(200) if i % 3]
    query = "SELECT * FROM r ORDER BY id"
    by_delta_rs = QueryBuilder().register("r", DeltaTable(location)).execute(query).read_all()
    columns = (by_delta_rs.column(name).to_pylist() for name in ("id", "v"))
    assert [(str(i), v) for i, v in zip(*columns, strict=True)] == expected
    for most in (0, 1000):
        answer_of(spark_session, f"SET replctl.small_table_rows = {most}")
        shown = [f"| {i} | {v}" for i, v in expected]
        assert list(answer_of(spark_session, query))[:-1] == shown


def test_another_writer_may_come_first(spark_session: Session) -> None:
    """replctl then looks for the rows in the newest version."""
    answer_of(spark_session, "CREATE TABLE f (id int PRIMARY KEY, v text)")
    answer_of(spark_session, "INSERT INTO f VALUES (1, 'a'), (2, 'b')")
    location = table_location(spark_session, "f")
    with another_first(location, 2) as others:
        assert answer_of(spark_session, "DELETE FROM f WHERE id = 2") == ("DELETE 1",)
    assert others
    assert answer_of(spark_session, "SELECT id FROM f") == ("| 1", "SELECT 1")
    assert len(list(location.glob("deletion_vector_*.bin"))) == 1


def test_a_checksum_may_list_absent_fields(spark_session: Session) -> None:
    answer_of(spark_session, "CREATE TABLE f (id int PRIMARY KEY, v text)")
    answer_of(spark_session, "INSERT INTO f VALUES (1, 'a'), (2, 'b')")
    location = table_location(spark_session, "f")
    file = log_file(location, 1, "crc")
    checksum = json.loads(file.read_text())
    files = [{**add, "deletionVector": None, "tags": None} for add in checksum["allFiles"]]
    file.write_text(json.dumps({**checksum, "allFiles": files}))
    assert answer_of(spark_session, "DELETE FROM f WHERE id = 2") == ("DELETE 1",)
    assert list(location.glob("deletion_vector_*.bin"))  # not by Spark
    after = json.loads(log_file(location, 2, "crc").read_text())
    assert (after["numFiles"], after["numDeletionVectorsOpt"]) == (1, 1)
    assert answer_of(spark_session, "TRUNCATE f") == ("TRUNCATE TABLE",)
    assert answer_of(spark_session, "SELECT * FROM f") == ("SELECT 0",)


@pytest.mark.parametrize("missing", ["allFiles", "one file of allFiles", "stats of a file"])
def test_spark_replaces_rows_if_the_checksum_says_too_little(
    spark_session: Session, missing: str
) -> None:
    answer_of(spark_session, "CREATE TABLE m (id int PRIMARY KEY)")
    for i in (1, 2):
        answer_of(spark_session, f"INSERT INTO m VALUES ({i}), ({i + 10})")
    location = table_location(spark_session, "m")
    file = log_file(location, 2, "crc")
    checksum = json.loads(file.read_text())
    if missing == "allFiles":
        del checksum["allFiles"]
    elif missing == "one file of allFiles":
        del checksum["allFiles"][0]
    else:
        checksum["allFiles"][0]["stats"] = "{}"
    file.write_text(json.dumps(checksum))
    assert answer_of(spark_session, "DELETE FROM m WHERE id = 1") == ("DELETE 1",)
    assert _writers(location)[-1] == "Apache-Spark"
    assert answer_of(spark_session, "SELECT count(*) FROM m")[0] == "| 3"


_HISTORY = (
    "INSERT INTO {t} VALUES (1, 'a', 1.5), (2, 'b', NULL), (3, NULL, -1)",
    "ALTER TABLE {t} ADD COLUMN d date DEFAULT '2024-01-01'",
    "UPDATE {t} SET v = 'x', d = NULL WHERE id = 2",
    "ALTER TABLE {t} ALTER COLUMN n TYPE text USING coalesce(n::text, 'none') || '!'",
    "INSERT INTO {t} (id, v) VALUES (4, 'd')",
    "DELETE FROM {t} WHERE id = 1",
    "ALTER TABLE {t} ALTER COLUMN id TYPE bigint",
    "ALTER TABLE {t} RENAME COLUMN v TO w",
    "ALTER TABLE {t} DROP COLUMN n",
    "UPDATE {t} SET w = 'last' WHERE id = 3",
    "INSERT INTO {t} VALUES (9000000000, 'big', '1999-12-31')",
    "BEGIN; DELETE FROM {t} WHERE id > 2; UPDATE {t} SET w = 'gone'; ROLLBACK",
)


def test_definitions_change_as_by_spark(spark_session: Session, engine: Engine) -> None:
    pair = Pair(spark_session, "id int PRIMARY KEY, v text, n numeric(5,2)")
    for statement in _HISTORY:
        pair.run(statement)
    own, other = pair.locations
    assert _live_rows(engine, own) == _live_rows(engine, other)
    assert pair.run("SELECT * FROM {t}")[:-1] == (
        "| 2 | x | NULL",
        "| 4 | d | 2024-01-01",
        "| 3 | last | 2024-01-01",
        "| 9000000000 | big | 1999-12-31",
    )
    assert pair.run("TRUNCATE {t}") == ("TRUNCATE TABLE",)
    assert pair.run("TRUNCATE {t}") == ("TRUNCATE TABLE",)
    assert pair.run("SELECT count(*) FROM {t}")[0] == "| 0"
    pair.run("ALTER TABLE {t} ADD COLUMN e int DEFAULT 5")  # no row needs the default
    pair.run("INSERT INTO {t} (id) VALUES (1)")
    assert pair.run("SELECT id, e FROM {t}")[0] == "| 1 | 5"


_FILLS = (
    "INSERT INTO {t} VALUES (3, '{c,NULL}', '2024-02-29 12:00+00'), (1, NULL, NULL),"
    " (2, '{}', NULL), (4, '{a}', '1970-01-01')",
    "DELETE FROM {t} WHERE v = 2",
    "ALTER TABLE {t} ADD COLUMN id serial UNIQUE",
    "ALTER TABLE {t} ADD COLUMN i int GENERATED ALWAYS AS IDENTITY (START 10 INCREMENT 5)",
    "ALTER TABLE {t} ADD COLUMN n int NOT NULL DEFAULT nextval('{t}_seq') * 9 + nextval('{t}_seq'),"
    " ADD COLUMN m bigint DEFAULT nextval('{t}_seq')",
    "ALTER TABLE {t} ADD COLUMN g timestamptz GENERATED ALWAYS AS (at + interval '1 day') STORED",
    "ALTER TABLE {t} ADD COLUMN w int DEFAULT nextval('{t}_seq') UNIQUE CHECK (w > 0)",
    "ALTER TABLE {t} ADD COLUMN bad int DEFAULT nextval('{t}_seq') CHECK (bad < 0)",
    "ALTER TABLE {t} ADD FOREIGN KEY (id) REFERENCES {t} (id)",
    "ALTER TABLE {t} ADD FOREIGN KEY (i) REFERENCES {t} (id)",
    "ALTER TABLE {t} ALTER COLUMN names SET NOT NULL",
    "DELETE FROM {t}",
    "ALTER TABLE {t} ADD COLUMN last serial",
    "INSERT INTO {t} (v) VALUES (7)",
)


def test_columns_are_filled_as_by_spark(spark_session: Session, engine: Engine) -> None:
    pair = Pair(spark_session, "v int PRIMARY KEY, names text[], at timestamptz")
    pair.run("CREATE SEQUENCE {t}_seq")
    for statement in _FILLS:
        pair.run(statement)
        own, other = pair.locations
        assert _live_rows(engine, own) == _live_rows(engine, other)
        assert pair.run("SELECT * FROM {t}")
    assert [line.partition(" ")[0] for line in pair.run(_FILLS[7])] == ["ERROR"]
    newest = len(_writers(own)) - 1
    assert len(_writers(other)) == newest + 1
    assert {*_writers(own)} == {"replctl"}
    filled = 4  # its commits: the table, rows, a deletion, the new column, and its values
    pair.check_version(engine, filled)


def test_another_writer_may_come_before_a_column_is_filled(spark_session: Session) -> None:
    """Spark then fills the column in the other writer's version, and replctl starts again."""
    for statement in (
        "CREATE TABLE f (v text)",
        "INSERT INTO f VALUES ('a'), ('b')",
        "CREATE SEQUENCE s",
    ):
        answer_of(spark_session, statement)
    location = table_location(spark_session, "f")
    filled = "ALTER TABLE f ADD COLUMN id serial, ADD COLUMN n int DEFAULT nextval('s')"
    with another_first(location, 3) as others:
        assert answer_of(spark_session, filled) == ("ALTER TABLE",)
    assert others
    shown = answer_of(spark_session, "SELECT v, id, n > 0 FROM f ORDER BY id")
    assert shown == ("| a | 1 | t", "| b | 2 | t", "SELECT 2")
    answer_of(spark_session, "INSERT INTO f VALUES ('c')")
    numbers = "SELECT count(DISTINCT n) = 3, max(id) FROM f"
    assert answer_of(spark_session, numbers)[0] == "| t | 3"


_ROLLED_BACK = (
    "BEGIN; INSERT INTO {t} VALUES (9, 'z'); ROLLBACK",
    "BEGIN; DELETE FROM {t} WHERE id = 1; UPDATE {t} SET v = 'x' WHERE id = 2; ROLLBACK",
    "DELETE FROM {t} WHERE id = 1",
    "BEGIN; DELETE FROM {t} WHERE id = 2; SAVEPOINT s; DELETE FROM {t}; ROLLBACK TO s; COMMIT",
    "BEGIN; TRUNCATE {t}; INSERT INTO {t} VALUES (9, 'z'); ROLLBACK",
    "BEGIN; DELETE FROM {t}; INSERT INTO {t} VALUES (1, 'z'); DELETE FROM {t}; ROLLBACK",
)


def test_rows_are_restored_as_by_spark(spark_session: Session, engine: Engine) -> None:
    pair = Pair(spark_session, "id int PRIMARY KEY, v text")
    pair.run("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    own, other = pair.locations
    hidden = "SELECT *, _metadata.row_id, _metadata.row_commit_version FROM delta.`{}`"
    for statement in _ROLLED_BACK:
        pair.run(statement)
        pair.check_version(engine, len(_writers(own)) - 1)
        rows = [sorted(engine.rows(hidden.format(place))) for place in (own, other)]
        assert rows[0] == rows[1]
    assert {*_writers(own)} == {"replctl"}
    assert pair.run("SELECT id FROM {t} ORDER BY id") == ("| 3", "| 4", "SELECT 2")


def _statements(chance: random.Random) -> Iterator[str]:
    ids = list[int]()
    for step in range(14):
        match chance.choice(("insert", "insert", "update", "delete", "move", "block")):
            case "insert":
                new = [10 * step + i for i in range(chance.randint(1, 3))]
                ids += new
                yield f"INSERT INTO t VALUES {', '.join(f'({i}, {i % 4})' for i in new)}"
            case "update":
                yield f"UPDATE t SET v = v + 1 WHERE v = {chance.randint(0, 4)}"
            case "delete":
                yield f"DELETE FROM t WHERE id % 7 = {chance.randint(0, 6)}"
            case "move" if ids:
                yield f"UPDATE t SET id = id + 100000 WHERE id = {chance.choice(ids)}"
            case "block":
                end = chance.choice(("COMMIT", "ROLLBACK"))
                yield f"BEGIN; DELETE FROM t WHERE v > 2; UPDATE t SET v = 9 WHERE v = 1; {end}"


@pytest.mark.parametrize("seed", with_long(range(2), 2, 1))
def test_random_changes_are_replicated(
    source: Database, target: Database, engine: Engine, seed: int
) -> None:
    """At each sync, chance decides whether Spark or replctl itself reads small tables."""
    source.run("CREATE TABLE t (id int PRIMARY KEY, v int); ALTER TABLE t REPLICA IDENTITY FULL")
    source.run("CREATE PUBLICATION p FOR TABLE t; CREATE PUBLICATION q FOR TABLE t WHERE (v < 4)")
    target.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION q")
    chance = random.Random(seed)
    for statement in _statements(chance):
        source.run(statement)
        if chance.random() < 0.5:
            target.run(f"SET replctl.small_table_rows = {chance.choice((0, 1000))}")
            assert target.sync() == []
    assert target.sync() == []
    rows = source.rows("SELECT * FROM t WHERE v < 4 ORDER BY id")
    assert target.rows("SELECT * FROM t ORDER BY id") == rows
    assert len(_live_rows(engine, table_location(target.session, "t"))) == len(rows)
