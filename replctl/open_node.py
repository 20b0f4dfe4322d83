"""What a connection string leads to: the only place that knows every kind of node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_authid import get_role
from replctl.catalog.pg_subscription import Subscription
from replctl.conninfo import (
    command_line_settings,
    host_of,
    leads_to_own_cluster,
    parse_conninfo,
)
from replctl.errors import ConnectionFailure, FeatureNotSupported, PostgresError
from replctl.lake.publisher import LakePublisher
from replctl.lake.subscriber import LakeSubscriber
from replctl.replication.node import Publisher
from replctl.session import Session
from replctl.spark import SharedFeeds

_DEFAULT_USER = "postgres"
#: Settings that count for a subscription as the session that runs it has set them.
_HANDED_ON = {"replctl.max_batch_changes"}
_MAX_PORT = 65535


@contextmanager
def open_publisher(
    session: Session, conninfo: str, feeds: SharedFeeds | None = None
) -> Iterator[Publisher]:
    """The publisher of a connection string: a database of this cluster, or of one in another
    directory.

    Args:
        feeds: what other subscriptions read of it, too.

    Raises:
        ConnectionFailure: there is no such directory, database or role (08006).
        FeatureNotSupported: it leads to a PostgreSQL server (0A000).
    """
    yield _publisher(session, parse_conninfo(conninfo), feeds)


@contextmanager
def open_subscriber(session: Session, subscription: Subscription) -> Iterator[LakeSubscriber]:
    """A subscription's own end, which may lie in another database of the cluster than the
    session."""
    cluster = session.cluster
    name = cluster.database_name(subscription.database_oid)
    own = Session.connect(cluster, name, session.login_name, session.on_notice, session.engine)
    own.on_progress = session.on_progress
    for setting in _HANDED_ON & session.settings.keys():
        own.put_setting(setting, session.settings[setting])
    with session.read() as catalog:
        owner = get_role(catalog, subscription.owner)
    if owner is not None:
        own.put_role("role", (owner.oid, owner.name))
    yield LakeSubscriber(own, subscription)


def _publisher(
    session: Session, parameters: dict[str, str], feeds: SharedFeeds | None
) -> Publisher:
    _check_port(parameters.get("port", ""))
    host = host_of(parameters)
    user = parameters.get("user", _DEFAULT_USER)
    database = parameters.get("dbname", user)
    cluster = session.cluster
    if host.startswith("/"):
        _check_is_cluster(host, parameters.get("port", "5432"))
        cluster = _other(cluster, host)
    elif not leads_to_own_cluster(parameters):
        raise FeatureNotSupported(
            "could not connect to the publisher: "
            f"{_server(host, parameters.get('port', '5432'))} failed",
            detail="Connections to PostgreSQL servers are not supported yet.",
        )
    try:
        remote = Session.connect(cluster, database, user, session.on_notice, session.engine)
        for name, value in command_line_settings(parameters.get("options", "")).items():
            remote.change_setting(name, value)
    except PostgresError as error:
        raise ConnectionFailure(
            f"could not connect to the publisher: {_server(host, '5432')} failed:"
            f" {error.severity}:  {error.message}"
        ) from error
    with remote.read() as catalog:
        role = remote.privileges(catalog).role
    if not role.is_superuser and not role.can_replicate:
        raise ConnectionFailure(
            f"could not connect to the publisher: {_server(host, '5432')} failed:"
            " FATAL:  permission denied to start WAL sender\n"
            "DETAIL:  Only roles with the REPLICATION attribute may start a WAL sender process."
        )
    return LakePublisher(remote, feeds)


def _other(cluster: Cluster, host: str) -> Cluster:
    """The cluster in another directory.

    Raises:
        ConnectionFailure: it cannot be opened: it is a copy, or of another revision (08006).
    """
    try:
        return cluster.other(Path(host))
    except PostgresError as error:
        raise ConnectionFailure(
            f"could not connect to the publisher: {_server(host, '5432')} failed:"
            f" FATAL:  {error.message}",
            detail=error.detail,
            hint=error.hint,
        ) from error


def _check_port(port: str) -> None:
    """
    Raises:
        ConnectionFailure: it is no number of a port (parse_int_param and PQconnectPoll in libpq).
    """
    try:
        number = int(port or 1)
        if number.bit_length() > 31:
            raise ValueError
    except ValueError:
        reason = f'invalid integer value "{port}" for connection option "port"'
    else:
        if 1 <= number <= _MAX_PORT:
            return
        reason = f'invalid port number: "{port}"'
    raise ConnectionFailure(f"could not connect to the publisher: {reason}")


def _check_is_cluster(directory: str, port: str) -> None:
    if not Cluster.exists(Path(directory)):
        raise ConnectionFailure(
            "could not connect to the publisher: "
            f"{_server(directory, port)} failed: No such file or directory",
            detail=f'There is no cluster in "{directory}".',
            hint="A host that begins with a slash is the directory of a cluster. Sockets of"
            " PostgreSQL servers are not supported yet.",
        )


def _server(host: str, port: str) -> str:
    """libpq's words for where it connects to."""
    if not host or host.startswith("/"):
        return f'connection to server on socket "{host or "/tmp"}/.s.PGSQL.{port}"'
    return f'connection to server at "{host}", port {port}'
