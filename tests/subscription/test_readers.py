"""Other readers of a copy return the rows of replctl's SELECT, or raise an error.  They never
return other rows.

`_CASES` are copies after changes of every kind, and `_READERS` are the readers.  `_NEEDS_OFF`,
`_REFUSES` and `_REFUSES_YEARS` name the copies that a reader cannot read;
docs/guides/read-the-copy.md lists them for users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaProtocolError
from fix_replication import Database, connect

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_class import Relation, load_relations, relation_oids
from replctl.catalog.relation_kind import RelKind
from replctl.spark.data_type import wire, wire_of_text

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = [pytest.mark.spark, pytest.mark.slow(5)]

_READERS: dict[str, Callable[[str], Any]] = {
    "deltalake, pandas": lambda place: _pandas(place),
    "deltalake, pyarrow dataset": lambda place: DeltaTable(place).to_pyarrow_dataset().to_table(),
    "deltalake, query builder": lambda place: _queried(place, "SELECT * FROM t"),
    "polars, read_delta": lambda place: pl.read_delta(place).to_arrow(),
    "polars, scan_delta": lambda place: pl.scan_delta(place).collect().to_arrow(),
    "DuckDB": lambda place: _duckdb(f"SELECT * FROM delta_scan('{place}')"),
}
#: Readers that cannot read deletion vectors: their tables need `deletion_vectors = off`.
_NEEDS_OFF = {"deltalake, pandas", "deltalake, pyarrow dataset"}
#: Features of Delta, and the readers that cannot read tables with them.
_REFUSES = {
    "columnMapping": {*_NEEDS_OFF, "polars, read_delta", "polars, scan_delta"},
    "typeWidening": {*_READERS} - {"DuckDB"},
}
#: A case with dates that readers refuse, with an error of Python or a panic of delta-rs.
_REFUSES_YEARS = {("dates", reader) for reader in _NEEDS_OFF}

#: Types, and values at their edges.  Delta's log has ranges of the first 32 columns.
_TYPES = [
    ("boolean", "t"),
    ("smallint", "-32768"),
    ("integer", "-1"),
    ("bigint", "9223372036854775807"),
    ("real", "0.1"),
    ("double precision", "NaN"),
    ("double precision", "-0"),
    ("double precision", "-Infinity"),
    ("numeric", "1.50"),
    ("numeric", "Infinity"),
    ("numeric", "1e-40"),
    ("numeric(10,2)", "-1.10"),
    ("numeric(38,0)", "99999999999999999999999999999999999999"),
    ("numeric(38,18)", "0.000000000000000001"),
    ("text", "it's äß€ "),
    ("text", "\U0010ffff" * 40),
    ("text", ""),
    ("varchar(5)", "ab"),
    ("char(4)", "ab"),
    ("date", "2024-02-29"),
    ("time", "12:34:56.789012"),
    ("timetz", "12:00:00+01"),
    ("timestamp", "2024-01-01 12:00:00.000001"),
    ("timestamp", "infinity"),
    ("timestamp", "0044-03-15 09:00:00 BC"),
    ("timestamptz", "2024-07-01 12:00:00.000001+00"),
    ("timestamptz", "infinity"),
    ("timestamptz", "-infinity"),
    ("timestamptz", "1066-10-14 09:00:00+00"),
    ("timestamptz", "2500-01-01 00:00:00.000001+00"),
    ("timestamptz", "12000-01-01 00:00:00+00"),
    ("interval", "1 mon -2 days 03:00:00"),
    ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("json", '{"a": 1}'),
    ("jsonb", '{"a": [1, null]}'),
    ("bytea", "\\x00ff"),
    ("integer[]", "{1,NULL,3}"),
    ("text[]", '{"a b",NULL,""}'),
    ("timestamptz[]", "{2024-01-01 00:00:00+00}"),
    ("numeric[]", "{1.50}"),
    ("numeric(4,1)[]", "{1.5}"),
    ("mood", "sad"),
    ("inet", "10.0.0.1"),
    ("oid", "4294967295"),
    ("pg_lsn", "FFFFFFFF/FFFFFFFF"),
    ("int4range", "[1,3)"),
    ("bit(3)", "101"),
    ("numeric(5,-2)", "12300"),
    ("numeric(50,2)", "1.10"),
]
#: Dates that Python does not have.
_DATES = [
    ("date", "infinity"),
    ("date", "-infinity"),
    ("date", "0044-03-15 BC"),
    ("date", "99999-12-31"),
]
#: Values whose range in Delta's log is missing, or that deltalake does not read exactly.  A
#: condition on their column finds no rows in a pyarrow dataset: a fault of deltalake, which the
#: guide names.
_WITHOUT_RANGE = {
    ("boolean", "t"),
    ("numeric(38,18)", "0.000000000000000001"),
    ("text", "\U0010ffff" * 40),
    ("timestamp", "infinity"),
    ("timestamp", "0044-03-15 09:00:00 BC"),
    ("timestamptz", "infinity"),
    ("timestamptz", "-infinity"),
    ("timestamptz", "12000-01-01 00:00:00+00"),
}
_ODD = (
    '"Up"',
    '"up"',
    '"a b"',
    '"c,d;{}()="',
    '"e.f"',
    '"g`h"',
    '"ü%20"',
    '"_metadata"',
    '"q\'""\\"',
)


@dataclass(frozen=True)
class _Case:
    """A published table and its copy.  The copy is made, then changed.  `{t}` is the table.

    Attributes:
        rows: the text after the table's name in INSERT INTO.
        changes: statements of the publisher after the copy and after `alter`.
        alter: statements of both databases after the copy.
        leaves: partitions, and their bounds.
        partitioned_by: columns by which Delta partitions the target, which is adopted.
        feature: the feature that `alter` turns on, with `schema_changes = metadata`.
    """

    columns: str
    rows: str
    changes: str
    alter: str = ""
    leaves: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: str = ""
    deletion_vectors: bool = False
    feature: str | None = None

    def created(self, table: str) -> str:
        """Return the statements that make the table."""
        vectors = "on" if self.deletion_vectors else "off"
        changes = "metadata" if self.feature else "rewrite"
        options = f" WITH (deletion_vectors = {vectors}, schema_changes = {changes})"
        if not self.leaves:
            return f"CREATE TABLE {table} ({self.columns}){options};"
        leaves = "".join(
            f" CREATE TABLE {leaf} PARTITION OF {table} FOR VALUES {bound}{options};"
            for leaf, bound in self.leaves.items()
        )
        return f"CREATE TABLE {table} ({self.columns}) PARTITION BY RANGE (id);{leaves}"


def _typed(values: Sequence[tuple[str, str]]) -> _Case:
    columns = ", ".join(f"c{i} {type_}" for i, (type_, _value) in enumerate(values))
    quoted = ", ".join("'{}'".format(value.replace("'", "''")) for _type, value in values)
    nulls = ", NULL" * len(values)
    return _Case(
        f"id int PRIMARY KEY, {columns}",
        f"VALUES (1, {quoted}), (2{nulls}), (3, {quoted})",
        "UPDATE {t} SET id = 4 WHERE id = 3",
    )


_CHANGED = (
    "id int PRIMARY KEY, v text, n numeric(10,2)",
    "VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, NULL, NULL)",
    "UPDATE {t} SET v = NULL, id = CASE id WHEN 3 THEN 30 ELSE id END WHERE id IN (1, 3);"
    " DELETE FROM {t} WHERE id = 2; INSERT INTO {t} VALUES (5, 'e', 5), (6, '', 6)",
)
_SMALL = ("id int PRIMARY KEY, v int", "VALUES (1, 10), (2, 20), (3, 30)")
_CASES = {
    "changed": _Case(*_CHANGED, deletion_vectors=True),
    "changed_off": _Case(*_CHANGED),
    "kinds": _typed(_TYPES),
    "dates": _typed(_DATES),
    "emptied": _Case(*_SMALL, "TRUNCATE {t}"),
    "empty": _Case("id int PRIMARY KEY, v int", "SELECT 1, 2 WHERE false", "DELETE FROM {t}"),
    "altered": _Case(
        "id int PRIMARY KEY, secret text, v int",
        "VALUES (1, 's', 10), (2, 't', 20), (3, 'u', 30)",
        "UPDATE {t} SET w = 9223372036854775807 WHERE id = 2",
        "ALTER TABLE {t} DROP COLUMN secret, ADD COLUMN w bigint, ADD COLUMN x text DEFAULT 'x'",
    ),
    "retyped": _Case(
        *_SMALL,
        "UPDATE {t} SET v = 9223372036854775807 WHERE id = 2",
        "ALTER TABLE {t} ALTER COLUMN v TYPE bigint",
    ),
    "mapped": _Case(
        "id int PRIMARY KEY, secret text, v int",
        "VALUES (1, 's', 10), (2, 't', 20), (3, 'u', 30)",
        "UPDATE {t} SET w = 21 WHERE id = 2",
        "ALTER TABLE {t} RENAME v TO w; ALTER TABLE {t} DROP COLUMN secret",
        feature="columnMapping",
    ),
    "widened": _Case(
        *_SMALL,
        "UPDATE {t} SET v = 9223372036854775807 WHERE id = 2",
        "ALTER TABLE {t} ALTER COLUMN v TYPE bigint",
        feature="typeWidening",
    ),
    "made": _Case(
        "id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int,"
        " w int GENERATED ALWAYS AS (v * 2) STORED"
        + "".join(f", {name} int DEFAULT {n}" for n, name in enumerate(_ODD)),
        "(v) VALUES (1), (2), (3)",
        'UPDATE {t} SET v = 22, "a b" = NULL, "up" = 22 WHERE id = 2',
    ),
    "ranged": _Case(
        *_SMALL,
        "TRUNCATE high; UPDATE {t} SET id = 100, v = 21 WHERE id = 2",
        leaves={"low": "FROM (0) TO (3)", "high": "FROM (3) TO (200)"},
    ),
    "parted": _Case(
        "id int PRIMARY KEY, region text, day date, v int",
        "VALUES (1, 'it''s %2F/ü =', '2024-02-29', 1), (2, NULL, NULL, 2),"
        " (3, 'c', '1066-10-14', 3)",
        "UPDATE {t} SET region = E'a\\b\"c', v = 33 WHERE id = 3",
        partitioned_by="region, day",
    ),
}
#: The Delta tables that are read, and their cases.
_TABLES = {
    table: case for name, case in _CASES.items() for table in (tuple(case.leaves) or (name,))
}


@dataclass(frozen=True)
class _Copy:
    """The place of a copy, the names of its columns, and its rows in replctl's SELECT."""

    place: str
    names: list[str]  # in the Delta table, in the order of the relation's columns
    rows: list[list[str]]

    def seen(self, table: pa.Table) -> list[list[str]]:
        """Return the rows that a reader returns, in the form of `rows`."""
        assert sorted(table.column_names) == sorted(self.names)
        columns = [_numbers(table.column(name)).to_pylist() for name in self.names]
        return _sorted(zip(*columns, strict=True))


