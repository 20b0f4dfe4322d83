"""Dump tables and sequences, with their constraints, indexes and partitions (dumpTableSchema,
dumpSequence, dumpConstraint, dumpIndex).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from replctl.catalog.acl import AclKind
from replctl.catalog.aclchk import column_acls, relation_acl
from replctl.catalog.pg_class import (
    Column,
    Constraint,
    Index,
    Relation,
)
from replctl.catalog.pg_index import is_valid_index
from replctl.catalog.pg_sequence import Sequence, get_sequence, owned_sequences
from replctl.catalog.relation_kind import (
    TABLE_KINDS,
    ConstraintKind,
    DependencyType,
    RelKind,
    RelPersistence,
    ReplicaIdentity,
)
from replctl.catalog.ruleutils import (
    constraint_definition,
    get_expr,
    index_columns,
    own_collation,
    partition_bound,
    partition_key,
    partition_key_types,
)
from replctl.dump.dialect import added, created
from replctl.dump.dumped_privilege import acl_entries
from replctl.dump.entry import Entry, ObjectKey
from replctl.dump.source import Source, expression_keys, type_key
from replctl.expr import nodes
from replctl.expr.nextval_call import sequences_of
from replctl.types.builtin import types
from replctl.types.quote import quote_identifier, quote_qualified_identifier

_NULL = nodes.Const("unknown", None)
_BITS = {"int2": 15, "int4": 31, "int8": 63}


def tables(source: Source, relations: Mapping[int, Relation]) -> Iterator[Entry]:
    """Yield the entries of tables and of their columns, constraints, indexes and privileges."""
    for table in relations.values():
        if table.kind not in TABLE_KINDS:
            continue
        table = _with_null_defaults(table, relations)
        yield _table(source, table, relations)
        yield from _defaults(source, table)
        if table.is_partition:
            yield _attachment(source, table, relations)
        for index in table.indexes:
            yield _index(source, table, index, relations)
        for constraint in table.foreign_keys():
            if not constraint.parent_oid:
                yield _foreign_key(source, table, constraint)


def privileges(source: Source, relation: Relation) -> Iterator[Entry]:
    """Yield the privileges on a relation and its columns."""
    kind, catalog, name = "TABLE", source.catalog, relation.quoted_name
    like = Entry(kind, relation.name, "", relation.schema, source.role_name(relation.owner))
    acl = relation_acl(catalog, relation.oid)
    target: AclKind = "sequence" if relation.kind == RelKind.SEQUENCE else "table"
    key = ("relacl", relation.oid)
    for entry in acl_entries(source, target, acl, relation.owner, name=name, like=like):
        yield replace(entry, key=key)
    for attnum, column_acl in sorted(column_acls(catalog, relation.oid).items()):
        column = relation.column_at(attnum).name
        for entry in acl_entries(
            source, "column", column_acl, relation.owner, name=name, like=like, column=column
        ):  # its grantor may need the grant option of the table
            yield replace(entry, needs=frozenset([key]))


def with_column_comments(source: Source, entry: Entry, relation: Relation) -> Entry:
    """Return an entry with the comments on the columns of its relation."""
    for column in relation.columns:
        name = f"{relation.quoted_name}.{quote_identifier(column.name)}"
        entry = source.commented(entry, "pg_class", relation.oid, "COLUMN", name, column.attnum)
    return entry


# ---------------------------------------------------------------------------------------------
# Tables


def _unlogged(relation: Relation) -> str:
    return "UNLOGGED " if relation.persistence == RelPersistence.UNLOGGED else ""


def _table(source: Source, table: Relation, relations: Mapping[int, Relation]) -> Entry:
    name = table.quoted_name
    checks = [
        constraint
        for constraint in sorted(table.checks(), key=lambda item: item.name)
        if constraint.is_local or table.is_partition
    ]
    items = [_column(source, table, column) for column in _own_columns(table)]
    items += [
        f"CONSTRAINT {quote_identifier(check.name)}"
        f" {constraint_definition(source.environment, table, check)}"
        for check in checks
    ]
    unlogged = _unlogged(table)
    text = f"CREATE {unlogged}TABLE {name} ("
    text += ",".join(f"\n    {item}" for item in items) + "\n)"
    parents = [] if table.is_partition else [relations[oid] for oid in table.parents]
    if parents:
        text += f"\nINHERITS ({', '.join(parent.quoted_name for parent in parents)})"
    if table.partition_key is not None:
        text += f"\nPARTITION BY {partition_key(source.environment, table)}"
    inherited = ""
    if parents:
        inherited = "".join(
            f"ALTER TABLE ONLY {name} ALTER COLUMN {quote_identifier(column.name)} SET NOT NULL;\n"
            for column in table.columns
            if not column.is_local and column.not_null and not _is_not_null_above(column, parents)
        )
    attributes = "".join(_attributes(source, table, column) for column in _own_columns(table))
    text = created(source, table, checks, text, inherited + attributes)
    if table.replica_identity in (ReplicaIdentity.NOTHING, ReplicaIdentity.FULL):
        text += f"\nALTER TABLE ONLY {name} REPLICA IDENTITY {table.replica_identity.name};\n"
    if table.forces_row_security:
        text += f"\nALTER TABLE ONLY {name} FORCE ROW LEVEL SECURITY;\n"
    exprs = chain(
        (
            column.default
            for column in _own_columns(table)
            if not _is_omitted(source, table, column)
        ),
        (check.check for check in checks),
        () if table.partition_key is None else table.partition_key.exprs,
    )
    needs: set[ObjectKey] = {*expression_keys(exprs)}
    needs |= {key for column in table.columns for key in type_key(column.declared_type)}
    needs |= {("pg_class", parent.oid) for parent in parents}
    entry = Entry(
        "TABLE", table.name, text, table.schema, source.role_name(table.owner),
        "" if _last_sequence(source, table, relations) else f"TABLE {name}",
        key=("pg_class", table.oid), needs=frozenset(needs),
    )  # fmt: skip
    entry = source.commented(entry, "pg_class", table.oid, "TABLE", name)
    entry = with_column_comments(source, entry, table)
    for check in checks:
        entry = _with_constraint_comment(source, entry, table, check)
    return entry


def _attributes(source: Source, table: Relation, column: Column) -> str:
    """Return the statements for a column's storage, compression, statistics and options."""
    changes = []
    if column.statistics is not None:
        changes.append(f"SET STATISTICS {column.statistics}")
    if column.storage:
        changes.append(f"SET STORAGE {column.storage.name}")
    if column.compression:
        changes.append(f"SET COMPRESSION {column.compression.name.lower()}")
    if column.options:
        options = ", ".join(f"{name}={value}" for name, value in column.options.items())
        changes.append(f"SET ({options})")
    head = f"ALTER TABLE ONLY {table.quoted_name} ALTER COLUMN {quote_identifier(column.name)}"
    return "".join(f"{head} {change};\n" for change in changes)


