"""The pages for developers and CI have commands that take too long for a test: the files and
options in these commands exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_PAGES = [
    *_ROOT.glob("*.md"),
    *(_ROOT / "benchmarks").glob("*.md"),
    *(_ROOT / "docs" / "explanation").glob("*.md"),
    *(_ROOT / ".github").rglob("*.*"),
    _ROOT / "tests" / "README.md",
]
#: Code in a line of text, and a line of a block that is indented or fenced, or of a list of CI.
_SPAN = re.compile(r"`([^`\n]+)`")
_LINE = re.compile(r"^(?:\s+(?:- (?:run: )?)?)?(\S.*)$", re.MULTILINE)
_PROGRAM = re.compile(
    r"(?:[A-Z][A-Z_0-9]*=\S+ )*(?:(?:\.venv/bin/)?(?:just|pytest|pip|python3? -m)|\.ci/\w+)(?: |$)"
)
_OWN = ("benchmarks", "tests")


def _commands() -> Iterator[object]:
    for page in _PAGES:
        text = page.read_text("utf-8")
        lines = [line.partition("  #")[0].strip() for line in _LINE.findall(text)]
        for code in sorted({*_SPAN.findall(text), *(line for line in lines if "`" not in line)}):
            for command in re.split(r" && |; ", code):
                if _PROGRAM.match(command):
                    yield pytest.param(command, id=f"{page.stem}: {command}")


@cache
def _recipes() -> frozenset[str]:
    recipes = re.findall(r"^(\w+)(?: .*)?:$", (_ROOT / "justfile").read_text("utf-8"), re.MULTILINE)
    return frozenset(recipes)


@cache
def _help(module: str) -> str:
    command = [sys.executable, "-m", module, "--help"]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout


@cache
def _texts_of_tests() -> str:
    return "".join(path.read_text("utf-8") for path in (_ROOT / "tests").rglob("*.py"))


def _expanded(word: str) -> list[str]:
    """Return the words that a shell makes of one: a{b,c}d -> abd, acd."""
    found = re.fullmatch(r"(.*)\{(.*)\}(.*)", word)
    return [word] if found is None else [found[1] + m + found[3] for m in found[2].split(",")]


def _check_tests(words: list[str]) -> None:
    """Check the arguments of pytest: files, and the names of tests after -k."""
    files = [name for word in words if word.startswith("tests/") for name in _expanded(word)]
    assert [name for name in files if not (_ROOT / name).exists()] == []
    if "-k" in words:
        part = words[words.index("-k") + 1]
        text = "".join((_ROOT / name).read_text("utf-8") for name in files)
        assert re.search(rf"^def test_\w*{part}", text, re.MULTILINE)


def _check_module(module: str, words: list[str]) -> None:
    """Check the module of `python -m`, and the options of one of our own."""
    if module == "pytest":
        _check_tests(words)
    elif module.split(".")[0] in _OWN:
        options = [word.strip("[]") for word in words if word.strip("[]").startswith("--")]
        assert [option for option in options if option not in _help(module)] == []
    else:
        assert module in ("venv", "build") or importlib.util.find_spec(module) is not None


def _check_extras(words: list[str]) -> None:
    """Check the extras that pip installs."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for word in words:
        if word.startswith(".["):
            assert {*word[2:-1].split(",")} <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("command", [*_commands()])
def test_what_a_command_names_is_there(command: str) -> None:
    words = shlex.split(command)
    while re.match(r"[A-Z_0-9]+=", words[0]):
        variable = words.pop(0).partition("=")[0]
        assert variable == "PYTHON" or f'"{variable}"' in _texts_of_tests()
    program, *arguments = words
    match program.removeprefix(".venv/bin/"):
        case "just" if arguments:
            recipe = arguments[0]
            assert recipe in _recipes()
            if recipe == "golden":
                assert (_ROOT / ".ci" / f"generate_{arguments[1]}_golden.py").exists()
            elif recipe == "bench":
                _check_module("benchmarks", arguments[1:])
            elif recipe == "test":
                _check_tests(arguments[1:])
        case "pytest":
            _check_tests(arguments)
        case "pip":
            _check_extras(arguments)
        case "python" | "python3":
            _check_module(arguments[1], arguments[2:])
        case name if name.startswith(".ci/"):
            assert (_ROOT / name).exists()


def test_paths_of_the_pages_for_developers_are_there() -> None:
    """These include paths in code without a suffix, such as `.ci/run` and `grammar/`."""
    for page in (_ROOT / "CONTRIBUTING.md", _ROOT / "SECURITY.md", _ROOT / "tests" / "README.md"):
        named = re.findall(r"`((?:\.ci|docs|grammar|replctl|samples|tests)/[^`\s*]*)`",
                           page.read_text("utf-8"))  # fmt: skip
        assert [name for name in named if not (_ROOT / name).exists()] == []
