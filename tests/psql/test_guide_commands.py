"""The commands of the guides run, and print what the guides show.  Those that start Spark or wait
for changes run in tests of their own (`_IN_OTHER_TESTS`)."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fix_psql import Psql

_GUIDES = Path(__file__).parents[2] / "docs" / "guides"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TESTS = Path(__file__).parents[1]
#: For the start of each other command, the test that runs it, including its options.
_IN_OTHER_TESTS = {
    "replctl --conf spark.sql.catalogImplementation=hive": "spark/test_hive_catalog.py::"
    "test_tables_of_a_hive_metastore",
    "replctl cluster identify --copied": "catalog/test_identify.py::"
    "test_the_command_says_what_a_copy_leaves_alone",
    "replctl cluster identify --moved": "catalog/test_identify.py::"
    "test_the_command_says_what_a_copy_leaves_alone",
    "replctl standby sync --home /clusters/b --watch": "psql/test_guide_commands.py::"
    "test_a_standby_follows_until_a_signal",
    "replctl standby promote --home /clusters/b --without-primary": "catalog/test_promotion.py::"
    "test_promotion_without_the_primary_s_tables",
    "replctl sync --watch": "subscription/test_appliers.py::test_a_second_applier_and_a_signal",
    "replctl verify": "subscription/test_verify.py::test_planted_faults_are_found",
    "replctl sync --conf spark.hadoop.fs.s3a.bucket": "object_storage/test_s3_accounts.py::"
    "test_publisher_and_subscriber_have_two_accounts",
    "replctl spark start": "psql/test_spark_server.py::test_a_server_is_started_once_and_found",
    "replctl spark status": "psql/test_spark_server.py::test_a_server_is_started_once_and_found",
    "replctl spark stop": "psql/test_spark_server.py::test_a_server_ends",
    "replctl spark prepare": "psql/test_machine.py::test_jars_for_an_image",
}
_SETUP = r"""
CREATE DATABASE branch;
CREATE DATABASE shop;
\c shop
CREATE TABLE orders (id int, region text, PRIMARY KEY (id, region));
CREATE PUBLICATION north FOR TABLE orders WHERE (region = 'north');
\c branch
CREATE TABLE orders (id int, region text, PRIMARY KEY (id, region));
CREATE SUBSCRIPTION s CONNECTION 'dbname=shop' PUBLICATION north WITH (copy_data = false);
"""
#: Words of the guides that stand for a value of the reader, and values for them.
_VALUES = {
    "DATABASE": "shop",
    "DIRECTORY": "backup",
    "FILE": "dump.sql",
    "LIMIT": "1GB",
    "SUBSCRIPTION": "s",
}


def _commands() -> list[object]:
    """Return the commands of all guides, without their comments."""
    return [
        pytest.param(command.strip(), id=f"{page.stem}: {command.strip()}")
        for page in sorted(_GUIDES.glob("*.md"))
        for block in _BLOCK.findall(page.read_text("utf-8"))
        for line in block.replace("\\\n", " ").splitlines()
        for command in [line.partition(" #")[0]]
        if command.startswith("replctl ") and not _is_elsewhere(command)
    ]


def _is_elsewhere(command: str) -> bool:
    # A later line of the page uses the result of a $(...)
    return "$(" in command or any(command.startswith(start) for start in _IN_OTHER_TESTS)


def _arguments(command: str) -> list[str]:
    """Return the arguments of a command with all its optional parts, and values for its words."""
    words = re.sub(r"\.\.\.|(?<![\w'])\[|\](?![\w'])", "", command)
    return [_VALUES.get(word, word) for word in shlex.split(words)][1:]


@pytest.mark.parametrize("command", _commands())
def test_a_command_of_a_guide_runs(
    psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    primary, standby = tmp_path / "home", tmp_path / "b"
    made = psql("-X", "-q", "-v", "ON_ERROR_STOP=1", script=_SETUP)
    assert made.exit_code == 0, made.stderr
    (tmp_path / "publications.sql").write_text("CREATE PUBLICATION south FOR TABLE orders;")
    words = [
        word.replace("/clusters/a", str(primary)).replace("/clusters/b", str(standby))
        for word in _arguments(command)
    ]
    if words[:2] == ["standby", "promote"]:
        made = psql("standby", "create", "--primary", str(primary), "--home", str(standby),
                    "--slot", "standby1")  # fmt: skip
        assert made.exit_code == 0, made.stderr
    done = psql(*words)
    is_refused = "random()" in command  # the guide shows a filter that is refused
    assert done.exit_code == int(is_refused), done.stderr
    assert ("ERROR:  invalid publication WHERE expression" in done.stderr) == is_refused


@pytest.mark.parametrize("start", _IN_OTHER_TESTS)
def test_other_commands_have_tests_of_their_own(start: str) -> None:
    texts = [page.read_text("utf-8").replace("\\\n", " ") for page in _GUIDES.glob("*.md")]
    lines = [" ".join(line.split()) for text in texts for line in text.splitlines()]
    assert any(line.startswith(start) for line in lines), "no guide has it now"
    path, name = _IN_OTHER_TESTS[start].split("::")
    assert f"def {name}(" in (_TESTS / path).read_text("utf-8")


def test_a_standby_follows_until_a_signal(psql: Psql, tmp_path: Path) -> None:
    primary, standby = tmp_path / "home", tmp_path / "b"
    made = psql("standby", "create", "--primary", str(primary), "--home", str(standby),
                "--slot", "standby1")  # fmt: skip
    assert made.exit_code == 0, made.stderr
    page = (_GUIDES / "failover.md").read_text("utf-8")
    (command,) = re.findall(r"^replctl (standby sync .*?--watch)", page, re.MULTILINE)
    words = command.replace("/clusters/b", str(standby)).split()
    with subprocess.Popen(
        [sys.executable, "-m", "replctl", *words], stdout=subprocess.PIPE, text=True
    ) as watch:
        try:
            psql("-X", "-q", "-c", "CREATE TABLE followed (a int)")
            query = ("-X", "-A", "-t", "-c", "SELECT to_regclass('followed')")
            until = time.monotonic() + 120
            while psql("--home", str(standby), *query).stdout != "followed\n":
                assert time.monotonic() < until
                time.sleep(0.2)
            watch.send_signal(signal.SIGTERM)
            assert watch.wait(60) == 0
        finally:
            watch.kill()


def test_a_guide_makes_a_publication_only_once(psql: Psql) -> None:
    """The test runs the guide's command together with its condition."""
    page = (_GUIDES / "scripts-and-ci.md").read_text("utf-8")
    has, create = (
        shlex.split(re.findall(pattern, page, re.MULTILINE)[0])[1:]
        for pattern in (r"^has=\$\((.*)\)$", r"&& (replctl .*)$")
    )
    psql("-X", "-q", script=_SETUP)
    assert psql(*has).stdout == "0\n"
    assert psql(*create).exit_code == 0
    assert psql(*has).stdout == "1\n"
