"""Read and write subscriptions and the states of their tables (pg_subscription and
pg_subscription_rel).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from enum import Enum, StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from replctl.catalog import schema, state_schema
from replctl.catalog.apply_batch import load_targets
from replctl.catalog.apply_step import WriteStep
from replctl.catalog.table_copy import (
    AppliedFilter,
    CopiedDefinition,
    CopyMethod,
    Deletion,
    dump_definition,
    dump_filters,
    load_definition,
    load_filters,
    merged_filters,
)
from replctl.catalog.table_map import TableMap, parse_table_map
from replctl.catalog.table_verification import delete_verification
from replctl.catalog.transaction import Catalog
from replctl.record import dataclass

#: The default of resync_max_delete.
RESYNC_MAX_DELETE = 10


class Resync(Enum):
    """The party that reconciles a table after a fault (pg_subscription.subresync).

    MANUAL: a user, by a statement.  AUTO: the subscription itself, if all rows of the table belong
    to the subscription.
    """

    MANUAL = "manual"
    AUTO = "auto"


class Streaming(StrEnum):
    """The way in which the publisher sends transactions in progress (pg_subscription.substream)."""

    OFF = "f"
    ON = "t"
    PARALLEL = "p"


class TwoPhaseState(StrEnum):
    """The decoding of prepared transactions by the slot (pg_subscription.subtwophasestate).
    PENDING: it begins when all tables are copied.
    """

    DISABLED = "d"
    PENDING = "p"
    ENABLED = "e"


class RelState(Enum):
    """The progress of a table's synchronization (pg_subscription_rel.srsubstate)."""

    INIT = "i"
    DATASYNC = "d"
    FINISHEDCOPY = "f"
    SYNCDONE = "s"
    READY = "r"

    @property
    def is_copied(self) -> bool:
        """Return whether the table's rows are copied.  After a crash, only tables in states i and d
        are copied again.
        """
        return self in (RelState.FINISHEDCOPY, RelState.SYNCDONE, RelState.READY)

    @property
    def is_applied(self) -> bool:
        """Return whether the subscription's apply writes the table, and not the table's own
        synchronization (should_apply_changes_for_rel).
        """
        return self in (RelState.SYNCDONE, RelState.READY)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A row of pg_subscription.

    Attributes:
        resync, resync_max_delete: options of replctl: who resolves faults, and the maximum
            percentage of a table's rows that an automatic reconcile deletes.
        table_map: an option of replctl: the targets of published tables whose targets have other
            names.
        follow_schema: an option of replctl: the targets follow changes of the published tables'
            columns.
    """

    oid: int
    database_oid: int
    name: str
    owner: int
    conninfo: str
    publications: tuple[str, ...]
    slot_name: str | None
    enabled: bool = True
    skip_lsn: int = 0
    binary: bool = False
    streaming: Streaming = Streaming.OFF
    two_phase_state: TwoPhaseState = TwoPhaseState.DISABLED
    disable_on_error: bool = False
    password_required: bool = True
    run_as_owner: bool = False
    failover: bool = False
    synchronous_commit: str = "off"
    origin: str = "any"
    resync: Resync = Resync.MANUAL
    resync_max_delete: int = RESYNC_MAX_DELETE
    table_map: TableMap = TableMap()
    follow_schema: bool = False

    @property
    def origin_name(self) -> str:
        """Return the name of the replication origin with the subscription's progress."""
        return f"pg_{self.oid}"

    def table_origin_name(self, relid: int) -> str:
        """Return the name of the origin with the progress of a table's synchronization."""
        return f"{self.origin_name}_{relid}"

    def table_slot_name(self, relid: int, system_identifier: int) -> str:
        """Return the name of the slot that retains the log for a table's synchronization.

        Args:
            system_identifier: the subscriber's identifier.
        """
        return f"{self.origin_name}_sync_{relid}_{system_identifier}"


