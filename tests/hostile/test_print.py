"""Hostile texts as variables and in printed tables: as psql prints them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from fix_psql import Psql
from hostile_texts import HOSTILE, NAMES

FORMATS = "aligned unaligned csv wrapped html latex asciidoc troff-ms latex-longtable".split()
#: U+10FFFF is no character to be printed, for psql.
TEXTS = [text for text in HOSTILE.values() if "\U0010ffff" not in text]


def _script() -> str:
    """Each text as a variable in every form of quotes, as value, and as title of a column."""
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
