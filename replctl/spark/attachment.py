"""Record the clusters whose warm Spark servers this process uses."""

from __future__ import annotations

from pathlib import Path

#: The descriptor of the lock that this process holds as a user of a server, by cluster directory.
_attached: dict[Path, int] = {}


def note_attachment(cluster: Path, lock: int) -> None:
    """Record that this process uses a cluster's server and holds the lock of its users."""
    _attached[cluster] = lock


def attached_clusters() -> tuple[Path, ...]:
    """Return the directories of the clusters whose servers this process uses."""
    return tuple(_attached)
