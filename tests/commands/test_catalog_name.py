"""Tables of the catalogs of Spark by their names: USING delta TABLE."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from golden_script import answer_of

from replctl import spark
from replctl.dump.dumped_database import DumpOptions, dump_database
from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark


class Schema:
    """A schema of spark_catalog, with tables that somebody else makes."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder, self.name = engine, folder, f"s{secrets.token_hex(4)}"
        engine.run(f"CREATE SCHEMA {self.name}")

    def make(self, table: str, place: str, rows: str = "1, 'a'") -> Path:
        """Make a Delta table at a place, with a name."""
        folder = self.folder / place
        self.engine.run(
            f"CREATE TABLE {self.name}.{table} (id INT, v STRING) USING delta LOCATION '{folder}'"
            " TBLPROPERTIES (delta.enableChangeDataFeed = true)"
        )
        self.engine.run(f"INSERT INTO {self.name}.{table} VALUES ({rows})")
        return folder


@pytest.fixture
def schema(engine: Engine, tmp_path: Path) -> Iterator[Schema]:
    made = Schema(engine, tmp_path)
    yield made
    engine.run(f"DROP SCHEMA {made.name} CASCADE")


def test_a_name_is_resolved_to_a_location(
    spark_session: Session, schema: Schema, tmp_path: Path
) -> None:
    database = Database(spark_session)
    folder = schema.make("`1t`", "a b%20c")
    full = f"spark_catalog.{schema.name}.`1t`"
    database.run(
        f"CREATE TABLE t (id int, PRIMARY KEY (id)) USING delta TABLE '{schema.name}.`1t`'"
        " WITH (foreign_files = on)"
    )
    assert database.rows("SELECT * FROM t") == [("1",)]
    assert database.rows("SELECT pg_relation_filepath('t'), reloptions FROM pg_class"
                         " WHERE relname = 't'") == [
        (str(folder), f"{{foreign_files=on,catalog_table={full}}}")
    ]  # fmt: skip
    dumped = "".join(dump_database(spark_session, DumpOptions(schema_only=True)))
    statement = next(line for line in dumped.splitlines() if "USING delta" in line)
    assert statement.endswith(f" USING delta TABLE '{full}' WITH (foreign_files='on');")
    database.run(f"DROP TABLE t; {statement.replace('public.t', 't2')}")
    assert database.rows("SELECT * FROM t2") == [("1",)]


def test_names_that_lead_to_no_delta_table(spark_session: Session, schema: Schema) -> None:
    engine, name, full = schema.engine, schema.name, f"spark_catalog.{schema.name}"
    engine.run(f"CREATE TABLE {name}.p (id INT, d STRING) USING parquet PARTITIONED BY (d)"
               f" LOCATION '{schema.folder}/p'")  # fmt: skip
    engine.run(f"INSERT INTO {name}.p VALUES (1, 'x')")
    engine.run(f"CREATE TABLE {name}.c (id INT) USING csv LOCATION '{schema.folder}/c'")
    engine.run(f"CREATE VIEW {name}.w AS SELECT 1 AS id")

    def refused(table: str) -> tuple[str, ...]:
        return answer_of(spark_session, f"create table t using delta table '{table}'")

    parquet = refused(f"{name}.p")
    assert parquet == (
        "ERROR 0A000: adopting a Parquet table is not supported",
        f'DETAIL: "{full}.p" is a Parquet table.',
        f"HINT: Its owner can make it a Delta table in Spark: CONVERT TO DELTA {full}.p.",
    )
    assert refused(f"{name}.c") == (
        'ERROR 0A000: adopting a table of format "csv" is not supported',
        f'DETAIL: "{full}.c" is not a Delta table.',
    )
    assert refused(f"{name}.w") == (
        "ERROR 0A000: adopting a view of Spark is not supported",
        f'DETAIL: "{full}.w" is a view.',
    )
    for missing in (f"{name}.nothing", "no_schema.t", "no_catalog.a.b"):
        assert refused(missing)[0] == (
            f'ERROR 42P01: table "{missing}" does not exist in the catalogs of Spark'
        )
    assert refused("a..b") == ('ERROR 42602: invalid name of a table of Spark: "a..b"',)
    path = f"delta.`{schema.folder}/x`"
    assert refused(path) == (
        f'ERROR 42602: "{path}" is a path, not a name', "HINT: Use USING delta LOCATION."
    )  # fmt: skip
    engine.run(parquet[2].partition("Spark: ")[2].removesuffix("."))
    assert refused(f"{name}.p") == ("CREATE TABLE",)
    assert Database(spark_session).rows("SELECT * FROM t") == [("1", "x")]


