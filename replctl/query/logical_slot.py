"""Decode a slot's changes with a plugin: pg_logical_slot_get_changes() and similar functions
(logicalfuncs.c).

Decoding reads tables, which takes long.  So replctl runs such a call before the query that contains
it, and the arguments must be constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replctl.adt.functions import arguments
from replctl.catalog.pg_replication_slots import (
    ReplicationSlot,
    advance_slot,
    check_database,
    count_decoded,
    note_inactive,
)
from replctl.catalog.slotsync import check_not_synced
from replctl.catalog.wal_availability import check_not_invalidated
from replctl.errors import (
    FeatureNotSupported,
    NullValueNotAllowed,
    ObjectNotInPrerequisiteState,
    PostgresError,
)
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext
from replctl.functions.replication_functions import acquired_slot, check_slot_permissions
from replctl.functions.sql_functions import EVALUATED_BEFORE
from replctl.lsn import format_lsn, parse_lsn
from replctl.query.sqlite import run_query
from replctl.query.tree import Output, Query, functions_of
from replctl.record import dataclass
from replctl.replication.output_plugin import DecodedTransaction, OutputPlugin
from replctl.replication.pgoutput import PgOutput
from replctl.replication.test_decoding import TestDecoding
from replctl.session import Session
from replctl.types import text
from replctl.types.value_format import CANONICAL

#: The function that starts each output plugin with options, by the plugin's name.
_PLUGINS: dict[str, Callable[[Sequence[tuple[str, str]]], OutputPlugin]] = {
    "pgoutput": PgOutput.started,
    "test_decoding": TestDecoding.started,
}


@dataclass(frozen=True, slots=True)
class SlotCall:
    """A call with its arguments as texts."""

    expr: nodes.FuncExpr
    slot_name: str | None
    upto_lsn: str | None
    upto_nchanges: str | None
    options: str | None

    @property
    def confirms(self) -> bool:
        """Return whether the call consumes the changes that it returns."""
        return "_get_" in self.expr.name

    @property
    def is_binary(self) -> bool:
        """Return whether the call returns bytea."""
        return "_binary_" in self.expr.name


def slot_calls(query: Query, context: FunctionContext) -> list[SlotCall]:
    """Return the calls of slot functions in a query; they run before the query.

    Raises:
        FeatureNotSupported: an argument uses columns.
        InsufficientPrivilege: the role may not use slots (42501).
    """
    calls: dict[nodes.FuncExpr, SlotCall] = {}
    for call in functions_of(query):
        if not isinstance(call, nodes.FuncExpr) or call in calls:
            continue
        function = context.environment.function(call.function_oid)
        if function.source not in EVALUATED_BEFORE:
            continue
        if any(isinstance(node, nodes.Var | nodes.SubLink) for node in nodes.walk(call)):
            raise FeatureNotSupported(
                f"arguments of {call.name} that are no constants are not supported"
            )
        check_slot_permissions(context)
        args = arguments(function, call.args)
        outputs = tuple(Output(f"a{i}", arg) for i, arg in enumerate(args))
        (values,) = run_query(Query(outputs), context)
        calls[call] = SlotCall(call, *values)
    return list(calls.values())


def changes(session: Session, call: SlotCall) -> list[list[str | None]]:
    """Run a call, and return its rows as texts: LSN, xid, data.

    Raises:
        NullValueNotAllowed, InvalidParameterValue: an argument is wrong.
        UndefinedObject: there is no slot of that name (42704).
        ObjectNotInPrerequisiteState: the slot is physical or invalidated, or belongs to another
            database (55000).
        FeatureNotSupported: the options are not a list of pairs, or the session has changed the
            output format.  Or the plugin's output is binary, but the function returns text.
    """
    from replctl.lake.logical_decoding import decode
    from replctl.lake.publisher import LakePublisher

    if session.value_format != CANONICAL:
        statements = [
            f"SET {name} = '{usual}'" for name, _, usual in session.value_format.changed()
        ]
        raise FeatureNotSupported(
            "decoding is only supported with the default output settings",
            hint=f"Use {'; '.join(statements)}.",
        )
    slot, plugin = _opened(session, call)
    end = LakePublisher(session).slots.sendable_lsn(slot.name)
    if call.upto_lsn is not None:
        end = min(end, parse_lsn(call.upto_lsn))
    wanted = int(call.upto_nchanges or 0)
    rows: list[list[str | None]] = []
    transactions = size = 0
    reached = slot.confirmed_flush_lsn
    end = reached if wanted < 0 else end  # a negative limit is reached before the first row
    for decoded in decode(session, slot.name, reached, end, plugin.publications, wanted):
        for lsn, xid, data in plugin.output(decoded):
            rows.append([format_lsn(lsn), str(xid), _shown(data, call)])
            size += len(data)
        reached = decoded.end_lsn
        transactions += isinstance(decoded, DecodedTransaction)
        if wanted and len(rows) >= wanted:  # stop before reading unwanted changes
            end = reached
            break
    with session.cluster.begin(write=True, in_recovery=True) as connection:
        count_decoded(connection, slot.name, transactions, size)
        if call.confirms:
            advance_slot(connection, slot.name, end)
        note_inactive(connection, slot.name)
    return rows


def _opened(session: Session, call: SlotCall) -> tuple[ReplicationSlot, OutputPlugin]:
    """Return the slot of a call, and its plugin with the options of the call
    (CreateDecodingContext)."""
    from replctl.lake.retention import check_slot

    if call.slot_name is None:
        raise NullValueNotAllowed("slot name must not be null")
    options = _options(call.options)
    with session.cluster.begin(write=False) as connection:
        slot = acquired_slot(session, connection, call.slot_name)
        check_not_synced(connection, slot)
    if not slot.is_logical:
        raise ObjectNotInPrerequisiteState(
            "cannot use physical replication slot for logical decoding"
        )
    check_database(slot, session.database_oid)
    check_not_invalidated(check_slot(session, slot))
    plugin = _started(slot, options)
    if plugin.is_binary and not call.is_binary:
        raise FeatureNotSupported(
            f'logical decoding output plugin "{slot.plugin}" produces binary output, but function'
            f' "{call.expr.name}(name,pg_lsn,integer,text[])" expects textual data'
        )
    return slot, plugin


def _options(array: str | None) -> list[tuple[str, str]]:
    """Return the pairs of an array: `{include-xids,0}` -> [(`include-xids`, `0`)]"""
    if array is None:
        raise NullValueNotAllowed("options array must not be null")
    items = text.parse("_text", array)
    assert isinstance(items, list)
    if any(isinstance(item, list) for item in items):
        raise FeatureNotSupported("array must be one-dimensional")
    if None in items:
        raise FeatureNotSupported("array must not contain nulls")
    if len(items) % 2:
        raise FeatureNotSupported("array must have even number of elements")
    return list(zip(items[::2], items[1::2], strict=True))


def _started(slot: ReplicationSlot, options: Sequence[tuple[str, str]]) -> OutputPlugin:
    try:
        return _PLUGINS[slot.plugin](options)
    except PostgresError as error:
        error.context = (
            f'slot "{slot.name}", output plugin "{slot.plugin}", in the startup callback'
        )
        raise


def _shown(data: bytes, call: SlotCall) -> str:
    return text.render("bytea", data) if call.is_binary else data.decode(errors="replace")
