"""Open clusters for writing, or only for reading their catalogs if that is not possible."""

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
    """Open the cluster at `path`, else at $REPLCTL_HOME, else in the user's data directory.  If it
    cannot be written, open it for reading its catalogs.

    Args:
        is_made: create it if it does not exist.
        is_checked: check that it is in its own home.

    Raises:
        ObjectNotInPrerequisiteState: it is a copy of another cluster, or the directory has other
            files.
        IoError: the directory cannot be created or used.
        UndefinedFile: it does not exist, and `is_made` is False (58P01).
        ObjectNotInPrerequisiteState, ObjectInUse: its revision cannot be upgraded, or not now
            (check_upgradable).
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
    """Return the cluster in another directory.  It stays open as long as the first one, so that
    other processes see this process as alive there.

    Raises:
        IoError, ObjectNotInPrerequisiteState, DataCorrupted: see `open_cluster`.
    """
    resolved = path.resolve()
    if resolved == cluster.path.resolve():
        return cluster
    with cluster.opening_other:  # the lock of that cluster does not separate threads of one process
        known = cluster.others.get(resolved)
        if known is not None and known.is_replaced:  # it was created again, or restored
            known.close()
            del cluster.others[resolved]
        if resolved not in cluster.others:
            cluster.others[resolved] = open_cluster(path)
        return cluster.others[resolved]
