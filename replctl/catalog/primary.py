"""Find and open the primary that a standby follows, according to primary_conninfo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

from replctl.catalog.auto_conf import read_auto_conf
from replctl.catalog.cluster import Cluster
from replctl.catalog.cluster_identity import is_at_home
from replctl.catalog.commit_digest import is_in_log, missing_position, newest_position
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_control import read_control
from replctl.catalog.pg_replication_slots import find_slot
from replctl.conninfo import parse_conninfo, quote_value
from replctl.errors import ConnectionFailure, ObjectNotInPrerequisiteState, PostgresError
from replctl.own_command import own_command
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


def is_replaced_by(primary: Cluster, standby: Cluster) -> bool:
    """Return whether a primary is marked as replaced by this standby: the standby's promotion has
    begun.

    The standby's directory may have another name since then.  While the promotion is incomplete,
    the standby's slot has the name under which it began (promotion.py).  Afterwards it has none, so
    a copy of the promoted standby is not taken for it.
    """
    promoted_to = primary.control().promoted_to
    if promoted_to is None:
        return False
    if is_at_home(promoted_to, standby.path.resolve()):
        return True
    name = read_auto_conf(standby.path).get("primary_slot_name", "")
    with primary.begin(write=False) as connection:
        slot = find_slot(connection, name)
    return slot is not None and slot.standby_home == promoted_to


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
def reading_primary(standby: Cluster, home: Path) -> Iterator[Connection]:
    """Yield a transaction of a standby that also reads its primary (Cluster.begin_with_source).

    Args:
        home: the directory of the primary.

    Raises:
        ObjectNotInPrerequisiteState: the primary lacks commits that the standby has (55000).
    """
    with standby.begin_with_source(home) as connection:
        _check_has_all(connection, standby.path, home)
        yield connection


def _check_has_all(connection: Connection, standby: Path, primary: Path) -> None:
    """Check that the primary's log continues the standby's.  The log of a primary that was restored
    from a backup does not, and the standby may be the only one that has the lost commits.
    """
    here, position = read_control(connection), newest_position(connection)
    with _in_source(connection):
        there, has_position = read_control(connection), is_in_log(connection, position)
    if has_position and there.timeline >= here.timeline:
        return
    slot = read_auto_conf(standby).get("primary_slot_name", "")
    promote = own_command("standby", "promote", "--without-primary", home=standby)
    create = own_command(
        "standby", "create", "--primary", str(primary), "--slot", slot, home=standby
    )
    raise ObjectNotInPrerequisiteState(
        f"highest timeline {there.timeline} of the primary is behind recovery timeline"
        f" {here.timeline}"
        if there.timeline < here.timeline
        else missing_position(position.lsn, there.insert_lsn),
        detail="The primary's catalog was restored from a backup, or another one has taken its"
        " place: its log does not have the commits that the standby has.",
        hint=f'To keep the state of the standby, stop the primary and run "{promote}". To follow'
        f' the primary, remove "{standby}" and run "{create}".',
    )


@contextmanager
def _in_source(connection: Connection) -> Iterator[None]:
    """Let queries of a transaction read the catalog of the primary."""
    connection.execution_options(schema_translate_map={None: "source"})
    try:
        yield
    finally:
        connection.execution_options(schema_translate_map=None)


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
