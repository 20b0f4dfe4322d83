"""`\\sync`, AUTOSYNC and `replctl sync`, with a launcher that only records its calls."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Sequence

import pytest
from fix_psql import Psql
from fix_spark import spark_options

from replctl import launcher, watch
from replctl.apply_worker import Applied
from replctl.catalog.pg_subscription import Subscription, list_subscriptions
from replctl.errors import UndefinedObject, UniqueViolation
from replctl.launcher import SyncFailure
from replctl.replication.node import RemoteTransaction, RowCounts
from replctl.session import Session


class Launcher:
    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.failures: list[SyncFailure] = []

    def sync(self, session: Session, names: Sequence[str] = (), **_: object) -> list[SyncFailure]:
        self.calls.append(tuple(names))
        if "nobody" in names:
            raise UndefinedObject('subscription "nobody" does not exist')
        return self.failures


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Launcher:
    fake = Launcher()
    monkeypatch.setattr(launcher, "sync", fake.sync)
    return fake


FAILURE = SyncFailure("s1", UniqueViolation("duplicate key", detail="Key.", context="applying"))
REPORT = 'ERROR:  duplicate key\nDETAIL:  Key.\nCONTEXT:  applying\nsubscription "s1"\n'


def test_sync_command(psql: Psql, fake: Launcher) -> None:
    assert psql("-X", script='\\sync\n\\sync S1 "S2";\n').stderr == ""
    assert fake.calls == [(), ("s1", "S2")]


def test_a_failure_is_reported_and_counts(psql: Psql, fake: Launcher) -> None:
    fake.failures = [FAILURE]
    outcome = psql("-X", script="\\sync\n\\echo next\n")
    assert (outcome.stderr, outcome.stdout, outcome.exit_code) == (REPORT, "next\n", 0)
    stopped = psql("-X", "-v", "ON_ERROR_STOP=1", script="\\sync\n\\echo next\n")
    assert (stopped.stdout, stopped.exit_code) == ("", 3)


def test_subcommand(psql: Psql, fake: Launcher) -> None:
    assert psql("sync", "s1", "s2").exit_code == 0
    assert psql("-d", "postgres", "sync").exit_code == 0
    assert fake.calls == [("s1", "s2"), ()]
    assert psql("sync", "nobody").exit_code == 1
    assert psql("-d", "nowhere", "sync").exit_code == 2
    fake.failures = [FAILURE]
    outcome = psql("sync")
    assert (outcome.stderr, outcome.exit_code) == (f"replctl: {REPORT}"[9:], 1)


_SUBSCRIPTIONS = r"""
CREATE DATABASE pub;
CREATE DATABASE second;
\c pub
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE PUBLICATION p FOR TABLE t;
\c second
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p
    WITH (copy_data = false, slot_name = s2);
\c postgres
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE SUBSCRIPTION "S" CONNECTION 'dbname=pub' PUBLICATION p
    WITH (copy_data = false, slot_name = s1);
CREATE SUBSCRIPTION off CONNECTION 'dbname=pub' PUBLICATION p
    WITH (copy_data = false, enabled = false);
CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p WITH (copy_data = false);
"""
_LOST = """
CREATE SUBSCRIPTION lost CONNECTION 'dbname=nowhere' PUBLICATION p
    WITH (connect = false, slot_name = 'x');