@dataclass(frozen=True, slots=True)
class CopySnapshot:
    """The facts that a copy fixes before it writes, so that it can be repeated.

    Attributes:
        lsn: the position in the publisher's log that the copy reads.
        publisher_state: the data with which the publisher finds the state at `lsn` again.
        xid: the transaction that writes the copy.
        targets: the written tables by OID: the version before the write, and the step.
        digest: the digest of the publisher's commit at `lsn`.
    """

    lsn: int
    publisher_state: dict[str, Any]
    xid: int
    targets: dict[int, WriteStep]
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionRelation:
    """A row of pg_subscription_rel.

    The subscription applies the table's changes after `lsn`, a position in the publisher's log;
    None for the subscription's own position.  In state d, `snapshot` has the facts of the copy.

    Attributes:
        method: the effect of the table's copy on existing rows.
        deletion: the rows that a reconcile deletes; None for the subscription's own rows.
        definition: the published part of the table at its last copy; None before the first copy.
        applied: the row filters that applied to rows written since the last copy or reconcile.
        owned_since: a position in the database's own log.  At this position all rows of the table
            belonged to the subscription.  None for the position of the table's creation.
        fault: a description of damage that another program did to applied rows, which stops the
            subscription (note_fault); None without damage.
        digest: the digest of the publisher's commit at `lsn`; None if it is unknown.
    """

    subscription_oid: int
    relid: int
    state: RelState
    lsn: int | None = None
    snapshot: CopySnapshot | None = None
    method: CopyMethod = CopyMethod.APPEND
    deletion: Deletion | None = None
    definition: CopiedDefinition | None = None
    applied: tuple[AppliedFilter, ...] = ()
    owned_since: int | None = None
    fault: str | None = None
    digest: str | None = None


def find_subscription(catalog: Catalog, name: str) -> Subscription | None:
    """Return the subscription of that name in the catalog's database; None if there is none."""
    table = schema.pg_subscription
    row = catalog.first(table, table.c.subname == name, table.c.subdbid == catalog.database_oid)
    return None if row is None else _subscription(row)


def get_subscription(catalog: Catalog, oid: int) -> Subscription | None:
    """Return the subscription with that OID; None if there is none."""
    row = catalog.first(schema.pg_subscription, schema.pg_subscription.c.oid == oid)
    return None if row is None else _subscription(row)


def list_subscriptions(catalog: Catalog, *, all_databases: bool = False) -> list[Subscription]:
    """Return the subscriptions of the catalog's database, or of the whole cluster, sorted by
    OID.
    """
    table = schema.pg_subscription
    where = [] if all_databases else [table.c.subdbid == catalog.database_oid]
    return [_subscription(row) for row in catalog.select(table, *where, order_by=[table.c.oid])]


def insert_subscription(catalog: Catalog, subscription: Subscription) -> None:
    """Add a subscription."""
    catalog.insert(schema.pg_subscription, **_values(subscription))


def change_subscription(
    catalog: Catalog, oid: int, change: Callable[[Subscription], Subscription]
) -> Subscription | None:
    """Change a subscription, and return its new state; None if it was dropped.

    Args:
        change: returns the new state for the current one.  Another session or the apply worker may
            have changed the current state since the caller read it.
    """
    current = get_subscription(catalog, oid)
    if current is None:
        return None
    changed, table = change(current), schema.pg_subscription
    catalog.update(table, table.c.oid == oid, **_values(changed))
    return changed


def delete_subscription(catalog: Catalog, oid: int) -> None:
    """Remove a subscription, and all records about its tables."""
    catalog.delete(schema.pg_subscription, schema.pg_subscription.c.oid == oid)
    for table, column in (
        (state_schema.pg_subscription_rel, state_schema.pg_subscription_rel.c.srsubid),
        (state_schema.pg_stat_subscription_stats, state_schema.pg_stat_subscription_stats.c.subid),
        (state_schema.apply_batch, state_schema.apply_batch.c.subid),
        (state_schema.apply_step, state_schema.apply_step.c.subid),
        (state_schema.logical_worker, state_schema.logical_worker.c.subid),
        (state_schema.subscription_error, state_schema.subscription_error.c.subid),
        (state_schema.table_verification, state_schema.table_verification.c.subid),
    ):
        catalog.delete(table, column == oid)


