"""Read the small tables of a Spark job in this process, and send their rows to Spark.

For each table that a query reads, Delta needs jobs that read the log, and Spark needs jobs that
read the files.  For a small table, they take longer than the rest of the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from replctl.lake.catalog_name import named_tables
from replctl.lake.small_table import small_rows
from replctl.session import Session
from replctl.spark import LocalRows, StagedColumn, TableSource, Target, late_view

#: The columns that sort rows in the order in which they were written.
_PLACE = (StagedColumn("row_version", "int8"), StagedColumn("row_id", "int8"))


@contextmanager
def with_small_leaves(session: Session, target: Target) -> Iterator[Target]:
    """Yield a table with the rows of its small leaf partitions, which this process reads.  Only the
    calling thread may use it, inside the `with` block.

    Raises:
        PostgresError: the log of a table cannot be read.
    """
    with ExitStack() as stack:
        sources = [(leaf.relid, leaf.source) for leaf in target.leaves]
        leaves = zip(target.leaves, with_small_rows(session, sources, stack), strict=True)
        yield replace(target, leaves=tuple(replace(leaf, source=source) for leaf, source in leaves))


def with_small_rows(
    session: Session, sources: Sequence[tuple[int, TableSource]], stack: ExitStack
) -> list[TableSource]:
    """Return the sources, the small ones with their rows, which this process reads.  Only the
    calling thread may use the result, until `stack` closes.

    Args:
        sources: each with the OID of its table.

    Raises:
        PostgresError: the log of a table cannot be read.
    """
    most = int(session.setting("replctl.small_table_rows"))
    if not most:
        return [source for _oid, source in sources]
    with session.read() as catalog:
        named = named_tables(catalog, [oid for oid, _source in sources])
    return [
        # Only Spark resolves names
        source if oid in named else _small(session, source, most, stack)
        for oid, source in sources
    ]


def _small(session: Session, source: TableSource, most: int, stack: ExitStack) -> TableSource:
    """Return a source with a view of its rows if the table is small, else the source."""
    found = None if source.location is None else small_rows(source, most)
    if found is None:
        return source
    columns = [StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in source.columns]
    rows = LocalRows([*columns, *_PLACE])
    rows.add([[*row.values, *map(str, row.place)] for row in found])
    view = stack.enter_context(late_view(session.engine(), rows.table, rows.columns))
    return replace(source, view=view)
