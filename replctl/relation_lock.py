"""Lock relations: a session that writes a table prevents others from writing it (lmgr.c)."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from contextlib import ExitStack, suppress

from replctl.catalog.intent import blocks_writing
from replctl.catalog.lock import LockMode, locks_held, open_blocks
from replctl.catalog.unfinished_write import check_finished
from replctl.catalog.vacuum_horizon import recorded_oids
from replctl.errors import LockNotAvailable, TransactionInProgress
from replctl.session import Session

#: Seconds to wait for a relation's lock before looking for its holder.
_PATIENCE = 0.5
#: The name of the lock of a relation or a subscription.
_LOCK_NAME = re.compile(r"(relation|subscription)-(?P<oid>[0-9]+)")


def lock_relations(
    session: Session, oids: Iterable[int], stack: ExitStack, *, written: Collection[int] = ()
) -> None:
    """Lock relations against other writers until `stack` is closed, or in a transaction block until
    the end of the block.

    A process never waits for one of these locks while it holds another one, except in a block.  The
    catalog records locks of blocks, so that deadlocks are detected.

    Args:
        written: relations that must not have a partly written batch or copy.

    Raises:
        TransactionInProgress: the block of another session writes or changes one of the relations.
        LockNotAvailable: another session holds a lock for longer than lock_timeout (55P03).
        UnfinishedBatch: one of `written` has a partly written batch or copy (55006); no lock stays.
        Exception: see Session.on_wait.
    """
    block = session.block
    wanted = sorted(set(oids).difference(() if block is None else block.locked))
    timeout = int(session.setting("lock_timeout")) / 1000
    patience = min(timeout, _PATIENCE) if timeout else _PATIENCE
    begun = time.monotonic()
    while wanted:
        _check_blocks(session, wanted)
        with ExitStack() as taken:
            try:
                for oid in wanted:
                    name = f"relation-{oid}"
                    taken.enter_context(session.cluster.lock(name, patience))
            except LockNotAvailable as error:  # a new block may be the reason: check again
                waited = time.monotonic() - begun
                if timeout and waited >= timeout:
                    raise LockNotAvailable("canceling statement due to lock timeout") from error
                session.on_wait(waited, session.cluster.check_holder(name, waited), ())
                continue
            _check_finished(session, written)
            (stack if block is None else block.locks).push(taken.pop_all())
        if block is not None:
            block.locked.update(wanted)
        return
    _check_finished(session, written)


def _check_finished(session: Session, oids: Collection[int]) -> None:
    if oids:
        with session.read() as catalog:
            check_finished(catalog, oids)


def _check_blocks(session: Session, oids: Collection[int]) -> None:
    """Check that no block of another session uses the relations."""
    with session.read() as catalog:
        others = blocks_writing(catalog.connection, oids)
        held = locks_held(catalog.connection, catalog.snapshot.in_progress)
        for oid in oids:
            # VACUUM also locks relations of other databases.  OIDs are unique in the cluster
            changing = [
                xid
                for name, holders in held.items()
                if name.partition("/")[2] == str(oid)
                for xid, mode in holders
                if mode is LockMode.CHANGE
            ]
            for xid, block in open_blocks(catalog.connection, changing).items():
                others[xid] = block.backend
    own = set() if session.xids is None else set(session.xids.all)
    blocking = {
        xid
        for xid, backend in others.items()
        if xid not in own and session.cluster.is_alive(backend)
    }
    if blocking:
        raise TransactionInProgress(blocking)


def remove_lock_files(session: Session) -> None:
    """Remove the lock files of relations and subscriptions that the catalog has forgotten."""
    with session.cluster.begin(write=False) as connection:
        known = recorded_oids(connection)
    for path in (session.cluster.path / "lock").glob("*.lock"):
        named = _LOCK_NAME.fullmatch(path.stem)
        if named is None or int(named["oid"]) in known:
            continue
        with suppress(LockNotAvailable), session.cluster.lock(path.stem, timeout=0):
            path.unlink(missing_ok=True)  # a process that waits for it then locks a new file
