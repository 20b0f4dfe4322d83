"""COPY, \\copy, \\o and \\i treat hostile names and contents of files as psql and a server do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fix_psql import Psql
from hostile_texts import HOSTILE, LONG, NAMES

from replctl.types.quote import quote_identifier, quote_string

FILES = [name for name in NAMES.values() if "/" not in name and name != ".."]
FORMATS = ["", "(format csv, header)", "(format csv, force_quote *, null 'NULL')"]


def _of_meta_command(text: str) -> str:
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "'" + "".join(escapes.get(char, char) for char in text) + "'"


def _script() -> str:
    """Return a script that writes and reads files with every name, and rows that COPY refuses."""
    table = quote_identifier(list(NAMES.values())[-2])
    lines = [f"create table {table} (a int);"]
    for place, name in enumerate(FILES):
        value = quote_string(f"x{name}")
        if "\n" not in name and "\r" not in name:  # \copy takes only one line
            lines.append(f"\\copy (select {value}) to {quote_string(name)}".replace("\n", ""))
            lines.append(f"\\copy {table} from {quote_string(name)}")
        file = _of_meta_command(f"out {name}")
        lines += [f"\\o {file}", f"\\qecho select {place};", "\\o", f"\\i {file}"]
    rows = ", ".join(f"({i}, {quote_string(text)})" for i, text in enumerate(_VALUES))
    for place, form in enumerate(FORMATS):
        query = f"(select * from (values {rows}) v(id, v) order by 1)"
        lines.append(f"copy {query} to stdout {form};")
        oneline = [t for t in _VALUES if "\n" not in t and "\r" not in t]
        shown = ", ".join(f"({quote_string(text)})" for text in oneline)
        lines.append(f"\\copy (select * from (values {shown}) v(v)) to f{place} {form}")
        lines.append(f"\\copy {table} from f{place} {form}")
    return "\n".join([*lines, f"drop table {table};", ""])


_VALUES = [*HOSTILE.values(), "", LONG]


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory for files, with a hostile name."""
    made = tmp_path / FILES[-1] / FILES[-3]
    made.mkdir(parents=True)
    return made


@pytest.mark.skipif(shutil.which("psql") is None, reason="there is no psql")
def test_files_are_those_of_psql(
    psql: Psql, postgres_server: str, folder: Path, tmp_path: Path
) -> None:
    script, own = _script(), tmp_path / "psql"
    own.mkdir()
    command = ["psql", f"{postgres_server} dbname=postgres", "-X", "-f", "-"]
    expected = subprocess.run(
        command, input=script.encode(), capture_output=True, check=True, cwd=own
    )
    os.chdir(folder)
    outcome = psql("-X", "-f", "-", script=script)
    assert outcome.stdout == expected.stdout.decode()
    assert outcome.stderr == expected.stderr.decode().replace("psql:", "replctl:")
    assert _files(folder) == _files(own)


@pytest.mark.skipif(shutil.which("psql") is None, reason="there is no psql")
def test_the_server_reads_and_writes_files_of_any_name(
    psql: Psql, postgres_server: str, folder: Path
) -> None:
    lines, expected = ["create table t (a int);"], ""
    for name in FILES:
        path = quote_string(str(folder / name))
        lines.append(f"copy (select {quote_string('x' + name)}) to {path} (format csv);")
        lines.append(f"copy t from {path} (format csv);")
    missing = folder / f"no {FILES[-2]}"
    lines.append(f"copy t from {quote_string(str(missing))};")
    outcome = psql("-X", "-q", script="\n".join(lines))
    assert outcome.stdout == ""
    assert {path.name for path in folder.iterdir()} == set(FILES)
    made = "create temp table t (a int)"
    for name in FILES:
        command = ["psql", f"{postgres_server} dbname=postgres", "-Xq", "-c", made]
        command += ["-c", "copy t from stdin (format csv)"]
        with (folder / name).open("rb") as file:
            found = subprocess.run(command, stdin=file, capture_output=True, check=False)
        expected += found.stderr.decode()
    assert outcome.stderr == (
        f'{expected}ERROR:  could not open file "{missing}" for reading: No such file or'
        " directory\n"
        "HINT:  COPY FROM instructs the PostgreSQL server process to read a file. You may want a"
        " client-side facility such as psql's \\copy.\n"
    )
