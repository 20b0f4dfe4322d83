"""Parse and check the actions of Delta's log, which may come from any writer.  Other modules rely
on the checks of this one.

Delta's protocol, section "Actions", says which fields an action has.  replctl ignores unknown
actions and fields.  `commitInfo` may have any content; replctl uses only known fields.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from replctl.delta_path import canonical_path

_INT64 = 2**63
#: Jackson, Delta's JSON parser, accepts strings of twenty million characters.
_LONGEST_TEXT = 10_000_000
#: The last millisecond of the year 9999.
_LAST_TIMESTAMP = 253_402_300_799_999
BASE85 = {
    letter: value
    for value, letter in enumerate(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
}
_UUID_LENGTH = 20  # of 16 bytes in base 85
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


class VectorStorage(StrEnum):
    """The place of a deletion vector (storageType in Delta's protocol)."""

    UUID = "u"  # a file of the table, whose name has the UUID
    INLINE = "i"  # the log itself
    PATH = "p"  # a file with an absolute path


class BrokenLogError(ValueError):
    """Raised for a broken file of a log.  The message is the second part of a sentence."""


def parse_actions(content: bytes) -> list[dict[str, Any]]:
    """Return the actions of a commit, each as {its name: its fields}.

    Raises:
        BrokenLogError: the commit is incomplete, or an action does not have Delta's form.
    """
    actions = _parse_lines(content, is_complete=True)
    if not actions:
        raise BrokenLogError("it has no action")
    seen: set[tuple[str, ...]] = set()
    for action in actions:
        for kind, body in action.items():
            place = _place(kind, body)
            if place is not None and place in seen:
                raise BrokenLogError(f'it has the action "{" ".join(place).rstrip()}" twice')
            seen.update(() if place is None else [place])
    return [{kind: body} for action in actions for kind, body in action.items()]


def parse_checkpoint(content: bytes) -> list[dict[str, Any]]:
    """Return the actions of a checkpoint in JSON.

    Raises:
        BrokenLogError: see `parse_actions`.
    """
    return _parse_lines(content, is_complete=True)


def check_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Check a row of a checkpoint and return it.  The row may have only some of the columns.

    Raises:
        BrokenLogError: an action does not have Delta's form.
    """
    return {
        kind: body if body is None else _checked(kind, body, is_complete=False)
        for kind, body in row.items()
    }


def parse_checksum(content: bytes) -> dict[str, Any]:
    """Return the parts of a version's checksum that replctl knows and that are not null.  Lists of
    actions omit the fields that are null.

    Raises:
        BrokenLogError: the checksum is not complete, or a part does not have Delta's form.
    """
    try:
        found = _loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise BrokenLogError("it is not valid JSON") from error
    if not isinstance(found, dict):
        raise BrokenLogError("it is not an object")
    return {
        name: _checked_part(name, part)
        for name, part in found.items()
        if name in _CHECKSUM and part is not None
    }


def _checked_part(name: str, part: Any) -> Any:
    """Check a part of a checksum and return it."""
    match _CHECKSUM[name]:
        case str(kind):
            return _checked(kind, part, is_complete=True)
        case [kind] if isinstance(part, list):
            actions = (_checked(kind, action, is_complete=True) for action in part)
            return [{k: v for k, v in action.items() if v is not None} for action in actions]
        case check if callable(check) and check(part):
            return part
    raise BrokenLogError(f'its part "{name}" has a wrong value')


def parse_columns(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the columns of a `metaData` action's schema, each with a name and a type.

    Raises:
        BrokenLogError: the schema is not valid.
    """
    try:
        schema = _loads(metadata["schemaString"])
    except (json.JSONDecodeError, RecursionError) as error:
        raise BrokenLogError("the schema of its metaData action is not valid JSON") from error
    if not _is_type(schema) or not isinstance(schema, dict) or schema["type"] != "struct":
        raise BrokenLogError("the schema of its metaData action is not one of Delta's")
    names: dict[str, str] = {}
    for name in (field["name"] for field in schema["fields"]):
        if name.lower() in names:
            other = names[name.lower()]
            raise BrokenLogError(
                f'the columns "{other}" and "{name}" have one name, because Delta ignores case'
            )
        names[name.lower()] = name
    return list(schema["fields"])


def file_key(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the identity of a table's file: its path (`canonical_path`) and deletion vector.  One
    file may have several deletion vectors.

    All comparisons of `add` and `remove` actions use it, because a log may contain several forms of
    one path.  replctl writes a path as it has read it: other readers may compare the texts.

    Delta's protocol, section "Deletion Vector Descriptor Schema", derived field `uniqueId`.
    """
    path, vector = canonical_path(body["path"]), body.get("deletionVector")
    if not vector:
        return path, ""
    offset = "" if vector.get("offset") is None else f"@{vector['offset']}"
    return path, f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"


def file_uris(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the URIs of the files that an action names: of the data file or change file, and of the
    deletion vector.
    """
    yield body["path"]
    vector = body.get("deletionVector")
    if not vector:
        return
    written = vector["pathOrInlineDv"]
    if vector["storageType"] == VectorStorage.PATH:
        yield written
    elif vector["storageType"] == VectorStorage.UUID:
        prefix, encoded = written[:-_UUID_LENGTH], written[-_UUID_LENGTH:]
        name = f"deletion_vector_{uuid.UUID(bytes=_decoded(encoded))}.bin"
        yield quote(f"{prefix}/{name}" if prefix else name)


def _decoded(text: str) -> bytes:
    """Decode base 85 as in ZeroMQ's RFC 32: five characters encode four bytes.

    Raises:
        ValueError: the text is not base 85.
    """
    result = b""
    for start in range(0, len(text), 5):
        number = 0
        for letter in text[start : start + 5]:
            if letter not in BASE85:
                raise ValueError(letter)
            number = number * 85 + BASE85[letter]
        if number >= 2**32:
            raise ValueError(number)
        result += number.to_bytes(4, "big")
    return result


def counted_rows(body: Mapping[str, Any]) -> int | None:
    """Return the number of rows in the file of an `add` or `remove`, without deleted rows; None if
    the statistics have no valid number.  Statistics may have any content.
    """
    counted: Any = _statistics(body).get("numRecords")
    if not _is_count(counted):
        return None
    return int(counted) - int((body.get("deletionVector") or {}).get("cardinality") or 0)


def outermost_value(body: Mapping[str, Any], column: str, *, greatest: bool) -> int | None:
    """Return the greatest or the least integer of a column in the file of an `add`; None if the
    statistics have none.

    Args:
        column: the column's name in data files.
    """
    values = _statistics(body).get("maxValues" if greatest else "minValues")
    value = values.get(column) if isinstance(values, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _statistics(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics of a file; {} if there are none, or if they are not valid."""
    written = body.get("stats")
    try:
        found = _loads(written) if isinstance(written, str) else None
    except (ValueError, RecursionError):  # other writers may write anything here
        return {}
    return found if isinstance(found, dict) else {}


def commit_time(info: Mapping[str, Any]) -> int:
    """Return the time of a `commitInfo` in milliseconds since 1970; 0 if it has none."""
    for name in ("inCommitTimestamp", "timestamp"):
        said: Any = info.get(name)
        if _is_count(said) and 0 < said <= _LAST_TIMESTAMP:
            return int(said)
    return 0


def is_readable(info: Mapping[str, Any]) -> bool:
    """Return whether Delta can read a `commitInfo`.  If not, Delta cannot read the commit's change
    data feed, even if the other actions are valid.
    """
    return all(info.get(name) is None or check(info[name]) for name, check in _INFO.items())


def counts_in(info: Mapping[str, Any]) -> dict[str, str]:
    """Return those metrics of a `commitInfo` that are numbers."""
    metrics = info.get("operationMetrics")
    if not isinstance(metrics, dict):
        return {}
    return {name: str(value) for name, value in metrics.items() if _is_written_count(value)}


def _is_written_count(value: object) -> bool:
    if isinstance(value, str):
        return len(value) < 19 and value.isascii() and value.isdigit()
    return _is_count(value)


def _parse_lines(content: bytes, *, is_complete: bool) -> list[dict[str, Any]]:
    actions = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            try:
                actions.append(_parse_line(line, is_complete=is_complete))
            except BrokenLogError as error:
                raise BrokenLogError(f"line {number}: {error}") from error
    return actions


def _parse_line(line: bytes, *, is_complete: bool) -> dict[str, Any]:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise BrokenLogError("it is not valid UTF-8") from error
    try:
        found = _loads(text)
    except json.JSONDecodeError as error:
        raise BrokenLogError(f"it is not valid JSON ({error.msg})") from error
    except (BrokenLogError, RecursionError) as error:
        if text.lstrip().startswith('{"commitInfo":') and _is_closed(text):
            return {"commitInfo": _UNREADABLE_INFO}
        if isinstance(error, BrokenLogError):
            raise
        raise BrokenLogError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise BrokenLogError("it is not an object")
    actions = {kind: body for kind, body in found.items() if kind in _ACTIONS and body is not None}
    if len(actions) > 1:
        raise BrokenLogError("it has more than one action")
    return {kind: _checked(kind, body, is_complete=is_complete) for kind, body in actions.items()}


def _loads(text: str) -> Any:
    """Read JSON.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: the text is nested too deeply.
        BrokenLogError: an object has a key twice.
    """
    return json.loads(text, object_pairs_hook=_object, parse_int=_integer)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BrokenLogError("an object has a key twice")
    return found


def _integer(text: str) -> int | float:
    """Convert an integer of JSON.  Convert very long ones to float, so that they count as invalid:
    Python refuses to parse them, and Delta never has them.
    """
    return int(text) if len(text) < 40 else float(text)


def _is_closed(text: str) -> bool:
    """Return whether all brackets are closed."""
    bare = _STRING.sub("", text)
    return '"' not in bare and all(bare.count(a) == bare.count(b) for a, b in ("{}", "[]"))


def _place(kind: str, body: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the key of an action; None if it has none.  A commit may have only one action with a
    key.
    """
    if kind in ("metaData", "protocol"):
        return (kind,)
    if kind in ("add", "remove"):
        return kind, *file_key(body)
    if kind == "txn":
        return kind, body["appId"]
    return None


# ---------------------------------------------------------------------------------------------
# Fields


def _is_text(value: object) -> bool:
    """Return whether a value is text that can be stored, shown, and used as a file name."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _is_name(value: object) -> bool:
    return _is_text(value) and value != ""


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64


def _is_count(value: Any) -> bool:
    return _is_integer(value) and value >= 0


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_map(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_text(name) and (item is None or _is_text(item)) for name, item in value.items()
    )


def _is_short_text(value: object) -> bool:
    """Return whether a value is text that is not too long for Delta."""
    return isinstance(value, str) and len(value) < _LONGEST_TEXT


def _is_flat(value: object) -> bool:
    """Return whether a value is an object of plain values."""
    return isinstance(value, dict) and all(
        item is None or _is_flag(item) or _is_integer(item) or _is_short_text(item)
        for item in value.values()
    )


def _is_vector(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("storageType") in tuple(VectorStorage)
        and _is_name(value.get("pathOrInlineDv"))
        and (value["storageType"] != VectorStorage.UUID or _is_vector_name(value["pathOrInlineDv"]))
        and all(
            _is_count(value[name])
            for name in ("offset", "sizeInBytes", "cardinality")
            if value.get(name) is not None
        )
    )


def _is_vector_name(text: str) -> bool:
    try:
        return len(_decoded(text[-_UUID_LENGTH:])) == 16
    except ValueError:  # no writer makes such names: the log is broken
        return False


def _is_type(value: object, depth: int = 0) -> bool:
    """Return whether a value is the type of a column, or of a part of a column, in Delta's form."""
    if depth > 100:
        return False
    if not isinstance(value, dict):
        return _is_name(value)
    match value.get("type"):
        case "struct":
            fields = value.get("fields")
            return isinstance(fields, list) and all(_is_column(f, depth + 1) for f in fields)
        case "array":
            return _is_type(value.get("elementType"), depth + 1)
        case "map":
            parts = (value.get("keyType"), value.get("valueType"))
            return all(_is_type(part, depth + 1) for part in parts)
        case other:
            return _is_name(other)


def _is_column(value: object, depth: int) -> bool:
    return (
        isinstance(value, dict)
        and _is_name(value.get("name"))
        and _is_type(value.get("type"), depth)
        and isinstance(value.get("nullable", True), bool)
        and isinstance(value.get("metadata") or {}, dict)
    )


_Check = Callable[[Any], bool]
_OPTIONAL_FILE: dict[str, _Check] = {
    "deletionVector": _is_vector,
    "baseRowId": _is_count,
    "defaultRowCommitVersion": _is_count,
    "deletionTimestamp": _is_integer,
    "extendedFileMetadata": _is_flag,
}
#: The mandatory and the optional fields of each action, with the checks of their values.
_ACTIONS: dict[str, tuple[dict[str, _Check], dict[str, _Check]]] = {
    "add": (
        {
            "path": _is_name,
            "partitionValues": _is_map,
            "size": _is_count,
            "modificationTime": _is_integer,
            "dataChange": _is_flag,
        },
        _OPTIONAL_FILE,
    ),
    "remove": (
        {"path": _is_name, "dataChange": _is_flag},
        {"partitionValues": _is_map, "size": _is_count, **_OPTIONAL_FILE},
    ),
    "cdc": (
        {"path": _is_name, "partitionValues": _is_map, "size": _is_count},
        {"dataChange": _is_flag},
    ),
    "metaData": (
        {
            "id": _is_text,
            "schemaString": _is_text,
            "partitionColumns": _is_texts,
            "configuration": _is_map,
        },
        {"createdTime": _is_integer},
    ),
    "protocol": (
        {"minReaderVersion": _is_count, "minWriterVersion": _is_count},
        {"readerFeatures": _is_texts, "writerFeatures": _is_texts},
    ),
    "txn": ({"appId": _is_text, "version": _is_integer}, {"lastUpdated": _is_integer}),
    "domainMetadata": ({"domain": _is_text, "configuration": _is_text, "removed": _is_flag}, {}),
    "sidecar": ({"path": _is_name}, {"sizeInBytes": _is_count, "modificationTime": _is_integer}),
    "checkpointMetadata": ({"version": _is_count}, {}),
    "commitInfo": ({}, {}),
}
#: The known parts of a checksum: a check of a value, an action, or a list of actions of a kind.
_CHECKSUM: dict[str, _Check | str | list[str]] = {
    **dict.fromkeys(("tableSizeBytes", "numFiles"), _is_count),
    **dict.fromkeys(("numDeletedRecordsOpt", "numDeletionVectorsOpt"), _is_count),
    "txnId": _is_text,
    "metadata": "metaData",
    "protocol": "protocol",
    "setTransactions": ["txn"],
    "domainMetadata": ["domainMetadata"],
    "allFiles": ["add"],
}
_MAPS = ("configuration", "partitionValues")
#: Checks of the fields of `commitInfo` that Delta itself reads
#: (org.apache.spark.sql.delta.actions.CommitInfo).  They accept what Delta's writers write.
_INFO: dict[str, _Check] = {
    **dict.fromkeys(
        ("userId", "userName", "operation", "clusterId", "isolationLevel", "userMetadata",
         "engineInfo", "txnId"),
        _is_short_text,
    ),
    **dict.fromkeys(("version", "inCommitTimestamp", "timestamp", "readVersion"), _is_integer),
    "isBlindAppend": _is_flag,
    "operationParameters": lambda value: isinstance(value, dict),
    **dict.fromkeys(("operationMetrics", "tags", "job", "notebook"), _is_flat),
}  # fmt: skip
#: The replacement for an unreadable `commitInfo`.
_UNREADABLE_INFO: dict[str, Any] = {"userMetadata": {}}


def _checked(kind: str, body: object, *, is_complete: bool) -> dict[str, Any]:
    """Return the fields of an action, without those that are null.

    Args:
        is_complete: the action's mandatory fields must be present.
    """
    if kind == "commitInfo":
        return body if isinstance(body, dict) else _UNREADABLE_INFO
    if not isinstance(body, dict):
        raise BrokenLogError(f'its action "{kind}" is not an object')
    found = body if is_complete else {name: _plain(name, item) for name, item in body.items()}
    fields = {name: value for name, value in found.items() if value is not None}
    mandatory, optional = _ACTIONS[kind]
    for name, check in {**mandatory, **optional}.items():
        if name not in fields:
            if is_complete and name in mandatory:
                raise BrokenLogError(f'its action "{kind}" has no field "{name}"')
        elif not check(fields[name]):
            raise BrokenLogError(f'the field "{name}" of its action "{kind}" has a wrong value')
    return fields


def _plain(name: str, value: Any) -> Any:
    """Convert a value from Parquet to the form that it has in JSON.  In Parquet, a map is a list of
    pairs, and a missing deletion vector may be a struct whose fields are all null.
    """
    if name in _MAPS and isinstance(value, list):
        pairs = [item for item in value if isinstance(item, tuple) and len(item) == 2]
        return dict(pairs) if len(pairs) == len(value) else value
    if name == "deletionVector" and isinstance(value, dict):
        return value if any(item is not None for item in value.values()) else None
    return value
