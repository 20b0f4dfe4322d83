"""Repeat changes of published columns in the tables of a subscription (option `follow_schema`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from replctl.catalog.namespace import relation_named
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_replication_slots import SessionOrigin
from replctl.catalog.pg_subscription import Subscription
from replctl.commands.alter_object import rename
from replctl.commands.alter_table import alter_table
from replctl.commands.comment import comment
from replctl.commands.create_missing import carry_out_text
from replctl.errors import InternalError, ObjectNotInPrerequisiteState, PostgresError
from replctl.lake import block
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
        block.begin(own, is_implicit=True)
        try:
            for name, columns in changes.items():
                target = run.subscription.table_map.target(name)
                when_free(own, partial(_follow, own, run.subscription, target, columns))
            block.commit(own)
        except BaseException:
            own.origin = None  # do not move the progress
            if own.block is not None:
                block.rollback(own)
            raise


def _follow(
    session: Session, subscription: Subscription, target: RelationName, changes: ColumnChanges
) -> None:
    """Change a table in the open transaction.  Ignore a missing table: it is reported when changes
    of its rows arrive.
    """
    with session.read() as catalog:
        relation = relation_named(catalog, *target)
    if relation is None:
        return
    for text in _Followed(relation, subscription, changes).statements():
        carry_out_text(text, partial(_run, session))


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
    """A table that follows the changes of a published table."""

    relation: Relation
    subscription: Subscription
    changes: ColumnChanges

    @property
    def table(self) -> str:
        """Return the name of the table in SQL."""
        return self.relation.quoted_name

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
            hint=f"Use {statement}; ALTER SUBSCRIPTION {subscription} REFRESH TABLE {self.table};",
        )
