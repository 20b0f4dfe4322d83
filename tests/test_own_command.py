"""HINTs with a command of replctl: the tests run the command as a shell does.

The command acts on the cluster of the error, and ends the error.  The tests need no Spark.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from pathlib import Path

import pytest
from fix_psql import Psql
from fix_replication import Database
from golden_script import answer_of

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.standby import create_standby, receive
from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState, PostgresError
from replctl.lake.identify_copy import identify_copied
from replctl.own_command import own_command
from replctl.session import Session

_CODE = Path(__file__).parent.parent / "replctl"
#: `replctl spark prepare` needs no cluster.
_COMMAND = re.compile(
    r"\breplctl (cluster|spark (start|stop|status)|standby|status|sync|vacuum|verify)\b"
)


@pytest.mark.parametrize(
    ("words", "home", "names", "command"),
    [
        (["sync"], "/home/me/c", (), "replctl sync"),
        (["sync"], "/home/me/c/../c", ["s"], "replctl sync s"),
        (["sync"], "/d", ["My s"], "replctl sync --home /d 'My s'"),
        (["sync"], "/it's", ["-s"], "replctl sync --home '/it'\"'\"'s' -- -s"),
        (
            ["cluster", "identify", "--copied"],
            "/a $b",
            (),
            "replctl cluster identify --copied --home '/a $b'",
        ),
    ],
)
def test_a_command_for_a_shell(
    words: list[str],
    home: str,
    names: list[str],
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REPLCTL_HOME", "/home/me/c")
    assert own_command(*words, home=home, names=names) == command


def test_the_user_s_directory_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPLCTL_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert own_command("sync", home="/data/replctl") == "replctl sync"
    monkeypatch.setenv("REPLCTL_HOME", "/c")
    assert own_command("sync", home="/data/replctl") == "replctl sync --home /data/replctl"


def _texts(path: Path) -> list[str]:
    """Return the texts of a module except docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    return [
        str(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in docstrings
    ]


def test_no_text_names_a_command_in_another_way() -> None:
    """Such a command would act on the default cluster."""
    found = {
        f"{path.relative_to(_CODE)}: {text}"
        for path in _CODE.rglob("*.py")
        for text in _texts(path)
        if path.name != "help.py" and _COMMAND.search(text)
    }
    assert found == set()


# -- commands that run; the default cluster is that of fixture psql, not that of the error


@pytest.fixture
def elsewhere(psql: Psql, tmp_path: Path) -> Path:
    """Return the directory of a cluster that commands must name."""
    assert psql("-X", "-c", "SELECT 1").exit_code == 0
    directory = tmp_path / "it's $HOME"
    open_cluster(directory).close()
    return directory


def _follow(psql: Psql, hint: str | None) -> None:
    """Run the first command of a hint, as a shell splits it into words."""
    assert hint is not None
    found = re.search(r'"(replctl .*?)"[;:., ]', f"{hint} ".replace("'\"'\"'", "\0"))
    assert found is not None, hint
    program, *arguments = shlex.split(found[1].replace("\0", "'\"'\"'"))
    assert program == "replctl"
    outcome = psql(*arguments)
    assert (outcome.exit_code, outcome.stderr) == (0, ""), arguments


def _refusal(directory: Path) -> str | None:
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        open_cluster(directory)
    return caught.value.hint


def test_a_copy_becomes_a_cluster_of_its_own_by_its_hint(psql: Psql, elsewhere: Path) -> None:
    copies = [elsewhere.with_name(f"{elsewhere.name} {number}") for number in range(2)]
    for copy in copies:
        shutil.copytree(elsewhere, copy)
    _follow(psql, _refusal(copies[0]))
    _follow(psql, (_refusal(copies[1]) or "").partition("If the original is given up, ")[2])
    made, moved = (open_cluster(copy) for copy in copies)
    assert made.system_identifier != moved.system_identifier
    assert "is a copy" not in psql("-X", "-c", "SELECT 1").stderr


def test_a_copied_standby_is_no_cluster(psql: Psql, elsewhere: Path) -> None:
    standby = elsewhere.with_name("standby")
    create_standby(elsewhere, standby, "one")
    shutil.copytree(standby, standby.with_name("copy"))
    copy = open_cluster(standby.with_name("copy"), is_checked=False)
    with pytest.raises(FeatureNotSupported) as caught:
        identify_copied(copy)
    assert caught.value.hint == f'Copy its primary "{elsewhere}" instead.'
    shutil.copytree(elsewhere, standby.with_name("again"))
    _follow(psql, _refusal(standby.with_name("again")))


def _lose_slots(cluster: Cluster, table: str) -> None:
    """Invalidate all slots of a cluster.

    Args:
        table: the name of a table to create.
    """
    for statement in (
        "ALTER SYSTEM SET max_slot_wal_keep_size = 0",
        "SELECT pg_switch_wal()",
        f"CREATE TABLE {table} (a int)",
        "CHECKPOINT",
        "ALTER SYSTEM RESET max_slot_wal_keep_size",
    ):
        Database(Session.connect(cluster, "postgres", "postgres")).run(statement)


def test_a_subscription_whose_slot_is_lost(psql: Psql, elsewhere: Path) -> None:
    """The plan names the command whose error has the statement."""
    cluster = open_cluster(elsewhere)
    publisher = Database(Session.connect(cluster, "postgres", "postgres"))
    publisher.run("CREATE DATABASE sub")
    publisher.run("CREATE TABLE t (a int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t")
    subscriber = Session.connect(cluster, "sub", "postgres")
    answer_of(subscriber, "CREATE TABLE t (a int PRIMARY KEY)")
    made = "CREATE SUBSCRIPTION \"My s\" CONNECTION 'dbname=postgres' PUBLICATION p"
    assert (
        answer_of(subscriber, f"{made} WITH (slot_name = s, copy_data = false)")[-1]
        == "CREATE SUBSCRIPTION"
    )
    _lose_slots(cluster, "grown")
    command = own_command("sync", home=elsewhere, names=["My s"])
    said = psql("sync", "--explain", "--home", str(elsewhere)).stderr
    hint = f'HINT:  Run "{command}": its error has the statement that reconciles the tables.'
    assert hint in said.splitlines()
    said = psql(*shlex.split(command)[1:]).stderr
    assert 'can no longer get changes from replication slot "s"' in said
    assert "HINT:  ALTER SUBSCRIPTION" in said


def test_a_standby_whose_slot_is_lost(psql: Psql, elsewhere: Path) -> None:
    standby_home = elsewhere.with_name("standby")
    create_standby(elsewhere, standby_home, "one")
    cluster, standby = open_cluster(elsewhere), open_cluster(standby_home)
    primary = Database(Session.connect(cluster, "postgres", "postgres"))
    _lose_slots(cluster, "grown")
    with pytest.raises(PostgresError) as caught:
        receive(standby)
    assert caught.value.message == 'can no longer get changes from replication slot "one"'
    _use_at(primary, caught.value.hint)
    assert receive(standby) == []
    lost = "SELECT wal_status, active FROM pg_replication_slots WHERE slot_name = 'one'"
    assert primary.rows(lost) == [("reserved", "f")]

    # replctl does not create a standby with a lost slot
    _lose_slots(cluster, "more")
    other = elsewhere.with_name("other")
    shutil.rmtree(standby_home)
    with pytest.raises(PostgresError, match="is used by standby"):
        create_standby(elsewhere, other, "one")
    with pytest.raises(PostgresError, match="can no longer get changes") as caught:
        create_standby(elsewhere, standby_home, "one")
    _use_at(primary, caught.value.hint)
    create_standby(elsewhere, standby_home, "one")


def test_a_standby_whose_slot_is_dropped(psql: Psql, elsewhere: Path) -> None:
    standby_home = elsewhere.with_name("standby")
    create_standby(elsewhere, standby_home, "one")
    cluster, standby = open_cluster(elsewhere), open_cluster(standby_home)
    primary = Database(Session.connect(cluster, "postgres", "postgres"))
    primary.rows("SELECT pg_drop_replication_slot('one')")
    with pytest.raises(PostgresError, match='"one" specified by "primary_slot_name"') as caught:
        receive(standby)
    primary.rows((caught.value.hint or "").removeprefix("At the primary, use ").removesuffix("."))
    assert receive(standby) == []


def _use_at(primary: Database, hint: str | None) -> None:
    assert hint is not None
    first, second = hint.removeprefix("At the primary, use ").removesuffix(".").split(", then ")
    primary.run(first)
    primary.run(second)


def test_a_standby_whose_primary_was_moved(psql: Psql, elsewhere: Path) -> None:
    standby_home, moved = elsewhere.with_name("standby"), elsewhere.with_name("moved")
    options = ("-X", "-q", "-A", "-t", "--home")
    make = "CREATE TABLE kept (a int PRIMARY KEY); INSERT INTO kept VALUES (7)"
    assert psql(*options, str(elsewhere), "-c", make).exit_code == 0
    create_standby(elsewhere, standby_home, "one")
    elsewhere.rename(moved)
    query = (*options, str(standby_home), "-c", "TABLE kept")
    refused = psql(*query)
    assert "could not find the Delta table" in refused.stderr
    found = re.search(r'use (ALTER .*), and run "replctl (.*)"', refused.stderr)
    assert found is not None, refused.stderr
    statement, command = found.groups()
    statement = statement.replace("DIRECTORY", str(moved))
    assert psql(*options, str(standby_home), "-c", statement).exit_code == 0
    assert psql(*options, str(moved), "-c", "SELECT 1").exit_code == 0  # records its new home
    assert psql(*shlex.split(command)).exit_code == 0
    assert psql(*query).stdout == "7\n"
