"""Compose the statements that repair a published table with an unreadable column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from replctl.catalog.pg_class import Column, Relation, load_relations
from replctl.catalog.pg_database import current_database
from replctl.catalog.pg_inherits import ancestors_of, descendants_of
from replctl.catalog.pg_publication import PublishedTable, publications_by_oid, published_tables
from replctl.catalog.pg_subscription import (
    Subscription,
    list_subscriptions,
    subscription_relations,
)
from replctl.catalog.ruleutils import get_expr
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes
from replctl.expr.builtin_environment import BuiltinEnvironment
from replctl.expr.cast_path import CastContext, CastPaths
from replctl.lake.adopt import DeltaColumn, is_stored_alike
from replctl.lake.delta_files import has_files_elsewhere
from replctl.lake.foreign_files import has_foreign_files
from replctl.lake.partition_repair import (
    changed_table,
    detach_statement,
    has_adopted_leaf,
    is_partition_key,
    top_of,
)
from replctl.lake.widened_column import is_wider
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.refresh_hint import publication_refresh, refresh_hint
from replctl.replication.replica_identity import identity_columns
from replctl.replication.table_definition import native_statement
from replctl.session import Session
from replctl.types.delta_type import is_native, native_text
from replctl.types.quote import (
    quote_identifier,
    quote_literal,
    quote_qualified_identifier,
    quote_string,
)

#: The types whose values are any texts.
_TEXTS = ("text", "varchar", "bpchar")


@dataclass(frozen=True, slots=True)
class ColumnFault:
    """A column that a version of a table lacks, or has with another type.

    Attributes:
        found: the column's type there, in Delta's notation; None if it was dropped.
        readable: the column as one of PostgreSQL; None if its type has no counterpart there.
    """

    relation: Relation
    column: Column
    version: int
    found: str | None = None
    readable: DeltaColumn | None = None


@dataclass(frozen=True, slots=True)
class Repair:
    """The statements that repair a fault.

    Attributes:
        database: the publisher's database.
        statements: the statements to run in this database; may be empty.
        root: the table under whose name the faulty table is published.
        leaves: the statements stop publishing the table.
        retyping: the actions of ALTER TABLE that let a target take the values of the new type; none
            if the type of a target that fits the former type also fits the new one.
    """

    database: str
    statements: tuple[str, ...]
    root: Relation
    leaves: bool = False
    retyping: tuple[str, ...] = ()

    @property
    def hint(self) -> str | None:
        """Return the hint for the publisher; None if it has no statements to run."""
        return self._use(self.statements) if self.statements else None

    def hint_for_slot(self, name: str) -> str:
        """Return the hint for the reader of a slot.  It also has a statement that skips the slot's
        changes up to now.
        """
        skip = f"SELECT pg_replication_slot_advance({quote_literal(name)}, pg_current_wal_lsn());"
        return self._use([*self.statements, skip])

    def _use(self, statements: Sequence[str]) -> str:
        return f'In database "{self.database}", use {" ".join(statements)}'

    def hint_for(self, subscription: Subscription, is_own: Callable[[RelationName], bool]) -> str:
        """Return the hint for the publisher and a subscription.

        Args:
            is_own: returns whether replctl can change the types of a target's columns.  Those of an
                adopted target are its owner's.
        """
        if self.leaves:
            then = publication_refresh(subscription)
        else:
            target = subscription.table_map.target(self.root.relation_name)
            table = quote_qualified_identifier(*target)
            actions = self.retyping if is_own(target) else ()
            changes = [f"ALTER TABLE {table} {action};" for action in actions]
            then = " ".join([*changes, refresh_hint(subscription, target)])
        if self.hint is None:
            return then
        return f"{self.hint} Then, in the database of the subscription, use {then}"


def repair_of(session: Session, catalog: Catalog, fault: ColumnFault, root: Relation) -> Repair:
    """Return the repair of a fault under the current definitions.

    A table that loses its key, a column of its row filter, or its last column is removed from its
    publications, because the published rows are no longer defined.  A partition that has no longer
    the columns of its root is detached.

    Args:
        root: the table under whose name the faulty table is published.
    """
    database = current_database(catalog)
    now = load_relations(catalog, {fault.relation.oid, root.oid})
    relation, root = now.get(fault.relation.oid), now.get(root.oid, root)
    column = None if relation is None else relation.column(fault.column.name)
    found = fault.readable
    if relation is None or column is None or column.attnum != fault.column.attnum:
        return Repair(database, (), root)  # this database has also dropped the column
    if root.oid not in {relation.oid, *ancestors_of(catalog, relation.oid)}:
        return Repair(database, (), root)  # the partition is detached
    changed = changed_table(catalog, relation, column, found)
    detach: tuple[str, ...] = ()
    if changed is None:
        if root.oid != relation.oid or published_tables(
            catalog, relids=ancestors_of(catalog, relation.oid)
        ):
            return _detaching(catalog, relation, root)
        changed, detach = relation, (detach_statement(catalog, relation),)
    is_key = column.name in key_names(relation)
    retyping: tuple[str, ...] = ()
    if found is not None:
        shown = session.environment(catalog).format_type(found.type, found.typmod)
        retyping = _retyping(fault.column, found, shown, is_key=is_key)
        if is_stored_alike(found, column):
            return Repair(database, (), root, retyping=retyping)
    places = _Places(session, catalog, root, column.name)
    is_wide = found is not None and is_wider(
        (column.type, column.typmod), (found.type, found.typmod)
    )
    is_lost = (found is None and (is_key or places.has_only_this)) or (
        found is not None and is_key and is_native(found.type)
    )
    if is_lost or (places.filtering and not is_wide):
        table = root.quoted_name
        leaving = tuple(map(places.drop, places.listed)) or (f"DROP TABLE {table};",)
        return Repair(database, leaving, root, leaves=True)
    if found is None:
        users, change = places.listing, drop_column(changed, column)
        again = [places.add(place, without=column.name) for place in users]
    else:
        users = places.using  # their columns keep their types (alter_type._check_unused)
        change = retype_column(changed, column, (found.type, shown), is_wide=is_wide)
        again = [places.add(place) for place in users]
    statements = (*detach, *map(places.drop, users), change, *again)
    return Repair(database, statements, root, retyping=retyping)


def _detaching(catalog: Catalog, relation: Relation, root: Relation) -> Repair:
    """Return the repair that detaches a partition.  If it is published under its own name, then no
    publication lists it afterwards.
    """
    leaves = root.oid == relation.oid
    listed = published_tables(catalog, relids={relation.oid}) if leaves else []
    names = publications_by_oid(catalog, {m.publication_oid for m in listed})
    dropped = [
        f"ALTER PUBLICATION {quote_identifier(names[m.publication_oid].name)}"
        f" DROP TABLE {relation.quoted_name};"
        for m in listed
    ]
    statements = (*dropped, detach_statement(catalog, relation))
    return Repair(current_database(catalog), statements, root, leaves=leaves)


def _retyping(column: Column, found: DeltaColumn, shown: str, *, is_key: bool) -> tuple[str, ...]:
    """Return Repair.retyping.  If Delta's new type has no cast that keeps the target's values, the
    target gets a new column: the reconcile brings all values.

    Args:
        column: the column with the type that it had before the version.
        shown: the SQL name of the new type.
        is_key: the column identifies rows, so that it cannot be dropped.
    """
    name = quote_identifier(column.name)
    old, new = (column.type, column.typmod), (found.type, found.typmod)
    if not is_native(found.type) and not is_native(column.type):
        if is_wider(new, old) or (column.type in _TEXTS and column.typmod < 0):
            return ()
        if is_wider(old, new) or found.type in _TEXTS:
            return (f"ALTER COLUMN {name} TYPE {shown} USING {name}::{shown}",)
    if is_key:
        return ()
    added = f"ADD COLUMN {name} {'jsonb' if is_native(found.type) else shown}"
    native = f"ALTER COLUMN {name} SET (delta_type = {quote_string(native_text(found.type))})"
    return f"DROP COLUMN {name}", added, *([native] if is_native(found.type) else [])


class _Places:
    """The entries of a table in the publications that list it by name.

    Attributes:
        listed: all these entries.
        filtering: the entries whose row filter uses the column.
        listing: the entries whose column list has the column.
        using: the entries in `filtering` or `listing`.

    Args:
        name: the name of the column.
    """

    def __init__(self, session: Session, catalog: Catalog, root: Relation, name: str) -> None:
        self._environment = session.environment(catalog)
        self._root = root
        self.listed = published_tables(catalog, relids={root.oid})
        self._names = publications_by_oid(catalog, {m.publication_oid for m in self.listed})
        column = root.column(name)
        attnum = 0 if column is None else column.attnum
        self.filtering = [
            m
            for m in self.listed
            if m.row_filter is not None and attnum in filter_columns([m.row_filter])
        ]
        self.listing = [m for m in self.listed if attnum in (m.columns or ())]
        self.using = [m for m in self.listed if m in self.filtering or m in self.listing]

    @property
    def has_only_this(self) -> bool:
        """Return whether a publication's column list has only this column."""
        return any(len(place.columns or ()) < 2 for place in self.listing)

    def drop(self, place: PublishedTable) -> str:
        """Return the statement that removes the table from a publication."""
        table = self._root.quoted_name
        return f"{self._alter(place)} DROP TABLE {table};"

    def add(self, place: PublishedTable, without: str | None = None) -> str:
        """Return the statement that adds the table to a publication again, without a column."""
        shown = self._root.quoted_name
        if place.columns is not None:
            names = [self._root.column_at(attnum).name for attnum in place.columns]
            shown += f" ({', '.join(quote_identifier(n) for n in names if n != without)})"
        if place.row_filter is not None:
            text = get_expr(self._environment, self._root, place.row_filter)
            shown += f" WHERE {text if text.startswith('(') else f'({text})'}"
        return f"{self._alter(place)} ADD TABLE {shown};"

    def _alter(self, place: PublishedTable) -> str:
        return f"ALTER PUBLICATION {quote_identifier(self._names[place.publication_oid].name)}"


