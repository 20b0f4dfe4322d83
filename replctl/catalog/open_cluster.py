"""Opening of clusters, to write them or, where that cannot be, to read their catalogs."""

from __future__ import annotations

from pathlib import Path

from replctl.catalog.cluster import Cluster
from replctl.catalog.home_directory import (
    check_holds_nothing_else,
    check_is_outside_tables,
    make_home,
    refusal_of,
)
from replctl.catalog.read_only_cluster import ReadOnlyCluster
from replctl.errors import DiskFull, IoError, UndefinedFile


def open_cluster(
    path: str | Path | None = None, *, is_made: bool = True, is_checked: bool = True
) -> Cluster:
    """Open the cluster at `path`, else at $REPLCTL_HOME, else in the user's data directory; if
    it cannot be written, to read its catalogs.

    Args:
        is_made: if it is not there.
        is_checked: it has to be at its own home.

    Raises:
        ObjectNotInPrerequisiteState: it is a copy of another one, or there are other things in
            the directory.
        IoError: the directory cannot be made or used.
        UndefinedFile: there is no cluster in it, and none is to be made (58P01).
        ObjectNotInPrerequisiteState, ObjectInUse: it is of another revision, from which it
            cannot be upgraded, or not now (check_upgradable).
        DataCorrupted: catalog.db is not a catalog.
    """
    chosen = Cluster.home(path)
    if not is_made and not Cluster.exists(chosen):
        raise UndefinedFile(f'there is no cluster in "{chosen}"')
    if not Cluster.exists(chosen):
        check_is_outside_tables(chosen)
    try:
        is_new = make_home(chosen)
        if not is_new and not Cluster.exists(chosen):
            check_holds_nothing_else(chosen)
        cluster = Cluster(chosen, is_checked=is_checked)
        cluster.is_new = is_new
        return cluster
    except (OSError, IoError, DiskFull) as error:
        refusal = refusal_of(chosen, error)
        if not Cluster.exists(chosen):
            refusal.hint = None
            raise refusal from error
        return ReadOnlyCluster(chosen, refusal)


def other_cluster(cluster: Cluster, path: Path) -> Cluster:
    """Return the cluster in another directory than a first one's.  It is open as long as the first,
    so that who is at work there is seen to be alive.

    Raises:
        IoError, ObjectNotInPrerequisiteState, DataCorrupted: as `open_cluster`.
    """
    resolved = path.resolve()
    if resolved == cluster.path.resolve():
        return cluster
    with cluster.opening_other:  # two threads are one process to it
        known = cluster.others.get(resolved)
        if known is not None and known.is_replaced:  # it was made again, or put back
            known.close()
            del cluster.others[resolved]
        if resolved not in cluster.others:
            cluster.others[resolved] = open_cluster(path)
        return cluster.others[resolved]