def _sorted(rows: Iterable[Sequence[Any]]) -> list[list[str]]:
    """Return rows by id.  repr() makes NaN equal to itself, and distinguishes -0 from 0 and 1.0
    from 1.00."""
    return [list(map(repr, row)) for row in sorted(rows, key=lambda row: row[0])]


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with numbers instead of dates and timestamps, because Python lacks some of
    them."""
    type_ = column.type
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    element = type_.value_type if is_list else type_
    if pa.types.is_date32(element):
        number = pa.int32()
    elif pa.types.is_timestamp(element):
        assert element.unit == "us"
        number = pa.int64()
    else:
        return column
    return column.cast(pa.list_(number) if is_list else number)


def _shown(database: Database, relation: Relation) -> _Copy:
    assert relation.storage is not None
    place = Path(database.session.cluster.path, relation.storage.location)
    stored = relation.storage.columns
    rows = database.rows(f"SELECT * FROM {relation.name}")
    columns = (
        [
            pa.array(
                [wire_of_text(column.type, column.typmod, value) for value in values],
                wire(column.type, column.typmod).arrow,
            ).to_pylist()
            for column, values in zip(relation.columns, zip(*rows, strict=True), strict=True)
        ]
        if rows
        else []
    )
    names = [stored[column.attnum].name for column in relation.columns]
    return _Copy(str(place), names, _sorted(zip(*columns, strict=True)))


@pytest.fixture(scope="module")
def copies(
    shared_cluster: Cluster, engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, _Copy]:
    """Return the copies of all cases, after one initial copy and one batch of changes."""
    publisher = connect(shared_cluster, "test_pub", engine)
    subscriber = connect(shared_cluster, "test_sub", engine)
    for database in (publisher, subscriber):
        database.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    for name, case in _CASES.items():
        publisher.run(f"{case.created(name)} INSERT INTO {name} {case.rows}")
        if case.partitioned_by:
            place = tmp_path_factory.mktemp("target") / name
            engine.run(
                f"CREATE TABLE delta.`{place}` (id INT, region STRING, day DATE, v INT) USING delta"
                f" PARTITIONED BY ({case.partitioned_by})"
                " TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
            )
            subscriber.run(f"CREATE TABLE {name} (PRIMARY KEY (id)) USING delta LOCATION '{place}'")
        else:
            subscriber.run(case.created(name))
    publisher.run("CREATE PUBLICATION p FOR ALL TABLES")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    for name, case in _CASES.items():
        for database in (publisher, subscriber) if case.alter else ():
            database.run(case.alter.format(t=name))
    changes = "; ".join(case.changes.format(t=name) for name, case in _CASES.items())
    publisher.run(f"BEGIN; {changes}; COMMIT")
    assert subscriber.sync() == []
    with subscriber.session.read() as catalog:
        relations = load_relations(catalog, relation_oids(catalog, [RelKind.TABLE])).values()
    found = {relation.name: _shown(subscriber, relation) for relation in relations}
    return {table: found[table] for table in _TABLES}


def _pandas(place: str) -> pa.Table:
    """Read a table with pandas and Arrow's types.  pandas' own types have no NULL for integers, so
    they make floats of such a column."""
    frame = DeltaTable(place).to_pandas(types_mapper=pd.ArrowDtype)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _queried(place: str, query: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(place)).execute(query).read_all())


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """Return DuckDB with the extension that is installed for its version."""
    folder = files("duckdb_extension_delta") / "extensions" / f"v{duckdb.__version__}"
    connection = duckdb.connect()
    connection.execute(f"LOAD '{folder / 'delta.duckdb_extension'}'")
    return connection


def _duckdb(query: str, **tables: pa.Table) -> pa.Table:
    for name, table in tables.items():
        _connection().register(name, table)
    return _connection().execute(query).to_arrow_table()


@pytest.mark.parametrize("table", _TABLES)
def test_spark_sees_what_replctl_shows(
    copies: dict[str, _Copy], engine: Engine, table: str
) -> None:
    copy = copies[table]
    plain = engine.session.read.format("delta").load(copy.place).toArrow()
    assert copy.seen(plain) == copy.rows


@pytest.mark.parametrize("table", _TABLES)
@pytest.mark.parametrize("reader", _READERS)
def test_a_reader_sees_what_replctl_shows_or_fails(
    copies: dict[str, _Copy], reader: str, table: str
) -> None:
    copy, read = copies[table], _READERS[reader]
    if _TABLES[table].deletion_vectors and reader in _NEEDS_OFF:
        with pytest.raises(DeltaProtocolError, match="deletionVectors"):
            read(copy.place)
    elif reader in _REFUSES.get(_TABLES[table].feature or "", ()):
        with pytest.raises(Exception, match=r"(?i)columnMapping|typeWidening"):
            read(copy.place)
    elif (table, reader) in _REFUSES_YEARS:
        with pytest.raises(BaseException, match=r"isoformat|None") as caught:
            read(copy.place)
        assert type(caught.value).__name__ in ("ValueError", "PanicException")
    else:
        assert copy.seen(read(copy.place)) == copy.rows


def test_a_condition_finds_its_rows(copies: dict[str, _Copy]) -> None:
    """Readers skip files by the ranges of values and the NULLs in Delta's log."""
    place = copies["kinds"].place
    rows = _READERS["polars, read_delta"](place)
    ids = rows.column("id").to_pylist()
    dataset = DeltaTable(place).to_pyarrow_dataset()
    lost = set()
    for number, (type_, value) in enumerate(_TYPES):
        column = f"c{number}"
        if "[" in type_ or type_ == "interval" or value == "NaN":
            continue
        sought = pa.table({"value": rows.column(column).slice(ids.index(1), 1)})
        literal = pl.lit(pl.DataFrame(sought)["value"]).first()
        for condition, expected, expression, duckdb_condition in (
            (
                pc.field(column) == sought["value"][0],
                [1, 4],
                pl.col(column) == literal,
                "= (FROM sought)",
            ),
            (pc.field(column).is_null(), [2], pl.col(column).is_null(), "IS NULL"),
        ):
            query = f"SELECT id FROM delta_scan('{place}') WHERE {column} {duckdb_condition}"
            assert sorted(_duckdb(query, sought=sought)["id"].to_pylist()) == expected
            lazy = pl.scan_delta(place).filter(expression).collect()
            assert sorted(lazy["id"]) == expected
            if sorted(dataset.to_table(filter=condition)["id"].to_pylist()) != expected:
                lost.add((type_, value))
    assert lost == _WITHOUT_RANGE