def drop_column(relation: Relation, column: Column) -> str:
    """Return the statement that drops a column."""
    return f"{_alter(relation)} DROP COLUMN {quote_identifier(column.name)};"


def retype_column(
    relation: Relation, column: Column, now: tuple[str, str], *, is_wide: bool = False
) -> str:
    """Return the statement that gives a column of an adopted table the type that it has in the
    Delta table.

    Args:
        now: the name of this type, and its SQL name.
        is_wide: the type is wider than that of the column.
    """
    type_, shown = now
    if is_native(type_):
        return f"{native_statement(relation.quoted_name, column.name, native_text(type_))};"
    name = quote_identifier(column.name)
    using = ""
    if not is_wide and not is_native(column.type):
        has_cast = CastPaths(BuiltinEnvironment()).path(type_, column.type, CastContext.EXPLICIT)
        using = f" USING {name}{'' if has_cast else '::text'}::{shown}"
    return f"{_alter(relation)} ALTER COLUMN {name} TYPE {shown}{using};"


def restoring_hint(
    session: Session, catalog: Catalog, relation: Relation, column: Column
) -> str | None:
    """Return the hint for restoring a column of a subscription's target with its values; None if
    the table is not a target.  A table with files outside its directory, such as a shallow clone,
    must be replaced, because replctl must not read it.

    A partition gets the column from its root, so the rows of all partitions are restored.  The
    result is None if that is impossible: a partition is adopted, or the partition key has the
    column.

    If another program has added a column of the same name and type, the values go into that column,
    because other readers know it by this name.
    """
    top = top_of(catalog, relation)
    tree = load_relations(catalog, descendants_of(catalog, top.oid))
    targets = [
        (subscription, tree[member.relid].relation_name)
        for subscription in list_subscriptions(catalog)
        for member in subscription_relations(catalog, subscription.oid)
        if member.relid in tree
    ]
    if not targets:
        return None
    is_part = top.oid != relation.oid
    if is_part and (is_partition_key(catalog, top, column) or has_adopted_leaf(tree.values())):
        return None
    type_ = session.environment(catalog).format_type(column.type, column.typmod)
    add = f"{_alter(top)} ADD COLUMN {quote_identifier(column.name)} {type_};"
    added = None if is_part else _added_again(relation, column)
    if added is not None:
        old, new = map(quote_identifier, (added.name, column.name))
        add = f"{_alter(relation)} RENAME COLUMN {old} TO {new};"
    elif is_native(column.type):
        native = native_text(column.type)
        add += f" {native_statement(top.quoted_name, column.name, native)};"
    option = "replace = true" if _lies_elsewhere(relation) else ""
    refreshes = [refresh_hint(subscription, name, option) for subscription, name in targets]
    return " ".join(["Use", drop_column(top, column), add, *refreshes])


