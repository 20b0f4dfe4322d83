"""Find who has changed the rows of a table, according to the log."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import and_, exists, func, not_, or_, select

from replctl.catalog import schema, state_schema
from replctl.catalog.pg_wal import ADOPT, BREAK, CHANGE, TRUNCATE
from replctl.catalog.state_schema import is_committed
from replctl.catalog.transaction import Catalog


def has_changes_of_others(
    catalog: Catalog, relids: Collection[int], origins: Collection[str], since_lsn: int | None
) -> bool:
    """Return whether others have changed rows of these tables since the tables were last empty.

    Commits of other programs that our transaction has logged count as changes of others, because
    they have no mark.  The same applies to the rows that a table had when it was adopted.

    Args:
        origins: changes from these origins do not count as changes of others.
        since_lsn: consider only changes after this LSN; None for all.
    """
    wal, xact = state_schema.pg_wal, state_schema.pg_xact
    truncation, truncating = wal.alias(), xact.alias()
    emptied = (
        select(func.coalesce(func.max(truncation.c.lsn), 0))
        .join(truncating, truncating.c.xid == truncation.c.xid)
        .where(
            truncation.c.relid == wal.c.relid,
            truncation.c.action == TRUNCATE,
            is_committed(truncating),
        )
        .scalar_subquery()
    )
    is_own = and_(wal.c.mark.is_not(None), func.coalesce(xact.c.origin, "").in_(origins))
    query = (
        select(wal.c.lsn)
        .join(xact, xact.c.xid == wal.c.xid)
        .where(
            wal.c.relid.in_(relids),
            is_committed(xact),
            wal.c.lsn > (since_lsn or 0),
            wal.c.lsn > emptied,
            or_(wal.c.action.in_((ADOPT, BREAK)), and_(wal.c.action == CHANGE, not_(is_own))),
        )
        .limit(1)
    )
    return catalog.connection.execute(query).first() is not None


def feeding_members(catalog: Catalog, relids: Collection[int]) -> set[tuple[int, int]]:
    """Return the subscriptions that write these relations, as pairs: the OIDs of the subscription
    and of the relation.
    """
    member, subscription = state_schema.pg_subscription_rel, schema.pg_subscription
    query = select(member.c.srsubid, member.c.srrelid).where(
        member.c.srrelid.in_(relids),
        exists().where(subscription.c.oid == member.c.srsubid, catalog.visible(subscription)),
    )
    return {(int(row.srsubid), int(row.srrelid)) for row in catalog.connection.execute(query)}
