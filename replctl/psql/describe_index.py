"""`\\d` of an index: its columns, and the table that it is for."""

from __future__ import annotations

from replctl.catalog.pg_class import STORAGE, Index, Relation, get_relation, index_table_oid
from replctl.catalog.ruleutils import get_expr
from replctl.psql.described import Described
from replctl.psql.print_content import Table
from replctl.types.quote import quote_identifier


def described_index(target: Described, relation: Relation, title: str, verbose: bool) -> Table:
    """Return the table that `\\d` prints of an index."""
    table = get_relation(target.catalog, index_table_oid(target.catalog, relation.oid))
    assert table is not None
    index = next(item for item in table.indexes if item.oid == relation.oid)
    columns = ["Column", "Type", "Key?", "Definition"]
    if verbose:
        columns += ["Storage", "Stats target"]
    rows: list[list[str | None]] = []
    for attnum in (*index.key, *index.including):
        column = table.column_at(attnum)
        type_ = target.environment.format_type(column.type, column.typmod)
        is_key = "yes" if attnum in index.key else "no"
        row: list[str | None] = [column.name, type_, is_key, quote_identifier(column.name)]
        if verbose:
            row += [STORAGE[target.environment.type(column.type).storage], ""]
        rows.append(row)
    return Table(columns, rows, title=title, footers=[_footer(target, table, index)])


def _footer(target: Described, table: Relation, index: Index) -> str:
    words = []
    if index.is_primary:
        words.append("primary key")
    elif index.is_unique:
        words.append("unique nulls not distinct" if index.nulls_not_distinct else "unique")
    words += ["btree", f'for table "{table.schema}.{table.name}"']
    if index.predicate is not None:
        predicate = get_expr(target.environment, table, index.predicate, is_pretty=True)
        words.append(f"predicate ({predicate})")
    if index.is_replica_identity:
        words.append("replica identity")
    return ", ".join(words)
