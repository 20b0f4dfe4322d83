"""Manage slots and workers at the publisher for statements about subscriptions, and report warnings
about publications.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress

from replctl.catalog.pg_subscription import Subscription, TwoPhaseState
from replctl.catalog.worker import client_name, dismiss_workers
from replctl.commands.subscription_table import table_slot_names
from replctl.errors import (
    ConnectionFailure,
    FeatureNotSupported,
    ObjectInUse,
    PasswordRequired,
    PostgresError,
    ProtocolViolation,
    UndefinedObject,
)
from replctl.open_node import open_publisher
from replctl.relation_name import RelationName
from replctl.replication.node import Publisher
from replctl.replication.tablesync import drop_slot
from replctl.session import Session


def warn_of_missing(session: Session, publisher: Publisher, names: Sequence[str]) -> None:
    """Warn of publications that do not exist.  This is no error, because they may be created later
    (check_publications).
    """
    missing = publisher.tables.missing_publications(names)
    if not missing:
        return
    shown = ", ".join(f'"{name}"' for name in missing)
    verb = "publication {} does not" if len(missing) == 1 else "publications {} do not"
    session.notice(
        f"{verb.format(shown)} exist on the publisher", severity="WARNING", sqlstate="42704"
    )


def stop_workers(session: Session, subscription: Subscription) -> None:
    """Release a subscription from processes that wait for its changes.  Remove their records at the
    subscriber and the publisher.
    """
    dismiss_workers(session.cluster, subscription.oid)
    if subscription.slot_name is None:
        return
    client = client_name(session.cluster.system_identifier, subscription.oid)
    # Without a connection, no process uses the slot
    with (
        suppress(ConnectionFailure, FeatureNotSupported, PasswordRequired),
        open_publisher(session, subscription) as publisher,
    ):
        publisher.slots.dismiss(subscription.slot_name, client)


def warn_of_origins(
    session: Session,
    publisher: Publisher,
    subscription: Subscription,
    known: Collection[RelationName],
) -> None:
    """Warn of tables whose copy may include rows that the publisher received from other publishers
    (check_publications_origin).

    Args:
        known: the tables that the subscription already has, which it does not copy again.
    """
    if subscription.origin.lower() != "none":
        return
    names = publisher.tables.publications_from_elsewhere(subscription.publications, known)
    if not names:
        return
    shown = ", ".join(f'"{name}"' for name in names)
    what = f"a publication ({shown}) that contains"
    if len(names) > 1:
        what = f"publications ({shown}) that contain"
    session.notice(
        f'subscription "{subscription.name}" requested copy_data with origin = NONE but might copy'
        " data that had a different origin",
        severity="WARNING",
        sqlstate="55000",
        detail=f"The subscription being created subscribes to {what} tables that are written to by"
        " other subscriptions.",
        hint="Verify that initial data copied from the publisher tables did not come from other"
        " origins.",
    )


def create_slot(publisher: Publisher, subscription: Subscription, slot_name: str) -> None:
    try:
        publisher.slots.create(
            slot_name,
            two_phase=subscription.two_phase_state == TwoPhaseState.ENABLED,
            failover=subscription.failover,
            publications=subscription.publications,
        )
    except PostgresError as error:
        raise ProtocolViolation(
            f'could not create replication slot "{slot_name}": ERROR:  {error.message}'
        ) from error


def drop_slots(session: Session, subscription: Subscription) -> None:
    """Drop the subscription's slot at the publisher, and the slots of tables that are being
    synchronized.
    """
    slot_name = subscription.slot_name
    table_slots = table_slot_names(session, subscription)
    if slot_name is None and not table_slots:
        return
    with ExitStack() as stack:
        try:
            publisher = stack.enter_context(open_publisher(session, subscription))
        except (ConnectionFailure, PasswordRequired) as error:
            if slot_name is None:  # as in PostgreSQL, the slots of tables remain
                return
            if isinstance(error, PasswordRequired):
                raise
            for name in table_slots:
                session.notice(
                    f'could not drop tablesync replication slot "{name}"', severity="WARNING"
                )
            reason = error.message.removeprefix("could not connect to the publisher: ")
            raise ConnectionFailure(
                "could not connect to publisher when attempting to drop replication slot"
                f' "{slot_name}": {reason}',
                detail=error.detail,
                hint="Use ALTER SUBSCRIPTION ... DISABLE to disable the subscription, and then use"
                " ALTER SUBSCRIPTION ... SET (slot_name = NONE) to disassociate it from the slot.",
            ) from error
        for name in table_slots:
            if drop_slot(publisher, name):
                session.notice(f'dropped replication slot "{name}" on publisher')
        if slot_name is None:
            return
        try:
            publisher.slots.drop(slot_name)
        except (UndefinedObject, ObjectInUse) as error:
            raise ConnectionFailure(
                f'could not drop replication slot "{slot_name}" on publisher:'
                f" ERROR:  {error.message}"
            ) from error
    session.notice(f'dropped replication slot "{slot_name}" on publisher')
