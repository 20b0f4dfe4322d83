"""Measure PostgreSQL's own logical replication on the same machine, between two databases of a
server with wal_level = logical."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from benchmarks.lake import COLUMN_NAMES, DEFINITIONS, Changes, Keys
from benchmarks.measure import Run, Sample

_VARIANT = "PostgreSQL's replication"
_PUBLISHER, _SUBSCRIBER = "replctl_bench_pub", "replctl_bench_sub"
_SLOT = "replctl_bench"
_LONGEST = 300.0  # seconds
_VALUES = (
    "id, id % 1000, 'r' || lpad((hashint8(id) & 65535) % 20 || '', 2, '0'),"
    " 'customer ' || (hashint8(id) & 65535) % 10000, substr(md5(id || ''), 1, 12),"
    " (hashint8(id) & 1048575) / 105.0, to_timestamp(1700000000 + id),"
    " to_timestamp(1700000060 + id), id % 3 = 0, (hashint8(id) & 1023) / 8.0"
)


def measure_copy(run: Run, group: str, case: str, rows: int, condition: str) -> None:
    """Measure the initial copy of a filtered table."""
    assert run.postgres is not None
    samples = []
    with _server(run.postgres) as (publisher, subscriber):
        _fill(publisher, rows, condition)
        for number in range(run.warm_up + run.rounds):
            subscriber.execute("DROP TABLE IF EXISTS t, marker")
            _create_tables(subscriber)
            start = time.perf_counter()
            _subscribe(run.postgres, publisher, subscriber)
            _wait(lambda: _is_ready(subscriber))
            if number >= run.warm_up:
                samples.append(Sample(time.perf_counter() - start))
            _check_counts(publisher, subscriber, condition)
            _unsubscribe(publisher, subscriber)
    run.note(group, case, _VARIANT, samples)


def measure_changes(
    run: Run, group: str, rows: int, condition: str, cases: Sequence[tuple[str, int, bool]]
) -> None:
    """Measure changes in one transaction, from its commit until the subscriber has them.

    Args:
        cases: the name, the number of changes, and whether they have recent keys.
    """
    assert run.postgres is not None
    with _server(run.postgres) as (publisher, subscriber):
        _fill(publisher, rows, condition)
        _create_tables(subscriber)
        _subscribe(run.postgres, publisher, subscriber)
        _wait(lambda: _is_ready(subscriber))
        keys = Keys(rows)
        for case, count, recent in cases:
            samples = []
            for number in range(run.warm_up + run.rounds):
                marker = _commit(publisher, keys.pick(count, recent=recent))
                start = time.perf_counter()
                _wait(partial(_has_come, subscriber, marker))
                if number >= run.warm_up:
                    samples.append(Sample(time.perf_counter() - start))
            _check_counts(publisher, subscriber, condition)
            run.note(group, case, _VARIANT, samples)
        _unsubscribe(publisher, subscriber)


@contextmanager
def _server(conninfo: str) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """Open connections to two scratch databases."""
    with psycopg.connect(conninfo, autocommit=True) as start:
        for name in (_PUBLISHER, _SUBSCRIBER):
            start.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            with (
                psycopg.connect(make_conninfo(conninfo, dbname=_PUBLISHER), autocommit=True) as one,
                psycopg.connect(
                    make_conninfo(conninfo, dbname=_SUBSCRIBER), autocommit=True
                ) as two,
            ):
                yield one, two
        finally:
            for name in (_SUBSCRIBER, _PUBLISHER):
                start.execute(sql.SQL("DROP DATABASE {} (FORCE)").format(sql.Identifier(name)))


def _create_tables(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        f"CREATE TABLE t ({DEFINITIONS}); CREATE TABLE marker (id int PRIMARY KEY, n int)"
    )


def _fill(publisher: psycopg.Connection[Any], rows: int, condition: str) -> None:
    _create_tables(publisher)
    publisher.execute("ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO marker VALUES (1, 0)")
    publisher.execute(
        f"INSERT INTO t SELECT {_VALUES} FROM generate_series(2, {2 * rows}, 2) AS id"
    )
    publisher.execute(f"CREATE PUBLICATION p FOR TABLE t WHERE ({condition}), marker")
    publisher.execute("VACUUM ANALYZE t")


def _subscribe(
    conninfo: str, publisher: psycopg.Connection[Any], subscriber: psycopg.Connection[Any]
) -> None:
    publisher.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [_SLOT])
    subscriber.execute(
        sql.SQL(
            "CREATE SUBSCRIPTION s CONNECTION {} PUBLICATION p"
            " WITH (create_slot = false, slot_name = {})"
        ).format(sql.Literal(make_conninfo(conninfo, dbname=_PUBLISHER)), sql.Identifier(_SLOT))
    )


def _unsubscribe(publisher: psycopg.Connection[Any], subscriber: psycopg.Connection[Any]) -> None:
    subscriber.execute("ALTER SUBSCRIPTION s DISABLE")
    subscriber.execute("ALTER SUBSCRIPTION s SET (slot_name = NONE)")
    subscriber.execute("DROP SUBSCRIPTION s")
    active = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
    _wait(lambda: not _one(publisher, active, [_SLOT]))
    publisher.execute("SELECT pg_drop_replication_slot(%s)", [_SLOT])


def _commit(publisher: psycopg.Connection[Any], changes: Changes) -> int:
    """Change rows in one transaction, and return the new value of the marker."""
    with publisher.transaction():
        publisher.execute("DELETE FROM t WHERE id = ANY(%s)", [list(changes.deleted)])
        publisher.execute(
            "UPDATE t SET quantity = quantity + 1,"
            " region = 'r' || lpad((hashint8(id + quantity) & 65535) %% 20 || '', 2, '0')"
            " WHERE id = ANY(%s)",
            [list(changes.updated)],
        )
        publisher.execute(
            f"INSERT INTO t SELECT {_VALUES.replace('%', '%%')} FROM unnest(%s::bigint[]) AS id",
            [list(changes.inserted)],
        )
        publisher.execute("UPDATE marker SET n = n + 1")
    return int(_one(publisher, "SELECT n FROM marker"))


def _is_ready(subscriber: psycopg.Connection[Any]) -> bool:
    states = "SELECT bool_and(srsubstate = 'r') AND count(*) = 2 FROM pg_subscription_rel"
    return bool(_one(subscriber, states))


def _has_come(subscriber: psycopg.Connection[Any], marker: int) -> bool:
    return bool(_one(subscriber, "SELECT n FROM marker") == marker)


def _check_counts(
    publisher: psycopg.Connection[Any], subscriber: psycopg.Connection[Any], condition: str
) -> None:
    hashed = f"SELECT count(*), sum(hashtext(ROW({', '.join(COLUMN_NAMES)})::text)) FROM t"
    expected = publisher.execute(f"{hashed} WHERE {condition}").fetchone()
    found = subscriber.execute(hashed).fetchone()
    assert expected == found, (expected, found)


def _one(connection: psycopg.Connection[Any], query: str, values: Sequence[Any] = ()) -> Any:
    row = connection.execute(query, values).fetchone()
    return None if row is None else row[0]


def _wait(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + _LONGEST
    while not is_done():
        if time.monotonic() > end:
            raise RuntimeError("PostgreSQL does not come to an end")
        time.sleep(0.002)
