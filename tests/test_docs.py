"""The documentation matches the code: generated pages are current, SQL in pages is valid, and lists
are complete."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from replctl.errors import FeatureNotSupported
from replctl.execute import execute
from replctl.parser.parse import parse
from replctl.psql.help import OPTIONS
from replctl.session import Session
from replctl.types.builtin import system_relations

_ROOT = Path(__file__).parent.parent
_DOCS = _ROOT / "docs"
_SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: A command in code, up to the end of the line, a pipe, or the end of the code.
_COMMAND = re.compile(r"\breplctl ((?:spark |standby |cluster )?[a-z]+)\b([^`|\n]*)")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
_VARIABLES = (r"(SPARK|REPLCTL|PG|XDG|JAVA|JDK|PSQL|HTTPS?|NO)_?[A-Z_]*", "TERM", "SHELL", "HOME")


def _pages() -> list[Path]:
    return sorted(_DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", _pages(), ids=lambda page: page.stem)
def test_a_page_loads_nothing_from_elsewhere(page: Path) -> None:
    """Material draws mermaid with a script from another host, so drawings are files."""
    text = page.read_text("utf-8")
    assert re.findall(r"^ *```mermaid|<script|!\[[^]]*\]\(\w+:", text, re.MULTILINE) == []
    for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (page.parent / path).is_file()


def _statements() -> list[object]:
    return [
        pytest.param(block[1], id=f"{page.stem}-{number}")
        for page in _pages()
        for number, block in enumerate(_SQL.finditer(page.read_text("utf-8")), start=1)
    ]


def test_pages_that_follow_from_the_code_are_current() -> None:
    program = _ROOT / ".ci" / "generate_reference.py"
    done = subprocess.run(
        [sys.executable, str(program), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("text", _statements())
def test_sql_of_the_pages_is_sql_of_replctl(text: str) -> None:
    """The test leaves out lines of psql."""
    parse("".join(line for line in text.splitlines(True) if not line.startswith("\\")))


def _asked(path: Path) -> set[str]:
    """Return the variables of the environment that a module names as keys."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(str() as name), *_]):
                found.add(name)
            case ast.Subscript(slice=ast.Constant(str() as name)):
                found.add(name)
    return {name for name in found if any(re.fullmatch(form, name) for form in _VARIABLES)}


def test_variables_of_the_environment_are_listed() -> None:
    page = (_DOCS / "reference" / "environment.md").read_text("utf-8")
    asked = set[str]().union(*map(_asked, (_ROOT / "replctl").rglob("*.py")))
    assert asked >= {"REPLCTL_HOME", "SPARK_REMOTE", "PGUSER"}
    asked -= {"SPARK_HOME"}  # replctl sets it for executors
    assert {name for name in asked if f"`{name}`" not in page} == set()


def _help() -> dict[str, str]:
    """Return the help of each subcommand on the page of the commands."""
    page = (_DOCS / "reference" / "commands.md").read_text("utf-8")
    sections = re.findall(r"^## replctl (.+?)$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return dict(sections)


@pytest.mark.parametrize("page", [*_pages(), _ROOT / "README.md"], ids=lambda page: page.stem)
def test_commands_of_a_page_have_the_options_that_it_names(page: Path) -> None:
    known, wrong = _help(), []
    assert len(known) > 10
    for name, rest in _COMMAND.findall(page.read_text("utf-8")):
        if name in known:
            wrong += [f"{name} {o}" for o in _OPTION.findall(rest) if o not in known[name]]
    assert wrong == []


def test_views_of_the_page_can_be_read(session: Session) -> None:
    """replctl refuses all others."""
    page = (_DOCS / "reference" / "views.md").read_text("utf-8")
    listed = {*re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    catalog, information = page.split("## information_schema")
    listed |= {
        *re.findall(r"\bpg_\w+", "".join(re.findall(r"```text\n(.*?)```", catalog, re.DOTALL)))
    }
    for name in [*listed, *information.split("```")[1].split()[1:]]:
        schema = "pg_catalog" if name in listed else "information_schema"
        assert list(execute(session, f"SELECT * FROM {schema}.{name} LIMIT 1")), name
    for name in system_relations().keys() - listed:
        with pytest.raises(FeatureNotSupported):
            list(execute(session, f"SELECT * FROM pg_catalog.{name}"))


def test_each_command_of_the_help_is_on_the_page() -> None:
    commands = set(re.findall(r"^  replctl ([a-z]+)", OPTIONS, re.MULTILINE))
    assert commands >= {"sync", "dump"}
    assert {name.split()[0] for name in _help()} == commands


def _keys(path: Path) -> set[str]:
    """Return the keys of the documents that a module prints as JSON."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    printing = [f for f in functions if f.name.endswith("fields") or f.name == "_status"]
    dicts = [d for f in printing for d in ast.walk(f) if isinstance(d, ast.Dict)]
    keys = [key for found in dicts for key in found.keys if isinstance(key, ast.Constant)]
    return {str(key.value) for key in keys}


@pytest.mark.parametrize(
    "module", ["sync_report", "explain_output", "status_output", "verify_output", "spark"]
)
def test_keys_of_json_are_on_the_page(module: str) -> None:
    page = (_DOCS / "reference" / "json.md").read_text("utf-8")
    keys = _keys(_ROOT / "replctl" / "psql" / f"{module}.py")
    assert len(keys) > 5
    assert {key for key in keys if f"`{key}`" not in page} == set()
