"""Eight processes change the definitions of one cluster at the same time.  They damage nothing, and
one order of the statements explains all answers.

REPLCTL_TEST_CONCURRENCY is the duration in seconds (default: 12).  REPLCTL_TEST_SEED changes the
statements.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from concurrent_sessions import KINDS, NAMES, Event, unexplained, work
from concurrent_sessions import History as History_

from replctl.catalog import schema, state_schema
from replctl.catalog.home_directory import CATALOG
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.transaction import Catalog
from replctl.execute import execute
from replctl.session import Session

_PROCESSES = 8
_SECONDS = float(os.environ.get("REPLCTL_TEST_CONCURRENCY", "12"))
_SEED = int(os.environ.get("REPLCTL_TEST_SEED", "1"))


def test_processes_in_each_others_way(tmp_path: Path) -> None:
    home = tmp_path / "cluster"
    cluster = open_cluster(home)
    session = Session.connect(cluster, "postgres", "postgres")
    list(execute(session, "CREATE SEQUENCE counter"))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["concurrent_sessions"])
    with ProcessPoolExecutor(_PROCESSES, mp_context=context) as pool:
        futures = [pool.submit(work, home, number, _SEED, _SECONDS) for number in range(_PROCESSES)]
        histories = [future.result() for future in futures]
    assert [answer for history in histories for answer in history.wrong] == []
    assert sum(len(history.events) for history in histories) > _PROCESSES
    with cluster.read(session.database_oid) as catalog:
        assert unexplained(histories, _names_there(catalog)) == []
        _check_consistency(catalog)
        tables = {row.relname for row in catalog.select(schema.pg_class)}
    assert {name for history in histories for name in history.own} == {
        name for name in tables if name.startswith("own_") and name.count("_") == 2
    }
    numbers = [number for history in histories for number in history.numbers]
    assert len(numbers) == len(set(numbers))
    for history in histories:
        assert history.numbers == sorted(history.numbers)
    with sqlite3.connect(home / CATALOG) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    cluster.close()


def _names_there(catalog: Catalog) -> set[str]:
    kinds = (
        (schema.pg_class, "relname"),
        (schema.pg_publication, "pubname"),
        (schema.pg_namespace, "nspname"),
        (schema.pg_authid, "rolname"),
        (schema.pg_subscription, "subname"),
    )
    known = {f"{kind.lower()}_{number}" for kind in KINDS for number in range(NAMES)}
    return known.intersection(
        getattr(row, column) for table, column in kinds for row in catalog.select(table)
    )


def _check_consistency(catalog: Catalog) -> None:
    """Check that the catalogs refer only to existing objects, and contain no open transactions."""
    relations = {row.oid for row in catalog.select(schema.pg_class)}
    schemas = {row.oid for row in catalog.select(schema.pg_namespace)}
    publications = {row.oid for row in catalog.select(schema.pg_publication)}
    members = catalog.select(schema.pg_publication_rel)
    namespaces = catalog.select(schema.pg_publication_namespace)
    assert {row.attrelid for row in catalog.select(schema.pg_attribute)} <= relations
    for row in catalog.select(schema.pg_index):
        assert {row.indexrelid, row.indrelid} <= relations
    assert {row.prrelid for row in members} <= relations
    assert {row.prpubid for row in members} <= publications
    assert {row.pnnspid for row in namespaces} <= schemas
    assert {row.pnpubid for row in namespaces} <= publications
    for rows in (
        [(row.relname, row.relnamespace) for row in catalog.select(schema.pg_class)],
        [row.pubname for row in catalog.select(schema.pg_publication)],
        [row.nspname for row in catalog.select(schema.pg_namespace)],
        [(row.attrelid, row.attnum) for row in catalog.select(schema.pg_attribute)],
        [(row.prpubid, row.prrelid) for row in members],
        [(row.pnpubid, row.pnnspid) for row in namespaces],
    ):
        assert len(rows) == len(set(rows))
    for table in (state_schema.intent, state_schema.object_lock, state_schema.lock_wait):
        assert catalog.connection.execute(table.select()).all() == []
    unfinished = state_schema.pg_xact.select().where(state_schema.pg_xact.c.status == "i")
    assert catalog.connection.execute(unfinished).all() == []
    commits = catalog.connection.execute(
        state_schema.pg_xact.select().where(state_schema.pg_xact.c.block_xid.is_(None))
    )
    lsns = sorted(row.commit_lsn for row in commits if row.commit_lsn)
    assert all(earlier < later for earlier, later in pairwise(lsns))


@pytest.mark.parametrize(
    ("events", "is_there", "is_explained"),
    [
        ([(True, True, 0, 1), (True, True, 2, 3)], True, False),
        ([(True, True, 0, 1), (True, False, 2, 3)], True, True),
        ([(True, False, 0, 3), (True, True, 1, 2)], True, True),
        ([(True, False, 0, 1), (True, True, 2, 3)], True, False),
        ([(True, True, 0, 1), (False, True, 0, 1)], False, True),
        ([(True, True, 0, 1), (False, True, 0, 1)], True, False),
    ],
)
def test_orders(
    events: list[tuple[bool, bool, float, float]], is_there: bool, is_explained: bool
) -> None:
    histories = [History_(events=[Event("n", *event)]) for event in events]
    assert (unexplained(histories, {"n"} if is_there else set()) == []) == is_explained
