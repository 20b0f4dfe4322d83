"""Read the small tables of a Spark job in this process, and send their rows to Spark.  Do so when a
query first reads them, because a job may need no rows.

For each table that a query reads, Delta needs jobs that read the log, and Spark needs jobs that
read the files.  For a small table, they take longer than the rest of the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial

from replctl.lake.catalog_name import named_tables
from replctl.lake.small_table import small_rows
from replctl.session import Session
from replctl.spark import LocalRows, StagedColumn, TableSource, Target

#: The columns that sort rows in the order in which they were written.
_PLACE = (StagedColumn("row_version", "int8"), StagedColumn("row_id", "int8"))


@contextmanager
def with_small_leaves(session: Session, target: Target) -> Iterator[Target]:
    """Yield a table with the rows of its small leaf partitions, which this process reads.  Only the
    calling thread may use it, inside the `with` block.
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
    """
    most = int(session.setting("replctl.small_table_rows"))
    if not most:
        return [source for _oid, source in sources]

    @cache
    def named() -> list[int]:
        with session.read() as catalog:
            return named_tables(catalog, [oid for oid, _source in sources])

    def view(oid: int, source: TableSource) -> str | None:
        found = None if oid in named() else small_rows(source, most)  # only Spark resolves names
        if found is None:
            return None
        columns = [StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in source.columns]
        rows = LocalRows([*columns, *_PLACE])
        rows.add([[*row.values, *map(str, row.place)] for row in found])
        return stack.enter_context(rows.view(session.engine()))

    return [
        source
        if source.location is None
        else replace(source, local=cache(partial(view, oid, source)))
        for oid, source in sources
    ]
