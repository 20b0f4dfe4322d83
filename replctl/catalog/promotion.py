"""Promote a standby, so that it takes its primary's place (xlog.c, signalled by pg_promote).

A promotion first marks the primary as replaced, so that the primary accepts no more changes.  Then
the standby follows the primary a last time, and has its complete catalog.
"""

from __future__ import annotations

import time

from sqlalchemy import Connection, update

from replctl.catalog import schema, state_schema
from replctl.catalog.auto_conf import read_auto_conf
from replctl.catalog.catalog_engine import write_transaction
from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_control import check_recovers, end_replacement, replace_by
from replctl.catalog.primary import (
    follow_hint,
    is_replaced_by,
    open_primary,
    reading_primary,
)
from replctl.catalog.standby import follow, take_slot
from replctl.catalog.table_home import keep_tables
from replctl.catalog.transaction import Catalog
from replctl.errors import CannotConnectNow, LockNotAvailable
from replctl.injection_point import injection_point

#: Seconds that a promotion waits for writers by default (pg_promote).
WAIT_SECONDS = 60
#: The assumed maximum of transaction numbers, OIDs and steps that a lost primary has assigned.
_GAP = 1_000_000
_SEGMENT = 16 * 2**20


def promote(standby: Cluster, wait_seconds: float = WAIT_SECONDS) -> None:
    """Make a standby the primary.  A failed promotion can be repeated.

    Raises:
        ObjectNotInPrerequisiteState: the cluster is not a standby, or the primary lacks commits
            that the standby has.
        ConnectionFailure: the primary's catalog cannot be read.
        CannotConnectNow: another standby was already promoted.
        LockNotAvailable: processes that use the primary did not stop writing in time.
    """
    with standby.begin(write=False) as connection:
        check_recovers(connection)
    with open_primary(standby) as primary:
        with reading_primary(standby, primary.path):  # do not stop a primary that forked
            pass
        _replace(primary, standby)
        injection_point("promotion.after-replacement")
        _wait_for_writers(primary, time.monotonic() + wait_seconds)
        follow(standby, primary.path, with_slots=True)
        # Before the standby is the primary: a copy of it must never complete the promotion, too.
        with write_transaction(primary.engine) as connection:
            end_replacement(connection, str(standby.path.resolve()))
    injection_point("promotion.before-end")
    with standby.begin(write=True, in_recovery=True) as connection:
        check_recovers(connection)  # another process may have completed the promotion
        become_primary(connection)
    injection_point("promotion.after-end")


def become_primary(connection: Connection) -> None:
    """Make this cluster the primary.  From now on it assigns LSNs."""
    control = state_schema.pg_control
    keep_tables(connection)
    connection.execute(
        update(control).values(timeline=control.c.timeline + 1, is_in_recovery=False)
    )


def skip_lost_numbers(connection: Connection) -> None:
    """Skip the LSNs and other numbers that a lost primary may have assigned, so that none is used
    twice.
    """
    control, step = state_schema.pg_control, state_schema.apply_step
    connection.execute(
        update(control).values(
            insert_lsn=(control.c.insert_lsn // _SEGMENT + 2) * _SEGMENT,
            next_xid=control.c.next_xid + _GAP,
            next_oid=control.c.next_oid + _GAP,
        )
    )
    connection.execute(update(step).values(step=step.c.step + _GAP))


def database_oids(connection: Connection) -> list[int]:
    """Return the OIDs of the cluster's databases."""
    return [int(row.oid) for row in Catalog(connection, 0).select(schema.pg_database)]


def _replace(primary: Cluster, standby: Cluster) -> None:
    """Mark the old primary as replaced, so that it accepts no more commits.  The standby's slot has
    the same directory until the promotion is complete.
    """
    promoted_to, home = primary.control().promoted_to, str(standby.path.resolve())
    slot_name = read_auto_conf(standby.path).get("primary_slot_name", "")
    if promoted_to is None:
        with primary.begin(write=True) as connection:
            replace_by(connection, home)
            take_slot(connection, slot_name, home)
    elif not is_replaced_by(primary, standby):
        raise CannotConnectNow(
            f'standby "{promoted_to}" was promoted before',
            hint=follow_hint(standby.path, promoted_to),
        )
    elif promoted_to != home:  # an earlier promotion has failed, and the standby was moved since
        with write_transaction(primary.engine) as connection:
            replace_by(connection, home)
            take_slot(connection, slot_name, home)


def _wait_for_writers(primary: Cluster, deadline: float) -> None:
    """Wait until processes that write the old primary's tables have ended.  Their commits will
    fail.
    """
    for path in sorted((primary.path / "lock").glob("relation-*.lock")):
        try:
            with primary.lock(path.stem, timeout=max(0.0, deadline - time.monotonic())):
                pass
        except LockNotAvailable as error:
            raise LockNotAvailable(
                "server did not promote in time",
                detail=f'Processes that use the old primary "{primary.path}" still write tables.',
                hint="End these processes, then promote again.",
            ) from error
