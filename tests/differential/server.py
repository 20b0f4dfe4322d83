"""Evaluates expressions on a PostgreSQL server: in a row filter, in a CHECK, and for each row."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import psycopg

from replctl.types import builtin

from .rows import COLUMNS, TABLE, setup_sql

DATABASE = f"replctl_differential_{os.getpid()}"  # runs do not disturb each other
#: The settings under which values have the text that replctl gives them.
_SETTINGS = (
    "-c timezone=UTC -c datestyle=ISO,MDY -c intervalstyle=postgres -c bytea_output=hex"
    " -c extra_float_digits=1 -c client_min_messages=error -c statement_timeout=5s"
    " -c search_path=public"
)
#: All rows at once, or each row alone if one fails.  OFFSET 0 prevents the merge of the subquery.
_EVALUATE = f"""
CREATE FUNCTION evaluate(expression text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  query text := 'SELECT array_agg(CASE WHEN v IS NOT DISTINCT FROM NULL THEN ''NULL'''
    ' ELSE ''='' || format(''%%s'', v) END ORDER BY k)'
    ' FROM (SELECT k, (%s) AS v FROM {TABLE} WHERE %s OFFSET 0) AS x';
  found text[];
  results text[] := '{{}}';
  key int;
BEGIN
  BEGIN
    EXECUTE format(query, expression, 'true') INTO found;
    RETURN found;
  EXCEPTION WHEN OTHERS THEN
    NULL;
  END;
  FOR key IN SELECT k FROM {TABLE} ORDER BY k LOOP
    BEGIN
      EXECUTE format(query, expression, 'k = ' || key) INTO found;
    EXCEPTION WHEN OTHERS THEN
      found := ARRAY['!' || SQLSTATE];
    END;
    results := results || found;
  END LOOP;
  RETURN results;
END $$
"""
_CURRENT = 17
#: Expressions with other results before PostgreSQL 17: forms of numbers, infinite intervals, errors
#: of intervals, scales of powers, zones of date_trunc, letters beyond ASCII, keywords, and tests of
#: constant ranges.
_CHANGED = re.compile(
    r"\b0[xob]|\d_\d|\d\.\W|infinity|interval|\biv\b|age|justify|date_bin|date_trunc"
    r"|\^|pow|exp|sqrt|\bln|log|upper|lower|initcap|ilike|iclike|icnlike|regex|~|collate|normal"
    r"|json_object|@>|<@|contain",
    re.IGNORECASE,
)
_FILTER = f"CREATE PUBLICATION p FOR TABLE {TABLE} WHERE ("
_CHECK = f"CREATE TABLE again.{TABLE} (LIKE public.{TABLE}, CHECK (("


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer about an expression: its printed text, or an error.

    Attributes:
        text: the output of pg_get_expr, or the message.
        position: of the error in the expression, counted from 0; -1 if it has none.
    """

    sqlstate: str
    text: str
    detail: str | None = None
    hint: str | None = None
    position: int = -1

    @property
    def is_accepted(self) -> bool:
        return self.sqlstate == "00000"


class Server:
    """A connection to a database of its own, which has the table of rows.py."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._connection = connection
        connection.execute(setup_sql())
        connection.execute("CREATE SCHEMA again")
        connection.execute(_EVALUATE)

    @property
    def version(self) -> int:
        """Return the major version."""
        return self._connection.info.server_version // 10000

    def is_comparable(self, expression: str) -> bool:
        """Return whether the server must give the same results as PostgreSQL 17."""
        if self.version >= _CURRENT:
            return True
        words = set(re.findall(r"\w+", expression))
        return not words & self._missing and _CHANGED.search(expression) is None

    @cached_property
    def _missing(self) -> set[str]:
        found = self._connection.execute("SELECT DISTINCT proname FROM pg_proc")
        return set(builtin.functions()) - {str(row[0]) for row in found}

    def typmods(self) -> list[int]:
        """Return the type modifiers of the table's columns."""
        found = self._connection.execute(
            "SELECT atttypmod FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " ORDER BY attnum",
            (TABLE,),
        )
        return [int(str(row[0])) for row in found]

    def store(self, rows: Sequence[Sequence[str | None]]) -> list[list[str | None]]:
        """Replace the table's rows, and return their texts in canonical form."""
        if self.version < _CURRENT:
            rows = [
                [None if item in ("infinity", "-infinity") else item for item in row]
                for row in rows
            ]
        values = ", ".join(f"%s::{declared}" for _, declared, _ in COLUMNS)
        self._connection.execute(f"TRUNCATE {TABLE}")
        with self._connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {TABLE} VALUES (%s, {values})", rows)
        shown = ", ".join(
            f"CASE WHEN {name} IS NOT NULL THEN format('%s', {name}) END" for name, _, _ in COLUMNS
        )
        found = self._connection.execute(f"SELECT k::text, {shown} FROM {TABLE} ORDER BY {TABLE}.k")
        return [[None if item is None else str(item) for item in row] for row in found]

    def row_filter(self, expression: str) -> Verdict:
        """Use an expression as the row filter of a publication."""
        printed = "SELECT pg_get_expr(prqual, prrelid) FROM pg_publication_rel"
        return self._tried(_FILTER, expression, ")", printed)

    def check(self, expression: str) -> Verdict:
        """Use an expression of any type in a CHECK constraint."""
        printed = (
            "SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint"
            f" WHERE contype = 'c' AND conrelid = 'again.{TABLE}'::regclass"
        )
        return self._tried(_CHECK, expression, ") IS NULL))", printed)

    def values(self, expression: str) -> list[str] | None:
        """Return for each row `=text`, `!SQLSTATE` or NULL; None if the server takes too long."""
        try:
            row = self._connection.execute("SELECT evaluate(%s)", (expression,)).fetchone()
        except (psycopg.errors.QueryCanceled, psycopg.errors.ProgramLimitExceeded):
            return None
        assert row is not None
        assert isinstance(row[0], list)
        return row[0]

    def _tried(self, start: str, expression: str, end: str, printed: str) -> Verdict:
        try:
            with self._connection.transaction(force_rollback=True):
                self._connection.execute(f"{start}{expression}{end}")
                row = self._connection.execute(printed).fetchone()
        except psycopg.Error as error:
            said = error.diag
            position = int(said.statement_position or 0) - 1 - len(start)
            return Verdict(
                said.sqlstate or "",
                said.message_primary or "",
                said.message_detail,
                said.message_hint,
                max(position, -1),
            )
        assert row is not None
        return Verdict("00000", str(row[0]))


@contextmanager
def connected(conninfo: str) -> Iterator[Server]:
    """Yield a server with a fresh database."""
    with psycopg.connect(conninfo, dbname="postgres", autocommit=True) as admin:
        has_builtin = admin.info.server_version // 10000 >= _CURRENT
        provider = "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'" if has_builtin else ""
        admin.execute(
            f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING UTF8 {provider} LOCALE 'C'"
        )
        try:
            with psycopg.connect(
                conninfo, dbname=DATABASE, autocommit=True, options=_SETTINGS
            ) as own:
                yield Server(own)
        finally:
            admin.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