ALTER SUBSCRIPTION lost ENABLE;
"""


def test_subcommand_says_what_each_subscription_has_done(psql: Psql) -> None:
    assert (psql("sync").stdout, psql("sync", "--json").stdout) == ("", "[]\n")
    assert "ERROR" not in psql("-X", "-q", script=_SUBSCRIPTIONS).stderr
    idle = ['"S": up to date', "off: disabled", "postgres.s: up to date", "second.s: up to date"]
    assert psql("sync").stdout.splitlines() == idle
    assert psql("sync", "S", "off").stdout.splitlines() == idle[:2]
    assert psql("-X", script="\\sync\n").stdout == ""
    for quiet in ("-q", "--quiet"):
        outcome = psql("sync", quiet)
        assert (outcome.stdout, outcome.stderr, outcome.exit_code) == ("", "", 0)
    psql("-X", "-q", script=_LOST)
    outcome = psql("sync")
    assert outcome.stdout.splitlines() == [idle[0], "lost: failed", *idle[1:]]
    assert (outcome.exit_code, outcome.stderr.count("ERROR:")) == (1, 1)
    outcome = psql("sync", "--json", "lost", "S")
    own, lost = json.loads(outcome.stdout)
    assert (own["subscription"], own["database"], own["status"]) == ("S", "postgres", "up to date")
    assert re.fullmatch("[0-9A-F]+/[0-9A-F]+", own["lsn"])
    assert (lost["status"], lost["lsn"], lost["error"]) == (
        "failed",
        None,
        {"sqlstate": "08006", "message": lost["error"]["message"]},
    )
    assert (outcome.exit_code, "nowhere" in lost["error"]["message"]) == (1, True)


_ROWS = r"""
CREATE DATABASE pub;
\c pub
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE bag (v text);
ALTER TABLE bag REPLICA IDENTITY FULL;
CREATE PUBLICATION p FOR TABLE t WHERE (id < 100);
CREATE PUBLICATION q FOR TABLE bag;
INSERT INTO t SELECT i, 'a' FROM generate_series(1, 200) i;
INSERT INTO bag VALUES ('x'), ('x'), ('x'), ('x'), ('y'), ('z');
\c postgres
CREATE TABLE t (id int PRIMARY KEY, v text CHECK (v <> 'conflict'));
CREATE TABLE bag (v text);
CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p;
CREATE SUBSCRIPTION bags CONNECTION 'dbname=pub' PUBLICATION q;
"""
#: The changes update one row of bag, and delete four equal rows.
_CHANGES = r"""
\c pub
UPDATE t SET v = 'b' WHERE id <= 3;
UPDATE bag SET v = 'w' WHERE v = 'y';
DELETE FROM bag WHERE v = 'x';
INSERT INTO t VALUES (0, 'conflict');
"""


@pytest.mark.spark
def test_subcommand_counts_what_it_writes(psql: Psql) -> None:
    spark = spark_options()
    assert "ERROR" not in psql("-X", "-q", *spark, script=_ROWS).stderr
    found = json.loads(psql("sync", *spark, "--json").stdout)
    keys = ("subscription", "status", "transactions", "inserted", "updated", "deleted")
    assert [tuple(item[key] for key in keys) for item in found] == [
        ("bags", "applied", 0, 6, 0, 0),
        ("s", "applied", 0, 99, 0, 0),
    ]
    assert "ERROR" not in psql("-X", "-q", *spark, script=_CHANGES).stderr
    outcome = psql("sync", *spark)
    lsn = "[0-9A-F]+/[0-9A-F]+"
    expected = (
        f"bags: 2 transactions, 0 rows inserted, 1 updated, 4 deleted, reached {lsn}\n"
        f"s: failed after 1 transaction, 0 rows inserted, 3 updated, 0 deleted, reached {lsn}\n"
    )
    assert re.fullmatch(expected, outcome.stdout)
    assert outcome.exit_code == 1
    assert psql("sync", "bags").stdout == "bags: up to date\n"


def test_a_transaction_that_comes_in_parts_counts_once() -> None:
    applied = Applied(is_parallel=True)
    first, second = (RemoteTransaction(xid, 100 + xid, 0, xid, xid) for xid in (1, 2))
    applied.add((first, second), RowCounts(1, 0, 0))
    applied.add((first,), RowCounts(0, 2, 3))
    counted = (applied.transactions, applied.changes, applied.rows)
    assert counted == (2, 3, RowCounts(1, 2, 3))


@pytest.mark.parametrize("port", ["99999", "-1", "http"])
def test_a_port_that_is_none(psql: Psql, port: str) -> None:
    outcome = psql("sync", "--watch", "--metrics-port", port)
    assert outcome.exit_code == 1
    assert "Invalid value for '--metrics-port'" in outcome.stderr


def test_vacuum(psql: Psql) -> None:
    psql("-X", script="CREATE TABLE t (a int);\nCREATE TABLE u (a int);\n")
    done = psql("vacuum", "--verbose", "t", "public.u")
    nothing = "0 files and 0 entries of the log removed, all versions are kept"
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "".join(
        f'INFO:  finished vacuuming "postgres.public.{name}": {nothing}\n' for name in ("t", "u")
    )
    assert psql("vacuum").exit_code == 0
    failed = psql("vacuum", "--full", "nobody")
    assert failed.exit_code == 1
    assert failed.stderr == 'ERROR:  relation "nobody" does not exist\n'
    for no_name in ("", "t, u", "(full) t", "t -- u"):
        failed = psql("vacuum", "--verbose", no_name)
        assert (failed.exit_code, failed.stderr) == (1, "ERROR:  invalid name syntax\n")


def test_watch_runs_until_a_signal(
    psql: Psql, fake: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Watch:
        def __init__(
            self,
            session: Session,
            names: Sequence[str],
            interval: float,
            *,
            is_stopping: Callable[[], bool],
            on_applied: Callable[[Subscription, Applied], None],
        ):
            assert interval == 0.05
            fake.sync(session, names)
            self._on_applied = on_applied
            with session.read() as catalog:
                self._subscriptions = list_subscriptions(catalog)

        def round(self) -> list[SyncFailure]:
            fake.calls.append(("round",))
            for subscription in self._subscriptions:
                applied = Applied(lsn=0xA8)
                if (len(fake.calls), subscription.name) == (3, "S"):
                    applied.add((), RowCounts(1, 2, 3))
                self._on_applied(subscription, applied)
            if len(fake.calls) == 4:
                os.kill(os.getpid(), signal.SIGTERM)
            return fake.failures

        def close(self) -> None:
            fake.calls.append(("close",))

    monkeypatch.setattr(watch, "Watch", Watch)
    assert "ERROR" not in psql("-X", "-q", script=_SUBSCRIPTIONS).stderr
    command = ("sync", "--watch", "--interval", "0.05")
    outcome = psql(*command, "s1")
    line = '"S": 0 transactions, 1 row inserted, 2 updated, 3 deleted, reached 0/A8\n'
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, line, "")
    assert fake.calls == [("s1",), *[("round",)] * 3, ("close",)]
    fake.calls = []
    ((found,),) = map(json.loads, psql(*command, "--json", "s1").stdout.splitlines())
    assert (found["subscription"], found["deleted"], found["lsn"]) == ("S", 3, "0/A8")
    fake.calls = []
    fake.failures = [FAILURE]
    outcome = psql(*command, "-q", "s1")
    assert (outcome.stdout, outcome.stderr) == ("", 3 * REPORT)
    assert psql(*command, "nobody").exit_code == 1


def test_autosync(psql: Psql, fake: Launcher) -> None:
    psql("-X", script="CREATE TABLE a (b int);\n")
    assert fake.calls == []
    script = "\\set AUTOSYNC on\nSELECT 1;\nSHOW timezone;\nSELECT foo;\nCREATE TABLE t (a int);\n"
    psql("-X", script=script)
    assert fake.calls == [()]