def _added_again(relation: Relation, column: Column) -> Column | None:
    """Return the column that has the Delta name of a dropped column now, and its type; None if
    there is none.
    """
    assert relation.storage is not None
    stored = relation.storage.columns
    name = stored[column.attnum].name.lower()
    return next(
        (
            other
            for other in relation.columns
            if (other.type, other.typmod) == (column.type, column.typmod)
            and not stored[other.attnum].is_dropped
            and stored[other.attnum].name.lower() == name
        ),
        None,
    )


def _lies_elsewhere(relation: Relation) -> bool:
    storage = relation.storage
    return (
        storage is not None
        and not has_foreign_files(relation)
        and has_files_elsewhere(storage.location)
    )


def _alter(relation: Relation) -> str:
    return f"ALTER TABLE {relation.quoted_name}"


def filter_columns(filters: Iterable[nodes.Expr]) -> set[int]:
    """Return the attnums of the columns that row filters use."""
    found = (node for row_filter in filters for node in nodes.walk(row_filter))
    return {node.attnum for node in found if isinstance(node, nodes.Var)}


def key_names(relation: Relation) -> set[str]:
    """Return the names of the columns that identify rows."""
    key = relation.primary_key
    attnums = {*(identity_columns(relation) or ()), *(() if key is None else key.key)}
    return {relation.column_at(attnum).name for attnum in attnums}