def test_a_name_that_leads_elsewhere_stops_its_table(
    engine: Engine, source: Database, target: Database, schema: Schema
) -> None:
    folder, full = schema.make("t", "one"), f"spark_catalog.{schema.name}.t"
    schema.make("other", "other", "1, 'other'")
    for name in ("t", "other"):
        source.run(
            f"CREATE TABLE {name} (PRIMARY KEY (id) NOT ENFORCED)"
            f" USING delta TABLE '{schema.name}.{name}'"
        )
        source.run(f"CREATE PUBLICATION {name} FOR TABLE {name}")
        target.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
        target.run(f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=source' PUBLICATION {name}")
    assert target.sync() == []
    for row in ("2, 'b'", "3, 'c'"):
        engine.run(f"INSERT INTO {schema.name}.t VALUES ({row})")
    engine.run(f"INSERT INTO {schema.name}.other VALUES (2, 'other')")

    # The owner gives the name to another table
    engine.run(f"DROP TABLE {schema.name}.t")
    new = schema.make("t", "two", "9, 'new'")
    (failure,) = target.sync()
    hint = (
        "HINT: To use the Delta table without the name, use ALTER TABLE public.t RESET"
        " (catalog_table). To use what has the name, use DROP TABLE public.t, then CREATE TABLE"
        f" public.t USING delta TABLE '{full}'."
    )
    message = f'the name "{full}" no longer leads to the Delta table of table "t"'
    assert message in str(failure.error)
    assert target.rows("SELECT id FROM other ORDER BY id") == [("1",), ("2",)]
    later = replace_session(source)
    for statement in ("SELECT * FROM t", "INSERT INTO t VALUES (7)", "CREATE TABLE c AS TABLE t"):
        assert answer_of(later, statement) == (
            f"ERROR 55000: {message}",
            f'DETAIL: The Delta table is "{folder}". The name leads to the Delta table at "{new}".',
            hint,
        )
    assert Database(later).rows("SELECT count(*) FROM other") == [("2",)]
    engine.run(f"DROP TABLE {schema.name}.t")
    engine.run(f"CREATE VIEW {schema.name}.t AS SELECT 1 AS id")
    assert answer_of(later, "SELECT * FROM t")[1].endswith("The name leads to a view.")
    engine.run(f"DROP VIEW {schema.name}.t")
    assert "leads to nothing" in answer_of(later, "SELECT * FROM t")[1]

    # Both ways of the hint
    source.run("ALTER TABLE public.t RESET (catalog_table)")
    assert target.sync() == []
    assert target.rows("SELECT id FROM t ORDER BY id") == [("1",), ("2",), ("3",)]
    assert Database(later).rows("SELECT count(*) FROM t") == [("3",)]
    engine.run(f"CREATE TABLE {schema.name}.t USING delta LOCATION '{new}'")
    source.run(f"DROP TABLE public.t; CREATE TABLE public.t USING delta TABLE '{full}'")
    assert source.rows("SELECT * FROM t") == [("9", "new")]


def replace_session(database: Database) -> Session:
    """Return another session of a database: it has not asked for a name yet."""
    session = database.session
    return session.in_database(session.database_oid)


def test_a_session_asks_for_a_name_once(
    spark_session: Session, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema.make("t", "t")
    Database(spark_session).run(f"CREATE TABLE t USING delta TABLE '{schema.name}.t'")
    asked: list[tuple[str, ...]] = []
    find = spark.jobs.find_table

    def found(engine: Engine, name: Sequence[str]) -> spark.jobs.CatalogTable | None:
        asked.append(tuple(name))
        return find(engine, name)

    monkeypatch.setattr(spark.jobs, "find_table", found)
    session = replace_session(Database(spark_session))
    for _number in range(2):
        Database(session).rows("SELECT * FROM t")
        Database(session).run("INSERT INTO t VALUES (5, 'x')")
    assert asked == [("spark_catalog", schema.name, "t")]
    assert session.trusted_names
