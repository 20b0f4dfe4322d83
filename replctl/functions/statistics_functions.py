"""Functions of the statistics system (pgstatfuncs.c).

replctl counts the errors of subscriptions, and the transactions that slots have decoded.  Like
`track_counts = off`, it counts nothing else: the other functions return the values of an object
that nobody has used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from replctl.catalog.pg_database import database_exists
from replctl.catalog.pg_subscription import get_subscription
from replctl.errors import FeatureNotSupported, InvalidParameterValue
from replctl.functions.function_context import FunctionContext, Implementation
from replctl.functions.replication_views import REPLICATION_VIEWS
from replctl.functions.session_views import SESSION_VIEWS
from replctl.functions.view_rows import Row
from replctl.types import builtin

#: The counters of a table in the whole cluster, and in the current transaction.
_TABLE_COUNTERS = (
    "numscans tuples_returned tuples_fetched tuples_inserted tuples_updated tuples_deleted"
    " tuples_hot_updated tuples_newpage_updated live_tuples dead_tuples mod_since_analyze"
    " ins_since_vacuum blocks_fetched blocks_hit vacuum_count autovacuum_count analyze_count"
    " autoanalyze_count xact_numscans xact_tuples_returned xact_tuples_fetched"
    " xact_tuples_inserted xact_tuples_updated xact_tuples_deleted xact_tuples_hot_updated"
    " xact_tuples_newpage_updated xact_blocks_fetched xact_blocks_hit"
).split()
_TABLE_TIMES = (
    "lastscan last_vacuum_time last_autovacuum_time last_analyze_time last_autoanalyze_time"
).split()
_DATABASE_COUNTERS = (
    "active_time blk_read_time blk_write_time blocks_fetched blocks_hit conflict_all"
    " conflict_bufferpin conflict_lock conflict_logicalslot conflict_snapshot"
    " conflict_startup_deadlock conflict_tablespace deadlocks idle_in_transaction_time"
    " session_time sessions sessions_abandoned sessions_fatal sessions_killed temp_bytes"
    " temp_files tuples_deleted tuples_fetched tuples_inserted tuples_returned tuples_updated"
    " xact_commit xact_rollback"
).split()
#: Columns that are NULL.  Data checksums are off, so the first two are unknown.
_DATABASE_NULLS = ("checksum_failures", "checksum_last_failure", "stat_reset_time")
_FUNCTION_COUNTERS = (
    "function_calls function_total_time function_self_time xact_function_calls"
    " xact_function_total_time xact_function_self_time"
).split()
_SHARED_TARGETS = ("archiver", "bgwriter", "checkpointer", "io", "recovery_prefetch", "slru", "wal")


def _zero(context: FunctionContext, oid: int) -> int:
    return 0


def _nothing(context: FunctionContext, *args: Any) -> None:
    return None


def _reset(context: FunctionContext, *args: Any) -> str:
    """Reset counters that are always zero."""
    return ""


def _reset_shared(context: FunctionContext, target: str | None = None) -> str:
    if target is not None and target not in _SHARED_TARGETS:
        listed = ", ".join(f'"{name}"' for name in _SHARED_TARGETS[:-1])
        raise InvalidParameterValue(
            f'unrecognized reset target: "{target}"',
            hint=f'Target must be {listed}, or "{_SHARED_TARGETS[-1]}".',
        )
    return ""


def _have_stats(context: FunctionContext, kind: str, database_oid: int, oid: int) -> bool:
    """Return whether there are counters of an object (pgstat_have_entry).  Nobody counts the use of
    relations and functions.

    Raises:
        InvalidParameterValue: there is no such kind of statistics.
        FeatureNotSupported: the kind is replslot, whose slots have no numbers here.
    """
    match kind.lower():
        case "archiver" | "bgwriter" | "checkpointer" | "io" | "slru" | "wal":
            return True
        case "relation" | "function":
            return False
        case "database":
            return oid == 0 and (
                database_oid == 0 or database_exists(context.catalog, database_oid)
            )
        case "subscription":
            return database_oid == 0 and get_subscription(context.catalog, oid) is not None
        case "replslot":
            raise FeatureNotSupported('statistics kind "replslot" is not supported')
    raise InvalidParameterValue(f'invalid statistics kind: "{kind}"')


def _sessions_in(context: FunctionContext, database_oid: int) -> int:
    rows = SESSION_VIEWS["pg_stat_activity"](context)
    return sum(row["datid"] == database_oid for row in rows)


def _replication_slot(context: FunctionContext, name: str) -> tuple[Any, ...]:
    counters = (
        "spill_txns spill_count spill_bytes stream_txns stream_count stream_bytes total_txns"
        " total_bytes"
    ).split()
    return _row_of(context, "pg_stat_replication_slots", "slot_name", name, counters)


def _subscription(context: FunctionContext, oid: int) -> tuple[Any, ...]:
    counters = ["apply_error_count", "sync_error_count"]
    return _row_of(context, "pg_stat_subscription_stats", "subid", oid, counters)


def _row_of(
    context: FunctionContext, view: str, key: str, wanted: Any, counters: list[str]
) -> tuple[Any, ...]:
    """Return the key, the counters and the time of the reset of one row of a view.  For an unknown
    key, the counters are zero."""
    rows = (row for row in REPLICATION_VIEWS[view](context) if row[key] == wanted)
    row = next(rows, {})
    return (wanted, *(row.get(name, 0) for name in counters), row.get("stats_reset"))


def _rows_of(source: str, rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Return rows of a view with the columns of a function.

    Args:
        source: the function's name in pg_proc.prosrc.
    """
    (function,) = builtin.functions()[source]
    return [tuple(row.get(name) for name, _type in function.columns) for row in rows]


