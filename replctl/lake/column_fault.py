"""Columns of a published table that cannot be read any more: others have dropped them, or given
them another type."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from replctl.catalog.pg_class import Column, Relation, load_relations
from replctl.catalog.pg_database import current_database
from replctl.catalog.pg_publication import PublishedTable, publications_by_oid, published_tables
from replctl.catalog.ruleutils import get_expr
from replctl.catalog.transaction import Catalog
from replctl.errors import DatatypeMismatch, PostgresError, UndefinedColumn
from replctl.expr import nodes
from replctl.lake.adopt import DeltaColumn, readable_column, shown_type
from replctl.lake.column_changes import has_renamings, stored_names
from replctl.lake.delta_log import columns_of, stored_columns
from replctl.lake.table_metadata import metadata_at
from replctl.record import dataclass
from replctl.replication.conflict import DecodingFailure
from replctl.replication.published_relation import PublishedRelation, TableToCopy
from replctl.replication.refresh_hint import refresh_statement
from replctl.replication.replica_identity import identity_columns
from replctl.session import Session
from replctl.spark import storage_type
from replctl.types.quote import quote_identifier, quote_qualified_identifier


@dataclass(frozen=True, slots=True)
class ColumnFault:
    """A column that a version of a table does not have any more, or has with another type.

    Attributes:
        found: its type in Delta's words; None: it was dropped.
        readable: the column of that type as PostgreSQL's; None, if it cannot be read.
    """

    relation: Relation
    column: Column
    version: int
    found: str | None = None
    readable: DeltaColumn | None = None


def column_fault(
    relation: Relation, names: Collection[str], versions: Iterable[int]
) -> ColumnFault | None:
    """Return the first column that cannot be read at a version; None, if all can be.

    Args:
        relation: the table, with the types that its columns have at these versions.
        names: the columns that are needed.

    Raises:
        ObjectNotInPrerequisiteState: the log does not say what a version was (55000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    storage = relation.storage
    if storage is None or not (storage.is_adopted or has_renamings(storage)):
        return None
    needed = [column for column in relation.columns if column.name in names]
    seen: set[int] = set()
    for version in versions:
        metadata = metadata_at(storage.location, version)
        if metadata.version in seen:
            continue
        seen.add(metadata.version)
        fields = {f["name"]: f for f in columns_of(metadata.action, storage.location, version)}
        stored = stored_names(storage, version)
        for column in needed:
            known = storage.columns[column.attnum].since_version
            if known is None or known > version:  # it came later
                continue
            name = stored[column.attnum]
            field = next((f for n, f in fields.items() if name and n.lower() == name.lower()), None)
            if field is None:
                return ColumnFault(relation, column, version)
            readable = readable_column(field)
            if storage.is_adopted and not _is_stored_as(readable, column):
                return ColumnFault(relation, column, version, shown_type(field["type"]), readable)
    return None


def _is_stored_as(readable: DeltaColumn | None, column: Column) -> bool:
    return readable is not None and storage_type(readable.type, readable.typmod) == storage_type(
        column.type, column.typmod
    )


def has_type(relation: Relation, column: Column) -> bool:
    """Return whether the newest version of a relation's table has a column in the type that
    `column` has.

    Raises:
        UndefinedTable: there is no Delta table.
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    storage = relation.storage
    assert storage is not None
    name = stored_names(storage, None)[column.attnum]
    fields = stored_columns(storage.location)
    return any(f["name"] == name and _is_stored_as(readable_column(f), column) for f in fields)


def check_decodable(
    session: Session, published: PublishedRelation, versions: Sequence[int]
) -> None:
    """Check the columns of a published table that its changes need.

    Raises:
        DecodingFailure: one of them cannot be read at a version.
    """
    root = published.published_as
    used = set(published.columns).union(*map(_filter_columns, published.filters.values()))
    names = {column.name for column in root.columns if column.attnum in used}
    names |= _key_names(published.relation)
    fault = column_fault(published.relation, names, versions)
    if fault is None:
        return
    with session.read() as catalog:
        repair = _repair(session, catalog, fault, root)
        raise DecodingFailure(_error(catalog, fault), hint=partial(_decoding_hint, repair, root))


def check_copyable(
    session: Session, table: TableToCopy, leaf: Relation, version: int | None
) -> None:
    """Check the columns of a published table that a copy needs.

    Args:
        leaf: one of the tables that hold its rows.
        version: the version of that table; None, if there was none.

    Raises:
        UndefinedColumn: others have dropped one of them (42703).
        DatatypeMismatch: others have given one of them another type (42804).
    """
    used = set(table.columns) | _filter_columns(table.filters)
    names = {column.name for column in table.relation.columns if column.attnum in used}
    fault = None if version is None else column_fault(leaf, names, [version])
    if fault is None:
        return
    with session.read() as catalog:
        error = _error(catalog, fault)
        error.hint = _repair(session, catalog, fault, table.relation).hint
    raise error


def check_no_dropped_column(catalog: Catalog, relation: Relation) -> None:
    """Check that the table has all columns of a relation that is to be written.

    Raises:
        UndefinedColumn: others have dropped one of them (42703).
    """
    for error in dropped_columns(catalog, relation).values():
        raise error


def dropped_columns(catalog: Catalog, relation: Relation) -> dict[int, UndefinedColumn]:
    """Return the errors of the columns of a relation that others have dropped, by attnum."""
    stored = {} if relation.storage is None else relation.storage.columns
    found = {}
    for column in relation.columns:
        known = stored.get(column.attnum)
        if known is not None and known.is_dropped:
            error = _dropped(catalog, ColumnFault(relation, column, known.renamed_version or 0))
            error.hint = f"Use {_drop_column(relation, column)}"
            found[column.attnum] = error
    return found


def _error(catalog: Catalog, fault: ColumnFault) -> PostgresError:
    if fault.found is None:
        return _dropped(catalog, fault)
    return DatatypeMismatch(
        f"the type of {_shown(catalog, fault)} was changed by another program",
        detail=f"It has the type {fault.found} in version {_place(fault)}.",
    )


def _dropped(catalog: Catalog, fault: ColumnFault) -> UndefinedColumn:
    return UndefinedColumn(
        f"{_shown(catalog, fault)} was dropped by another program",
        detail=f"Version {_place(fault)} does not have it.",
    )


def _shown(catalog: Catalog, fault: ColumnFault) -> str:
    table = f'table "{fault.relation.qualified_name}" of database "{current_database(catalog)}"'
    return f'column "{fault.column.name}" of {table}'


def _place(fault: ColumnFault) -> str:
    assert fault.relation.storage is not None
    return f'{fault.version} of the Delta table "{fault.relation.storage.location}"'


def _filter_columns(filters: Iterable[nodes.Expr]) -> set[int]:
    found = (node for row_filter in filters for node in nodes.walk(row_filter))
    return {node.attnum for node in found if isinstance(node, nodes.Var)}


def _key_names(relation: Relation) -> set[str]:
    key = relation.primary_key
    attnums = {*(identity_columns(relation) or ()), *(() if key is None else key.key)}
    return {relation.column_at(attnum).name for attnum in attnums}


# ---------------------------------------------------------------------------------------------
# Hints


@dataclass(frozen=True, slots=True)
class _Repair:
    """What helps at the publisher.

    Attributes:
        statements: they may be none.
        leaves: the table is published no more then.
    """

    database: str
    statements: tuple[str, ...]
    leaves: bool = False

    @property
    def hint(self) -> str | None:
        if not self.statements:
            return None
        return f'In database "{self.database}", use {" ".join(self.statements)}'


def _decoding_hint(repair: _Repair, root: Relation, subscription: str) -> str:
    name = quote_identifier(subscription)
    then = (
        f"ALTER SUBSCRIPTION {name} REFRESH PUBLICATION;"
        if repair.leaves
        else refresh_statement(subscription, root.schema, root.name)
    )
    if repair.hint is None:
        return then
    return f"{repair.hint} Then, in the database of the subscription, use {then}"


def _repair(session: Session, catalog: Catalog, fault: ColumnFault, root: Relation) -> _Repair:
    """Return what ends a fault, under the definitions that are in force now.

    Args:
        root: the table as it is published.
    """
    database = current_database(catalog)
    now = load_relations(catalog, {fault.relation.oid, root.oid})
    relation = now.get(fault.relation.oid)
    column = None if relation is None else relation.column(fault.column.name)
    if relation is None or column is None or column.attnum != fault.column.attnum:
        return _Repair(database, ())
    shown_root = now.get(root.oid, root)
    listed = published_tables(catalog, relids={root.oid})
    filtering, listing = _users(listed, shown_root, column.name)
    show = partial(_published_as, session, catalog, shown_root)
    if fault.readable is None:
        is_kept = all(len(m.columns or ()) > 1 for m in listing)
        if filtering or not is_kept or column.name in _key_names(relation):
            drops = [_drop_table(catalog, member, shown_root) for member in listed]
            name = quote_qualified_identifier(shown_root.schema, shown_root.name)
            return _Repair(database, tuple(drops) or (f"DROP TABLE {name};",), leaves=True)
        users, change = listing, _drop_column(relation, column)
        again = [show(member, without=column.name) for member in users]
    else:
        shown = session.environment(catalog).format_type(fault.readable.type, fault.readable.typmod)
        users, change = filtering, _alter_type(relation, column, shown)
        again = [show(member) for member in users]
    before = [_drop_table(catalog, member, shown_root) for member in users]
    return _Repair(database, (*before, change, *again))


def _users(
    listed: Sequence[PublishedTable], root: Relation, name: str
) -> tuple[list[PublishedTable], list[PublishedTable]]:
    """Return the places in publications whose row filter, and those whose column list, has a
    column."""
    column = root.column(name)
    attnum = 0 if column is None else column.attnum
    filtering = [
        member
        for member in listed
        if member.row_filter is not None and attnum in _filter_columns([member.row_filter])
    ]
    return filtering, [member for member in listed if attnum in (member.columns or ())]


def _drop_column(relation: Relation, column: Column) -> str:
    table = quote_qualified_identifier(relation.schema, relation.name)
    return f"ALTER TABLE {table} DROP COLUMN {quote_identifier(column.name)};"


def _alter_type(relation: Relation, column: Column, shown: str) -> str:
    table = quote_qualified_identifier(relation.schema, relation.name)
    return f"ALTER TABLE {table} ALTER COLUMN {quote_identifier(column.name)} TYPE {shown};"


def _publication(catalog: Catalog, member: PublishedTable) -> str:
    found = publications_by_oid(catalog, [member.publication_oid])
    return quote_identifier(found[member.publication_oid].name)


def _drop_table(catalog: Catalog, member: PublishedTable, root: Relation) -> str:
    table = quote_qualified_identifier(root.schema, root.name)
    return f"ALTER PUBLICATION {_publication(catalog, member)} DROP TABLE {table};"


def _published_as(
    session: Session,
    catalog: Catalog,
    root: Relation,
    member: PublishedTable,
    without: str | None = None,
) -> str:
    """Return the statement that publishes a table again as it was, but for a column."""
    shown = quote_qualified_identifier(root.schema, root.name)
    if member.columns is not None:
        names = [root.column_at(attnum).name for attnum in member.columns]
        shown += f" ({', '.join(quote_identifier(name) for name in names if name != without)})"
    if member.row_filter is not None:
        text = get_expr(session.environment(catalog), root, member.row_filter)
        shown += f" WHERE {text if text.startswith('(') else f'({text})'}"
    return f"ALTER PUBLICATION {_publication(catalog, member)} ADD TABLE {shown};"
