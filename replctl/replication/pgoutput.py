"""Implement the output plugin pgoutput: the messages of the logical replication protocol
(pgoutput.c).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import assert_never

from replctl.errors import (
    FeatureNotSupported,
    InternalError,
    InvalidName,
    InvalidParameterValue,
    SqlSyntaxError,
)
from replctl.record import dataclass
from replctl.replication.output_plugin import (
    Change,
    DecodedRelation,
    DecodedTransaction,
    Message,
    OutputRow,
    RowChange,
    TruncateChange,
    Values,
)
from replctl.replication.update_transformation import Action
from replctl.types.quote import split_identifiers

_MIN_VERSION, _MAX_VERSION = 1, 4
_MICROS_TO_2000 = 946_684_800_000_000
_NUMBER = re.compile(r"\s*[+-]?\d+")
_BOOLEANS = {"true": True, "on": True, "false": False, "off": False}
#: Options that need a newer version of the protocol than 1: option, value, version, and the
#: feature's name in errors.
_SINCE = (
    ("streaming", "on", 2, "streaming"),
    ("streaming", "parallel", 4, "parallel streaming"),
    ("two_phase", True, 3, "two-phase commit"),
)


@dataclass
class PgOutput:
    """The plugin with its options.  It sends the description of a relation before the relation's
    first change, and again if the description has changed.
    """

    publications: tuple[str, ...]
    sends_messages: bool = False
    only_local: bool = False
    is_binary = True
    _sent: dict[int, DecodedRelation] = field(default_factory=dict, init=False)

    @classmethod
    def started(cls, options: Sequence[tuple[str, str]]) -> PgOutput:
        """Return the plugin for the options of a subscriber (parse_output_parameters).

        Raises:
            InvalidParameterValue: an option is missing, or its value is wrong.
            SqlSyntaxError: an option is given twice, or is not a boolean.
            FeatureNotSupported: the version of the protocol, or an option, is not supported
                (0A000).
        """
        given: dict[str, int | bool | str | tuple[str, ...]] = {}
        for name, text in options:
            if name in given:
                raise SqlSyntaxError("conflicting or redundant options")
            given[name] = _value(name, text)
        for name in ("proto_version", "publication_names"):
            if name not in given:
                raise InvalidParameterValue(f'option "{name}" missing')
        version, publications = given["proto_version"], given["publication_names"]
        assert isinstance(version, int)
        assert isinstance(publications, tuple)
        if version > _MAX_VERSION:
            raise FeatureNotSupported(
                f"client sent proto_version={version} but server only supports protocol"
                f" {_MAX_VERSION} or lower"
            )
        if version < _MIN_VERSION:
            raise FeatureNotSupported(
                f"client sent proto_version={version} but server only supports protocol"
                f" {_MIN_VERSION} or higher"
            )
        for name, value, since, what in _SINCE:
            if given.get(name) == value and version < since:
                raise InvalidParameterValue(
                    f"requested proto_version={version} does not support {what}, need {since} or"
                    " higher"
                )
        if given.get("binary"):
            raise FeatureNotSupported("pgoutput's option binary is not supported")
        return cls(publications, bool(given.get("messages")), given.get("origin") == "none")

    def output(self, decoded: DecodedTransaction | Message) -> Sequence[OutputRow]:
        """Return the messages of the protocol for a transaction, or for a message outside of
        transactions; none if there is nothing to send.
        """
        if self.only_local and decoded.origin:
            return []
        if isinstance(decoded, Message):
            return [OutputRow(decoded.lsn, 0, _message(decoded))] if self.sends_messages else []
        changes = [
            OutputRow(change.lsn, decoded.xid, data)
            for change in decoded.changes
            for data in self._change(change)
        ]
        if not changes:
            return []
        first_lsn = changes[0].lsn
        head = [OutputRow(first_lsn, decoded.xid, data) for data in _begin(decoded)]
        return [*head, *changes, OutputRow(decoded.commit_lsn, decoded.xid, _commit(decoded))]

    def _change(self, change: Change) -> Iterator[bytes]:
        match change:
            case Message():
                if self.sends_messages:
                    yield _message(change)
            case TruncateChange():
                for relation in change.relations:
                    yield from self._relation(relation)
                yield _truncate(change)
            case RowChange():
                if change.action is Action.DELETE and change.old_key is None:
                    return  # nothing identifies the row
                yield from self._relation(change.relation)
                yield _row_change(change)
            case _:
                assert_never(change)

    def _relation(self, relation: DecodedRelation) -> Iterator[bytes]:
        if self._sent.get(relation.oid) != relation:
            self._sent[relation.oid] = relation
            yield _described(relation)


# -- the messages: documentation, section 53.9, "Logical Replication Message Formats"


def _begin(transaction: DecodedTransaction) -> Iterator[bytes]:
    time = transaction.commit_time - _MICROS_TO_2000
    yield b"B" + struct.pack(">QqI", transaction.commit_lsn, time, transaction.xid)
    if transaction.origin:
        yield b"O" + struct.pack(">Q", transaction.origin_lsn or 0) + _string(transaction.origin)


def _commit(transaction: DecodedTransaction) -> bytes:
    lsn, time = transaction.commit_lsn, transaction.commit_time - _MICROS_TO_2000
    return b"C" + struct.pack(">BQQq", 0, lsn, lsn, time)


def _described(relation: DecodedRelation) -> bytes:
    """Return an R message: the relation's names, its replica identity, and its columns.  Each
    column has a flag that says whether it belongs to the identity.
    """
    schema = "" if relation.schema == "pg_catalog" else relation.schema
    names = _string(schema) + _string(relation.name)
    identity = relation.identity
    columns = b"".join(
        bytes([identity is None or i in identity])
        + _string(column.name)
        + struct.pack(">Ii", column.type_oid, column.declared_typmod)
        for i, column in enumerate(relation.columns)
    )
    counted = relation.replica_identity.encode() + struct.pack(">H", len(relation.columns))
    return b"R" + struct.pack(">I", relation.oid) + names + counted + columns


def _row_change(change: RowChange) -> bytes:
    """Return an I, U or D message: the old row if it is needed, and the new row."""
    head = change.action.value.encode() + struct.pack(">I", change.relation.oid)
    old = new = b""
    if change.action is not Action.INSERT and change.old_key is not None:
        old = (b"O" if change.relation.identity is None else b"K") + _tuple(change.old_key)
    if change.new is not None:
        new = b"N" + _tuple(change.new)
    return head + old + new


def _tuple(values: Values) -> bytes:
    """Return the TupleData part of a message: each value as text, after its length."""
    parts = [struct.pack(">H", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        else:
            content = value.encode()
            parts.append(b"t" + struct.pack(">I", len(content)) + content)
    return b"".join(parts)


def _truncate(change: TruncateChange) -> bytes:
    flags = change.cascade * 1 | change.restart_identity * 2
    oids = [relation.oid for relation in change.relations]
    return b"T" + struct.pack(f">IB{len(oids)}I", len(oids), flags, *oids)


def _message(message: Message) -> bytes:
    head = struct.pack(">BQ", message.is_transactional, message.lsn)
    content = struct.pack(">I", len(message.content)) + message.content
    return b"M" + head + _string(message.prefix) + content


def _string(value: str) -> bytes:
    return value.encode() + b"\0"


# -- options


def _value(name: str, text: str) -> int | bool | str | tuple[str, ...]:
    match name:
        case "proto_version":
            return _version(text)
        case "publication_names":
            names = split_identifiers(text)
            if names is None:
                raise InvalidName("invalid publication_names syntax")
            return tuple(names)
        case "binary" | "messages" | "two_phase":
            return _boolean(name, text)
        case "streaming":
            if text.lower() == "parallel":
                return "parallel"
            return "on" if _boolean(name, text) else "off"
        case "origin":
            if text.lower() not in ("none", "any"):
                raise InvalidParameterValue(f'unrecognized origin value: "{text}"')
            return text.lower()
        case _:
            raise InternalError(f"unrecognized pgoutput option: {name}")


def _version(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise InvalidParameterValue("invalid proto_version")
    version = int(text)
    if not 0 <= version < 2**32:
        raise InvalidParameterValue(f'proto_version "{text}" out of range')
    return version


def _boolean(name: str, text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise SqlSyntaxError(f"{name} requires a Boolean value")
    return value
