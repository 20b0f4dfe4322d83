"""What a connection string leads to: the only place that knows every kind of node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_subscription import Subscription
from replctl.conninfo import parse_conninfo
from replctl.errors import ConnectionFailure, FeatureNotSupported, PostgresError
from replctl.lake.publisher import LakePublisher
from replctl.lake.subscriber import LakeSubscriber
from replctl.replication.node import Publisher
from replctl.session import Session

_LOCAL_HOSTS = ("", "localhost", "127.0.0.1", "::1")
_DEFAULT_USER = "postgres"


@contextmanager
def open_publisher(session: Session, conninfo: str) -> Iterator[Publisher]:
    """The publisher of a connection string: a database of this cluster, or of one in another
    directory.

    Raises:
        ConnectionFailure: there is no such database or role (08006).
        FeatureNotSupported: it leads to a PostgreSQL server (0A000).
    """
    with ExitStack() as stack:
        yield _publisher(session, parse_conninfo(conninfo), stack)


@contextmanager
def open_subscriber(session: Session, subscription: Subscription) -> Iterator[LakeSubscriber]:
    """A subscription's own end, which may lie in another database of the cluster than the
    session."""
    cluster = session.cluster
    name = cluster.database_name(subscription.database_oid)
    own = Session.connect(cluster, name, session.role_name, session.on_notice, session.engine)
    own.on_progress = session.on_progress
    yield LakeSubscriber(own, subscription)


def _publisher(session: Session, parameters: dict[str, str], stack: ExitStack) -> Publisher:
    host = parameters.get("hostaddr") or parameters.get("host", "")
    user = parameters.get("user", _DEFAULT_USER)
    database = parameters.get("dbname", user)
    cluster = session.cluster
    if host.startswith("/") and (Path(host) / "catalog.db").exists():
        if Path(host).resolve() != cluster.path.resolve():
            cluster = Cluster.open(host)
            stack.callback(cluster.close)
    elif host not in _LOCAL_HOSTS or "port" in parameters:
        raise FeatureNotSupported(
            "could not connect to the publisher: "
            f"{_server(host, parameters.get('port', '5432'))} failed",
            detail="Connections to PostgreSQL servers are not supported yet.",
        )
    try:
        remote = Session.connect(cluster, database, user, session.on_notice, session.engine)
    except PostgresError as error:
        raise ConnectionFailure(
            f"could not connect to the publisher: {_server(host, '5432')} failed:"
            f" {error.severity}:  {error.message}"
        ) from error
    return LakePublisher(remote)


def _server(host: str, port: str) -> str:
    """libpq's words for where it connects to."""
    if not host or host.startswith("/"):
        return f'connection to server on socket "{host or "/tmp"}/.s.PGSQL.{port}"'
    return f'connection to server at "{host}", port {port}'
