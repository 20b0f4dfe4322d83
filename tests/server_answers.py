"""Answers of a PostgreSQL server, in the form of the golden scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from golden_script import shown
from psycopg import pq

from replctl.errors import Notice

SETTINGS = (
    "SET timezone = 'UTC'",
    "SET datestyle = 'ISO, MDY'",
    "SET client_encoding = 'UTF8'",
)


class Server:
    """A database of a server."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._connection = connection
        self._lines: list[str] = []
        connection.add_notice_handler(lambda diagnostic: self._report(diagnostic))
        for setting in SETTINGS:
            self.answer(setting)

    def answer(self, statement: str) -> tuple[str, ...]:
        """Return rows, notices, the command tag or the error."""
        self._lines = []
        result = self._connection.pgconn.exec_(statement.encode())
        if result.status == pq.ExecStatus.TUPLES_OK:
            for row in range(result.ntuples):
                values = [result.get_value(row, column) for column in range(result.nfields)]
                texts = ["NULL" if v is None else v.decode().replace("\n", "\\n") for v in values]
                self._lines.append("| " + " | ".join(texts))
        if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            self._lines.append((result.command_status or b"").decode())
        else:
            self._report(psycopg.errors.Diagnostic(result, "utf-8"))
        return tuple(line for line in self._lines if line)

    def _report(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        position = diagnostic.statement_position
        report = Notice(
            diagnostic.severity or "",
            diagnostic.message_primary or "",
            detail=diagnostic.message_detail,
            hint=diagnostic.message_hint,
            position=-1 if position is None else int(position) - 1,
        )
        self._lines += shown(f"{report.severity} {diagnostic.sqlstate}", report)


@contextmanager
def database(conninfo: str, name: str) -> Iterator[Server]:
    """Yield a new database of a server, and drop it at the end."""
    with psycopg.connect(conninfo, autocommit=True) as maintenance:
        maintenance.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        maintenance.execute(f'CREATE DATABASE "{name}" TEMPLATE template0'.encode())
        try:
            with psycopg.connect(conninfo, dbname=name, autocommit=True) as connection:
                yield Server(connection)
        finally:
            maintenance.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
