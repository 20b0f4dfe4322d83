"""Undo transactions that a subscription has written in part and will not finish."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeAlias

from replctl.catalog.apply_batch import delete_apply_batch
from replctl.catalog.apply_step import WriteStep
from replctl.catalog.intent import Intent, insert_intent
from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.transaction import Catalog
from replctl.lake.recovery import leave, undo_or_leave
from replctl.lake.waiting import when_free
from replctl.relation_lock import lock_relations
from replctl.session import Session

#: A transaction that is written in part: its number, and its tables by OID, each with its previous
#: version and its step.
Begun: TypeAlias = tuple[int, dict[int, WriteStep]]


def note_abandoned(
    catalog: Catalog, subscription: Subscription, relid: int, begun: Sequence[Begun]
) -> None:
    """Mark transactions, so that the next process undoes them instead of finishing them.

    Args:
        relid: the table whose synchronization they belong to; 0: none.
    """
    for xid, targets in begun:
        for leaf, (version, _step) in targets.items():
            insert_intent(catalog.connection, xid, Intent(leaf, version, is_whole=False))
    delete_apply_batch(catalog, subscription.oid, relid)


def undo(session: Session, begun: Sequence[Begun]) -> None:
    """Undo transactions that `note_abandoned` has marked.

    Raises:
        Exception: see `when_free`.  Then the next process that uses the tables undoes the rest.
    """
    left = [xid for xid, _targets in begun]
    try:
        for xid, targets in begun:
            with ExitStack() as stack:
                # A transaction block of another session may write the tables for a long time
                when_free(session, partial(lock_relations, session, list(targets), stack))
                left.remove(xid)
                undo_or_leave(session, xid)
    finally:
        leave(session, left)
