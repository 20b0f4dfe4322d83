"""`\\sync`, AUTOSYNC and `replctl sync`, with a launcher that only notes what it is asked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fix_psql import Psql

from replctl import launcher
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


def test_watch_goes_on_until_it_is_interrupted(
    psql: Psql, fake: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        assert seconds == 0.5
        if len(fake.calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    assert psql("sync", "--watch", "--interval", "0.5").exit_code == 0
    assert len(fake.calls) == 3


def test_autosync(psql: Psql, fake: Launcher) -> None:
    psql("-X", script="CREATE TABLE a (b int);\n")
    assert fake.calls == []
    script = "\\set AUTOSYNC on\nSELECT 1;\nSHOW timezone;\nSELECT foo;\nCREATE TABLE t (a int);\n"
    psql("-X", script=script)
    assert fake.calls == [()]