def test_pandas_own_types_lose_integers(copies: dict[str, _Copy]) -> None:
    """A fault of pandas that the guide names: `types_mapper` keeps the values."""
    frame = DeltaTable(copies["altered"].place).to_pandas()
    assert str(frame["w"].dtype) == "float64"
    assert str(_pandas(copies["altered"].place).schema.field("w").type) == "int64"


def test_readers_of_variants(engine: Engine, source: Database, tmp_path: Path) -> None:
    place = tmp_path / "t"
    engine.run(f"CREATE TABLE delta.`{place}` (id INT, v VARIANT) USING delta")
    engine.run(f"INSERT INTO delta.`{place}` SELECT 1, parse_json('{{\"a\": [1, null]}}')")
    source.run(f"CREATE TABLE t USING delta LOCATION '{place}'")
    assert source.rows("SELECT * FROM t") == [("1", '{"a": [1, null]}')]
    query = f"SELECT v FROM delta_scan('{place}')"
    assert _connection().execute(query).fetchall() == [({"a": [1, None]},)]
    ((parts,),) = (row.values() for row in _queried(str(place), "SELECT v FROM t").to_pylist())
    assert {*parts} == {"metadata", "value"}
    with pytest.raises(pl.exceptions.ComputeError, match="LogicalType"):
        pl.read_delta(str(place))
