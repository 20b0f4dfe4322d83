"""Tables of the catalogs of Spark by their names: USING delta TABLE."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from golden_script import answer_of

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
