"""Tables of the catalogs of Spark by their names: USING delta TABLE."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fix_replication import Database
from golden_script import answer_of

from replctl import spark
from replctl.dump.dumped_database import DumpOptions, dump_database
from replctl.errors import ConnectionFailure
from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark


class Schema:
    """A schema of spark_catalog, with tables of another program."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder, self.name = engine, folder, f"s{secrets.token_hex(4)}"
        engine.run(f"CREATE SCHEMA {self.name}")

    def make(self, table: str, place: str, rows: str = "1, 'a'") -> Path:
        """Create a Delta table at a location, with a name."""
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
        f'ERROR 42602: "{path}" is a path, not a name', "HINT: Write USING delta LOCATION."
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
        "HINT: To keep this Delta table and forget the name, use ALTER TABLE public.t RESET"
        " (catalog_table). To adopt the table that has the name now, use DROP TABLE public.t, then"
        f" CREATE TABLE public.t USING delta TABLE '{full}'."
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

    # Both remedies of the HINT
    source.run("ALTER TABLE public.t RESET (catalog_table)")
    assert target.sync() == []
    assert target.rows("SELECT id FROM t ORDER BY id") == [("1",), ("2",), ("3",)]
    assert Database(later).rows("SELECT count(*) FROM t") == [("3",)]
    engine.run(f"CREATE TABLE {schema.name}.t USING delta LOCATION '{new}'")
    source.run(f"DROP TABLE public.t; CREATE TABLE public.t USING delta TABLE '{full}'")
    assert source.rows("SELECT * FROM t") == [("9", "new")]


def replace_session(database: Database) -> Session:
    """Return a new session of a database, which has not looked up a name yet."""
    session = database.session
    return session.in_database(session.database_oid)


