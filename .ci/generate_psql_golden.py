#!/usr/bin/env python3
"""Write the output of psql for the cases in tests/psql/data, next to the cases.

    .ci/generate_psql_golden.py 'host=localhost user=postgres dbname=postgres'

The connection string is libpq's.  Its user should be `postgres`, and the collation of the database
must be C.  The script leaves nothing in the database.  It runs the first psql on PATH, which must be
psql 17 for features of 17 (\\drg, options of \\watch).  Cases are

    scan/NAME.sql       a script; NAME.out has the statements that psql sends (its option -e), and
                        the lines that the script echoes
    script/NAME.sql     a script; NAME.out has the output of psql with -a on both streams
    lake/NAME.sql       the same for scripts that need Spark
    variables.sql       a script; variables.out has its output, including error messages
    print_table.json    tables and sets of options; print_table/OPTIONS.out has each table with them
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "tests" / "psql" / "data"

#: Field of PrintOptions -> name for \pset, if they differ.
PSET_NAMES = {
    "table_attributes": "tableattr",
    "numeric_locale": "numericlocale",
    "field_separator": "fieldsep",
    "record_separator": "recordsep",
    "csv_field_separator": "csv_fieldsep",
}

#: Variables that describe the connection, not psql.
CONNECTION_VARIABLE = re.compile(
    rb"^(DBNAME|ENCODING|HOST|PORT|SERVER_VERSION_\w+|USER|VERSION\w*) = .*\n", re.MULTILINE
)


def psql(conninfo: str, *arguments: str, script: str = "", stderr: int | None = None) -> bytes:
    process = subprocess.run(
        ["psql", conninfo, "-X", "-q", *arguments],
        input=script.encode(),
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=DATA,
        env={**os.environ, "LC_ALL": "C.UTF-8", "PGCLIENTENCODING": "UTF8"},
        check=False,
    )
    return process.stdout


def generate_scripts(conninfo: str) -> None:
    for path in sorted(DATA.glob("script/*.sql")) + sorted(DATA.glob("lake/*.sql")):
        process = subprocess.run(
            ["psql", conninfo, "-X", "-a", "-f", path.name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=path.parent,
            env={**os.environ, "LC_ALL": "C.UTF-8", "PGCLIENTENCODING": "UTF8"},
            check=False,
        )
        out = re.sub(rb"^psql:", b"replctl:", process.stdout, flags=re.MULTILINE)
        # These lines name positions in PostgreSQL's source code
        out = re.sub(rb"^LOCATION:  .*\n", b"", out, flags=re.MULTILINE)
        path.with_suffix(".out").write_bytes(out)


def generate_scan(conninfo: str) -> None:
    for path in sorted((DATA / "scan").glob("*.sql")):
        script = path.read_text(encoding="utf-8")
        out = psql(conninfo, "-e", "-o", os.devnull, "-f", "-", script=script)
        path.with_suffix(".out").write_bytes(out)


def generate_variables(conninfo: str) -> None:
    arguments = ("-v", "QUIET=off", "-f", "variables.sql")
    out = psql(conninfo, *arguments, stderr=subprocess.STDOUT)
    (DATA / "variables.out").write_bytes(CONNECTION_VARIABLE.sub(b"", out))


def quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\t", "\\t") + "'"


def literal(value: str | None) -> str:
    if value is None:
        return "NULL"
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return "E'" + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\x{ord(m[0]):02x}", escaped) + "'"


def pset(options: dict[str, Any]) -> str:
    lines = []
    for field, value in options.items():
        text = ("on" if value else "off") if isinstance(value, bool) else str(value)
        lines.append(f"\\pset {PSET_NAMES.get(field, field)} {quote(text)}\n")
    return "".join(lines)


def select(table: dict[str, Any]) -> str:
    """Return a query whose result is the table."""
    columns, rows = table["columns"], table["rows"]
    if not columns:
        return f"SELECT FROM generate_series(1, {len(rows)});\n"
    names = [f"c{number}" for number in range(len(columns))]
    targets = [
        f'{name}::{kind} AS "{title.replace(chr(34), chr(34) * 2)}"'
        for name, (title, kind) in zip(names, columns, strict=True)
    ]
    values = [
        "(" + ", ".join([*map(literal, row), str(number)]) + ")"
        for number, row in enumerate(rows or [[None] * len(columns)])
    ]
    return (
        f"SELECT {', '.join(targets)} FROM (VALUES {', '.join(values)}) v({', '.join(names)}, n)"
        f" WHERE {bool(rows)} ORDER BY v.n;\n"
    )


def generate_print_table(conninfo: str) -> None:
    cases = json.loads((DATA / "print_table.json").read_text(encoding="utf-8"))
    for name, options in cases["options"].items():
        script = pset(options)
        for title, table in cases["tables"].items():
            script += f"\\echo == {title}\n" + (table.get("script") or select(table))
        out = psql(conninfo, "-f", "-", script=script)
        (DATA / "print_table" / f"{name}.out").write_bytes(out)


def main(conninfo: str) -> None:
    generate_scripts(conninfo)
    generate_scan(conninfo)
    generate_variables(conninfo)
    generate_print_table(conninfo)


if __name__ == "__main__":
    main(sys.argv[1])
