"""The functions of Python that SQLite calls: those of catalogs, and interpreted expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from replctl.adt import interpret
from replctl.catalog.function_context import FunctionContext
from replctl.catalog.functions import FUNCTIONS, FUNCTIONS_BY_NAME
from replctl.ctrl_c import on_ctrl_c
from replctl.errors import FeatureNotSupported, QueryCanceled
from replctl.expr import nodes
from replctl.query.size import FUNCTIONS as SIZE_FUNCTIONS
from replctl.query.sqlite_value import lsn_of, shown, stored_lsn
from replctl.query.view_catalog import FUNCTIONS as VIEW_FUNCTIONS
from replctl.types import builtin, text
from replctl.types.builtin import Function
from replctl.types.quote import quote_record


def interpreter(
    expr: nodes.Expr, operands: list[nodes.Expr]
) -> Callable[[Sequence[Any]], Any] | None:
    """Return what computes an expression of its operands, None if nothing does.

    Args:
        operands: the expressions directly below are put there.
    """

    def replaced(node: Any) -> Any:
        if node is expr or isinstance(node, nodes.SortKey):
            return None
        operands.append(node)
        collation = nodes.collation(node)
        return nodes.Param(len(operands), node.type, nodes.typmod(node), collation)

    try:
        compute = interpret.compiled(nodes.transform(expr, replaced))
        known = builtin.types()
        is_known = all(operand.type in known for operand in operands) and expr.type in known
    except (FeatureNotSupported, KeyError):
        return None
    return compute if is_known else None


def implementation_of(function: Function) -> Callable[..., Any] | None:
    """Return the Python of a function, None if there is none."""
    source = function.source
    if source:
        for known in (FUNCTIONS, VIEW_FUNCTIONS, SIZE_FUNCTIONS):
            if source in known:
                return known[source]
    return FUNCTIONS_BY_NAME.get(function.name) or SIZE_FUNCTIONS.get(function.name)


#: Instructions of SQLite's machine, some milliseconds.
_SIGNAL_INTERVAL = 100_000


class PythonCalls:
    """Python functions that SQLite calls; an error in one of them is kept, since SQLite would lose
    it."""

    def __init__(self, context: FunctionContext, driver: Any) -> None:
        self._context = context
        self._driver = driver
        self._known: set[str] = set()
        self.error: Exception | None = None

    @contextmanager
    def ended_by_ctrl_c(self) -> Iterator[None]:
        """Around a query, which Ctrl-C is to end, not only a function that it happens to call."""
        self._driver.set_progress_handler(lambda: 0, _SIGNAL_INTERVAL)  # signals are seen in Python
        try:
            with on_ctrl_c(self._cancel):
                yield
        finally:
            self._driver.set_progress_handler(None, 0)

    def _cancel(self) -> None:
        self.error = QueryCanceled("canceling statement due to user request")
        self._driver.interrupt()

    def name_of(self, name: str, function: Callable[..., Any], *, is_strict: bool = True) -> str:
        """Return the name under which SQLite finds a function; it is registered if it is not
        yet."""
        sql_name = "pg__" + re.sub(r"\W", "_", name)
        if sql_name not in self._known:
            self._known.add(sql_name)
            self._driver.create_function(sql_name, -1, self._guarded(function, is_strict))
        return sql_name

    def aggregate(self, name: str, aggregate: type) -> str:
        """Return the name of an aggregate of Python."""
        sql_name = f"pg__agg_{name}"
        if sql_name not in self._known:
            self._known.add(sql_name)
            self._driver.create_aggregate(sql_name, -1, aggregate)
        return sql_name

    def _guarded(self, function: Callable[..., Any], is_strict: bool) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if is_strict and None in args:
                return None
            try:
                return function(self._context, *args)
            except Exception as error:
                self.error = error
                raise

        return call


def is_member(context: FunctionContext, value: str, array: str) -> int | None:
    """`value = ANY (array)` by text; NULL if only a NULL stands in the way."""
    items: Any = text.parse("_text", array)
    if value in items:
        return 1
    return None if None in items else 0


def as_records(
    function: Function, rows: Callable[..., Sequence[Sequence[Any]]]
) -> Callable[..., list[list[str]]]:
    """Return the rows of a function, each as a record's text."""
    types = [type_ for _name, type_ in function.columns]

    def record(context: FunctionContext, row: Sequence[Any]) -> str:
        values = zip(types, row, strict=True)
        return quote_record([shown(context.environment, *value) for value in values])

    return lambda context, *args: [[record(context, row)] for row in rows(context, *args)]


def with_lsns(function: Function, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes and gives LSNs as SQLite has them; others as they are."""
    lsns = [type_ == "pg_lsn" for type_ in function.argument_types]
    gives_lsn = function.result == "pg_lsn" and not function.returns_set
    if not any(lsns) and not gives_lsn:
        return call

    def called(context: FunctionContext, *args: Any) -> Any:
        known = (
            lsn_of(arg) if is_lsn and arg is not None else arg
            for is_lsn, arg in zip_longest(lsns, args, fillvalue=False)
        )
        result = call(context, *known)
        return stored_lsn(result) if gives_lsn and result is not None else result

    return called


def first_of(rows: Callable[..., Sequence[Sequence[Any]]]) -> Callable[..., Any]:
    """Return a function that gives the first value of the first row."""
    return lambda context, *args: rows(context, *args)[0][0]


def as_json(rows: Callable[..., Sequence[Sequence[Any]]]) -> Callable[..., str]:
    """Return a function that gives the rows as JSON, for json_each()."""
    return lambda context, *args: json.dumps(rows(context, *args))
