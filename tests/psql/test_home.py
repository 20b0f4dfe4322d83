"""Some commands create the cluster that they name, and others do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_psql import Psql

import replctl.spark
from replctl.spark import Server, ServerConf


@pytest.mark.parametrize(
    "command",
    [
        "sync",
        "sync --watch",
        "sync --explain",
        "status",
        "verify",
        "vacuum",
        "dump --schema-only",
        "schema dbname=postgres --publication p",
        "spark status",
        "spark stop",
        "standby sync",
        "standby promote",
        "standby promote --without-primary",
        "cluster backup {backup}",
        "cluster identify",
        "cluster identify --copied",
        "cluster identify --moved",
        "cluster identify --restored",
    ],
)
def test_no_cluster_is_made_by_looking_for_it(
    psql: Psql, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistyped, empty = tmp_path / "mistyped", tmp_path / "empty"
    arguments = command.format(backup=tmp_path / "backup").split()
    empty.mkdir()
    for directory in (mistyped, empty):
        outcome = psql(*arguments, "--home", str(directory))
        assert (outcome.exit_code, outcome.stdout) == (2, "")
        assert outcome.stderr.endswith(f'there is no cluster in "{directory}"\n')
    monkeypatch.setenv("REPLCTL_HOME", str(mistyped))
    assert psql(*arguments).exit_code == 2
    if arguments[0] in ("sync", "status", "vacuum", "dump", "schema"):
        assert psql(*arguments, "-d", f"host={mistyped}").exit_code == 2
    assert not mistyped.exists()
    assert list(empty.iterdir()) == []
    assert not (tmp_path / "backup").exists()


def test_a_standby_of_no_cluster(psql: Psql, tmp_path: Path) -> None:
    primary, standby = tmp_path / "mistyped", tmp_path / "standby"
    outcome = psql("standby", "create", "--primary", str(primary), "--home", str(standby))
    assert outcome.exit_code == 2
    assert outcome.stderr == f'ERROR:  there is no cluster in "{primary}"\n'
    assert not primary.exists()
    assert not standby.exists()


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (["cluster", "backup", ""], "Invalid value for directory: a directory is wanted"),
        (["standby", "create", "--primary", ""], "Invalid value for --primary: a directory is"),
        (["standby", "create", "--primary", "{home}", "--home", ""], "Invalid value for --home"),
        (["cluster", "identify", "--home", ""], ""),
    ],
)
def test_an_empty_name_is_not_the_working_directory(
    psql: Psql, command: list[str], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, empty = tmp_path / "home", tmp_path / "empty"
    assert psql("-X", "-q", "-c", "SELECT 1", "--home", str(home)).exit_code == 0
    empty.mkdir()
    monkeypatch.chdir(empty)
    monkeypatch.delenv("REPLCTL_HOME", raising=False)
    if "--home" not in command:
        command = [*command, "--home", str(home)]
    elif not fault:
        monkeypatch.setenv("REPLCTL_HOME", str(home))
    outcome = psql(*(word.format(home=home) for word in command))
    assert fault in outcome.stderr
    assert outcome.exit_code == bool(fault)
    assert list(empty.iterdir()) == []


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the clusters whose Spark server a command tried to start.  No server starts."""
    homes: list[Path] = []

    def start_server(cluster: Path, conf: ServerConf) -> tuple[Server, bool]:
        homes.append(cluster)
        return Server(1, 2, 3, "token", "now", "log", conf), True

    monkeypatch.setattr(replctl.spark, "start_server", start_server)
    return homes


@pytest.mark.parametrize(
    "arguments", [("spark", "start", "--no-warm-up"), ("-X", "-q", "-c", "SET TimeZone = 'UTC'")]
)
def test_a_named_home_is_made_with_a_notice(
    psql: Psql,
    arguments: tuple[str, ...],
    started: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named, by_environment, empty = (tmp_path / name for name in ("named", "environment", "empty"))
    outcome = psql(*arguments, "--home", str(named))
    notice = 'NOTICE:  created cluster "{}"\n'
    assert (outcome.exit_code, outcome.stderr) == (0, notice.format(named))
    assert psql(*arguments, "--home", str(named)).stderr == ""
    monkeypatch.setenv("REPLCTL_HOME", str(by_environment))
    assert psql(*arguments).stderr == notice.format(by_environment)
    empty.mkdir()
    assert psql(*arguments, "--home", str(empty)).stderr == ""
    monkeypatch.delenv("REPLCTL_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert psql(*arguments).stderr == ""
    users = tmp_path / "data" / "replctl"
    homes = [named, named, by_environment, empty, users]
    assert started == (homes if arguments[0] == "spark" else [])
    assert all((home / "catalog.db").exists() for home in homes)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    refused = psql(*arguments, "--home", str(tmp_path / "full"))
    assert refused.exit_code != 0
    assert f'directory "{tmp_path / "full"}" exists but is not empty' in refused.stderr
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]
