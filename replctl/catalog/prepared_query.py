"""Queries of the catalogs whose SQL is compiled once.

SQLAlchemy takes several times as long to execute a query as SQLite.  A prepared query gets its SQL
from SQLAlchemy, and then goes to the driver without it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Boolean, Connection, IteratorResult, Row, Select, exc
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine.result import SimpleResultMetaData


class PreparedQuery:
    """A query over columns of tables, with named parameters."""

    def __init__(self, query: Select[Any]) -> None:
        self._query = query
        compiled = query.compile(dialect=sqlite.dialect(paramstyle="qmark"))
        self._sql = str(compiled)
        self._names: list[str] = compiled.positiontup or []
        self._values = dict(compiled.params)  # constants of the query are parameters, too
        columns = list(query.selected_columns)
        self._metadata = SimpleResultMetaData([column.name for column in columns])
        self._booleans = [i for i, c in enumerate(columns) if isinstance(c.type, Boolean)]

    def rows(self, connection: Connection, given: Mapping[str, Any]) -> list[Row[Any]]:
        """Return the rows for some values of the parameters.

        Raises:
            DBAPIError: SQLite reports an error.
        """
        if connection.get_execution_options().get("schema_translate_map"):
            return list(connection.execute(self._query, given))  # of another catalog
        if not connection.in_transaction():
            connection.begin()
        driver: Any = connection.connection.driver_connection
        return self.driver_rows(driver, given)

    def driver_rows(self, driver: sqlite3.Connection, given: Mapping[str, Any]) -> list[Row[Any]]:
        """Return the rows that a connection of the driver reads: in a transaction of their own,
        unless one is open.

        Raises:
            DBAPIError: SQLite reports an error.
        """
        values = [given[name] if name in given else self._values[name] for name in self._names]
        try:
            found = driver.execute(self._sql, values).fetchall()
        except sqlite3.Error as error:
            raise exc.DBAPIError.instance(self._sql, values, error, sqlite3.Error) from error
        if self._booleans:
            found = [self._with_booleans(row) for row in found]
        return list(IteratorResult(self._metadata, iter(found)))

    def _with_booleans(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(row)
        for i in self._booleans:
            if values[i] is not None:
                values[i] = bool(values[i])
        return tuple(values)
