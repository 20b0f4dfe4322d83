"""Run `\\d` for an index: print its columns, and its table."""

from __future__ import annotations

from replctl.catalog.pg_class import (
    Index,
    Relation,
    get_relation,
    index_table_oid,
    load_relations,
)
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.ruleutils import get_expr, index_key_column, index_key_expression
from replctl.expr import nodes
from replctl.psql.described import Described, is_valid, listed
from replctl.psql.print_content import Table
from replctl.types.quote import quote_identifier


def described_index(target: Described, relation: Relation, title: str, verbose: bool) -> Table:
    """Return the table that `\\d` prints for an index."""
    table = get_relation(target.catalog, index_table_oid(target.catalog, relation.oid))
    assert table is not None
    index = next(item for item in table.indexes if item.oid == relation.oid)
    columns = ["Column", "Type", "Key?", "Definition"]
    if verbose:
        columns += ["Storage", "Stats target"]
    rows: list[list[str | None]] = []
    for number, attnum in enumerate((*index.key, *index.including)):
        is_key = number < len(index.key)
        if attnum:
            column = table.column_at(attnum)
            name, type_name, typmod = column.name, column.declared_type, column.declared_typmod
            definition = quote_identifier(name)
        else:
            expr = index_key_expression(index, number)
            name, type_name, typmod = index.details[number].name, expr.type, nodes.typmod(expr)
            definition = index_key_column(target.environment, table, index, number, is_pretty=True)
        if index.details and is_key:
            name = index.details[number].name or name
        if index.access_method == "hash":  # it stores hashes of type int4
            type_name, typmod = "int4", -1
        shown = target.environment.format_type(type_name, typmod)
        row: list[str | None] = [name, shown, "yes" if is_key else "no", definition]
        if verbose:
            row += [target.environment.type(type_name).storage.name.lower(), ""]
        rows.append(row)
    return Table(columns, rows, title=title, footers=_footers(target, table, index, verbose))


def _footers(target: Described, table: Relation, index: Index, verbose: bool) -> list[str]:
    footers = []
    if index.parent_oid:
        footers.append(f"Partition of: {target.environment.relation_name(index.parent_oid)} ")
        footers += ["No partition constraint"] if verbose else []
    footers.append(_footer(target, table, index))
    if table.is_partitioned:
        footers += _partitions(target, index, verbose)
    if verbose and index.options:
        options = ", ".join(f"{name}={value}" for name, value in index.options.items())
        footers.append(f"Options: {options}")
    return footers


def _partitions(target: Described, index: Index, verbose: bool) -> list[str]:
    """Return the lines about the indexes that belong to a partitioned index."""
    oids = children_of(target.catalog, index.oid)
    if not verbose or not oids:
        hint = " (Use \\d+ to list them.)" if oids else ""
        lines = [f"Number of partitions: {len(oids)}{hint}"]
        return [*lines, f"Access method: {index.access_method}"] if verbose else lines
    items = []
    for child in load_relations(target.catalog, oids).values():
        name = target.environment.relation_name(child.oid) or ""
        items.append(name + (", PARTITIONED" if child.kind == RelKind.PARTITIONED_INDEX else ""))
    return [*listed("Partitions", sorted(items)), f"Access method: {index.access_method}"]


def _footer(target: Described, table: Relation, index: Index) -> str:
    words = []
    if index.is_primary:
        words.append("primary key")
    elif index.is_unique:
        words.append("unique nulls not distinct" if index.nulls_not_distinct else "unique")
    words += [index.access_method, f'for table "{table.schema}.{table.name}"']
    if index.predicate is not None:
        predicate = get_expr(target.environment, table, index.predicate, is_pretty=True)
        words.append(f"predicate ({predicate})")
    if index.is_clustered:
        words.append("clustered")
    if not is_valid(target, table, index):
        words.append("invalid")
    if index.is_deferrable:
        words.append("deferrable")
    if index.is_replica_identity:
        words.append("replica identity")
    return ", ".join(words)
