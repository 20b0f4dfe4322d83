"""The clusters whose warm Spark servers this process uses."""

from __future__ import annotations

from pathlib import Path

#: Descriptors of the locks that this process holds as a user of servers, by their clusters.
_attached: dict[Path, int] = {}


def note_attachment(cluster: Path, lock: int) -> None:
    """Note that this process uses a cluster's server, for as long as it holds a lock."""
    _attached[cluster] = lock


def attached_clusters() -> tuple[Path, ...]:
    """Return the directories of the clusters whose servers this process uses."""
    return tuple(_attached)
