"""The commands of the guides run, and print what the guides show; those that start Spark are left
to the tests of their subjects."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from fix_psql import Psql

_GUIDES = Path(__file__).parents[2] / "docs" / "guides"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: These words start Spark or another program, wait for changes, or speak of another place.
_LEFT_OUT = re.compile(
    r"--conf|--watch|--without-primary|--copied|--moved|^replctl (spark|verify)\b|\$\(|docker"
)
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
#: What a guide writes for a value of the reader's.
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
        if command.startswith("replctl ") and not _LEFT_OUT.search(command)
    ]


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


def test_a_guide_makes_a_publication_only_once(psql: Psql) -> None:
    """The condition of the guide, with the command that it runs."""
    page = (_GUIDES / "scripts-and-ci.md").read_text("utf-8")
    has, create = (
        shlex.split(re.findall(pattern, page, re.MULTILINE)[0])[1:]
        for pattern in (r"^has=\$\((.*)\)$", r"&& (replctl .*)$")
    )
    psql("-X", "-q", script=_SETUP)
    assert psql(*has).stdout == "0\n"
    assert psql(*create).exit_code == 0
    assert psql(*has).stdout == "1\n"
