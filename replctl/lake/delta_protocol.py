"""Check the requirements of a Delta table for readers and writers (Delta's protocol, section
"Protocol Evolution").

A table with an unknown reader feature may have rows or commits in places that replctl does not
read.  A table with an unknown writer feature may have rules that replctl would break.  replctl
refuses both, and names the feature in the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from replctl.errors import FeatureNotSupported

#: The newest versions of the protocol that replctl knows.
_VERSIONS = {"minReaderVersion": 3, "minWriterVersion": 7}
#: The reader features that Delta 4.4 supports, and that replctl supports when it reads Delta's log.
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
#: The writer features that Delta 4.4 supports (TableFeature.allSupportedFeaturesMap).  Features for
#: readers and writers are in both sets.
_WRITER_FEATURES = _READER_FEATURES | {
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "domainMetadata",
    "generatedColumns",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "materializePartitionColumns",
    "rowTracking",
}
#: Features of tables that have rows or commits outside their directory, each with the reason.
_ELSEWHERE = {
    "catalogManaged": "a catalog service has its newest commits",
    "catalogOwned-preview": "a catalog service has its newest commits",
    "coordinatedCommits-preview": "a commit coordinator has its newest commits",
    "redirectReaderWriter-preview": "its rows have moved to another table",
}
#: The same features and the ones that matter only to writers.
_WRITTEN_ELSEWHERE = {
    **_ELSEWHERE,
    "redirectWriterOnly-preview": "its new rows go to another table",
}


def check_protocol(protocol: Mapping[str, Any], location: str, version: int) -> None:
    """Check that replctl meets the requirements of a table's protocol action for readers.

    Raises:
        FeatureNotSupported: the action has an unknown version, or an unknown feature (0A000).
    """
    features = set(protocol.get("readerFeatures") or ())
    everything = features | set(protocol.get("writerFeatures") or ())
    subject = f"Version {version}"
    _check_versions(protocol, location, subject, _VERSIONS)
    _check_features(location, subject, everything, _ELSEWHERE)
    _check_known(location, subject, "readers", features - _READER_FEATURES)


def check_writer_protocol(protocol: Mapping[str, Any], location: str) -> None:
    """Check that replctl meets the requirements of a table's newest protocol action for writers.

    Raises:
        FeatureNotSupported: the action has an unknown version, or an unknown feature (0A000).
    """
    features = set(protocol.get("writerFeatures") or ())
    _check_versions(protocol, location, "It", ("minWriterVersion",))
    _check_features(location, "It", features, _WRITTEN_ELSEWHERE)
    _check_known(location, "It", "writers", features - _WRITER_FEATURES)


def _check_versions(
    protocol: Mapping[str, Any], location: str, subject: str, names: Iterable[str]
) -> None:
    for name in names:
        if protocol.get(name, 0) > _VERSIONS[name]:
            raise _unsupported(
                location,
                f"{subject} asks for {name} {protocol[name]}; the newest one that is known here is"
                f" {_VERSIONS[name]}.",
            )


def _check_features(
    location: str, subject: str, features: set[str], reasons: Mapping[str, str]
) -> None:
    """Raise an error if a feature means that the table has rows or commits elsewhere."""
    elsewhere = features & reasons.keys()
    if elsewhere:
        name = min(elsewhere)
        raise _unsupported(location, f'{subject} has the feature "{name}": {reasons[name]}.')


def _check_known(location: str, subject: str, who: str, unknown: set[str]) -> None:
    if unknown:
        raise _unsupported(
            location,
            f'{subject} asks {who} for the feature "{min(unknown)}", which is not known here.',
        )


def _unsupported(location: str, detail: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f'the protocol of the Delta table "{location}" is not supported', detail=detail
    )
