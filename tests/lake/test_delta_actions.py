"""replctl checks the form of Delta's actions, whatever a writer has put into the log."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replctl.lake.delta_actions import (
    BrokenLogError,
    commit_time,
    counted_rows,
    counts_in,
    file_uris,
    parse_actions,
    parse_columns,
)

_FILE: dict[str, Any] = {
    "path": "part-0.parquet",
    "partitionValues": {"p": None},
    "size": 10,
    "modificationTime": 1,
    "dataChange": True,
    "stats": '{"numRecords": 3}',
    "deletionVector": {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 1,
    },
}
_ACTIONS: list[dict[str, Any]] = [
    {"commitInfo": {"timestamp": 5, "operation": "WRITE", "userMetadata": "x"}},
    {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping"],
                  "writerFeatures": ["columnMapping"]}},
    {"metaData": {"id": "i", "schemaString": "{}", "partitionColumns": ["p"],
                  "configuration": {"a": "b"}, "createdTime": 1}},
    {"add": _FILE},
    {"remove": {"path": "a", "dataChange": True, "deletionTimestamp": 1}},
    {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
    {"txn": {"appId": "a", "version": 1}},
    {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
]  # fmt: skip


def _text(actions: list[Any]) -> bytes:
    return "\n".join(json.dumps(action) for action in actions).encode()


def test_whole_actions_are_read_as_they_are() -> None:
    others = [{"newAction": {"x": [1]}}, {}, {"add": None, "txn": {"appId": "b", "version": 2}}]
    found = parse_actions(_text([*_ACTIONS, *others]) + b"\n\n")
    assert found == [*_ACTIONS, {"txn": {"appId": "b", "version": 2}}]
    assert list(file_uris(_FILE))[1].startswith("ab/deletion_vector_")
    assert counted_rows(_FILE) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no action"),
        (b"\n \n", "no action"),
        (_text(_ACTIONS)[:-1], "line 8: it is not valid JSON"),
        (b"\0" * 90, "not valid JSON"),
        (b'{"commitInfo":{"a":"\xff"}}', "not valid UTF-8"),
        (json.dumps({"add": _FILE}).encode("utf-16"), "not valid UTF-8"),
        (b'{"commitInfo":{"userMetadata":' + b"[" * 90_000, "nested too deeply"),
        (b'{"add":' + b"[" * 90_000 + b"]" * 90_000 + b"}", "nested too deeply"),
        (b"[]", "not an object"),
        (b"7", "not an object"),
        (b'{"add":{},"remove":{}}', "more than one action"),
        (b'{"txn":{"appId":"a","appId":"b","version":1}}', "a key twice"),
        (_text([{"add": []}]), 'action "add" is not an object'),
        (_text([_ACTIONS[1]] * 2), '"protocol" twice'),
        (_text([_ACTIONS[2]] * 2), '"metaData" twice'),
        (_text([_ACTIONS[3]] * 2), '"add part-0.parquet'),
    ],
)
def test_a_broken_commit_is_told(content: bytes, words: str) -> None:
    with pytest.raises(BrokenLogError, match=words):
        parse_actions(content)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("add", {"path": None}), ("add", {"path": ""}), ("add", {"path": 7}),
        ("add", {"path": "a\0"}), ("add", {"path": "\ud800"}), ("add", {"size": -1}),
        ("add", {"size": 2**63}), ("add", {"size": "1"}), ("add", {"size": 1.0}),
        ("add", {"size": True}), ("add", {"size": float("inf")}), ("add", {"dataChange": None}),
        ("add", {"dataChange": 1}), ("add", {"partitionValues": []}),
        ("add", {"partitionValues": {"p": 7}}), ("add", {"deletionVector": "x"}),
        ("add", {"deletionVector": {"storageType": "u", "pathOrInlineDv": "short"}}),
        ("add", {"deletionVector": {"storageType": "u", "pathOrInlineDv": "#" * 20}}),
        ("add", {"deletionVector": {"storageType": "x", "pathOrInlineDv": "a"}}),
        ("add", {"deletionVector": {"storageType": "p", "pathOrInlineDv": "a", "cardinality": -1}}),
        ("remove", {"path": []}), ("cdc", {"size": None}), ("txn", {"version": 2**63}),
        ("txn", {"appId": 1}), ("protocol", {"minReaderVersion": "3"}),
        ("protocol", {"readerFeatures": "x"}), ("metaData", {"configuration": {"a": []}}),
        ("metaData", {"partitionColumns": [1]}), ("metaData", {"schemaString": {}}),
    ],
)  # fmt: skip
def test_a_wrong_field_is_told(kind: str, changed: dict[str, Any]) -> None:
    [body] = [action[kind] for action in _ACTIONS if kind in action]
    with pytest.raises(BrokenLogError, match=kind):
        parse_actions(_text([{kind: body | changed}]))


@pytest.mark.parametrize(
    "info",
    [
        None, [], "x", 7, {}, {"timestamp": "x", "inCommitTimestamp": 1e400, "operation": []},
        {"timestamp": 2**80, "operationMetrics": 7, "userMetadata": {"a": 9**999}},
        {"timestamp": -1, "operationMetrics": {"a": "x", "b": [], "c": "9" * 40, "d": True}},
    ],
)  # fmt: skip
def test_anything_can_stand_in_commit_info(info: object) -> None:
    found = parse_actions(_text([{"commitInfo": info}, _ACTIONS[3]]))
    read = found[0].get("commitInfo", {})
    assert commit_time(read) == 0
    assert counts_in(read) == {}


def test_a_mark_may_be_nested_and_have_a_key_twice() -> None:
    for mark in (b"[" * 90_000 + b"]" * 90_000, b'{"a":1,"a":2}', b"9" * 9000):
        content = b'{"commitInfo":{"userMetadata":' + mark + b"}}\n" + _text(_ACTIONS[3:4])
        assert parse_actions(content)[1] == _ACTIONS[3]


@pytest.mark.parametrize(
    ("stats", "rows"),
    [("{", None), ("[]", None), ("7", None), ('{"numRecords": "9"}', None), ('{"numRecords":3}', 2),
     ("[" * 90_000, None), ('{"numRecords": 1e999}', None)],
)  # fmt: skip
def test_statistics_may_be_anything(stats: str, rows: int | None) -> None:
    assert counted_rows(_FILE | {"stats": stats}) == rows


@pytest.mark.parametrize(
    "schema",
    [
        "", "null", "[]", "7", "{", '"struct"', '{"type":"struct"}', '{"type":"struct","fields":7}',
        '{"type":"struct","fields":[7]}', '{"type":"struct","fields":[{"name":"a"}]}',
        '{"type":"struct","fields":[{"name":7,"type":"long"}]}',
        '{"type":"struct","fields":[{"name":"","type":"long"}]}',
        '{"type":"struct","fields":[{"name":"\\ud800","type":"long"}]}',
        '{"type":"struct","fields":[{"name":"a","type":{"type":"array"}}]}',
        '{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"A","type":"date"}]}',
        '{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"a","type":"long"}]}',
        '{"type":"struct","fields":[{"name":"a","type":"long","nullable":"x"}]}',
        '{"type":"struct","fields":[{"name":"a","type":' + '{"type":"array","elementType":' * 9000,
    ],
)  # fmt: skip
def test_a_schema_of_another_form_is_told(schema: str) -> None:
    with pytest.raises(BrokenLogError):
        parse_columns({"schemaString": schema})


def _patient(examples: int) -> settings:
    too_slow = [HealthCheck.too_slow]
    return settings(max_examples=examples, deadline=None, suppress_health_check=too_slow)


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@_patient(300)
@given(st.sampled_from(_ACTIONS), _VALUES, st.data())
def test_no_value_of_a_field_ends_otherwise(
    action: dict[str, Any], value: object, data: st.DataObject
) -> None:
    [(kind, body)] = action.items()
    name = data.draw(st.sampled_from([*body, "deletionVector", "unknown"]))
    try:
        [found] = parse_actions(_text([{kind: body | {name: value}}]))
    except BrokenLogError:
        return
    read = found[kind]
    if kind in ("add", "remove"):
        assert all(isinstance(path, str) for path in file_uris(read))
        assert counted_rows(read) is None or isinstance(counted_rows(read), int)
    if kind == "metaData":
        with pytest.raises(BrokenLogError):
            parse_columns(read)
    commit_time(read)
    counts_in(read)


@_patient(200)
@given(st.integers(0, len(_text(_ACTIONS)) - 1), st.binary(max_size=3))
def test_no_byte_ends_otherwise(place: int, put: bytes) -> None:
    content = _text(_ACTIONS)
    for changed in (content[:place] + put + content[place + len(put) :], content[:place] + put):
        with suppress(BrokenLogError):
            parse_actions(changed)
