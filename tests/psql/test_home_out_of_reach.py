"""The home of a running program does not respond for a while, as on a network file system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fix_psql import Psql

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.errors import IoError
from replctl.psql.stop_signals import StopSignals
from replctl.session import Session


def _as_loop(home: Path) -> None:
    """Let each access to files of the home fail with ELOOP."""
    home.rename(home.with_name("elsewhere"))
    home.symlink_to(home.name)


def _as_file(home: Path) -> None:
    """Let each access to files of the home fail with ENOTDIR."""
    home.rename(home.with_name("elsewhere"))
    home.touch()


def _bring_back(home: Path) -> None:
    home.unlink()
    home.with_name("elsewhere").rename(home)


def _in_rounds(
    monkeypatch: pytest.MonkeyPatch, steps: Iterator[Callable[[Path], None] | None], home: Path
) -> None:
    """After each round of a watch, run the next step; after the last one, end the watch."""

    def sleep(signals: StopSignals, _seconds: float) -> None:
        step = next(steps, None)
        if step is None:
            signals.has_come = True
        else:
            step(home)

    monkeypatch.setattr(StopSignals, "sleep", sleep)


def _wait(_home: Path) -> None:
    pass


def test_a_watch_waits_for_its_home(
    psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = iter([_as_loop, _wait, _bring_back, _wait])
    _in_rounds(monkeypatch, steps, tmp_path / "home")
    outcome = psql("sync", "--watch")
    assert outcome.exit_code == 0
    reason = f'could not stat file "{tmp_path}/home/catalog.db": Too many levels of symbolic links'
    assert outcome.stderr == f"ERROR:  {reason}\n" * 2
    assert next(steps, None) is None


def test_a_watch_whose_home_became_a_file_ends(
    psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _in_rounds(monkeypatch, iter([_as_file]), tmp_path / "home")
    outcome = psql("sync", "--watch")
    assert outcome.exit_code == 1
    assert outcome.stderr.count("was replaced while this program had it open") == 1
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("away", [_as_loop, _as_file])
def test_programs_end_although_their_home_is_out_of_reach(
    tmp_path: Path, away: Callable[[Path], None]
) -> None:
    cluster = open_cluster(tmp_path / "home")
    session = Session.connect(cluster, "postgres", "postgres")
    away(cluster.path)
    session.close()
    cluster.close()
    _bring_back(cluster.path)
    open_cluster(cluster.path).close()


def test_a_home_out_of_reach_is_no_replaced_one(cluster: Cluster) -> None:
    _as_loop(cluster.path)
    for check in (cluster.check_file, cluster.control):
        with pytest.raises(IoError, match="could not stat file"):
            check()
    _bring_back(cluster.path)
    cluster.check_file()
    assert cluster.is_in_place
