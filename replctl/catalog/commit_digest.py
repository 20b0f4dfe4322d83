"""Chain a cluster's commits: each commit has a digest that covers its predecessor.

A reader of the log remembers the digest of the newest commit that it has read.  A catalog that was
restored from a backup continues with other commits, which may reuse the LSNs of lost ones.  Its log
does not have the remembered digest, so readers do not mistake the new commits for progress.

A digest ends with a random number. So two catalogs restored from one backup differ from their first
commit on, even if they make the same changes.

pg_control.base_digest is the digest of the newest commit before the last SQLite transaction that
added commits.  Either all commits of such a transaction are in the file, or none.
"""

from __future__ import annotations

import hashlib
import secrets

from sqlalchemy import Connection, func, or_, select, update

from replctl.catalog import state_schema
from replctl.catalog.state_schema import is_committed
from replctl.lsn import format_lsn
from replctl.record import dataclass

#: Bytes of the random number, and the number of its characters in a digest.
_RANDOM = 8
#: Number of characters of the hash in a digest.
_HASH = 40
#: The digest of the newest commit; compiled once, because each commit runs it.
_NEWEST = (
    select(state_schema.pg_xact.c.digest)
    .where(state_schema.pg_xact.c.commit_lsn.is_not(None))
    .order_by(state_schema.pg_xact.c.commit_lsn.desc())
    .limit(1)
)
#: The key in a connection's `info` for the base of its SQLite transaction.
_BASE = "replctl_base_digest"


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A position in a log: an LSN with the digest of the newest commit there.

    Attributes:
        digest: None if it is unknown, for example for a position that a user has set.
    """

    lsn: int
    digest: str | None = None


def next_digest(connection: Connection, xid: int, commit_lsn: int) -> str:
    """Return the digest of the next commit.

    Args:
        xid: the number of the transaction.
    """
    newest = note_base(connection)
    return _digest(newest or "", xid, commit_lsn, secrets.token_hex(_RANDOM))


def note_base(connection: Connection) -> str | None:
    """Record the newest commit before this SQLite transaction, which is about to add a commit.
    Return the digest of the newest commit now; None if there is none.
    """
    newest = _newest(connection)
    # The rollback of a savepoint reverts pg_control, so each commit records the base again
    base = connection.info.setdefault(_BASE, newest)
    connection.execute(update(state_schema.pg_control).values(base_digest=base))
    return newest


def base_digest(connection: Connection) -> str | None:
    """Return the digest of the newest commit before the last SQLite transaction that added commits;
    None if there was none.
    """
    return connection.execute(select(state_schema.pg_control.c.base_digest)).scalar()


def forget_base(connection: Connection) -> None:
    """Forget the base of the last SQLite transaction, because another one begins."""
    connection.info.pop(_BASE, None)


def digest_at(connection: Connection, lsn: int) -> str | None:
    """Return the digest of the newest commit at or before an LSN; None if there was none, or if the
    log is trimmed there.
    """
    xact = state_schema.pg_xact
    if lsn < _trimmed_lsn(connection):
        return None
    query = select(xact.c.digest).where(is_committed(xact), xact.c.commit_lsn <= lsn)
    return connection.execute(query.order_by(xact.c.commit_lsn.desc()).limit(1)).scalar()


def newest_position(connection: Connection) -> LogPosition:
    """Return the end of the log."""
    control = state_schema.pg_control
    lsn = int(connection.execute(select(control.c.insert_lsn)).scalar_one())
    return LogPosition(lsn, _newest(connection))


def is_in_log(connection: Connection, position: LogPosition) -> bool:
    """Return whether a position belongs to this log.

    A position in the trimmed part is accepted: slots prevent trimming where a reader continues, and
    a lost slot has its own error.
    """
    if position.lsn > newest_position(connection).lsn:
        return False
    if position.digest is None or position.lsn < _trimmed_lsn(connection):
        return True
    return digest_at(connection, position.lsn) == position.digest


def missing_position(position: int, end: int) -> str:
    """Return PostgreSQL's message about a position that a log does not have (walsender.c).

    Args:
        position: the LSN from which a reader wants to continue.
        end: the end of the log.
    """
    start = f"requested starting point {format_lsn(position)}"
    if position <= end:
        return f"{start} is not in this server's history"
    return f"{start} is ahead of the WAL flush position of this server {format_lsn(end)}"


def note_trimmed(connection: Connection, lsn: int) -> None:
    """Record that commits up to an LSN may be removed.  Only the newest of them is kept for
    certain.
    """
    control = state_schema.pg_control
    connection.execute(update(control).where(control.c.trimmed_lsn < lsn).values(trimmed_lsn=lsn))


def newest_commit_lsn(connection: Connection, lsn: int) -> int:
    """Return the LSN of the newest commit at or before an LSN; 0 if there is none.  Trimming must
    keep the digest of this commit.
    """
    xact = state_schema.pg_xact
    query = select(func.max(xact.c.commit_lsn)).where(xact.c.commit_lsn <= lsn)
    return int(connection.execute(query).scalar_one() or 0)


def broken_link(connection: Connection) -> int | None:
    """Return the LSN of the first commit whose digest does not follow from its predecessor's; None
    if the chain is unbroken, as in every complete catalog.

    It does not check the trimmed part of the log.
    """
    xact = state_schema.pg_xact
    trimmed = _trimmed_lsn(connection)
    first = newest_commit_lsn(connection, trimmed)
    # Transactions of savepoints share the commit of their transaction block
    query = (
        select(xact.c.commit_lsn, xact.c.digest, xact.c.xid)
        .where(
            is_committed(xact),
            xact.c.commit_lsn >= first,
            or_(xact.c.block_xid.is_(None), xact.c.block_xid == xact.c.xid),
        )
        .order_by(xact.c.commit_lsn)
    )
    previous = "" if not trimmed else None
    for row in connection.execute(query):
        digest = str(row.digest)
        if previous is not None:
            expected = _digest(previous, int(row.xid), int(row.commit_lsn), digest[_HASH:])
            if digest != expected:
                return int(row.commit_lsn)
        previous = digest
    return None


def _digest(previous: str, xid: int, commit_lsn: int, random: str) -> str:
    covered = f"{previous} {xid} {commit_lsn} {random}".encode()
    return hashlib.sha256(covered).hexdigest()[:_HASH] + random


def _newest(connection: Connection) -> str | None:
    return connection.execute(_NEWEST).scalar()


def _trimmed_lsn(connection: Connection) -> int:
    return int(connection.execute(select(state_schema.pg_control.c.trimmed_lsn)).scalar_one())
