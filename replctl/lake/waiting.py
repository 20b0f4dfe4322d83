"""Wait for other transactions, outside of any transaction of the catalog, with lock_timeout and
deadlock detection (ProcSleep and DeadLockCheck).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from replctl.catalog.cluster import Cluster
from replctl.catalog.lock import OpenBlock, end_wait, note_wait, open_blocks, waiting_cycle
from replctl.errors import (
    DeadlockDetected,
    LockNotAvailable,
    QueryCanceled,
    TransactionInProgress,
    UnfinishedBatch,
)
from replctl.lake.recovery import recover_blocks
from replctl.session import Session

T = TypeVar("T")

_INTERVAL = 0.05  # seconds between two checks


def when_free(session: Session, action: Callable[[], T]) -> T:
    """Run an action.  While other transactions block it, wait until they have ended and retry.

    Raises:
        LockNotAvailable: other transactions block the action for longer than lock_timeout (55P03).
        DeadlockDetected: the blocking transactions wait for this session (40P01).
        Exception: see Session.on_wait.
        ObjectNotInPrerequisiteState: a partly written batch of a subscription cannot be finished
            (55000).
    """
    ended = set[int]()
    while True:
        try:
            return action()
        except TransactionInProgress as blocked:  # see `give_way`
            if not ended.isdisjoint(blocked.xids):  # the statement's own transaction
                raise
            give_way(session, blocked)
            with session.cluster.begin(write=False) as connection:
                ended.update(blocked.xids.difference(open_blocks(connection, blocked.xids)))
        except UnfinishedBatch as blocked:
            give_way(session, blocked)


def give_way(session: Session, blocked: TransactionInProgress | UnfinishedBatch) -> None:
    """Wait until the transactions that block a statement have ended.

    Raises:
        The errors of `when_free`.
    """
    if isinstance(blocked, UnfinishedBatch):
        session.finish_batches(blocked)
    else:
        wait_for(session, blocked.xids)


def wait_for(session: Session, xids: Collection[int]) -> None:
    """Wait until at least one of these transactions has ended.

    Raises:
        LockNotAvailable, DeadlockDetected, Exception: see `when_free`.
    """
    cluster = session.cluster
    timeout = int(session.setting("lock_timeout")) / 1000
    patience = int(session.setting("deadlock_timeout")) / 1000
    own = None if session.block is None else session.block.xids.top
    begun = time.monotonic()
    with cluster.begin(write=True) as connection:
        blocks = {block.xid for block in open_blocks(connection, xids).values()}
        if own is not None:
            note_wait(connection, own, blocks)
    try:
        while True:
            with cluster.begin(write=False) as connection:
                open_ = open_blocks(connection, xids)
            if len(open_) < len(set(xids)):
                return
            recover_blocks(session, set(open_.values()))
            waited = time.monotonic() - begun
            session.on_wait(waited, _processes(cluster, open_.values()), xids)
            if timeout and waited >= timeout:
                raise LockNotAvailable("canceling statement due to lock timeout")
            if own is not None and waited >= patience:
                _check_deadlock(session, own)
                patience = waited + patience
            time.sleep(_INTERVAL)
    except KeyboardInterrupt:
        raise QueryCanceled("canceling statement due to user request") from None
    finally:
        if own is not None:
            with cluster.begin(write=True) as connection:
                end_wait(connection, own)


def _processes(cluster: Cluster, blocks: Iterable[OpenBlock]) -> set[int]:
    """Return the IDs of the other live processes that have these transaction blocks."""
    others = [block for block in blocks if block.backend != cluster.backend]
    return {block.pid for block in others if cluster.is_alive(block.backend)}


def _check_deadlock(session: Session, xid: int) -> None:
    """Raise an error if sessions wait for each other.  The first session that checks fails."""
    with session.cluster.begin(write=True) as connection:
        cycle = waiting_cycle(connection, xid)
        if not cycle:
            return
        end_wait(connection, xid)
        processes = {
            number: block.backend.split("-")[0]
            for number, block in open_blocks(connection, cycle).items()
        }
    detail = "\n".join(
        f"Process {processes.get(waiter)} waits for ShareLock on transaction {holder};"
        f" blocked by process {processes.get(holder)}."
        for waiter, holder in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    )
    raise DeadlockDetected(
        "deadlock detected", detail=detail, hint="See server log for query details."
    )
