"""`\\sync`, AUTOSYNC and `replctl sync`, with a launcher that only notes what it is asked."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from fix_psql import Psql

from replctl import launcher, watch
from replctl.errors import UndefinedObject, UniqueViolation
from replctl.launcher import SyncFailure
from replctl.session import Session


class Launcher:
    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.failures: list[SyncFailure] = []

    def sync(self, session: Session, names: Sequence[str] = ()) -> list[SyncFailure]:
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


@pytest.mark.parametrize("subcommand", ["sync", "status", "vacuum"])
def test_no_cluster_is_made_by_looking_for_it(
    psql: Psql, subcommand: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistyped, empty = tmp_path / "mistyped", tmp_path / "empty"
    empty.mkdir()
    for directory in (mistyped, empty):
        outcome = psql(subcommand, "--home", str(directory))
        assert (outcome.exit_code, outcome.stdout) == (2, "")
        assert outcome.stderr.endswith(f'there is no cluster in "{directory}"\n')
    monkeypatch.setenv("REPLCTL_HOME", str(mistyped))
    assert psql(subcommand).exit_code == 2
    assert psql(subcommand, "-d", f"host={mistyped}").exit_code == 2
    assert not mistyped.exists()
    assert list(empty.iterdir()) == []
    assert psql("-X", "-c", "SELECT 1").exit_code == 0
    assert psql(subcommand).exit_code == 0


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


def test_watch_goes_on_until_a_signal(
    psql: Psql, fake: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Watch:
        def __init__(self, session: Session, names: Sequence[str], interval: float, **_: object):
            assert interval == 0.05
            fake.sync(session, names)

        def round(self) -> list[SyncFailure]:
            fake.calls.append(("round",))
            if len(fake.calls) == 4:
                os.kill(os.getpid(), signal.SIGTERM)
            return fake.failures

        def close(self) -> None:
            fake.calls.append(("close",))

    monkeypatch.setattr(watch, "Watch", Watch)
    fake.failures = [FAILURE]
    outcome = psql("sync", "--watch", "--interval", "0.05", "s1")
    assert (outcome.exit_code, outcome.stderr) == (0, 3 * REPORT)
    assert fake.calls == [("s1",), *[("round",)] * 3, ("close",)]
    assert psql("sync", "--watch", "--interval", "0.05", "nobody").exit_code == 1


def test_autosync(psql: Psql, fake: Launcher) -> None:
    psql("-X", script="CREATE TABLE a (b int);\n")
    assert fake.calls == []
    script = "\\set AUTOSYNC on\nSELECT 1;\nSHOW timezone;\nSELECT foo;\nCREATE TABLE t (a int);\n"
    psql("-X", script=script)
    assert fake.calls == [()]
