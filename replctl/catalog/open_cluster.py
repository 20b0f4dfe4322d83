"""Open clusters for writing, or only for reading their catalogs if that is not possible."""

from __future__ import annotations

from pathlib import Path

from replctl.catalog.catalog_file import replaced
from replctl.catalog.cluster import Cluster
from replctl.catalog.home_directory import (
    check_holds_nothing_else,
    check_is_outside_others,
    is_writable,
    make_home,
    refusal_of,
)
from replctl.catalog.read_only_cluster import ReadOnlyCluster
from replctl.errors import DiskFull, IoError, UndefinedFile


def open_cluster(
    path: str | Path | None = None, *, is_made: bool = True, is_checked: bool = True
) -> Cluster:
    """Open the cluster at `path`, else at $REPLCTL_HOME, else in the user's data directory.  If it
    cannot be written, open it read-only.

    Args:
        is_made: create the cluster if it does not exist.
        is_checked: check that the cluster is in its own home.

    Raises:
        ObjectNotInPrerequisiteState: the cluster is a copy of another one, or the directory has
            other files.
        IoError: the directory cannot be created or used.
        UndefinedFile: the cluster does not exist, and `is_made` is False (58P01).
        ObjectNotInPrerequisiteState, ObjectInUse: the catalog cannot be upgraded to this program's
            revision, or not while other programs use it (check_upgradable).
        DataCorrupted: catalog.db is not a catalog.
    """
    chosen = Cluster.home(path)
    is_there = Cluster.exists(chosen)
    if not is_made and not is_there:
        raise UndefinedFile(f'there is no cluster in "{chosen}"')
    if not is_there:
        check_is_outside_others(chosen)
    try:
        is_new = make_home(chosen)
        # Another program may have created the cluster since
        if not is_new and not is_there and not Cluster.exists(chosen):
            check_holds_nothing_else(chosen)
        cluster = Cluster(chosen, is_made=is_made, is_checked=is_checked)
        cluster.is_new = is_new
        return cluster
    except (OSError, IoError, DiskFull) as error:  # status and queries of catalogs still work
        refusal = refusal_of(chosen, error)
        if not Cluster.exists(chosen):
            refusal.hint = None
            raise refusal from error
        return ReadOnlyCluster(chosen, refusal)


def other_cluster(cluster: Cluster, path: Path) -> Cluster:
    """Return the cluster in another directory.  It stays open as long as the first one, so that
    other processes see this process as alive there.

    Raises:
        UndefinedFile: there is no cluster (58P01).
        CannotConnectNow: another program has overwritten the catalog (57P03).
        IoError, ObjectNotInPrerequisiteState, DataCorrupted: see `open_cluster`.
    """
    resolved = path.resolve()
    if resolved == cluster.path.resolve():
        return cluster
    with cluster.opening_other:  # the other cluster's lock does not exclude threads of one process
        known = cluster.others.get(resolved)
        if known is not None and known.needs_restart:
            raise replaced(resolved)
        if known is None or known.is_replaced:  # created or restored again
            cluster.others[resolved] = open_cluster(path, is_made=False)
            if known is not None:
                known.close()
        elif known.refusal is not None and is_writable(resolved):
            opened = open_cluster(path, is_made=False)
            if opened.refusal is None:
                cluster.superseded.append(known)  # other threads may still read it
                cluster.others[resolved] = opened
            else:
                opened.close()
        return cluster.others[resolved]
