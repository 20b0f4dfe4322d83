"""Functions of slots in the query of INSERT and CREATE TABLE AS.

Spark does not have these functions, and they change slots.  So replctl calls them before it reads
and writes rows, and keeps their results while it repeats the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext, function_context
from replctl.functions.replication_functions import FUNCTIONS, ROW_FUNCTIONS
from replctl.query.logical_slot import SlotCall, changes, slot_calls
from replctl.query.sqlite import run_query
from replctl.query.sqlite_value import canonical_form
from replctl.query.tree import FromFunction, Output, Query, set_functions_of
from replctl.session import Session


class CallsFirst(Exception):
    """A signal to call functions before the statement; not an error."""

    def __init__(self, calls: Sequence[SlotCall | FromFunction]) -> None:
        super().__init__(calls)
        self.calls = calls


def check_called(query: Query, context: FunctionContext) -> None:
    """Check that the functions of slots in a query have been called.

    Raises:
        CallsFirst: the functions have not been called yet.
        FeatureNotSupported: an argument uses columns.
        InsufficientPrivilege: the role may not use slots (42501).
    """
    parts = (part for item in set_functions_of(query) for part in item.parts)
    items = [part for part in parts if _changes_slots(part, context)]
    calls = [call for call in slot_calls(query, context) if call.expr not in context.evaluated]
    items = [item for item in items if item.function not in context.evaluated]
    if calls or items:
        raise CallsFirst([*calls, *items])


def _changes_slots(item: FromFunction, context: FunctionContext) -> bool:
    call = item.function
    if not isinstance(call, nodes.FuncExpr) or call.type == "void":  # Spark refuses void
        return False
    if context.environment.function(call.function_oid).source not in FUNCTIONS | ROW_FUNCTIONS:
        return False
    if any(isinstance(node, nodes.Var | nodes.SubLink) for node in nodes.walk(call)):
        raise FeatureNotSupported(
            f"arguments of {call.name} that are no constants are not supported"
        )
    return True


def call_early(session: Session, first: CallsFirst) -> None:
    """Call functions, and keep their results in `session.early_calls`.

    Raises:
        PostgresError: a function fails.
    """
    for call in first.calls:
        if isinstance(call, SlotCall):
            session.early_calls[call.expr] = changes(session, call)
            continue
        with session.read() as catalog:
            context = function_context(session, catalog)
            assert isinstance(call.function, nodes.FuncExpr)
            session.early_calls[call.function] = run_query(
                rows_of(call), context, form=canonical_form
            )


def rows_of(item: FromFunction) -> Query:
    """Return a query for the rows of a function, without their numbers."""
    width = len(item.columns) - item.with_ordinality
    item = replace(item, columns=item.columns[:width], with_ordinality=False)
    outputs = tuple(
        Output(c.name, nodes.Var(i, c.type, c.typmod, c.collation, item.varno))
        for i, c in enumerate(item.columns, start=1)
    )
    return Query(outputs, (item,))