def _with_null_defaults(table: Relation, relations: Mapping[int, Relation]) -> Relation:
    """Return a child table that has DEFAULT NULL where a parent has a default, and the child has
    none.  Otherwise the child would inherit the parent's default (flagInhAttrs).
    """
    if table.is_partition:
        return table
    above = {
        column.name
        for oid in table.parents
        for column in relations[oid].columns
        if column.default is not None and not column.generated
    }
    columns = tuple(
        replace(column, default=_NULL)
        if column.name in above and column.default is None and not column.identity
        else column
        for column in table.columns
    )
    return replace(table, columns=columns)


def _own_columns(table: Relation) -> list[Column]:
    """Return the columns that CREATE TABLE must name (shouldPrintColumn)."""
    return [column for column in table.columns if column.is_local or table.is_partition]


def _is_not_null_above(column: Column, parents: list[Relation]) -> bool:
    above = [parent.column(column.name) for parent in parents]
    return any(found is not None and found.not_null for found in above)


def _column(source: Source, table: Relation, column: Column) -> str:
    text = f"{quote_identifier(column.name)} "
    text += source.environment.format_type(column.declared_type, column.declared_typmod)
    if column.default is not None and not _is_omitted(source, table, column):
        expr = _default(source, table, column.default)
        is_generated = bool(column.generated)
        text += f" GENERATED ALWAYS AS ({expr}) STORED" if is_generated else f" DEFAULT {expr}"
    if column.identity:
        text += _identity(source, table, column)
    if column.not_null:
        text += " NOT NULL"
    collation = own_collation(source.environment, column)
    if collation is not None:
        text += f" COLLATE pg_catalog.{quote_identifier(collation)}"
    return text


def _default(source: Source, table: Relation, default: nodes.Expr) -> str:
    return "NULL" if default is _NULL else get_expr(source.environment, table, default)


