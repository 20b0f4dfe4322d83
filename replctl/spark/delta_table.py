"""Delta tables: create them, read them at a version, and write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from replctl.expr import nodes
from replctl.spark.data_type import literal, quote, quote_name, storage_type, table_name
from replctl.spark.native_form import json_text
from replctl.spark.spark_query import Query, reading
from replctl.spark.sql_value import raised_sql
from replctl.spark.stored_input import input_sql
from replctl.spark.translation import to_sql
from replctl.spark.values import (
    NO_LAYOUT,
    CommitNote,
    FileLayout,
    PartitionZone,
    TableColumn,
    TableSource,
)
from replctl.types.delta_type import SHOWN_AS, is_native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from replctl.spark.engine import Engine

#: Properties of the tables that replctl creates.
TABLE_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",  # to pair images if keys change, and for the order of rows
    "delta.enableExpiredLogCleanup": "false",  # replication slots decide which versions may go
    "delta.isolationLevel": "Serializable",
}

_ROW_ORDER = "_metadata.row_commit_version, _metadata.row_id"
#: The quoted name for the place of a row among all rows.  No column of a table has that name.
PLACE = "`replctl place`"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_TXN_APPLICATION = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"


def create_table(
    engine: Engine,
    location: str,
    columns: Sequence[TableColumn],
    properties: Mapping[str, str],
    note: CommitNote,
    layout: FileLayout = NO_LAYOUT,
) -> None:
    """Create an empty Delta table with some properties."""
    defined = _definitions(columns) or "`_` BOOLEAN"  # Delta has no table without columns
    shown_properties = ", ".join(
        f"{quote(name)} = {quote(value)}" for name, value in properties.items()
    )
    with noted(engine, note):
        define(
            engine,
            location,
            f"CREATE TABLE IF NOT EXISTS {table_name(location)} ({defined}) USING delta"
            f"{_layout_clause(layout)} TBLPROPERTIES ({shown_properties})",
        )


def add_columns(
    engine: Engine, location: str, columns: Sequence[TableColumn], note: CommitNote
) -> None:
    """Add columns to a table.  Existing rows get NULL."""
    with noted(engine, note):
        _alter(engine, location, f"ADD COLUMNS ({_definitions(columns)})")


def rewrite_columns(
    engine: Engine, location: str, values: Mapping[str, str], note: CommitNote
) -> None:
    """Set columns of all rows.

    Args:
        values: Spark SQL of the new values, by column.
    """
    assigned = ", ".join(f"{quote_name(name)} = {value}" for name, value in values.items())
    update = f"UPDATE {table_name(location)} SET {assigned}"
    execute(engine, reading(update, table=location), note)


def rewrite_rows(
    engine: Engine,
    location: str,
    values: Mapping[str, str],
    numbers: Mapping[str, range],
    note: CommitNote,
    *,
    is_clustered: bool = False,
) -> None:
    """Rewrite all rows in their order, with new values for some columns.  The new values may be
    volatile.

    Args:
        values: Spark SQL of the new values, by column.
        numbers: names that `values` may use, each with a range.  In each row, a name stands for
            the next number of its range.
        is_clustered: see `overwrite`.
    """
    order, rows = _ROW_ORDER, table_name(location)
    names = [*map(quote_name, values), *numbers]
    if numbers:
        place, order = f"CAST(row_number() OVER (ORDER BY {order}) AS BIGINT) - 1", PLACE
        rows = numbered_sql(f"(SELECT *, {place} AS {PLACE} FROM {rows})", numbers)
        names.append(PLACE)
    new = ", ".join(f"{value} AS {quote_name(name)}" for name, value in values.items())
    query = reading(
        f"SELECT * EXCEPT ({', '.join(names)}), {new} FROM {rows} ORDER BY {order}", table=location
    )
    overwrite(engine, location, engine.sql(query), note, is_clustered=is_clustered)


def numbered_sql(rows: str, numbers: Mapping[str, range]) -> str:
    """Return SQL of rows with one more column for each range: the range's next number.

    Args:
        rows: SQL of the rows.  Its column PLACE is the place of each row, from 0.
        numbers: the range of each new column, by its name.
    """
    columns = [f"{n.start}L + {n.step}L * {PLACE} AS {name}" for name, n in numbers.items()]
    return f"(SELECT {', '.join(['*', *columns])} FROM {rows})"


def rewrite_schema(
    engine: Engine,
    location: str,
    columns: Sequence[tuple[str, str]],
    note: CommitNote,
    layout: FileLayout = NO_LAYOUT,
) -> None:
    """Rewrite all rows in their order, with only some of the columns.

    Args:
        columns: the old and the new name of each remaining column.
        layout: the layout of the table, with the new names.
    """
    kept = [f"{quote_name(before)} AS {quote_name(after)}" for before, after in columns]
    query = reading(
        f"SELECT {', '.join(kept) or to_storage(())} FROM {table_name(location)}"
        f" ORDER BY {_ROW_ORDER}",
        table=location,
    )
    options = {"overwriteSchema": "true"}
    _write(engine, location, engine.sql(query), note, "overwrite", options, layout)


def set_properties(
    engine: Engine, location: str, properties: Mapping[str, str], note: CommitNote | None = None
) -> None:
    """Change properties of a table."""
    shown = ", ".join(f"{quote(name)} = {quote(value)}" for name, value in properties.items())
    with nullcontext() if note is None else noted(engine, note):
        _alter(engine, location, f"SET TBLPROPERTIES ({shown})")


def unset_properties(engine: Engine, location: str, names: Sequence[str], note: CommitNote) -> None:
    """Remove properties of a table, which it has."""
    with noted(engine, note):
        shown = ", ".join(map(quote, names))
        _alter(engine, location, f"UNSET TBLPROPERTIES ({shown})")


def drop_columns(engine: Engine, location: str, names: Sequence[str], note: CommitNote) -> None:
    """Drop columns of a table with column mapping."""
    with noted(engine, note):
        dropped = ", ".join(map(quote_name, names))
        _alter(engine, location, f"DROP COLUMNS ({dropped})")


def rename_column(engine: Engine, location: str, old: str, new: str, note: CommitNote) -> None:
    """Rename a column of a table with column mapping."""
    renamed = f"{quote_name(old)} TO {quote_name(new)}"
    with noted(engine, note):
        _alter(engine, location, f"RENAME COLUMN {renamed}")


def move_column(
    engine: Engine, location: str, name: str, before: str | None, note: CommitNote
) -> None:
    """Move a column of a table to the place after another column; None: to the first place."""
    place = "FIRST" if before is None else f"AFTER {quote_name(before)}"
    with noted(engine, note):
        _alter(engine, location, f"ALTER COLUMN {quote_name(name)} {place}")


def widen_column(engine: Engine, location: str, name: str, type_: str, note: CommitNote) -> None:
    """Give a column of a table with type widening a wider type of Spark."""
    with noted(engine, note):
        _alter(engine, location, f"ALTER COLUMN {quote_name(name)} TYPE {type_}")


def purge(engine: Engine, location: str, note: CommitNote) -> None:
    """Rewrite the files that contain deleted rows, or values of dropped columns."""
    with noted(engine, note):
        engine.run(reading(f"REORG TABLE {table_name(location)} APPLY (PURGE)", table=location))


def _alter(engine: Engine, location: str, change: str) -> None:
    define(engine, location, f"ALTER TABLE {table_name(location)} {change}")


def define(engine: Engine, location: str, statement: str) -> None:
    """Run a statement that creates a table or changes its definition.  It reads no rows, so the
    settings of the session stay.
    """
    with engine.running():
        engine.provide_for([location])
        engine.session.sql(statement)


def scan(source: TableSource, *, with_row_id: bool = False) -> Query:
    """Return a query for the rows of a relation; its columns have the names c<attnum>.

    Args:
        with_row_id: also return row_version and row_id.  They sort rows in the order in which they
            were written.
    """
    if source.location is None:
        columns = [
            f"{literal(column.type, column.typmod, None)} AS c{column.attnum}"
            for column in source.columns
        ]
        if with_row_id:
            columns += ["0L AS row_version", "0L AS row_id"]
        return Query(f"SELECT {', '.join(columns) or '1 AS c0'} WHERE FALSE")
    view = source.local_view()
    if view is not None:
        columns = [f"c{column.attnum}" for column in source.columns]
        columns += ["row_version", "row_id"] if with_row_id else []
        return Query(f"SELECT {', '.join(columns) or '1 AS c0'} FROM {view}")
    columns = [f"{column_sql(column)} AS c{column.attnum}" for column in source.columns]
    if with_row_id and source.has_row_tracking:
        columns += ["_metadata.row_commit_version AS row_version", "_metadata.row_id AS row_id"]
    elif with_row_id:
        columns += ["0L AS row_version", "0L AS row_id"]
    version = "" if source.version is None else f" VERSION AS OF {source.version}"
    rows = f"{table_name(source.location)}{version}"
    return reading(f"SELECT {', '.join(columns) or '1 AS c0'} FROM {rows}", table=source.location)


def column_sql(column: TableColumn, prefix: str = "") -> str:
    """Return SQL of a column of a table.  For a column that the table lacks, return a constant."""
    if column.fault is not None:
        stored_as = storage_type(column.type, column.typmod)
        return f"CAST({raised_sql(column.fault)} AS {stored_as})"
    if column.storage_name is None:
        return literal(column.type, column.typmod, column.missing_value)
    stored = prefix + quote_name(column.storage_name)
    if column.zone is not None:
        stored = zoned_sql(stored, column.zone)
    if column.is_wider:
        own = storage_type(*(column.text_of or (column.type, column.typmod)))
        stored = f"CAST({stored} AS {own})"
    if column.input_of is not None:
        stored = input_sql(column, stored)
    if column.text_of is None:
        return stored
    value: nodes.Expr = nodes.Var(column.attnum, *column.text_of)
    if is_native(column.text_of[0]):
        json = json_text(column.text_of[0], stored)
        value, stored = nodes.CoerceViaIO(nodes.Var(column.attnum, "text"), SHOWN_AS), json
    return to_sql(nodes.CoerceViaIO(value, "text"), lambda var: stored).text


def zoned_sql(value: str, zone: PartitionZone) -> str:
    """Return SQL that corrects a timestamp in a partition column: Spark reads it as UTC, although
    it is local time in `zone`."""
    moved = f"to_utc_timestamp({value}, {quote(zone.name)})"
    if not zone.others:
        return moved
    others = ", ".join(f"CAST({quote(text)} AS TIMESTAMP)" for text in zone.others)
    return f"CASE WHEN {value} IN ({others}) THEN {value} ELSE {moved} END"


def to_storage(columns: Sequence[TableColumn], prefix: str = "c") -> str:
    """Return the SELECT list that renames c1, c2, ... to the columns of the Delta table."""
    named = [
        f"{prefix}{column.attnum} AS {quote_name(column.storage_name or '')}" for column in columns
    ]
    return ", ".join(named) or "CAST(NULL AS BOOLEAN) AS `_`"


def as_stored(
    engine: Engine, source: TableSource, frame: DataFrame, columns: Sequence[TableColumn]
) -> DataFrame:
    """Return rows with the numeric types of a table.  An adopted table may store SMALLINTs as
    TINYINT, and replctl's own table may store columns with wider types.  Delta does not convert
    them.

    Args:
        columns: the columns of the rows.
    """
    types = {(c.storage_name or "").lower(): storage_type(c.type, c.typmod) for c in columns}
    wider = {(c.storage_name or "").lower() for c in columns if c.is_wider}
    if not wider and not any("SMALLINT" in shown for shown in types.values()):
        return frame
    with engine.running():
        stored = {
            field.name: field.dataType.simpleString().upper()
            for field in engine.session.read.format("delta").load(source.location).schema
        }
        other = {
            name: frame[quote_name(name)].cast(shown.lower())
            for name, shown in stored.items()
            if name.lower() in wider
            or (
                "TINYINT" in shown
                and shown.replace("TINYINT", "SMALLINT") == types.get(name.lower())
            )
        }
        return frame.withColumns(other) if other else frame


def append(engine: Engine, location: str, frame: DataFrame, note: CommitNote) -> None:
    """Append rows; their columns have the names of the table's columns."""
    _write(engine, location, frame, note, "append", {})


