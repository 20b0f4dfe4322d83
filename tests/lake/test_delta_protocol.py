"""The requirements of a Delta table for readers and writers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from golden_script import answer_of

from replctl.errors import FeatureNotSupported
from replctl.lake.delta_protocol import check_protocol, check_writer_protocol
from replctl.session import Session


def _protocol(*reader: str, writer: tuple[str, ...] = (), version: int = 3) -> dict[str, Any]:
    return {
        "minReaderVersion": version,
        "minWriterVersion": 7,
        "readerFeatures": list(reader),
        "writerFeatures": [*reader, *writer],
    }


@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 1, "minWriterVersion": 2},
        _protocol(),
        _protocol("deletionVectors", "columnMapping", "v2Checkpoint", "timestampNtz"),
        _protocol(writer=("rowTracking", "domainMetadata", "a feature of tomorrow")),
    ],
)
def test_what_is_known_is_read(protocol: dict[str, Any]) -> None:
    check_protocol(protocol, "/t", 5)


@pytest.mark.parametrize(
    ("protocol", "detail"),
    [
        (
            _protocol(version=4),
            "Version 5 asks for minReaderVersion 4; the newest one that is known here is 3.",
        ),
        (
            _protocol("deletionVectors", "tomorrow"),
            'Version 5 asks readers for the feature "tomorrow", which is not known here.',
        ),
        (
            _protocol("catalogManaged"),
            'Version 5 has the feature "catalogManaged": a catalog service has its newest commits.',
        ),
        (
            _protocol(writer=("coordinatedCommits-preview",)),
            'Version 5 has the feature "coordinatedCommits-preview": a commit coordinator has its'
            " newest commits.",
        ),
        (
            _protocol("redirectReaderWriter-preview"),
            'Version 5 has the feature "redirectReaderWriter-preview": its rows have moved to'
            " another table.",
        ),
    ],
)
def test_what_is_not_known_is_named(protocol: dict[str, Any], detail: str) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        check_protocol(protocol, "/t", 5)
    assert caught.value.message == 'the protocol of the Delta table "/t" is not supported'
    assert caught.value.detail == detail


@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 1, "minWriterVersion": 2},
        {"minReaderVersion": 2, "minWriterVersion": 6},
        _protocol("deletionVectors", "variantType", "vacuumProtocolCheck"),
        _protocol(writer=("appendOnly", "checkConstraints", "generatedColumns", "identityColumns")),
        _protocol(writer=("rowTracking", "domainMetadata", "inCommitTimestamp", "clustering")),
    ],
)
def test_what_is_known_is_written(protocol: dict[str, Any]) -> None:
    check_writer_protocol(protocol, "/t")


@pytest.mark.parametrize(
    ("protocol", "detail"),
    [
        (
            {"minReaderVersion": 1, "minWriterVersion": 8},
            "It asks for minWriterVersion 8; the newest one that is known here is 7.",
        ),
        (
            _protocol(writer=("appendOnly", "tomorrow", "yesterday")),
            'It asks writers for the feature "tomorrow", which is not known here.',
        ),
        (
            _protocol(writer=("redirectWriterOnly-preview",)),
            'It has the feature "redirectWriterOnly-preview": its new rows go to another table.',
        ),
    ],
)
def test_what_is_not_known_is_not_written(protocol: dict[str, Any], detail: str) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        check_writer_protocol(protocol, "/t")
    assert caught.value.message == 'the protocol of the Delta table "/t" is not supported'
    assert caught.value.detail == detail


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t values (2)",
        "update t set id = 2",
        "delete from t",
        "truncate t",
        "alter table t set (delta.enableChangeDataFeed = true)",
    ],
)
@pytest.mark.parametrize("is_later", [False, True])
def test_statements_write_no_table_whose_protocol_is_not_known(
    session: Session, tmp_path: Path, statement: str, is_later: bool
) -> None:
    """The table has the requirement when it is adopted, or its owner adds it later."""
    location = tmp_path / "t"
    write_deltalake(location, pa.table({"id": pa.array([1], pa.int32())}))
    adopt = f"create table t using delta location '{location}'"
    if is_later:
        assert answer_of(session, adopt) == ("CREATE TABLE",)
    version = DeltaTable(location).version() + 1
    commit = location / "_delta_log" / f"{version:020d}.json"
    commit.write_text(json.dumps({"protocol": _protocol(writer=("tomorrow",), version=3)}))
    if not is_later:
        assert answer_of(session, adopt) == ("CREATE TABLE",)
    before = sorted(location.rglob("*"))
    assert answer_of(session, statement) == (
        f'ERROR 0A000: the protocol of the Delta table "{location}" is not supported',
        f'DETAIL: Table "public.t" of database "postgres" is stored at "{location}". It asks'
        ' writers for the feature "tomorrow", which is not known here.',
    )
    assert sorted(location.rglob("*")) == before
