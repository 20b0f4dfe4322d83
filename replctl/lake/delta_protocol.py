"""What a Delta table asks of those who read it (Delta's protocol, section "Protocol Evolution").

A table with a feature that is not known here may keep rows, or commits, where nobody looks for
them: it is refused by the feature's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replctl.errors import FeatureNotSupported

#: The newest versions of the protocol that are known here.
_VERSIONS = {"minReaderVersion": 3, "minWriterVersion": 7}
#: The reader features that Delta 4.4 reads, and replctl in Delta's log.
_READER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
#: Features of tables that are not, or not only, what their directory shows.
_ELSEWHERE = {
    "catalogManaged": "a catalog service has its newest commits",
    "catalogOwned-preview": "a catalog service has its newest commits",
    "coordinatedCommits-preview": "a commit coordinator has its newest commits",
    "redirectReaderWriter-preview": "its rows have moved to another table",
}


def check_protocol(protocol: Mapping[str, Any], location: str, version: int) -> None:
    """Check that a table can be read as its protocol action asks from a version on.

    Raises:
        FeatureNotSupported: it has a newer version, or a feature that is not known here (0A000).
    """
    for name, known in _VERSIONS.items():
        if protocol.get(name, 0) > known:
            raise _unsupported(
                location,
                f"Version {version} asks for {name} {protocol[name]}; the newest one that is"
                f" known here is {known}.",
            )
    asked = set(protocol.get("readerFeatures") or ())
    elsewhere = sorted((asked | set(protocol.get("writerFeatures") or ())) & _ELSEWHERE.keys())
    if elsewhere:
        reason = _ELSEWHERE[elsewhere[0]]
        raise _unsupported(
            location, f'Version {version} has the feature "{elsewhere[0]}": {reason}.'
        )
    unknown = sorted(asked - _READER_FEATURES)
    if unknown:
        raise _unsupported(
            location,
            f'Version {version} asks readers for the feature "{unknown[0]}", which is not known'
            " here.",
        )


def _unsupported(location: str, detail: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f'the protocol of the Delta table "{location}" is not supported', detail=detail
    )
