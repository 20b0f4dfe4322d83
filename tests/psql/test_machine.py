"""Users and machines that lack something: a home directory, a passwd entry, rights."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_java import make_java
from fix_psql import Psql

from replctl.catalog.cluster import Cluster
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.psql.command_group import _command_first
from replctl.psql.messages import Messages
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.typed_history import History, history_text
from replctl.psql.variables import Variables
from replctl.session import Session

#: A directory in which no user, not even root, can create a file.
_NOWHERE = Path("/proc/nowhere")
_ROOT = Path(__file__).parents[2]


def test_a_user_without_home_names_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REPLCTL_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        Cluster.home()
    assert caught.value.message == f"user ID {os.geteuid()} has no home directory"
    assert Cluster.home("/named") == Path("/named")


def test_a_home_that_cannot_be_read_has_no_start_up_file(
    psql: Psql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(_NOWHERE))
    outcome = psql("-A", "-t", "-c", "select 1")
    assert (outcome.stdout, outcome.stderr, outcome.exit_code) == ("1\n", "", 0)


def _no_session(
    _database: str, _role: str, _directory: str | None, _parameters: Mapping[str, str]
) -> Session:
    raise AssertionError


def test_a_home_that_cannot_be_written_has_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLCTL_HISTORY", str(_NOWHERE / "history"))
    variables = Variables()
    settings = PsqlSettings(variables, Messages(variables), connect=_no_session)
    history = History(settings, lambda: False)
    assert list(history.load_history_strings()) == []
    history.append_string("SELECT 1;")
    assert history.get_strings() == ["SELECT 1;"]
    history.close()
    assert history_text(settings) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_user_without_a_passwd_entry(tmp_path: Path) -> None:
    """Commands without Spark work.  Commands with Spark name the missing entry."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not here")
    tmp_path.chmod(0o777)
    for folder in list(tmp_path.parents)[:2]:
        folder.chmod(0o755)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "XDG_CACHE_HOME", "SPARK_REMOTE")
    }
    answer = subprocess.run(
        [setpriv, "--reuid=54321", "--regid=54321", "--clear-groups",
         "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
         sys.executable, "-m", "replctl", "--home", str(tmp_path / "cluster"), "-A", "-t",
         "-c", "create table t (a int)", "-c", "select 1", "-c", "insert into t select 1"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert answer.stdout == "CREATE TABLE\n1\n"
    _notice, error, hint = answer.stderr.splitlines()
    assert error == "ERROR:  Spark cannot run for user ID 54321: it has no passwd entry"
    assert hint.startswith("HINT:  Add a line for 54321 to /etc/passwd")
    assert [entry.name for entry in tmp_path.iterdir()] == ["cluster"]


def test_a_working_directory_that_was_removed(
    psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        assert psql("-A", "-t", "-c", "select 1").stdout == "1\n"
        backup = psql("cluster", "backup", "b")
        adoption = psql("-c", "CREATE TABLE t USING delta LOCATION 't'")
        relative = [
            psql("--home", "h", "-c", "select 1"),
            psql("status", "--home", "h"),
            psql("spark", "start", "--home", "h"),
            psql("standby", "create", "--home", "h", "--primary", os.environ["REPLCTL_HOME"]),
        ]
        patch.setenv("REPLCTL_HOME", "h")
        relative += [
            psql("-c", "select 1"),
            psql("sync"),
            psql("cluster", "identify"),
            psql("standby", "sync"),
            psql("spark", "status"),
        ]
    assert [answer.exit_code for answer in relative] == [2] * len(relative)
    for answer in (backup, adoption, *relative):
        message, hint = answer.stderr.splitlines()
        assert message.endswith(":  the working directory has been removed")
        assert hint.startswith("HINT:  Change to another directory, or use the absolute path of ")


@pytest.mark.parametrize(
    "command",
    ["-c 'select 1'", "status", "cluster identify", "spark start", "standby create --primary h"],
)
def test_a_home_whose_name_is_not_utf_8(
    command: str, psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog stores the path as text."""
    home = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    monkeypatch.setenv("REPLCTL_HOME", home)
    answer = psql(*shlex.split(command.replace("primary h", f"primary {tmp_path / 'home'}")))
    assert answer.exit_code == 2
    message, hint = answer.stderr.splitlines()
    assert message.endswith(
        f'the name of directory "{tmp_path}/\ufffd" is not valid in encoding "UTF8"'
    )
    assert hint == "HINT:  Name another directory, or rename it."
    assert not os.path.exists(home)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("status", "status"),
        ("--home h status --json", "status --home h --json"),
        ("--home=h --conf a=b start", "start --home=h --conf a=b"),
        ("status --home h", "status --home h"),
        ("--help", "--help"),
        ("--home h --help", "--help"),
        ("--home", "--home"),
    ],
)
def test_options_before_a_command(given: str, expected: str) -> None:
    assert _command_first(given.split()) == expected.split()


def test_home_stands_where_it_likes(psql: Psql, tmp_path: Path) -> None:
    for arguments in (
        ("--home", str(tmp_path / "home"), "spark", "status", "--json"),
        ("spark", "--home", str(tmp_path / "home"), "status", "--json"),
        ("spark", "status", "--json", "--home", str(tmp_path / "home")),
    ):
        assert psql(*arguments).stdout == '{"running": false}\n'


def test_jars_for_an_image(psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command reports the download before it waits.  The test leaves out the archive of
    classes, which needs Spark."""
    brings = """for last; do :; done
    mkdir -p "$(dirname "$last")" && echo jar >"$(dirname "$last")/a-1.jar" """
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", brings)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = psql("spark", "prepare", "--no-archive")
    (folder,) = (tmp_path / "cache" / "replctl").glob("delta-*[0-9]")
    assert (first.stdout, first.exit_code) == (f"jars: {folder}\n", 0)
    assert first.stderr == f"replctl: downloading {folder.name} from Maven Central\n"
    assert psql("spark", "prepare", "--no-archive").stderr == ""
    monkeypatch.setattr(os, "access", lambda path, _mode: path != folder.parent)
    refused = psql("spark", "prepare")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f'"{folder.parent}" cannot be written' in refused.stderr
    assert "--no-archive" in refused.stderr


def test_versions_that_do_not_work_are_not_asked_for() -> None:
    """lark 1.2 lacks a feature that the parser uses.  With typer before 0.18, --help fails.
    pyarrow does not load with the numpy of pandas before 2.2.2."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = dict(re.findall(r"^([\w-]+)(.*)", text)[0] for text in project["dependencies"])
    assert (asked["lark"], asked["typer"]) == (">=1.3,<1.4", ">=0.18,<0.29")
    assert (asked["pandas"], asked["numpy"]) == (">=2.2.2,<3", ">=2.0")