def subscription_relations(catalog: Catalog, subscription_oid: int) -> list[SubscriptionRelation]:
    """Return the tables of a subscription, sorted by OID."""
    table = state_schema.pg_subscription_rel
    query = select(table).where(table.c.srsubid == subscription_oid).order_by(table.c.srrelid)
    return [
        SubscriptionRelation(
            int(row.srsubid),
            int(row.srrelid),
            RelState(row.srsubstate),
            row.srsublsn,
            None if row.snapshot is None else _snapshot(row.snapshot),
            CopyMethod(row.method),
            None if row.deletion is None else Deletion(row.deletion),
            load_definition(row.definition),
            load_filters(row.applied_filters),
            row.owned_since,
            row.fault,
            row.srsubdigest,
        )
        for row in catalog.connection.execute(query)
    ]


def insert_subscription_relation(catalog: Catalog, relation: SubscriptionRelation) -> None:
    """Add a table to a subscription."""
    catalog.connection.execute(
        insert(state_schema.pg_subscription_rel).values(
            srsubid=relation.subscription_oid, srrelid=relation.relid, **_state(relation)
        )
    )


def update_subscription_relation(catalog: Catalog, relation: SubscriptionRelation) -> None:
    """Replace the stored state of a subscription's table, except its fault.  Do nothing if the
    table no longer belongs to the subscription.
    """
    table = state_schema.pg_subscription_rel
    catalog.connection.execute(
        update(table)
        .where(table.c.srsubid == relation.subscription_oid, table.c.srrelid == relation.relid)
        .values(**_state(relation))
    )


def note_applied_filters(
    catalog: Catalog, subscription_oid: int, relid: int, filters: Sequence[AppliedFilter]
) -> None:
    """Record the row filters of rows that a subscription is about to write into a table."""
    for relation in subscription_relations(catalog, subscription_oid):
        if relation.relid != relid:
            continue
        applied = merged_filters(relation.applied, filters)
        if applied != relation.applied:
            update_subscription_relation(catalog, replace(relation, applied=applied))


def is_copied_anywhere(connection: Connection, relids: Collection[int]) -> bool:
    """Return whether any of these tables has copied rows of a subscription that still writes it."""
    table = state_schema.pg_subscription_rel
    query = select(table.c.srrelid).where(table.c.srrelid.in_(list(relids)), _is_copied())
    return connection.execute(query.limit(1)).first() is not None


def note_fault(
    connection: Connection,
    relids: Collection[int],
    fault: str,
    subscription_oids: Collection[int] | None = None,
) -> None:
    """Record damage that another program did to rows that subscriptions have written.  The
    subscriptions (`subscription_oids`; None for all) stop until the tables are copied again.  An
    earlier fault stays recorded.
    """
    table = state_schema.pg_subscription_rel
    where = [table.c.srrelid.in_(list(relids)), _is_copied(), table.c.fault.is_(None)]
    if subscription_oids is not None:
        where.append(table.c.srsubid.in_(list(subscription_oids)))
    connection.execute(update(table).where(*where).values(fault=fault))


def clear_fault(connection: Connection, subscription_oid: int, relid: int) -> None:
    """Remove the fault of a table, because its rows are correct again."""
    table = state_schema.pg_subscription_rel
    connection.execute(
        update(table)
        .where(table.c.srsubid == subscription_oid, table.c.srrelid == relid)
        .values(fault=None)
    )


def _is_copied() -> ColumnElement[bool]:
    states = [state.value for state in RelState if state.is_copied]
    return state_schema.pg_subscription_rel.c.srsubstate.in_(states)


