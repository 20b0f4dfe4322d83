"""The output and the exit code of `replctl status`.

If changes are pending, the tests write Delta's log by hand, so that they need no Spark.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fix_psql import Psql
from prometheus_client import generate_latest

from replctl.apply_worker import Applied
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.table_home import relative_location
from replctl.errors import CannotConnectNow, ConnectionFailure
from replctl.execute import execute
from replctl.launcher import SyncFailure, enabled_subscriptions
from replctl.psql.metrics import Metrics, serving
from replctl.psql.status_output import Limit
from replctl.psql.variables import PsqlError
from replctl.session import Session

_SETUP = r"""
CREATE DATABASE test_pub;
CREATE DATABASE test_sub;
\c test_pub
CREATE TABLE t (a int PRIMARY KEY);
CREATE TABLE unchanged (a int PRIMARY KEY);
CREATE TABLE other (a int PRIMARY KEY);
CREATE PUBLICATION p FOR TABLE t, unchanged;
\c test_sub
CREATE TABLE t (a int PRIMARY KEY);
CREATE TABLE unchanged (a int PRIMARY KEY);
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p WITH (copy_data = false);
CREATE SUBSCRIPTION off CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false);
"""


@pytest.fixture
def status(psql: Psql, tmp_path: Path) -> Psql:
    """Return a function that runs `replctl status` in a cluster with the enabled subscription s and
    the disabled subscription off."""
    assert "ERROR" not in psql("-X", "-q", script=_SETUP).stderr
    assert psql("sync").exit_code == 0
    return lambda *arguments: psql("status", *arguments)


def commit(home: Path, table: str, version: int, operation: str, metrics: dict[str, str]) -> None:
    """Write a commit of another writer, a minute old, to a table of test_pub."""
    cluster = open_cluster(home)
    session = Session.connect(cluster, "test_pub", "postgres")
    with session.read() as catalog:
        oid = next(
            int(oid)
            for oid, name in catalog.driver_rows("SELECT oid, relname FROM pg_class WHERE xmax = 0")
            if name == table
        )
    location = cluster.path / relative_location(session.database_oid, oid)
    with cluster.begin(write=True) as connection:
        connection.exec_driver_sql(
            "INSERT INTO storage_table (relid, dbid, location, is_adopted, is_made)"
            f" VALUES ({oid}, {session.database_oid}, '{location}', 0, 1)"
            " ON CONFLICT (relid) DO UPDATE SET is_made = 1"
        )
    cluster.close()
    info = {
        "timestamp": int((time.time() - 60) * 1000),
        "operation": operation,
        "operationMetrics": metrics,
    }
    log = location / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    add = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    actions: Sequence[dict[str, Any]] = [{"commitInfo": info}, {"add": add}]
    text = "\n".join(json.dumps(action) for action in actions)
    (log / f"{version:020d}.json").write_text(text)


def test_all_is_well(status: Psql) -> None:
    outcome = status("s", "--max-lag", "1s", "--max-lag", "0rows", "--max-lag", "0B")
    assert outcome.exit_code == 0
    assert outcome.stdout.splitlines()[2:] == [
        " s            | test_sub |                  | t       | inactive |     |           0 |"
        "            0 |    0 |     0.0 |             |              | ",
        " s            | test_sub | public.t         |         | r        |     |           0 |"
        "            0 |    0 |     0.0 |             |              | ",
        " s            | test_sub | public.unchanged |         | r        |     |           0 |"
        "            0 |    0 |     0.0 |             |              | ",
        "(3 rows)",
        "",
    ]
    assert status("nobody").stderr == 'ERROR:  subscription "nobody" does not exist\n'
    assert status("nobody").exit_code == 1


def test_lag_is_told_from_the_log(status: Psql, tmp_path: Path) -> None:
    home = tmp_path / "home"
    commit(home, "t", 0, "WRITE", {"numOutputRows": "5"})
    commit(home, "t", 1, "MERGE", {"numTargetRowsInserted": "1", "numTargetRowsDeleted": "2"})
    commit(home, "other", 0, "WRITE", {"numOutputRows": "100"})
    outcome = status("--json", "s")
    (found,) = json.loads(outcome.stdout)
    lags = {table["name"]: table["lag"] for table in found["tables"]}
    assert lags["unchanged"] == {"size": 0, "transactions": 0, "rows": 0, "seconds": 0}
    for lag in (found["lag"], lags["t"]):
        assert (lag["transactions"], lag["rows"]) == (2, 8)
        assert 59 < lag["seconds"] < 120
        assert lag["size"] > 0
    assert outcome.exit_code == 0
    assert status("--max-lag", "30s").exit_code == 1
    assert status("--max-lag", "5min", "--max-lag", "8rows").exit_code == 0
    assert status("--max-lag", "5min", "--max-lag", "7rows").exit_code == 1
    commit(home, "t", 2, "WRITE", {})
    (found,) = json.loads(status("--json", "s").stdout)
    assert (found["lag"]["transactions"], found["lag"]["rows"]) == (3, None)


def test_what_has_stopped_a_subscription_is_kept(status: Psql, psql: Psql) -> None:
    broken = "ALTER SUBSCRIPTION s CONNECTION 'dbname=nowhere'"
    assert psql("-X", "-d", "test_sub", "-c", broken, "-c", r"\sync").exit_code == 1
    outcome = status("--json", "s")
    (found,) = json.loads(outcome.stdout)
    assert (found["state"], found["last_error"]["sqlstate"]) == ("broken", "08006")
    assert 'FATAL:  database "nowhere" does not exist' in found["last_error"]["message"]
    assert outcome.exit_code == 1
    mended = "ALTER SUBSCRIPTION s CONNECTION 'dbname=test_pub'"
    assert psql("-X", "-d", "test_sub", "-c", mended).exit_code == 0
    assert status("s").exit_code == 1  # no process has retried
    psql("-X", "-c", r"\sync")
    assert status("s").exit_code == 0
    assert [item["state"] for item in json.loads(status("--json").stdout)] == [
        "inactive",
        "disabled",
    ]


def test_a_publisher_s_table_that_is_not_there(status: Psql, psql: Psql, tmp_path: Path) -> None:
    """A missing table stops its subscription.  A missing table without a subscription stops
    none."""
    commit(tmp_path / "home", "other", 0, "CREATE TABLE", {})
    assert status("s").exit_code == 0
    (location,) = (tmp_path / "home" / "base").glob("*/*")
    location.rename(tmp_path / "elsewhere")
    assert psql("sync", "s").exit_code == 0
    assert psql("-X", "-d", "test_pub", "-c", "DROP TABLE other").exit_code == 0
    commit(tmp_path / "home", "t", 0, "CREATE TABLE", {})
    assert status("s").exit_code == 0
    (location,) = (tmp_path / "home" / "base").glob("*/*")
    location.rename(tmp_path / "elsewhere too")
    synced = psql("sync", "s")
    missed = f'could not find the Delta table "{location}"'
    assert synced.exit_code == 1
    detail = f'Table "public.t" of database "test_pub" is stored at "{location}".'
    assert f"ERROR:  {missed}\nDETAIL:  {detail}\nHINT:  Restore the directory" in synced.stderr
    outcome = status("--json", "s")
    (found,) = json.loads(outcome.stdout)
    assert (outcome.exit_code, found["last_error"]["sqlstate"]) == (1, "58P01")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("30s", Limit("seconds", 30)),
        ("5 min", Limit("seconds", 300)),
        ("1.5h", Limit("seconds", 5400)),
        ("16MB", Limit("size", 16 * 1024 * 1024)),
        ("1000rows", Limit("rows", 1000)),
        ("10transactions", Limit("transactions", 10)),
    ],
)
def test_limits(text: str, limit: Limit) -> None:
    assert Limit.parse(text) == limit


def test_a_limit_needs_a_unit(status: Psql) -> None:
    outcome = status("--max-lag", "30")
    assert outcome.exit_code == 1
    assert "needs a number and one of" in outcome.stderr


def test_metrics(status: Psql, tmp_path: Path) -> None:
    commit(tmp_path / "home", "t", 0, "WRITE", {"numOutputRows": "5"})
    cluster = open_cluster(tmp_path / "home")
    session = Session.connect(cluster, "postgres", "postgres")
    metrics = Metrics(session, ["s"])
    (subscription,) = enabled_subscriptions(session, ["s"])
    metrics.applied(subscription, Applied(3, 4))
    metrics.failed([SyncFailure("s", ConnectionFailure("gone"), database="test_sub")])
    with metrics.rounds.time(), serving(metrics, "127.0.0.1", 0) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        with (
            pytest.raises(PsqlError, match="could not listen"),
            serving(metrics, "127.0.0.1", port),
        ):
            pass
    labels = '{database="test_sub",subscription="s"}'
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert values[f"replctl_applied_transactions_total{labels}"] == "3.0"
    assert values[f"replctl_applied_changes_total{labels}"] == "4.0"
    assert values[f"replctl_errors_total{labels}"] == "1.0"
    assert values[f"replctl_lag_rows{labels}"] == "5.0"
    assert float(values[f"replctl_lag_seconds{labels}"]) > 59
    assert values[f"replctl_subscription_broken{labels}"] == "0.0"
    assert values["replctl_up"] == "1.0"
    cluster.close()


def test_metrics_of_a_renamed_subscription_and_an_unreadable_catalog(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.connect(cluster, "postgres", "postgres")
    create = (
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false)"
    )
    list(execute(session, create))
    metrics = Metrics(session, ["s"])
    metrics.failed([SyncFailure("s", ConnectionFailure("gone"), database="postgres")])
    list(execute(session, "ALTER SUBSCRIPTION s RENAME TO other"))
    text = generate_latest(metrics.registry).decode()
    assert 'replctl_subscription_enabled{database="postgres",subscription="other"} 0.0' in text
    list(execute(session, "ALTER SUBSCRIPTION other SET (slot_name = NONE)"))
    list(execute(session, "DROP SUBSCRIPTION other"))
    assert "replctl_up 1.0" in generate_latest(metrics.registry).decode()

    def refuse(*arguments: object) -> object:
        raise CannotConnectNow("catalog.db was replaced")

    monkeypatch.setattr("replctl.psql.metrics.status_of", refuse)
    text = generate_latest(metrics.registry).decode()
    assert "replctl_up 0.0" in text
    assert 'replctl_errors_total{database="postgres",subscription="s"} 1.0' in text
    assert "replctl_subscription_enabled" not in text