def test_a_session_asks_for_a_name_once(
    spark_session: Session, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema.make("t", "t")
    Database(spark_session).run(f"CREATE TABLE t USING delta TABLE '{schema.name}.t'")
    asked: list[tuple[str, ...]] = []
    find = spark.jobs.find_table

    def found(engine: Engine, name: Sequence[str]) -> spark.CatalogTable | None:
        asked.append(tuple(name))
        return find(engine, name)

    monkeypatch.setattr(spark.jobs, "find_table", found)
    session = replace_session(Database(spark_session))
    for _number in range(2):
        Database(session).rows("SELECT * FROM t")
        Database(session).run("INSERT INTO t VALUES (5, 'x')")
    assert asked == [("spark_catalog", schema.name, "t")]
    assert session.trusted_names


def _leads_to(schema: Schema, table: str) -> str | None:
    found = spark.jobs.find_table(schema.engine, [schema.name, table])
    return None if found is None else found.location


def test_tables_are_registered_in_the_catalogs_of_spark(
    source: Database, target: Database, schema: Schema
) -> None:
    name, engine = schema.name, schema.engine
    source.run("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')")
    source.run("CREATE PUBLICATION p FOR TABLE t")
    # The name is taken: nothing is copied
    schema.make("t", "other")
    target.run(f"CREATE TABLE t (id int PRIMARY KEY, v text) WITH (catalog_table = '{name}.t')")
    target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p")
    (failure,) = target.sync()
    assert f'table "{name}.t" already exists in the catalogs of Spark' in str(failure.error)
    assert answer_of(target.session, "INSERT INTO t VALUES (1, 'x')") == (
        f'ERROR 42P07: table "{name}.t" already exists in the catalogs of Spark',
        'DETAIL: replctl cannot register table "t" under this name.',
        "HINT: Choose another name: ALTER TABLE public.t SET (catalog_table = 'SCHEMA.NAME').",
    )
    target.run(f"ALTER TABLE public.t SET (catalog_table = '{name}_x.t')")
    (missing,) = [line for line in answer_of(target.session, "INSERT INTO t VALUES (1, 'x')")
                  if line.startswith("HINT")]  # fmt: skip
    engine.run(missing.partition("Spark: ")[2].removesuffix("."))
    engine.run(f"DROP SCHEMA {name}_x")
    target.run(f"ALTER TABLE public.t SET (catalog_table = '{name}.copy')")
    assert target.sync() == []
    assert engine.rows(f"SELECT * FROM {name}.copy") == [(1, "a")]
    source.run("UPDATE t SET v = 'b'")
    target.run("ALTER TABLE t RENAME TO renamed; ALTER TABLE renamed RENAME TO t")
    assert target.sync() == []
    assert engine.rows(f"SELECT * FROM {name}.copy") == [(1, "b")]
    changed = answer_of(target.session, "ALTER TABLE t RESET (catalog_table)")
    assert changed[0].endswith('"catalog_table" of a table that is registered cannot be changed')

    # DROP TABLE removes only the table's own name
    target.run("DROP SUBSCRIPTION s")
    target.run("BEGIN; DROP TABLE t; ROLLBACK")
    assert _leads_to(schema, "copy") is not None
    target.run("DROP TABLE t")
    assert _leads_to(schema, "copy") is None
    with_name = f"WITH (catalog_table = '{name}.copy')"
    target.run(f"CREATE TABLE t (id int) {with_name}; INSERT INTO t VALUES (1)")
    engine.run(f"DROP TABLE {name}.copy")
    other = schema.make("copy", "third")
    target.run("DROP TABLE t")
    assert _leads_to(schema, "copy") == str(other)


def test_a_registration_of_a_transaction_that_is_rolled_back(
    spark_session: Session, schema: Schema
) -> None:
    database, name = Database(spark_session), f"{schema.name}.t"
    made = f"CREATE TABLE t (id int) USING delta LOCATION '{schema.folder}/own'"
    made += f" WITH (catalog_table = '{name}')"
    database.run(f"BEGIN; {made}; INSERT INTO t VALUES (1)")
    assert _leads_to(schema, "t") == f"{schema.folder}/own"
    database.run("ROLLBACK")
    assert _leads_to(schema, "t") is None


@pytest.mark.parametrize("place", ["spark.jobs.register_table", "insert_registration"])
def test_the_next_write_registers_what_was_interrupted(
    spark_session: Session, schema: Schema, place: str
) -> None:
    """The process may end before the table is registered, and before the catalog records this."""
    database, name = Database(spark_session), f"{schema.name}.t"
    database.run(f"CREATE TABLE t (id int) WITH (catalog_table = '{name}')")

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"replctl.lake.catalog_registration.{place}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.run("INSERT INTO t VALUES (1)")
    database.run("INSERT INTO t VALUES (2)")
    assert schema.engine.rows(f"SELECT * FROM {name}") == [(2,)]
    database.run("BEGIN; DROP TABLE t; COMMIT")
    assert _leads_to(schema, "t") is None


def test_a_name_that_stays_in_spark(
    spark_session: Session, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, name, full = Database(spark_session), schema.name, f"spark_catalog.{schema.name}.t"
    made = f"CREATE TABLE t (id int) WITH (catalog_table = '{name}.t'); INSERT INTO t VALUES (1)"

    def fails(_engine: Engine, _name: Sequence[str]) -> None:
        raise ConnectionFailure("no answer")

    database.run(made)
    with monkeypatch.context() as patch:
        patch.setattr(spark.jobs, "unregister_table", fails)
        dropped = answer_of(spark_session, "DROP TABLE t")
    assert dropped == (
        f'WARNING 01000: could not take "{full}" out of the catalogs of Spark',
        "DETAIL: no answer",
        f"HINT: Use DROP TABLE {full} in Spark, which leaves the files.",
        "DROP TABLE",
    )
    schema.engine.run(dropped[2].removeprefix("HINT: Use ").partition(" in Spark")[0])
    assert _leads_to(schema, "t") is None
    database.run(made)
    schema.engine.run(f"DROP TABLE {full}")
    assert answer_of(spark_session, "DROP TABLE t") == (
        f'NOTICE 00000: "{full}" leads to nothing in the catalogs of this Spark',
        "DETAIL: A dropped table had this name.",
        "DROP TABLE",
    )


def test_parameters_with_names(session: Session, tmp_path: Path) -> None:
    for value in ("t", "a..b", ""):
        made = f"CREATE TABLE t (id int) WITH (catalog_table = '{value}')"
        assert answer_of(session, made) == (
            f'ERROR 22023: invalid value for parameter "catalog_table": "{value}"',
            "DETAIL: It must be the name of a table of Spark with its schema, such as lake.events.",
        )
    (temporary,) = answer_of(
        session, "CREATE TEMP TABLE t (id int) WITH (catalog_table = 'lake.t')"
    )
    assert temporary.endswith('"catalog_table" of a temporary table is not supported')
    write_deltalake(str(tmp_path / "t"), pa.table({"id": pa.array([1], pa.int32())}))
    place = f"USING delta LOCATION '{tmp_path}/t'"
    refused = answer_of(session, f"CREATE TABLE t {place} WITH (catalog_table = 'lake.t')")
    assert refused[0] == (
        'ERROR 42809: storage parameter "catalog_table" is not for adopted tables'
    )
    # The table needs Spark only at the first write; PostgreSQL does not get the parameter
    run = Database(session).run
    run("CREATE TABLE t (id int) WITH (catalog_table = 'lake.t', fillfactor = 50)")
    run("ALTER TABLE t SET (catalog_table = 'lake.u')")
    dumped = "".join(dump_database(session, DumpOptions(schema_only=True)))
    assert "WITH (fillfactor='50', catalog_table='lake.u');" in dumped
    assert "WITH (fillfactor='50');" in dumped
    run("ALTER TABLE t RESET (catalog_table); DROP TABLE t")