def _is_omitted(source: Source, table: Relation, column: Column) -> bool:
    """Return whether CREATE TABLE omits a column's default.  This holds for inherited columns,
    identity columns, and defaults that use a sequence of the table, which is created later.
    """
    if column.default is None or column.identity:
        return bool(column.identity)
    if not column.is_local and not table.is_partition:
        return True
    own = {sequence.relid for sequence in owned_sequences(source.catalog, table.oid)}
    return not own.isdisjoint(sequences_of(column.default))


def _identity(source: Source, table: Relation, column: Column) -> str:
    for sequence in owned_sequences(source.catalog, table.oid, column.attnum):
        relation = source.environment.relation_name(sequence.relid)
        if sequence.ownership == DependencyType.INTERNAL:
            options = _sequence_options(sequence, has_type=False)
            return (
                f" GENERATED {column.identity.clause} AS IDENTITY ("
                f"\n        SEQUENCE NAME {relation}"
                + "".join(f"\n        {option}" for option in options)
                + "\n    )"
            )
    return ""  # the partitioned table has the identity's sequence


def _defaults(source: Source, table: Relation) -> Iterator[Entry]:
    """Yield the defaults that are not part of CREATE TABLE."""
    for column in table.columns:
        if column.default is None or column.identity or not _is_omitted(source, table, column):
            continue
        if column.generated:
            continue  # the column inherits its expression
        expr = _default(source, table, column.default)
        yield Entry(
            "DEFAULT",
            f"{table.name} {column.name}",
            f"ALTER TABLE ONLY {table.quoted_name}"
            f" ALTER COLUMN {quote_identifier(column.name)} SET DEFAULT {expr};\n",
            table.schema,
            source.role_name(table.owner),
            needs=frozenset([("pg_class", table.oid), *expression_keys([column.default])]),
        )


def _attachment(source: Source, table: Relation, relations: Mapping[int, Relation]) -> Entry:
    parent = relations[table.parents[0]]
    assert table.partition_bound is not None
    bound = partition_bound(source.environment, table.partition_bound, partition_key_types(parent))
    return Entry(
        "TABLE ATTACH",
        table.name,
        f"ALTER TABLE ONLY {parent.quoted_name} ATTACH PARTITION {table.quoted_name} {bound};\n",
        table.schema,
        source.role_name(table.owner),
        needs=frozenset([("pg_class", table.oid), ("pg_class", parent.oid)]),
    )


# ---------------------------------------------------------------------------------------------
# Constraints and indexes


def _index(
    source: Source, table: Relation, index: Index, relations: Mapping[int, Relation]
) -> Entry:
    """Return an index, or its constraint.

    The index of a partitioned table follows the indexes of its partitions, and its creation
    attaches them.  If a partition lacks the index, the dump creates the index with ONLY, and then
    attaches the existing indexes.
    """
    below = [
        (partition, other)
        for partition in relations.values()
        for other in partition.indexes
        if other.parent_oid == index.oid
    ]
    is_whole = table.is_partitioned and is_valid_index(relations, table, index)
    constraint = next((c for c in table.constraints if c.index_oid == index.oid), None)
    only = "" if is_whole else "ONLY "
    owner = source.role_name(table.owner)
    if constraint is not None and constraint.kind in (
        ConstraintKind.PRIMARY_KEY,
        ConstraintKind.UNIQUE,
    ):
        definition = constraint_definition(source.environment, table, constraint)
        text = f"ALTER TABLE {only}{table.quoted_name}\n"
        text += f"    ADD CONSTRAINT {quote_identifier(constraint.name)} {definition};\n"
        text = added(constraint, text)
        entry = Entry("CONSTRAINT", f"{table.name} {constraint.name}", text, table.schema, owner)
    else:
        unique = "UNIQUE " if index.is_unique else ""
        columns = index_columns(source.environment, table, index)
        place = f"ONLY {table.quoted_name}" if table.is_partitioned and only else table.quoted_name
        text = f"CREATE {unique}INDEX {quote_identifier(index.name)} ON {place} USING {columns};\n"
        entry = Entry("INDEX", index.name, text, table.schema, owner)
    name = quote_qualified_identifier(table.schema, index.name)
    for partition, own in below if only else ():
        own_name = quote_qualified_identifier(partition.schema, own.name)
        text += f"\nALTER INDEX {name} ATTACH PARTITION {own_name};\n"
    if index.is_clustered:
        text += f"\nALTER TABLE {table.quoted_name} CLUSTER ON {quote_identifier(index.name)};\n"
    if index.is_replica_identity:
        text += f"\nALTER TABLE ONLY {table.quoted_name} REPLICA IDENTITY USING INDEX"
        text += f" {quote_identifier(index.name)};\n"
    entry = Entry(
        entry.kind, entry.name, text, table.schema, owner,
        order=(index.name,), key=("pg_class", index.oid),
        needs=frozenset(("pg_class", own.oid) for _partition, own in below),
    )  # fmt: skip
    entry = source.commented(entry, "pg_class", index.oid, "INDEX", name)
    if constraint is not None:
        entry = _with_constraint_comment(source, entry, table, constraint)
    return entry


