"""The chain of a cluster's commits: each has a digest that covers the one before it.

Who has read the log up to an LSN remembers the digest of the newest commit there.  A catalog that
was put back from a backup goes on with other commits, whatever LSNs they get: what is remembered is
then not in its log, and nobody takes the new commits for progress.

A digest ends in a random number, so that two catalogs that go on from one backup differ from their
first commit on, even if they do the same at the same time.
"""

from __future__ import annotations

import hashlib
import secrets

from sqlalchemy import Connection, func, or_, select, update

from replctl.catalog import schema
from replctl.record import dataclass

#: Bytes of the random number, and characters of it in a digest.
_RANDOM = 8
#: Characters of the hash in a digest.
_HASH = 40


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A position in a log: an LSN with the digest of the newest commit there.

    Attributes:
        digest: None if it is not known, as of what a user has set.
    """

    lsn: int
    digest: str | None = None


def next_digest(connection: Connection, xid: int, commit_lsn: int) -> str:
    """Return the digest of the commit that comes next.

    Args:
        xid: of the transaction.
    """
    return _digest(_newest(connection) or "", xid, commit_lsn, secrets.token_hex(_RANDOM))


def digest_at(connection: Connection, lsn: int) -> str | None:
    """Return the digest of the newest commit at or before an LSN; None if there was none, or the
    log was trimmed there."""
    xact = schema.pg_xact
    if lsn < _trimmed_lsn(connection):
        return None
    query = select(xact.c.digest).where(xact.c.status == "c", xact.c.commit_lsn <= lsn)
    return connection.execute(query.order_by(xact.c.commit_lsn.desc()).limit(1)).scalar()


def is_in_log(connection: Connection, position: LogPosition) -> bool:
    """Return whether a position is one of this log.

    A position before the part of the log that was trimmed is taken for one: slots keep the log from
    being trimmed where somebody reads on, and a slot that is lost is an error of its own.
    """
    control = schema.pg_control
    end = int(connection.execute(select(control.c.insert_lsn)).scalar_one())
    if position.lsn > end:
        return False
    if position.digest is None or position.lsn < _trimmed_lsn(connection):
        return True
    return digest_at(connection, position.lsn) == position.digest


def note_trimmed(connection: Connection, lsn: int) -> None:
    """Note that commits up to an LSN may be gone, but for the newest of them (`is_kept`)."""
    control = schema.pg_control
    connection.execute(update(control).where(control.c.trimmed_lsn < lsn).values(trimmed_lsn=lsn))


def newest_commit_lsn(connection: Connection, lsn: int) -> int:
    """Return the LSN of the newest commit at or before an LSN, whose digest trimming has to keep;
    0, if there is none."""
    xact = schema.pg_xact
    query = select(func.max(xact.c.commit_lsn)).where(xact.c.commit_lsn <= lsn)
    return int(connection.execute(query).scalar_one() or 0)


def broken_link(connection: Connection) -> int | None:
    """Return the LSN of the first commit that does not go on from the one before it; None, if each
    does, as in every catalog that is whole.

    What was trimmed is not looked at.
    """
    xact = schema.pg_xact
    trimmed = _trimmed_lsn(connection)
    first = newest_commit_lsn(connection, trimmed)
    # The transactions of a block's savepoints share its commit
    query = (
        select(xact.c.commit_lsn, xact.c.digest, xact.c.xid)
        .where(
            xact.c.status == "c",
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
    xact = schema.pg_xact
    query = select(xact.c.digest).where(xact.c.commit_lsn.is_not(None))
    return connection.execute(query.order_by(xact.c.commit_lsn.desc()).limit(1)).scalar()


def _trimmed_lsn(connection: Connection) -> int:
    return int(connection.execute(select(schema.pg_control.c.trimmed_lsn)).scalar_one())
