#!/usr/bin/env python3
"""Write a PostgreSQL 17 server's answers to the scripts in tests/commands/data and tests/query/data.

    .ci/generate_script_golden.py 'host=localhost user=postgres' [NAME...]

The connection string is libpq's, without a database: the script makes the database `replctl_golden`
again for each file.  NAME.sql has statements, each of which ends with a semicolon at the end of a line.
NAME.out gets each statement, and below it the notices, the error, the command tag and the rows:

    > create table t (a int null not null);
    ERROR 42601 @25: conflicting NULL/NOT NULL declarations for column "a" of table "t"

The number after @ counts characters of the statement from 0.  The script uses libpq through ctypes,
because psql shows positions only by a caret.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
DATABASE = "replctl_golden"
SETTINGS = (
    "SET timezone = 'UTC'",
    "SET datestyle = 'ISO, MDY'",
    "SET client_encoding = 'UTF8'",
)

libpq = ctypes.CDLL(ctypes.util.find_library("pq") or "libpq.so.5")
for name in ("PQconnectdb", "PQexec"):
    getattr(libpq, name).restype = ctypes.c_void_p
for name in ("PQresultErrorField", "PQcmdStatus", "PQgetvalue", "PQerrorMessage"):
    getattr(libpq, name).restype = ctypes.c_char_p
RECEIVER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
COMMAND_OK, TUPLES_OK = 1, 2


class Connection:
    """A connection that formats the server's answers."""

    def __init__(self, conninfo: str) -> None:
        self._pointer = ctypes.c_void_p(libpq.PQconnectdb(conninfo.encode()))
        if libpq.PQstatus(self._pointer):
            sys.exit(libpq.PQerrorMessage(self._pointer).decode())
        self._lines: list[str] = []
        self._receiver = RECEIVER(lambda _arg, result: self._report(result))
        libpq.PQsetNoticeReceiver(self._pointer, self._receiver, None)

    def close(self) -> None:
        libpq.PQfinish(self._pointer)

    def execute(self, statement: str) -> list[str]:
        self._lines = []
        result = ctypes.c_void_p(libpq.PQexec(self._pointer, statement.encode()))
        status = libpq.PQresultStatus(result)
        if status == TUPLES_OK:
            for row in range(libpq.PQntuples(result)):
                self._lines.append("| " + " | ".join(self._row(result, row)))
        if status in (COMMAND_OK, TUPLES_OK):
            self._lines.append(libpq.PQcmdStatus(result).decode())
        else:
            self._report(result)
        libpq.PQclear(result)
        return self._lines

    def _row(self, result: ctypes.c_void_p, row: int) -> list[str]:
        return [
            "NULL"
            if libpq.PQgetisnull(result, row, column)
            else libpq.PQgetvalue(result, row, column).decode().replace("\n", "\\n")
            for column in range(libpq.PQnfields(result))
        ]

    def _report(self, result: int | ctypes.c_void_p) -> None:
        pointer = result if isinstance(result, ctypes.c_void_p) else ctypes.c_void_p(result)

        def field(code: str) -> str | None:
            value = libpq.PQresultErrorField(pointer, ord(code))
            return None if value is None else value.decode()

        position = field("P")
        place = "" if position is None else f" @{int(position) - 1}"
        self._lines.append(
            f"{field('S')} {field('C')}{place}: " + (field("M") or "").replace("\n", "\\n")
        )
        for label, code in (("DETAIL", "D"), ("HINT", "H")):
            text = field(code)
            if text is not None:
                self._lines.append(f"{label}: " + text.replace("\n", "\\n"))


def statements(script: str) -> list[str]:
    """Return the statements of a script, without comments between them."""
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    parts = "\n".join(lines).split(";\n")
    return [part.strip().rstrip(";") for part in parts if part.strip()]


def generate(conninfo: str, path: Path) -> None:
    maintenance = Connection(f"{conninfo} dbname=postgres")
    maintenance.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    maintenance.execute(
        f"CREATE DATABASE {DATABASE} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    connection = Connection(f"{conninfo} dbname={DATABASE}")
    for setting in SETTINGS:
        connection.execute(setting)
    lines: list[str] = []
    for statement in statements(path.read_text(encoding="utf-8") + "\n"):
        lines += [f"> {statement};", *connection.execute(statement), ""]
    path.with_suffix(".out").write_text("\n".join(lines), encoding="utf-8")
    connection.close()
    maintenance.execute(f"DROP DATABASE {DATABASE}")
    maintenance.close()


def main() -> None:
    conninfo, *names = sys.argv[1:]
    for folder in ("commands", "query"):
        for path in sorted((TESTS / folder / "data").glob("*.sql")):
            if not names or path.stem in names:
                generate(conninfo, path)


if __name__ == "__main__":
    main()
