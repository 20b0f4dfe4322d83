"""Recognise the names that Delta's writers (Spark, Kernel, delta-rs) give to a table's files.

replctl removes a file that no log names only if it has such a name.  Other files in a table's
directory belong to somebody else.

Source: FileNames.scala, DelayedCommitProtocol.scala and DeletionVectorDescriptor.scala in Delta;
PROTOCOL.md, sections "Data Files", "Deletion Vectors", "Change Data Files", "Delta Log Entries".
"""

from __future__ import annotations

import re

LOG_FOLDER = "_delta_log"
SIDECAR_FOLDER = f"{LOG_FOLDER}/_sidecars"
#: The file in the log that names its newest checkpoint.
LAST_CHECKPOINT = "_last_checkpoint"
_STAGED_FOLDER = f"{LOG_FOLDER}/_staged_commits"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

_DATA_FILE = re.compile(
    rf"(?:(?:part|cdc)-\d+-{_UUID}(?:[-.][\w.-]+)?|deletion_vector_{_UUID}\.bin)", re.ASCII
)
_VERSION_FILE = re.compile(
    r"(\d{20})\.(?:json|crc|checkpoint\.parquet|checkpoint\.\d{10}\.\d{10}\.parquet"
    rf"|checkpoint\.{_UUID}\.(?:json|parquet))",
    re.ASCII,
)
_COMPACTED_FILE = re.compile(r"\d{20}\.(\d{20})\.compacted\.json", re.ASCII)
_SIDECAR = re.compile(rf"(?:[\d.]+\.checkpoint\.[\d.]+\.)?{_UUID}\.parquet", re.ASCII)
_STAGED_COMMIT = re.compile(rf"\d{{20}}\.{_UUID}\.json", re.ASCII)
#: Temporary names of log files.  A writer renames the file when it is complete; if the writer dies
#: before, the file remains.
_UNFINISHED = re.compile(rf"(?:\.(.+)\.{_UUID}\.tmp|_commit_{_UUID}\.json\.tmp)", re.ASCII)
#: The checksum that Hadoop writes next to a local file.
_CHECK_SUM = re.compile(r"\.(.+)\.crc")


def is_data_name(path: str) -> bool:
    """Return whether a path is that of a data file, a change file or a deletion vector, or of the
    checksum of such a file.  Only the last name of the path counts.
    """
    return _DATA_FILE.fullmatch(checked_name(path)) is not None


def is_log_name(path: str) -> bool:
    """Return whether a path is that of a log file.

    Args:
        path: relative to the table's directory.
    """
    folder, _, _last = path.rpartition("/")
    name = checked_name(path)
    if folder == LOG_FOLDER:
        is_entry = name == LAST_CHECKPOINT or last_version(name) is not None
        return is_entry or is_unfinished_name(name)
    if folder == SIDECAR_FOLDER:
        return _SIDECAR.fullmatch(name) is not None
    return folder == _STAGED_FOLDER and _STAGED_COMMIT.fullmatch(name) is not None


def is_unfinished_name(name: str) -> bool:
    """Return whether a log file has the name of an incomplete log file."""
    found = _UNFINISHED.fullmatch(name)
    if found is None:
        return False
    return found[1] is None or found[1] == LAST_CHECKPOINT or last_version(found[1]) is not None


def version_path(version: int) -> str:
    """Return the path of a version's commit, relative to the table's directory."""
    return f"{LOG_FOLDER}/{version:020d}.json"


def checksum_path(version: int) -> str:
    """Return the path of the checksum of a version, relative to the table's directory."""
    return f"{LOG_FOLDER}/{version:020d}.crc"


def last_version(name: str) -> int | None:
    """Return the newest version that a log file describes; None for other files.

    `00000000000000000003.00000000000000000007.compacted.json` -> 7
    """
    found = _VERSION_FILE.fullmatch(name) or _COMPACTED_FILE.fullmatch(name)
    return None if found is None else int(found[1])


def checked_name(path: str) -> str:
    """Return the last name of a path.  For a checksum, return the name of the file that it
    checks.
    """
    name = path.rpartition("/")[2]
    found = _CHECK_SUM.fullmatch(name)
    return name if found is None else found[1]