def _foreign_key(source: Source, table: Relation, constraint: Constraint) -> Entry:
    only = "" if table.is_partitioned else "ONLY "
    definition = constraint_definition(source.environment, table, constraint)
    entry = Entry(
        "FK CONSTRAINT",
        f"{table.name} {constraint.name}",
        f"ALTER TABLE {only}{table.quoted_name}\n"
        f"    ADD CONSTRAINT {quote_identifier(constraint.name)} {definition};\n",
        table.schema,
        source.role_name(table.owner),
        order=(constraint.name,),
    )
    return _with_constraint_comment(source, entry, table, constraint)


def _with_constraint_comment(
    source: Source, entry: Entry, table: Relation, constraint: Constraint
) -> Entry:
    name = f"{quote_identifier(constraint.name)} ON {table.quoted_name}"
    return source.commented(entry, "pg_constraint", constraint.oid, "CONSTRAINT", name)


# ---------------------------------------------------------------------------------------------
# Sequences


def sequences(source: Source, relations: Mapping[int, Relation]) -> Iterator[Entry]:
    """Yield the sequences, except sequences of identity columns, which CREATE TABLE creates.

    A table and its sequences must have the same owner.  So the dump changes the table's owner after
    the last of its sequences.  This also changes the owner of the sequences.
    """
    for relation in relations.values():
        sequence = (
            get_sequence(source.catalog, relation.oid)
            if relation.kind == RelKind.SEQUENCE
            else None
        )
        if sequence is None or sequence.ownership == DependencyType.INTERNAL:
            continue
        name = relation.quoted_name
        text = f"CREATE {_unlogged(relation)}SEQUENCE {name}"
        options = _sequence_options(sequence, has_type=True)
        needs: frozenset[ObjectKey] = frozenset()
        owned = f"SEQUENCE {name}"
        if sequence.owner_relid:
            table = relations[sequence.owner_relid]
            is_last = relation == _last_sequence(source, table, relations)
            owned = f"TABLE {table.quoted_name}" if is_last else ""
            column = quote_identifier(table.column_at(sequence.owner_attnum).name)
            options.append(f"OWNED BY {table.quoted_name}.{column}")
            needs = frozenset([("pg_class", table.oid)])
        text += "".join(f"\n    {option}" for option in options) + ";\n"
        entry = Entry(
            "SEQUENCE", relation.name, text, relation.schema, source.role_name(relation.owner),
            owned, key=("pg_class", relation.oid), needs=needs,
        )  # fmt: skip
        yield source.commented(entry, "pg_class", relation.oid, "SEQUENCE", name)


def _last_sequence(
    source: Source, table: Relation, relations: Mapping[int, Relation]
) -> Relation | None:
    """Return the table's sequence that comes last in the dump; None if the table has none."""
    own = [
        relations[sequence.relid]
        for sequence in owned_sequences(source.catalog, table.oid)
        if sequence.ownership != DependencyType.INTERNAL
    ]
    return max(own, key=lambda relation: relation.name, default=None)


def _sequence_options(sequence: Sequence, *, has_type: bool) -> list[str]:
    bits = _BITS[sequence.type]
    upward = sequence.increment > 0
    lowest, highest = (1, 2**bits - 1) if upward else (-(2**bits), -1)
    options = []
    if has_type and sequence.type != "int8":
        options.append(f"AS {types()[sequence.type].sql_name}")
    options.append(f"START WITH {sequence.start}")
    options.append(f"INCREMENT BY {sequence.increment}")
    is_lowest, is_highest = sequence.minimum == lowest, sequence.maximum == highest
    options.append("NO MINVALUE" if is_lowest else f"MINVALUE {sequence.minimum}")
    options.append("NO MAXVALUE" if is_highest else f"MAXVALUE {sequence.maximum}")
    options.append(f"CACHE {sequence.cache}")
    if sequence.cycles:
        options.append("CYCLE")
    return options
