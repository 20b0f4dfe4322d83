"""Compare subscriptions' tables with the published rows (`replctl verify`), and write no table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from replctl.catalog.pg_subscription import Subscription, SubscriptionRelation, list_subscriptions
from replctl.catalog.table_verification import put_verification
from replctl.errors import (
    AmbiguousAlias,
    FeatureNotSupported,
    PostgresError,
    QueryCanceled,
    UndefinedObject,
    UndefinedTable,
)
from replctl.lake.subscriber import LakeSubscriber
from replctl.open_node import open_publisher, open_subscriber
from replctl.own_command import own_command
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.node import Publisher
from replctl.replication.tablesync import published_rows
from replctl.session import Session
from replctl.spark import Comparison
from replctl.types.quote import quote_qualified_identifier


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """The result for a table.

    Attributes:
        published: schema and name of the published table.
        lsn: the position of the publisher's log at which the table was compared; None if it was not
            compared.
        comparison: the differences; None if the table could not be compared, as `error` explains.
    """

    schema: str
    name: str
    published: RelationName
    lsn: int | None = None
    comparison: Comparison | None = None
    error: PostgresError | None = None

    @property
    def is_equal(self) -> bool:
        """Return whether no difference was found."""
        return self.comparison is not None and self.comparison.is_equal

    @property
    def result(self) -> str:
        """Return the result in one word: equal, different or unknown."""
        if self.comparison is None:
            return "unknown"
        return "equal" if self.comparison.is_equal else "different"


@dataclass(frozen=True, slots=True)
class VerifiedSubscription:
    """The results for a subscription's tables; `error` says why none could be compared."""

    name: str
    database: str
    tables: tuple[VerifiedTable, ...] = ()
    error: PostgresError | None = None

    @property
    def errors(self) -> list[PostgresError]:
        """Return the errors of tables that could not be compared."""
        found = [self.error, *(table.error for table in self.tables)]
        return [error for error in found if error is not None]


def verify(
    session: Session, name: str | None = None, table: Sequence[str] = (), limit: int = 10
) -> list[VerifiedSubscription]:
    """Compare the tables of subscriptions with the published rows.

    Args:
        name: the subscription; None for all subscriptions of the cluster.
        table: the parts of the name of one table; () for all tables.
        limit: maximum number of missing, extra and different rows to return per table.

    Raises:
        UndefinedObject: there is no such subscription.
        UndefinedTable: the subscription has no such table.
        InsufficientPrivilege: the subscription belongs to another role.
        QueryCanceled: Ctrl-C.
    """
    with session.read() as catalog:
        subscriptions = list_subscriptions(catalog, all_databases=True)
        chosen = [item for item in subscriptions if name in (None, item.name)]
        if name is not None and not chosen:
            raise UndefinedObject(f'subscription "{name}" does not exist')
        for subscription in chosen:
            session.privileges(catalog).check_owner(
                subscription.owner, "subscription", subscription.name
            )
    return [_verified(session, subscription, table, limit) for subscription in chosen]


def _verified(
    session: Session, subscription: Subscription, table: Sequence[str], limit: int
) -> VerifiedSubscription:
    database = session.cluster.database_name(subscription.database_oid)
    found = VerifiedSubscription(subscription.name, database)
    with open_subscriber(session, subscription) as subscriber:
        members = subscriber.state.relations()
        names = _chosen(subscription, sorted(members), table, session.cluster.path)
        try:
            _check_origin(subscription)
            with open_publisher(session, subscription) as publisher:
                comparing = _Comparing(session, subscription, publisher, subscriber, limit)
                tables = tuple(comparing.table(item, members[item]) for item in names)
        except QueryCanceled:
            raise
        except PostgresError as error:  # the report shows it next to the other subscriptions
            return VerifiedSubscription(found.name, database, (), error)
    return VerifiedSubscription(found.name, database, tables)


