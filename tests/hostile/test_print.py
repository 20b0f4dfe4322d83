"""replctl prints hostile variables and tables in the same way as psql."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from fix_psql import Psql
from hostile_texts import HOSTILE, LONG, NAMES

from replctl.catalog.server_log import ServerLog
from replctl.errors import DataError

FORMATS = "aligned unaligned csv wrapped html latex asciidoc troff-ms latex-longtable".split()
#: psql treats U+10FFFF as not printable.
ALL = [*HOSTILE.values(), "", LONG]
TEXTS = [text for text in HOSTILE.values() if "\U0010ffff" not in text]


def _script() -> str:
    """Return a script with each text as a variable in every form of quotes, as a value, and as the
    title of a column."""
    lines = []
    for text in TEXTS:
        escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
        quoted = "".join(escapes.get(char, char) for char in text)
        lines += [f"\\set x '{quoted}'", "\\echo :x | :'x' | :\"x\" | :{?x}"]
    rows = ", ".join(f"({i}, {_string(text)})" for i, text in enumerate(TEXTS))
    query = f"select * from (values {rows}) v(id, v) order by 1"
    titles = ", ".join(f"1 as {_name(text)}" for text in NAMES.values() if text in TEXTS)
    for form in FORMATS:
        lines += [f"\\pset format {form}", f"{query};", f"select {titles};"]
    return "\n".join([*lines, "\\pset format aligned", "\\x", f"{query};", ""])


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@pytest.mark.skipif(shutil.which("psql") is None, reason="there is no psql")
def test_hostile_texts_are_printed_as_by_psql(psql: Psql, postgres_server: str) -> None:
    script = _script()
    command = ["psql", f"{postgres_server} dbname=postgres", "-X", "-f", "-"]
    expected = subprocess.run(command, input=script.encode(), capture_output=True, check=True)
    outcome = psql("-X", "-f", "-", script=script)
    assert outcome.stdout == expected.stdout.decode()
    assert outcome.stderr == expected.stderr.decode().replace("psql:", "replctl:")


def _described() -> str:
    """Return statements that create objects with every name, and commands that describe them."""
    names = [_name(text) for text in NAMES.values() if text in TEXTS]
    lines = ["\\set QUIET 1", "create schema h;", "set search_path = h, public;"]
    for name, text in zip(names, NAMES.values(), strict=False):
        value = _string(text)
        lines += [
            f"create table {name} (id int primary key, {name} text default {value}"
            f" constraint {name} check ({name} <> {value}));",
            f"comment on table {name} is {value};",
            f"comment on column {name}.{name} is {value};",
            f"create publication {name} for table {name} (id, {name}) where ({name} = {value});",
            f"create view {_name('v ' + text)} as select {name} from {name};",
            f"create type {_name('e ' + text)} as enum ({value});",
            f"\\d {name}",
            f"\\dRp {name}",
            f"\\dt {name}",
        ]
    lines += ["\\d", "\\dt", "\\dv", "\\dRp+", "\\pset format csv"]
    for name in names:
        lines += [f"\\d {name}", f"\\dRp+ {name}", f"drop publication {name};"]
    return "\n".join([*lines, "drop schema h cascade;", ""])


@pytest.mark.skipif(shutil.which("psql") is None, reason="there is no psql")
def test_hostile_names_are_described_as_by_psql(psql: Psql, postgres_server: str) -> None:
    script = _described()
    command = ["psql", f"{postgres_server} dbname=postgres", "-X", "-f", "-"]
    expected = subprocess.run(command, input=script.encode(), capture_output=True, check=True)
    outcome = psql("-X", "-f", "-", script=script)
    assert outcome.stdout == expected.stdout.decode()
    assert outcome.stderr == expected.stderr.decode().replace("psql:", "replctl:")


def test_json_gives_hostile_texts_back(psql: Psql) -> None:
    rows = ", ".join(f"({i}, {_string(text)})" for i, text in enumerate(ALL))
    names = list(NAMES.values())
    titles = ", ".join(f"{_string(text)} as {_name(text)}" for text in names)
    script = (
        "\\pset format json\n\\pset tuples_only\n"
        f"select * from (values {rows}) v(id, v) order by 1;\nselect {titles};\n"
    )
    outcome = psql("-X", "-q", script=script)
    assert outcome.stderr == ""
    decoder, found, rest = json.JSONDecoder(), [], outcome.stdout
    while rest := rest.lstrip(" \n"):
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:]
    assert found == [
        [{"id": i, "v": text} for i, text in enumerate(ALL)],
        [dict(zip(names, names, strict=True))],
    ]


def test_the_log_has_a_line_for_each_hostile_text(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / NAMES["rest"] / "log", lambda _seconds: nullcontext())
    texts = [text for text in ALL if text]
    for text in texts:
        log.report_error(DataError(text, detail=text), backend_type="client backend")
    lines = (tmp_path / NAMES["rest"] / "log").read_bytes().split(b"\n")
    assert lines.pop() == b""
    found = [json.loads(line) for line in lines]
    assert [(line["message"], line["detail"]) for line in found] == [(t, t) for t in texts]