def overwrite(
    engine: Engine,
    location: str,
    frame: DataFrame,
    note: CommitNote,
    *,
    is_clustered: bool = False,
) -> None:
    """Replace all rows in one commit.

    Args:
        is_clustered: the table is clustered.  A condition that all rows satisfy keeps that: after
            another overwrite, Delta no longer clusters the table.
    """
    options = {"replaceWhere": "true"} if is_clustered else {}
    _write(engine, location, frame, note, "overwrite", options)


def replace_where(
    engine: Engine, location: str, predicate: str, frame: DataFrame, note: CommitNote
) -> None:
    """Replace the rows that satisfy `predicate` by a few other rows, in one commit."""
    replaced = reading(f"TABLE {table_name(location)}", table=location)
    engine.query_size.choose(engine.session, replaced, has_few_rows=True)
    _write(engine, location, frame, note, "overwrite", {"replaceWhere": predicate})


def _write(
    engine: Engine,
    location: str,
    frame: DataFrame,
    note: CommitNote,
    mode: str,
    options: dict[str, str],
    layout: FileLayout = NO_LAYOUT,
) -> None:
    options = {**options, "userMetadata": note.user_metadata}
    if note.application is not None:
        options |= {"txnAppId": note.application, "txnVersion": str(note.step)}
    engine.provide_for([location])
    with engine.running():
        writer = frame.write.format("delta").mode(mode).options(**options)
        if layout.partitions:
            writer = writer.partitionBy(*layout.partitions)
        if layout.clusters:
            writer = writer.clusterBy(*map(".".join, layout.clusters))
        writer.save(location)


