"""Implement the output plugin test_decoding: changes as text (contrib/test_decoding).

BEGIN 750
table public.t: INSERT: a[integer]:1 b[text]:'x'
COMMIT 750
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from replctl.errors import DataError, InvalidParameterValue
from replctl.record import dataclass
from replctl.replication.output_plugin import (
    Change,
    DecodedColumn,
    DecodedTransaction,
    Message,
    OutputRow,
    RowChange,
    TruncateChange,
    Values,
)
from replctl.replication.update_transformation import Action
from replctl.types import text
from replctl.types.quote import quote_identifier

#: Types whose values are shown without quotes.
_BARE = frozenset(["int2", "int4", "int8", "oid", "float4", "float8", "numeric"])
_BITS = frozenset(["bit", "varbit"])

#: Options with their defaults.  The last two have no effect, because replctl never rewrites tables
#: or streams transactions.
_OPTIONS = {
    "include-xids": True,
    "include-timestamp": False,
    "force-binary": False,
    "skip-empty-xacts": False,
    "only-local": False,
    "include-rewrites": False,
    "stream-changes": False,
}


@dataclass(frozen=True)
class TestDecoding:
    """The plugin with its options."""

    __test__ = False  # pytest takes it for a test

    include_xids: bool
    include_timestamp: bool
    is_binary: bool
    skips_empty: bool
    only_local: bool
    publications = None

    @classmethod
    def started(cls, options: Sequence[tuple[str, str]]) -> TestDecoding:
        """Return the plugin for the options of a slot's reader (pg_decode_startup).

        Raises:
            InvalidParameterValue: an option is unknown, or its value is not a boolean.
        """
        chosen = dict(_OPTIONS)
        for name, value in options:
            if name not in _OPTIONS:
                raise InvalidParameterValue(f'option "{name}" = "{value}" is unknown')
            chosen[name] = _boolean(name, value)
        return cls(
            chosen["include-xids"],
            chosen["include-timestamp"],
            chosen["force-binary"],
            chosen["skip-empty-xacts"],
            chosen["only-local"],
        )

    def output(self, decoded: DecodedTransaction | Message) -> Sequence[OutputRow]:
        """Return the lines for a transaction, or for a message outside of transactions."""
        if self.only_local and decoded.origin:
            return []
        if isinstance(decoded, Message):
            return [OutputRow(decoded.lsn, 0, _message(decoded))]
        changes = decoded.changes
        if self.skips_empty and not changes:
            return []
        xid = f" {decoded.xid}" if self.include_xids else ""
        at = ""
        if self.include_timestamp:
            at = f" (at {text.render('timestamptz', decoded.commit_time)})"
        first_lsn = changes[0].lsn if changes else decoded.commit_lsn
        return [
            OutputRow(first_lsn, decoded.xid, f"BEGIN{xid}".encode()),
            *(OutputRow(change.lsn, decoded.xid, _line(change)) for change in changes),
            OutputRow(decoded.commit_lsn, decoded.xid, f"COMMIT{xid}{at}".encode()),
        ]


def _boolean(name: str, value: str) -> bool:
    try:
        return bool(text.parse("bool", value))
    except DataError:
        raise InvalidParameterValue(
            f'could not parse value "{value}" for parameter "{name}"'
        ) from None


def _line(change: Change) -> bytes:
    match change:
        case RowChange():
            return f"table {change.relation.quoted_name}:{''.join(_images(change))}".encode()
        case TruncateChange():
            names = ", ".join(relation.quoted_name for relation in change.relations)
            flags = [" restart_seqs"] * change.restart_identity + [" cascade"] * change.cascade
            return f"table {names}: TRUNCATE:{''.join(flags) or ' (no-flags)'}".encode()
        case Message():
            return _message(change)
    assert_never(change)


def _images(change: RowChange) -> Iterator[str]:
    columns, old_key = change.relation.columns, change.old_key
    yield f" {_WORDS[change.action]}:"
    if change.action is Action.DELETE:
        yield " (no-tuple-data)" if old_key is None else _key(columns, old_key)
        return
    if change.action is Action.UPDATE and old_key is not None:
        yield f" old-key:{_key(columns, old_key)} new-tuple:"
    assert change.new is not None
    for column, value in zip(columns, change.new, strict=True):
        yield _shown(column, value)


_WORDS = {Action.INSERT: "INSERT", Action.UPDATE: "UPDATE", Action.DELETE: "DELETE"}


def _key(columns: Sequence[DecodedColumn], values: Values) -> str:
    """Return the columns and values of an old row, without NULLs."""
    pairs = zip(columns, values, strict=True)
    return "".join(_shown(column, value) for column, value in pairs if value is not None)


def _shown(column: DecodedColumn, value: str | None) -> str:
    type_ = "" if column.is_domain else column.type
    return f" {quote_identifier(column.name)}[{column.type_name}]:{_literal(type_, value)}"


def _literal(type_name: str, value: str | None) -> str:
    if value is None:
        return "null"
    if type_name in _BARE:
        return value
    if type_name in _BITS:
        return f"B'{value}'"
    if type_name == "bool":
        return "true" if value == "t" else "false"
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def _message(message: Message) -> bytes:
    head = (
        f"message: transactional: {int(message.is_transactional)} prefix: {message.prefix},"
        f" sz: {len(message.content)} content:"
    )
    return head.encode() + message.content
