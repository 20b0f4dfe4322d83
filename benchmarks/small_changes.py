#!/usr/bin/env python3
"""Statements and syncs of a small table, against the Spark job of a hand-written script.

    small_changes.py [ROUNDS]        (SPARK_REMOTE: a server to use; else Spark is started here)

The bare job reads the publisher's change feed, takes the last image of each key, and MERGEs.
"""

import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable

from replctl.catalog.cluster import Cluster
from replctl.execute import execute
from replctl.launcher import sync
from replctl.session import Session
from replctl.spark import SparkConf, open_engine

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, region text, note text)"


def main(rounds: int) -> None:
    """Measure, and print a line for each kind of work: median seconds, and against the bare job."""
    remote = os.environ.get("SPARK_REMOTE")
    engine = open_engine(SparkConf(remote=remote) if remote else SparkConf(master="local[2]"))
    taken: dict[str, list[float]] = defaultdict(list)

    def measure(what: str, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        taken[what].append(time.perf_counter() - start)

    with tempfile.TemporaryDirectory() as home:
        cluster = Cluster.open(home)

        def session(database: str) -> Session:
            return Session.connect(cluster, database, "postgres", engine=lambda: engine)

        def run(on: Session, statement: str) -> None:
            for _result in execute(on, statement):
                pass

        start = session("postgres")
        for database in ("pub", "sub"):
            run(start, f"CREATE DATABASE {database}")
        publisher, subscriber = session("pub"), session("sub")
        run(publisher, f"{_TABLE}; CREATE PUBLICATION p FOR TABLE t WHERE (id > 0)")
        rows = "SELECT g, 'north', 'row ' || g FROM generate_series(1, 1000) g"
        run(publisher, f"INSERT INTO t {rows}")
        run(subscriber, f"{_TABLE}; CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p")
        sync(subscriber)
        (result,) = execute(publisher, "SELECT pg_relation_filepath('t')")
        source = str(result.rows[0][0])
        bare_target = f"{home}/bare"
        engine.run(
            f"CREATE TABLE delta.`{bare_target}` USING delta AS SELECT * FROM delta.`{source}`"
        )

        def bare_sync() -> None:
            version = engine.rows(f"SELECT max(version) FROM (DESCRIBE HISTORY delta.`{source}`)")
            last = version[0][0]
            engine.run(
                f"MERGE INTO delta.`{bare_target}` t USING (SELECT * FROM (SELECT *, row_number()"
                " OVER (PARTITION BY id ORDER BY _commit_version DESC) AS n FROM"
                f" table_changes_by_path('{source}', {last - 2}, {last})"
                " WHERE _change_type <> 'update_preimage') WHERE n = 1) s ON t.id = s.id"
                " WHEN MATCHED AND s._change_type = 'delete' THEN DELETE"
                " WHEN MATCHED THEN UPDATE SET region = s.region, note = s.note"
                " WHEN NOT MATCHED AND s._change_type <> 'delete' THEN INSERT (id, region, note)"
                " VALUES (s.id, s.region, s.note)"
            )

        for i in range(rounds):
            measure(
                "INSERT", lambda i=i: run(publisher, f"INSERT INTO t VALUES ({2000 + i}, 'x', 'y')")
            )
            measure(
                "UPDATE", lambda i=i: run(publisher, f"UPDATE t SET note = 'n{i}' WHERE id < 4")
            )
            measure("DELETE", lambda i=i: run(publisher, f"DELETE FROM t WHERE id = {500 + i}"))
            measure("bare sync", bare_sync)
            measure("sync", lambda: sync(subscriber))
            measure("sync of nothing", lambda: sync(subscriber))
            measure("SELECT", lambda: run(subscriber, "SELECT count(*) FROM t"))
        cluster.close()
    bare = statistics.median(taken["bare sync"][1:])
    for what, times in taken.items():
        median = statistics.median(times[1:])  # the first round loads classes
        print(f"{what:16s} {median:6.2f} s  {median / bare:5.2f}x the bare sync")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
