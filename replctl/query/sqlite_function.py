"""The Python functions, aggregates and collations that SQLite calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import zip_longest
from typing import Any

from replctl.ctrl_c import on_ctrl_c
from replctl.errors import InternalError, QueryCanceled
from replctl.functions.function_context import FunctionContext
from replctl.functions.sql_functions import FUNCTIONS, FUNCTIONS_BY_NAME
from replctl.query.size import FUNCTIONS as SIZE_FUNCTIONS
from replctl.query.sqlite_value import shown, sort_key, storer
from replctl.query.view_catalog import FUNCTIONS as VIEW_FUNCTIONS
from replctl.types.builtin import Function
from replctl.types.quote import quote_record


def implementation_of(function: Function) -> Callable[..., Any] | None:
    """Return the Python function for a function that uses the catalog or session, else None."""
    source = function.source
    if source:
        for known in (FUNCTIONS, VIEW_FUNCTIONS, SIZE_FUNCTIONS):
            if source in known:
                return known[source]
    return FUNCTIONS_BY_NAME.get(function.name) or SIZE_FUNCTIONS.get(function.name)


#: Number of instructions of SQLite's virtual machine between two checks for signals (some ms).
_SIGNAL_INTERVAL = 100_000
#: Number of sort keys in the cache.
_KEYS = 10_000


class PythonCalls:
    """Registers Python functions with SQLite, and keeps their errors, which SQLite would lose."""

    def __init__(self, context: FunctionContext, driver: Any) -> None:
        self._context = context
        self._driver = driver
        self._known: set[str] = set()
        self.error: Exception | None = None

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise the error of a Python function that a query in the `with` block has called.

        Forget the error afterwards: SQLite keeps the functions, and a traceback holds memory.
        """
        try:
            with self._ended_by_ctrl_c():
                yield
        except InternalError as error:
            raise self.error or error from error
        else:
            if self.error is not None:
                raise self.error
        finally:
            self.error = None

    @contextmanager
    def _ended_by_ctrl_c(self) -> Iterator[None]:
        """Let Ctrl-C end the query in the `with` block, even if it calls no Python function."""
        self._driver.set_progress_handler(lambda: 0, _SIGNAL_INTERVAL)  # Python sees signals here
        try:
            with on_ctrl_c(self._cancel):
                yield
        finally:
            self._driver.set_progress_handler(None, 0)

    def _cancel(self) -> None:
        self.error = QueryCanceled("canceling statement due to user request")
        self._driver.interrupt()

    def function(self, name: str, function: Callable[..., Any], *, is_strict: bool = True) -> str:
        """Return the SQL name of a Python function; register the function on its first use."""
        sql_name = "pg__" + re.sub(r"\W", "_", name)
        if self._is_new(sql_name):
            self._driver.create_function(sql_name, -1, self._guarded(function, is_strict))
        return sql_name

    def catalog_function(
        self, name: str, function: Callable[..., Any], *, is_strict: bool = True
    ) -> str:
        """Return the SQL name of a Python function whose first argument is the context."""
        return self.function(name, partial(function, self._context), is_strict=is_strict)

    def aggregate(self, name: str, compute: Callable[[Sequence[tuple[Any, ...]]], Any]) -> str:
        """Return the SQL name of an aggregate that computes its result from a list of all rows."""
        sql_name = f"pg__agg_{name}"
        if self._is_new(sql_name):
            guarded = self._guarded(compute, is_strict=False)

            class Collector:
                def __init__(self) -> None:
                    self.rows: list[tuple[Any, ...]] = []

                def step(self, *args: Any) -> None:
                    self.rows.append(args)

                def finalize(self) -> Any:
                    return guarded(self.rows)

            self._driver.create_aggregate(sql_name, -1, Collector)
        return sql_name

    def define_any_value(self) -> None:
        """Define any_value() in SQLite: the first value that is not NULL."""
        if self._is_new("any_value"):
            self._driver.create_aggregate("any_value", 1, _AnyValue)

    def collation(self, type_: str) -> str:
        """Return the SQL name of a collation that sorts texts like the values of their type.

        Raises:
            FeatureNotSupported: values of the type have no order.
        """
        sql_name = "pg__order_" + re.sub(r"\W", "_", type_)
        value_key = sort_key(type_)  # may raise, so it comes before _is_new() marks the name
        if self._is_new(sql_name):
            key = lru_cache(_KEYS)(value_key)

            def compare(a: str, b: str) -> int:
                try:
                    first, second = key(a), key(b)
                    return int(first > second) - int(first < second)
                except Exception as error:  # SQLite ignores errors of collations
                    self.error = error
                    return 0

            self._driver.create_collation(sql_name, compare)
        return sql_name

    def _is_new(self, sql_name: str) -> bool:
        if sql_name in self._known:
            return False
        self._known.add(sql_name)
        return True

    def _guarded(self, function: Callable[..., Any], is_strict: bool) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except Exception as error:
                self.error = error
                raise

        if not is_strict:
            return call
        return lambda *args: None if None in args else call(*args)


class _AnyValue:
    """Implements any_value() for sqlite3."""

    def __init__(self) -> None:
        self.value: Any = None

    def step(self, value: Any) -> None:
        if self.value is None:
            self.value = value

    def finalize(self) -> Any:
        return self.value


def with_lsns(function: Function, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` with a conversion of LSNs: it gets LSNs for SQLite's values, and an LSN that it
    returns becomes SQLite's value.
    """
    lsns = [type_ == "pg_lsn" for type_ in function.argument_types]
    store = storer("pg_lsn") if function.result == "pg_lsn" and not function.returns_set else None
    if not any(lsns) and store is None:
        return call

    def called(context: FunctionContext, *args: Any) -> Any:
        known = (
            int(arg) if is_lsn and arg is not None else arg
            for is_lsn, arg in zip_longest(lsns, args, fillvalue=False)
        )
        result = call(context, *known)
        return result if result is None or store is None else store(result)

    return called


def as_records(
    function: Function, rows: Callable[..., Sequence[Sequence[Any]]]
) -> Callable[..., list[list[str]]]:
    """Return a function that returns the same rows as texts of records."""
    types = [type_ for _name, type_ in function.columns]

    def record(context: FunctionContext, row: Sequence[Any]) -> str:
        values = zip(types, row, strict=True)
        return quote_record([shown(context.environment, *value) for value in values])

    return lambda context, *args: [[record(context, row)] for row in rows(context, *args)]


def first_of(rows: Callable[..., Sequence[Sequence[Any]]]) -> Callable[..., Any]:
    """Return a function that returns only the first value of the first row."""
    return lambda context, *args: rows(context, *args)[0][0]


def as_json(rows: Callable[..., Sequence[Sequence[Any]]]) -> Callable[..., str]:
    """Return a function that returns the rows as JSON for json_each(). Floats become texts, because
    json_each() would cut their digits.
    """

    def written(context: FunctionContext, *args: Any) -> str:
        found = rows(context, *args)
        return json.dumps(
            [[str(item) if isinstance(item, float) else item for item in row] for row in found]
        )

    return written