def _activity(context: FunctionContext, pid: int | None) -> list[tuple[Any, ...]]:
    rows = SESSION_VIEWS["pg_stat_activity"](context)
    found = (
        row if row.get("state") is None else _NOT_ENCRYPTED | row  # without the privilege: NULL
        for row in rows
        if pid in (None, -1, row["pid"])
    )
    return _rows_of("pg_stat_get_activity", found)


def _workers(context: FunctionContext, subscription: int | None) -> list[tuple[Any, ...]]:
    rows = REPLICATION_VIEWS["pg_stat_subscription"](context)
    found = (
        row for row in rows if row.get("pid") is not None and subscription in (None, row["subid"])
    )
    return _rows_of("pg_stat_get_subscription", found)


def _walsenders(context: FunctionContext) -> list[tuple[Any, ...]]:
    rows = REPLICATION_VIEWS["pg_stat_replication"](context)
    return _rows_of("pg_stat_get_wal_senders", rows)


def _backends(context: FunctionContext) -> list[tuple[Any, ...]]:
    """Return the numbers of the backends: their PIDs."""
    return [(row["pid"],) for row in SESSION_VIEWS["pg_stat_activity"](context)]


def _of_backend(column: str) -> Implementation:
    """Return a function that returns a column of pg_stat_activity for a backend's number."""

    def value(context: FunctionContext, backend: int) -> Any:
        rows = SESSION_VIEWS["pg_stat_activity"](context)
        return next((row.get(column) for row in rows if row["pid"] == backend), None)

    return value


#: Columns of connections to this process, which are neither encrypted nor authenticated by GSSAPI.
_NOT_ENCRYPTED = {"ssl": 0, "gss_auth": 0, "gss_enc": 0, "gss_delegation": 0}

#: Functions that return rows, by their names in pg_proc.prosrc.
SET_FUNCTIONS: dict[str, Callable[..., list[tuple[Any, ...]]]] = {
    "pg_stat_get_activity": _activity,
    "pg_stat_get_subscription": _workers,
    "pg_stat_get_wal_senders": _walsenders,
    "pg_stat_get_backend_idset": _backends,
}

#: Functions that return a row, by their names in pg_proc.prosrc.
ROW_FUNCTIONS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "pg_stat_get_replication_slot": _replication_slot,
    "pg_stat_get_subscription_stats": _subscription,
}

#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Implementation] = {
    **{f"pg_stat_get_{name}": _zero for name in _TABLE_COUNTERS},
    **{f"pg_stat_get_{name}": _nothing for name in _TABLE_TIMES},
    **{f"pg_stat_get_db_{name}": _zero for name in _DATABASE_COUNTERS},
    **{f"pg_stat_get_db_{name}": _nothing for name in _DATABASE_NULLS},
    **{f"pg_stat_get_{name}": _nothing for name in _FUNCTION_COUNTERS},
    "pg_stat_get_db_numbackends": _sessions_in,
    "pg_stat_get_backend_pid": _of_backend("pid"),
    "pg_stat_get_backend_dbid": _of_backend("datid"),
    "pg_stat_get_backend_userid": _of_backend("usesysid"),
    "pg_stat_get_backend_activity_start": _of_backend("query_start"),
    "pg_stat_get_backend_xact_start": _of_backend("xact_start"),
    "pg_stat_get_snapshot_timestamp": _nothing,
    "pg_stat_have_stats": _have_stats,
    "pg_stat_clear_snapshot": _reset,
    "pg_stat_force_next_flush": _reset,
    "pg_stat_reset": _reset,
    "pg_stat_reset_shared": _reset_shared,
    "pg_stat_reset_single_function_counters": _reset,
    "pg_stat_reset_single_table_counters": _reset,
    "pg_stat_reset_slru": _reset,
}
