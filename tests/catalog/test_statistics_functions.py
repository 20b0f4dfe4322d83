"""The functions of slots' and subscriptions' statistics return the values of their views."""

from __future__ import annotations

import pytest

from replctl.catalog.worker import Walsender, claim_walsender, claim_worker
from replctl.execute import execute
from replctl.session import Session

_SLOT = "slot_name, spill_txns, stream_bytes, total_txns, total_bytes, stats_reset"
_SUBSCRIPTION = "subid, apply_error_count, sync_error_count, stats_reset"


@pytest.mark.parametrize(
    ("columns", "view", "function"),
    [
        (_SLOT, "pg_stat_replication_slots", "pg_stat_get_replication_slot({slot})"),
        (
            _SUBSCRIPTION,
            "pg_stat_subscription_stats",
            "pg_stat_get_subscription_stats({subscription})",
        ),
    ],
)
def test_functions_return_the_rows_of_views(
    session: Session, columns: str, view: str, function: str
) -> None:
    for statement in (
        "SELECT pg_create_logical_replication_slot('s', 'pgoutput')",
        "SELECT pg_stat_reset_replication_slot('s')",
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=x' PUBLICATION p WITH (connect = false)",
        "SELECT pg_stat_reset_subscription_stats(oid) FROM pg_subscription",
    ):
        list(execute(session, statement))
    (shown,) = execute(session, f"SELECT {columns} FROM {view}")
    (found,) = execute(session, "SELECT oid FROM pg_subscription")
    arguments = {"slot": "'s'", "subscription": str(found.rows[0][0])}
    (called,) = execute(session, f"SELECT {columns} FROM {function.format(**arguments)}")
    assert len(shown.rows) == 1
    assert called.rows == shown.rows
    assert shown.rows[0][-1] is not None


_WORKER = "subid, relid, pid, received_lsn, last_msg_send_time, latest_end_lsn, worker_type"
_WALSENDER = "pid, state, sent_lsn, replay_lsn, sync_state, reply_time"


@pytest.mark.parametrize(
    ("columns", "view", "function"),
    [
        (_WORKER, "pg_stat_subscription WHERE pid > 0", "pg_stat_get_subscription(NULL)"),
        (_WORKER, "pg_stat_subscription WHERE pid > 0", "pg_stat_get_subscription({working})"),
        (_WORKER, "pg_stat_subscription WHERE false", "pg_stat_get_subscription({idle})"),
        (_WALSENDER, "pg_stat_replication", "pg_stat_get_wal_senders()"),
    ],
)
def test_functions_return_the_processes_that_views_show(
    session: Session, columns: str, view: str, function: str
) -> None:
    subscription = (
        "CREATE SUBSCRIPTION {} CONNECTION 'dbname=x' PUBLICATION p WITH (connect = false)"
    )
    for statement in (
        "SELECT pg_create_logical_replication_slot('s', 'pgoutput')",
        subscription.format("s"),
        subscription.format("idle"),
    ):
        list(execute(session, statement))
    (found,) = execute(session, "SELECT oid FROM pg_subscription ORDER BY subname DESC")
    working, idle = (str(row[0]) for row in found.rows)
    claim_worker(session.cluster, int(working), "s", maximum=4)
    claim_walsender(session.cluster, Walsender("s", "client", "app", 10), maximum=10)
    (shown,) = execute(session, f"SELECT {columns} FROM {view}")
    called_function = function.format(working=working, idle=idle)
    (called,) = execute(session, f"SELECT {columns} FROM {called_function}")
    assert called.rows == shown.rows
    assert len(shown.rows) == ("{idle}" not in function)
