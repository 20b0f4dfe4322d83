"""Count the errors and conflicts of subscriptions: pg_stat_subscription_stats."""

from __future__ import annotations

import time
from collections.abc import Mapping

from sqlalchemy import delete, insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from replctl.catalog import state_schema
from replctl.catalog.pg_subscription import list_subscriptions
from replctl.catalog.transaction import Catalog


def count_error(catalog: Catalog, subscription_oid: int, kind: str) -> None:
    """Count an error of a subscription; `kind` is `apply` or `sync`."""
    _add_to_statistics(catalog, subscription_oid, {f"{kind}_error_count": 1})


def count_conflicts(catalog: Catalog, subscription_oid: int, counts: Mapping[str, int]) -> None:
    """Count conflicts of a subscription, by kind: insert_exists and so on."""
    added = {f"confl_{kind}": count for kind, count in counts.items() if count}
    if added:
        _add_to_statistics(catalog, subscription_oid, added)


def reset_statistics(catalog: Catalog, subscription_oid: int | None) -> None:
    """Reset the counters of one subscription, or of all subscriptions (None)."""
    table = state_schema.pg_stat_subscription_stats
    everything = list_subscriptions(catalog, all_databases=True)
    oids = [s.oid for s in everything] if subscription_oid is None else [subscription_oid]
    for oid in oids:
        catalog.connection.execute(delete(table).where(table.c.subid == oid))
        catalog.connection.execute(
            insert(table).values(subid=oid, stats_reset=time.time_ns() // 1000)
        )


def _add_to_statistics(catalog: Catalog, subscription_oid: int, added: dict[str, int]) -> None:
    table = state_schema.pg_stat_subscription_stats
    statement = sqlite_insert(table).values(subid=subscription_oid, **added)
    catalog.connection.execute(
        statement.on_conflict_do_update(
            index_elements=[table.c.subid],
            set_={name: table.c[name] + count for name, count in added.items()},
        )
    )
