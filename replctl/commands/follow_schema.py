"""Repeat changes of published columns in the tables of a subscription (option `follow_schema`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from replctl.catalog.column_origin import ColumnOrigin, column_origins
from replctl.catalog.namespace import relation_named
from replctl.catalog.pg_class import Column, Relation, leaf_partitions
from replctl.catalog.pg_replication_slots import SessionOrigin
from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.transaction import Catalog
from replctl.commands.alter_object import rename
from replctl.commands.alter_table import alter_table
from replctl.commands.comment import comment
from replctl.commands.create_missing import carry_out_text
from replctl.errors import InternalError, ObjectNotInPrerequisiteState, PostgresError
from replctl.lake import block
from replctl.lake.partition_repair import top_of
from replctl.lake.waiting import when_free
from replctl.lake.widened_column import is_wider
from replctl.open_node import open_subscriber
from replctl.parser import ast
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.subscription_run import SubscriptionRun
from replctl.replication.table_definition import (
    ColumnChanges,
    ColumnDefinition,
    SchemaChange,
    TableDefinition,
    column_changes,
    native_statements,
)
from replctl.session import Session
from replctl.types.delta_type import native_text
from replctl.types.quote import (
    quote_identifier,
    quote_literal,
    quote_string,
)


def follow_schema(session: Session, run: SubscriptionRun, change: SchemaChange) -> None:
    """Repeat a change of published columns in a subscription's tables.  The same transaction
    records the LSN of the change, so the change is made only once.  The progress stays before this
    LSN, because the rows of the same commit are not applied yet.

    The caller has applied all earlier changes.

    Raises:
        ObjectNotInPrerequisiteState: replctl cannot repeat a change (55000).
        PostgresError: a table cannot be changed.
    """
    positions = run.subscriber.state.applied_positions()
    changes = {
        name: column_changes(change.before[name], after)
        for name, after in change.after.items()
        if name in change.before and positions.get(name, change.lsn) < change.lsn
    }
    with open_subscriber(session, run.subscription) as subscriber:
        own = subscriber.state.session
        own.origin = SessionOrigin(
            run.subscriber.state.origin_name, change.lsn - 1, schema_lsn=change.lsn
        )
        with _in_transaction(own):
            targets = {run.subscription.table_map.target(name): c for name, c in changes.items()}
            for target in _in_order(own, targets):
                when_free(own, partial(_follow, own, run.subscription, target, targets))


def _in_order(session: Session, targets: Collection[RelationName]) -> list[RelationName]:
    """Return targets by their OIDs, the order in which `common_changes` has partitions."""
    with session.read() as catalog:
        found = {target: relation_named(catalog, *target) for target in targets}
    return sorted(targets, key=lambda target: item.oid if (item := found[target]) else 0)


def follow_copied(session: Session, run: SubscriptionRun, name: RelationName, lsn: int) -> None:
    """Change the columns of a subscription's table like those of an adopted published table, before
    a reconcile of the table or another copy into it.  Do nothing before the first copy.

    `follow_schema` skips the changes before the snapshot of a copy.  The recorded origins of the
    columns say what has changed, so a copy that fails can repeat this.

    Args:
        name: the published table.
        lsn: the LSN of the copy's snapshot.

    Raises:
        PostgresError: the table cannot be changed.
    """
    names = run.subscription.publications
    definitions = run.publisher.tables.definitions(names, lsn)
    definition = next((item for item in definitions if item.relation_name == name), None)
    if definition is None or not definition.cluster:
        return
    target = run.subscription.table_map.target(name)
    with open_subscriber(session, run.subscription) as subscriber:
        own = subscriber.state.session
        with own.read() as catalog:
            relation = relation_named(catalog, *target)
            oids = [] if relation is None else [relation.oid]
            origins = column_origins(catalog.connection, run.subscription.oid, oids)
        if relation is None or relation.oid not in origins:
            return
        changes = {target: copied_changes(relation, origins[relation.oid], definition)}
        with own.read() as catalog:
            followed = _followed(catalog, run.subscription, relation, changes)
        if any(followed.statements()):
            with _in_transaction(own):
                when_free(own, partial(_follow, own, run.subscription, target, changes))


@contextmanager
def _in_transaction(own: Session) -> Iterator[None]:
    """Run the `with` block in a transaction of a session."""
    block.begin(own, is_implicit=True)
    try:
        yield
        block.commit(own)
    except BaseException:
        own.origin = None  # do not move the progress
        if own.block is not None:
            block.rollback(own)
        raise


def copied_changes(
    relation: Relation, origins: Mapping[int, ColumnOrigin], definition: TableDefinition
) -> ColumnChanges:
    """Return the changes that give a subscription's table the columns of a published table whose
    rows are copied into it.

    A column keeps its name if another column has the new one already: the user has added it, and it
    receives the values.  A column keeps a type that is not narrower than the published one: the
    user has chosen it, and the copy converts the values.

    Args:
        relation: the subscription's table.
        origins: the origins of its columns, by attnum.
        definition: the published table.
    """
    published = {column.attnum: column for column in definition.columns}
    known = _known_columns(relation, origins, definition)
    if not known:  # the rows come from another table
        return ColumnChanges()
    kept = [(column, published[n]) for n, column in known.items() if n in published]
    dropped = [c.name for n, c in known.items() if n not in definition.attnums]
    return ColumnChanges(
        dropped=tuple(dropped),
        renamed=tuple(_free_renames(relation, dropped, kept).items()),
        retyped=tuple(
            (replace(now, type_name=own.declared_type, typmod=own.declared_typmod), now)
            for own, now in kept
            if native_text(own.type) == now.delta_type
            and is_wider((own.declared_type, own.declared_typmod), (now.type_name, now.typmod))
        ),
        added=tuple(  # the copy brings the values
            replace(now, is_computed=False, is_restored=False)
            for now in definition.columns
            if now.attnum not in known
        ),
    )


def _known_columns(
    relation: Relation, origins: Mapping[int, ColumnOrigin], definition: TableDefinition
) -> dict[int, Column]:
    """Return the columns of a subscription's table whose values come from the published table, by
    the numbers of the published columns.

    If two columns come from one, return the one that has its name now, or else the last one: the
    user has added it instead of a renaming.

    Args:
        origins, definition: see `copied_changes`.
    """
    names = {column.attnum: column.name for column in definition.columns}
    known: dict[int, Column] = {}
    for column in relation.columns:
        origin = origins.get(column.attnum)
        if origin is None or origin.place != (definition.cluster, definition.oid):
            continue
        earlier = known.get(origin.attnum)
        if earlier is None or earlier.name != names.get(origin.attnum):
            known[origin.attnum] = column
    return known


def _free_renames(
    relation: Relation, dropped: Sequence[str], kept: Sequence[tuple[Column, ColumnDefinition]]
) -> dict[str, str]:
    """Return the new names, by the old ones, of the columns whose new name no other column has."""
    renamed = {own.name: now.name for own, now in kept if own.name != now.name}
    taken = {column.name for column in relation.columns} - {*dropped, *renamed}
    while blocked := [old for old, new in renamed.items() if new in taken]:
        taken.update(blocked)
        renamed = {old: new for old, new in renamed.items() if old not in blocked}
    return renamed


def _follow(
    session: Session,
    subscription: Subscription,
    target: RelationName,
    changes: Mapping[RelationName, ColumnChanges],
) -> None:
    """Change a table in the open transaction.  Ignore a missing table: it is reported when changes
    of its rows arrive.

    Args:
        changes: the changes of all tables, by the names of the targets.
    """
    with session.read() as catalog:
        relation = relation_named(catalog, *target)
        if relation is None:
            return
        followed = _followed(catalog, subscription, relation, changes)
    for text in followed.statements():
        carry_out_text(text, partial(_run, session))


def _followed(
    catalog: Catalog,
    subscription: Subscription,
    relation: Relation,
    changes: Mapping[RelationName, ColumnChanges],
) -> _Followed:
    """Return a table with the changes that it follows.  A partition follows in its topmost
    ancestor.
    """
    own = changes[relation.relation_name]
    top = top_of(catalog, relation)
    if top.oid != relation.oid:
        names = [leaf.relation_name for leaf in leaf_partitions(catalog, top)]
        is_first = names[0] == relation.relation_name
        own = common_changes(own, [changes.get(name) for name in names], is_first=is_first)
    return _Followed(relation, top, subscription, own)


def common_changes(
    own: ColumnChanges, partitions: Sequence[ColumnChanges | None], *, is_first: bool
) -> ColumnChanges:
    """Return the changes of a partition that its root must follow.  It drops or renames a column
    only if the published tables of all partitions do, because others still need the column.  It
    does so once, for the first partition.

    Args:
        own: the changes of the partition.
        partitions: those of all partitions of the root; None for one without changes.
        is_first: the partition is the first one.
    """
    if not is_first:
        return replace(own, dropped=(), renamed=())
    return replace(
        own,
        dropped=tuple(
            name for name in own.dropped if all(c and name in c.dropped for c in partitions)
        ),
        renamed=tuple(
            pair for pair in own.renamed if all(c and pair in c.renamed for c in partitions)
        ),
    )


def _run(session: Session, statement: ast.Statement) -> None:
    match statement:
        case ast.AlterTable():
            alter_table(session, statement)
        case ast.Rename():
            rename(session, statement)
        case ast.Comment():
            comment(session, statement)
        case _:
            raise InternalError(f"unexpected statement {type(statement).__name__}")


@dataclass(frozen=True, slots=True)
class _Followed:
    """A table that follows the changes of a published table.

    Attributes:
        top: the table in which the columns change: the topmost ancestor if `relation` is a
            partition.
    """

    relation: Relation
    top: Relation
    subscription: Subscription
    changes: ColumnChanges

    @property
    def table(self) -> str:
        """Return the name in SQL of the table in which the columns change."""
        return self.top.quoted_name

    def statements(self) -> Iterator[str]:
        """Yield the statements that change the table, without semicolons.  Leave out changes that
        the table already has.
        """
        present = {column.name: column for column in self.relation.columns}
        for name in self.changes.dropped:
            if present.pop(name, None) is not None:
                yield f"ALTER TABLE {self.table} DROP COLUMN {quote_identifier(name)}"
        renamed = [(old, new) for old, new in self.changes.renamed if old in present]
        moved = {new: present.pop(old) for old, new in renamed}
        yield from self._renames(renamed)
        present |= moved
        for before, after in self.changes.retyped:
            if after.name in present:
                yield from self._retyped(before, after, present[after.name])
        for name in self.changes.nullable:
            if name in present and present[name].not_null and not self._is_in_key(present[name]):
                column = quote_identifier(name)
                yield f"ALTER TABLE {self.table} ALTER COLUMN {column} DROP NOT NULL"
        for added in self.changes.added:
            if added.name not in present:
                yield from self._added(added)

    def _renames(self, renamed: list[tuple[str, str]]) -> Iterator[str]:
        """Yield the statements that rename columns.  To exchange names, use temporary names."""
        olds = {old for old, _new in renamed}
        steps = []
        for number, (old, new) in enumerate(renamed):
            if new in olds:
                between = f"replctl_renamed_{number}"
                steps.append((between, new))
                new = between
            yield self._rename(old, new)
        for old, new in steps:
            yield self._rename(old, new)

    def _rename(self, old: str, new: str) -> str:
        names = f"{quote_identifier(old)} TO {quote_identifier(new)}"
        return f"ALTER TABLE {self.table} RENAME COLUMN {names}"

    def _retyped(
        self, before: ColumnDefinition, after: ColumnDefinition, column: Column
    ) -> Iterator[str]:
        own, new = (column.declared_type, column.declared_typmod), (after.type_name, after.typmod)
        name = quote_identifier(after.name)
        if native_text(column.type) != after.delta_type:
            added = f"ALTER TABLE {self.table} ADD COLUMN {name} {after.type}"
            raise self._error(
                after.name,
                "The published column has another Delta type now.",
                "; ".join(
                    [
                        f"ALTER TABLE {self.table} DROP COLUMN {name}",
                        added,
                        *native_statements(self.table, after),
                    ]
                ),
            )
        if own == new or is_wider(new, own):
            return
        statement = f"ALTER TABLE {self.table} ALTER COLUMN {name} TYPE {after.type}"
        if not is_wider((before.type_name, before.typmod), new) or not is_wider(own, new):
            raise self._error(
                after.name,
                f"The type of the published column was {before.type}, and is {after.type} now.",
                statement,
            )
        yield statement

    def _added(self, column: ColumnDefinition) -> Iterator[str]:
        name = quote_identifier(column.name)
        statement = f"ALTER TABLE {self.table} ADD COLUMN {name} {column.type}"
        if column.collation is not None:
            statement += f" COLLATE pg_catalog.{quote_identifier(column.collation)}"
        if column.is_computed:
            raise self._error(
                column.name,
                "The values of the new published column in its rows were computed for each row.",
                statement,
            )
        if column.is_restored:
            raise self._error(
                column.name,
                "Another program has restored the published column with its values.",
                statement,
            )
        if column.missing_value is None:
            yield statement
            yield from native_statements(self.table, column)
        else:
            yield f"{statement} DEFAULT {quote_literal(column.missing_value)}"
            yield f"ALTER TABLE {self.table} ALTER COLUMN {name} DROP DEFAULT"
        if column.comment is not None:
            yield f"COMMENT ON COLUMN {self.table}.{name} IS {quote_string(column.comment)}"

    def _is_in_key(self, column: Column) -> bool:
        key = self.relation.primary_key
        return bool(column.identity) or (key is not None and column.attnum in key.key)

    def _error(self, column: str, detail: str, statement: str) -> PostgresError:
        subscription = quote_identifier(self.subscription.name)
        return ObjectNotInPrerequisiteState(
            f'column "{column}" of table "{self.relation.qualified_name}" cannot follow the'
            " published column",
            detail=detail,
            hint=f"Use {statement}; ALTER SUBSCRIPTION {subscription} REFRESH TABLE"
            f" {self.relation.quoted_name};",
        )