def execute(engine: Engine, statement: Query, note: CommitNote) -> int:
    """Run UPDATE, DELETE, MERGE or TRUNCATE.

    Returns:
        the number of changed rows that Delta reports; 0 if it reports no number.
    """
    with noted(engine, note):
        answer = engine.run(statement)
    return int(answer[0][0]) if answer and answer[0] else 0


def truncate(engine: Engine, location: str, note: CommitNote) -> None:
    """Remove all rows of a table."""
    execute(engine, reading(f"TRUNCATE TABLE {table_name(location)}", table=location), note)


def has_rows(engine: Engine, location: str) -> bool:
    """Return whether a table has any row."""
    first = reading(f"SELECT 1 FROM {table_name(location)} LIMIT 1", table=location)
    return bool(engine.rows(first))


def restore(engine: Engine, location: str, version: int, note: CommitNote) -> None:
    """Restore the table's content at `version` in a new version."""
    with noted(engine, note):
        restoring = f"RESTORE TABLE {table_name(location)} TO VERSION AS OF {version}"
        engine.run(reading(restoring, table=location))


def cluster(
    engine: Engine,
    location: str,
    columns: Sequence[Sequence[str]],
    note: CommitNote | None = None,
) -> None:
    """Cluster a table by columns (FileLayout.clusters), from the next OPTIMIZE on."""
    with nullcontext() if note is None else noted(engine, note):
        _alter(engine, location, f"CLUSTER BY ({_paths(columns)})")


