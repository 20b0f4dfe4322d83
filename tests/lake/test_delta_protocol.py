"""What a Delta table may ask of readers."""

from __future__ import annotations

from typing import Any

import pytest

from replctl.errors import FeatureNotSupported
from replctl.lake.delta_protocol import check_protocol


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
