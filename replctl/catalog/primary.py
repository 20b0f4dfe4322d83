"""Find and open the primary that a standby follows, according to primary_conninfo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replctl.catalog.auto_conf import read_auto_conf
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.conninfo import parse_conninfo, quote_value
from replctl.errors import ConnectionFailure, PostgresError
from replctl.types.quote import quote_literal


def primary_home(standby: Cluster) -> str:
    """Return the host in primary_conninfo: normally the directory of the standby's primary."""
    conninfo = read_auto_conf(standby.path).get("primary_conninfo", "")
    return parse_conninfo(conninfo).get("host", "")


def follow_hint(standby: Path, primary: str) -> str:
    """Return the hint with the statements that let a standby follow another primary.

    Args:
        standby, primary: the directories of the two clusters.
    """
    slot = quote_literal(read_auto_conf(standby).get("primary_slot_name", ""))
    conninfo = quote_literal(f"host={quote_value(primary)}")
    return (
        f'In the new primary "{primary}", use SELECT pg_create_physical_replication_slot({slot});'
        f" then, in the standby, use ALTER SYSTEM SET primary_conninfo = {conninfo};"
    )


@contextmanager
def open_primary(standby: Cluster) -> Iterator[Cluster]:
    """Yield the cluster that a standby follows.

    Raises:
        ConnectionFailure: the primary cannot be used, or is not the cluster from which the standby
            was created (08006).
    """
    home = primary_home(standby)
    if not home.startswith("/"):
        raise ConnectionFailure(
            'could not connect to the primary server: "primary_conninfo" names no directory of a'
            " cluster as its host"
        )
    with open_existing(Path(home)) as primary:
        if primary.system_identifier != standby.system_identifier:
            raise ConnectionFailure(
                "database system identifier differs between the primary and standby",
                detail=f"The primary's identifier is {primary.system_identifier}, the standby's"
                f" identifier is {standby.system_identifier}.",
            )
        yield primary


@contextmanager
def open_existing(home: Path) -> Iterator[Cluster]:
    """Open an existing cluster, and yield it.  Never create one.

    Raises:
        ConnectionFailure: the cluster does not exist, or cannot be used (08006).
    """
    message = (
        "could not connect to the primary server: connection to server on directory"
        f' "{home}" failed: '
    )
    if not Cluster.exists(home):
        raise ConnectionFailure(message + "there is no cluster")
    try:
        cluster = open_cluster(home)
    except PostgresError as error:
        raise ConnectionFailure(
            message + error.message, detail=error.detail, hint=error.hint
        ) from error
    try:
        yield cluster
    finally:
        cluster.close()