def _chosen(
    subscription: Subscription, names: Sequence[RelationName], table: Sequence[str], home: Path
) -> Sequence[RelationName]:
    """Return the published names of the requested tables.

    Args:
        names: the published names of all tables of the subscription.
        table: the name of the table, here or at the publisher; () for all tables.
        home: the cluster's directory.

    Raises:
        UndefinedTable: there is no table of that name.
        AmbiguousAlias: several schemas have a table of that name.
    """
    if not table:
        return names
    sides = [(name, subscription.table_map.target(name)) for name in names]
    found = [both for both in sides if any(side[-len(table) :] == tuple(table) for side in both)]
    shown = ".".join(table)
    if not found:
        raise UndefinedTable(
            f'table "{shown}" is not part of subscription "{subscription.name}"',
            detail=_listed(sides),
        )
    if len(found) > 1:
        first = quote_qualified_identifier(*found[0][1])
        command = own_command("verify", home=home, names=[subscription.name, first])
        raise AmbiguousAlias(f'table name "{shown}" is ambiguous', hint=f"Run: {command}")
    return [published for published, _target in found]


def _listed(tables: Sequence[tuple[RelationName, RelationName]]) -> str:
    shown = ", ".join(f'"{target}"' for _published, target in tables)
    return f"Its tables are {shown}." if shown else "It has no tables."


def _check_origin(subscription: Subscription) -> None:
    """Check that the subscription receives all rows of the publisher.

    Raises:
        FeatureNotSupported: the subscription has origin = none, so it lacks rows that were
            replicated to the publisher.
    """
    if subscription.origin.lower() == "none":
        raise FeatureNotSupported(
            f'subscription "{subscription.name}" cannot be compared with its publisher',
            detail="The subscription has origin = none: the publisher does not send rows that were"
            " replicated to it, and its tables do not show which rows these are.",
        )


class _Comparing:
    """Compares the tables of one subscription."""

    def __init__(
        self,
        session: Session,
        subscription: Subscription,
        publisher: Publisher,
        subscriber: LakeSubscriber,
        limit: int,
    ) -> None:
        self._session = session
        self._subscription = subscription
        self._publisher = publisher
        self._subscriber = subscriber
        self._limit = limit

    def table(self, name: RelationName, member: SubscriptionRelation) -> VerifiedTable:
        """Compare one table.  Return an error as part of the result."""
        try:
            found = self._compared(name)
        except QueryCanceled:
            raise
        except PostgresError as error:  # the other tables are still compared
            return VerifiedTable(*self._target(name), name, error=error)
        if found.is_equal and found.lsn is not None and not self._session.cluster.is_in_recovery:
            with self._session.cluster.begin(write=True) as connection:
                put_verification(connection, self._subscription.oid, member.relid, found.lsn)
        return found

    def _compared(self, name: RelationName) -> VerifiedTable:
        pinned = self._subscriber.copies.pinned(name)
        lsn = pinned.lsn or self._slot_position(name)
        snapshot = self._publisher.tables.past_snapshot(name, lsn)
        both = (self._publisher, self._subscriber)
        with published_rows(*both, self._subscription, name, snapshot) as (remote, rows):
            comparison = self._subscriber.copies.compare(pinned, remote, rows, self._limit)
        return VerifiedTable(*self._target(name), name, lsn, comparison)

    def _target(self, published: RelationName) -> RelationName:
        return self._subscription.table_map.target(published)

    def _slot_position(self, name: RelationName) -> int:
        """Return the start position of a table that was not copied (`copy_data = false`), and to
        which no changes were applied yet.
        """
        if self._subscription.slot_name is None:
            shown = ".".join(self._target(name))
            raise FeatureNotSupported(
                f'table "{shown}" cannot be compared: nothing was applied to it, and'
                f' subscription "{self._subscription.name}" has no slot'
            )
        return self._publisher.slots.position(self._subscription.slot_name)