def _state(relation: SubscriptionRelation) -> dict[str, Any]:
    snapshot = relation.snapshot
    return {
        "srsubstate": relation.state.value,
        "srsublsn": relation.lsn,
        "srsubdigest": relation.digest,
        "snapshot": None if snapshot is None else json.dumps(asdict(snapshot)),
        "method": relation.method.value,
        "deletion": None if relation.deletion is None else relation.deletion.value,
        "definition": dump_definition(relation.definition),
        "applied_filters": dump_filters(relation.applied),
        "owned_since": relation.owned_since,
    }


def delete_subscription_relation(catalog: Catalog, subscription_oid: int, relid: int) -> None:
    """Remove a table from a subscription."""
    table = state_schema.pg_subscription_rel
    catalog.connection.execute(
        delete(table).where(table.c.srsubid == subscription_oid, table.c.srrelid == relid)
    )
    delete_verification(catalog.connection, subscription_oid, relid)


def subscriptions_of_relation(catalog: Catalog, relid: int) -> list[int]:
    """Return the OIDs of the subscriptions that write into a table."""
    table = state_schema.pg_subscription_rel
    return list(
        catalog.connection.execute(
            select(table.c.srsubid).where(table.c.srrelid == relid)
        ).scalars()
    )


def unfinished_copies(catalog: Catalog) -> list[tuple[int, CopySnapshot]]:
    """Return the unfinished copies of all subscriptions, each with the subscription's OID."""
    table = state_schema.pg_subscription_rel
    query = select(table.c.srsubid, table.c.snapshot).where(table.c.snapshot.is_not(None))
    rows = catalog.connection.execute(query)
    return [(int(row.srsubid), _snapshot(row.snapshot)) for row in rows]


def _snapshot(text: str) -> CopySnapshot:
    fields = json.loads(text)
    return CopySnapshot(**{**fields, "targets": load_targets(fields["targets"])})


def _values(subscription: Subscription) -> dict[str, Any]:
    return {
        "oid": subscription.oid,
        "subdbid": subscription.database_oid,
        "subskiplsn": _signed(subscription.skip_lsn),
        "subname": subscription.name,
        "subowner": subscription.owner,
        "subenabled": subscription.enabled,
        "subbinary": subscription.binary,
        "substream": subscription.streaming,
        "subtwophasestate": subscription.two_phase_state,
        "subdisableonerr": subscription.disable_on_error,
        "subpasswordrequired": subscription.password_required,
        "subrunasowner": subscription.run_as_owner,
        "subfailover": subscription.failover,
        "subconninfo": subscription.conninfo,
        "subslotname": subscription.slot_name,
        "subsynccommit": subscription.synchronous_commit,
        "subpublications": json.dumps(subscription.publications, ensure_ascii=False),
        "suborigin": subscription.origin,
        "subresync": subscription.resync.value,
        "subresyncmaxdelete": subscription.resync_max_delete,
        "subtablemap": str(subscription.table_map),
        "subfollowschema": subscription.follow_schema,
    }


def _signed(lsn: int) -> int:
    """Return a user's LSN as a signed number of 64 bits, as SQLite stores integers."""
    return lsn - 2**64 if lsn >= 2**63 else lsn


def _subscription(row: Any) -> Subscription:
    return Subscription(
        oid=int(row.oid),
        database_oid=int(row.subdbid),
        name=str(row.subname),
        owner=int(row.subowner),
        conninfo=str(row.subconninfo),
        publications=tuple(json.loads(row.subpublications)),
        slot_name=row.subslotname,
        enabled=bool(row.subenabled),
        skip_lsn=int(row.subskiplsn) % 2**64,
        binary=bool(row.subbinary),
        streaming=Streaming(row.substream),
        two_phase_state=TwoPhaseState(row.subtwophasestate),
        disable_on_error=bool(row.subdisableonerr),
        password_required=bool(row.subpasswordrequired),
        run_as_owner=bool(row.subrunasowner),
        failover=bool(row.subfailover),
        synchronous_commit=str(row.subsynccommit),
        origin=str(row.suborigin),
        resync=Resync(row.subresync),
        resync_max_delete=int(row.subresyncmaxdelete),
        table_map=parse_table_map(row.subtablemap),
        follow_schema=bool(row.subfollowschema),
    )