def optimize(engine: Engine, location: str, key: Sequence[str], note: CommitNote) -> None:
    """Combine many small files into few large ones; no row changes.

    Args:
        key: names, in storage, of the columns by which Delta clusters the rows.  Changes by key
            then affect only few files.
    """
    clustered = f" ZORDER BY ({', '.join(map(quote_name, key))})" if key else ""
    with noted(engine, note):
        engine.run(reading(f"OPTIMIZE {table_name(location)}{clustered}", table=location))


@contextmanager
def noted(engine: Engine, note: CommitNote) -> Iterator[None]:
    """Set the commit note for SQL commands of this thread's session during the `with` block."""
    settings = {_USER_METADATA: note.user_metadata}
    if note.application is not None:
        settings |= {_TXN_APPLICATION: note.application, _TXN_VERSION: str(note.step)}
    session = engine.session
    with engine.running():
        for name, value in settings.items():
            session.conf.set(name, value)
    try:
        yield
    finally:
        with engine.running():
            for name in settings:
                session.conf.unset(name)


def _layout_clause(layout: FileLayout) -> str:
    """Return the clause of CREATE TABLE for a layout; '' if the table has none."""
    if layout.partitions:
        return f" PARTITIONED BY ({', '.join(map(quote_name, layout.partitions))})"
    return f" CLUSTER BY ({_paths(layout.clusters)})" if layout.clusters else ""


def _paths(columns: Sequence[Sequence[str]]) -> str:
    return ", ".join(".".join(map(quote_name, path)) for path in columns)


def _definitions(columns: Sequence[TableColumn]) -> str:
    """Return the column list for CREATE TABLE and ADD COLUMNS."""
    return ", ".join(
        f"{quote_name(column.storage_name or '')} {storage_type(column.type, column.typmod)}"
        for column in columns
    )
