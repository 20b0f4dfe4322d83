"""Open publishers and subscribers by connection string.  This is the only module that knows all
kinds of nodes.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from replctl.catalog.aclchk import Privileges
from replctl.catalog.cluster import Cluster
from replctl.catalog.initdb import BOOTSTRAP_SUPERUSER
from replctl.catalog.open_cluster import other_cluster
from replctl.catalog.pg_authid import PREDEFINED_ROLES, READ_SERVER_FILES, get_role
from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.wal_availability import SlotInvalidated
from replctl.conninfo import (
    command_line_settings,
    connection_target,
    host_of,
    leads_to_own_cluster,
    parse_conninfo,
)
from replctl.errors import (
    ConnectionFailure,
    ConnectNotPermitted,
    FeatureNotSupported,
    PasswordRequired,
    PostgresError,
)
from replctl.lake.publisher import LakePublisher
from replctl.lake.subscriber import LakeSubscriber
from replctl.own_command import own_command
from replctl.replication.node import Publisher
from replctl.session import Session, role_settings_of
from replctl.session_setting import put_role
from replctl.spark import SharedFeeds
from replctl.types.guc import SINGLE_WRITER
from replctl.types.quote import quote_identifier

_DEFAULT_USER = "postgres"
#: Settings that the subscriber's session gets from the session that runs the subscription.
_HANDED_ON = {"replctl.max_batch_changes"}
#: Further ones, if the role of that session has the privileges of the subscription's owner: they
#: may endanger the tables.
_HANDED_ON_BY_OWNER = {SINGLE_WRITER}
_MAX_PORT = 65535
#: Settings of every connection to a publisher (libpqrcv_connect).
_OF_SENDERS = {"datestyle": "ISO", "intervalstyle": "postgres", "extra_float_digits": "3"}


@contextmanager
def open_publisher(
    session: Session,
    subscription: Subscription,
    feeds: SharedFeeds | None = None,
    *,
    is_leaving: bool = False,
) -> Iterator[Publisher]:
    """Yield the publisher of a subscription: a database of this cluster, or of a cluster in another
    directory.

    The role of the connection string needs its password, unless the owner of the subscription is a
    superuser, or a superuser has set password_required to false.

    Args:
        feeds: feeds of the publisher that several subscriptions share.
        is_leaving: the caller only releases the subscription's slot, which requires no privileges.

    Raises:
        PasswordRequired: the connection string lacks a required password (2F003).
        ConnectionFailure: there is no such directory, database or role, or the owner may not use
            it (08006).
        FeatureNotSupported: the connection string leads to a PostgreSQL server, or names a service
            (0A000).
    """
    parameters = parse_conninfo(subscription.conninfo)
    with session.read() as catalog:
        owner = Privileges(catalog, subscription.owner)
        if not is_leaving:
            check_password(owner, subscription)
            _check_peer(owner, subscription)
        is_superuser, owner_name = owner.is_superuser, owner.role.name
    user = parameters.get("user") or (_DEFAULT_USER if is_superuser else owner_name)
    password = None if is_superuser else parameters.get("password") or None
    remote = _connected(session, parameters, user, password, is_leaving=is_leaving)
    try:
        yield LakePublisher(remote, feeds)
    except SlotInvalidated as error:
        command = own_command("sync", home=session.cluster.path, names=[subscription.name])
        error.hint = f'Run "{command}": its error has the statement that reconciles the tables.'
        raise
    finally:
        remote.close()


def check_password(owner: Privileges, subscription: Subscription) -> None:
    """Check that a connection string has a password if its owner needs one.

    Args:
        owner: the privileges of the subscription's owner.

    Raises:
        PasswordRequired: the connection string has no password, and the owner is not a superuser.
    """
    if owner.is_superuser or not subscription.password_required:
        return
    if not parse_conninfo(subscription.conninfo).get("password"):
        raise PasswordRequired(
            "password is required",
            detail="Non-superusers must provide a password in the connection string.",
        )


def publisher_key(subscription: Subscription) -> Hashable:
    """Return a key that is the same for subscriptions that connect to the same publisher with the
    same role.
    """
    return connection_target(subscription.conninfo), subscription.owner


def publisher_home(subscription: Subscription) -> Path | None:
    """Return the resolved directory of a publisher in another cluster; None if the connection
    string names no directory.
    """
    host = host_of(parse_conninfo(subscription.conninfo))
    return Path(os.path.realpath(host)) if host.startswith("/") else None


@contextmanager
def open_subscriber(session: Session, subscription: Subscription) -> Iterator[LakeSubscriber]:
    """Yield the subscriber of a subscription, which may belong to another database of the cluster
    than the session.  It has the role and the settings of the subscription's owner.
    """
    cluster = session.cluster
    name = cluster.database_name(subscription.database_oid)
    own = Session.connect(
        cluster, name, session.login_name, session.on_notice, session.engine, is_worker=True
    )
    own.on_progress, own.on_wait = session.on_progress, session.on_wait
    with session.read() as catalog:
        owner = get_role(catalog, subscription.owner)
        is_owner = session.privileges(catalog).acts_for(subscription.owner)
    handed_on = _HANDED_ON | (_HANDED_ON_BY_OWNER if is_owner else set())
    for setting in handed_on & session.settings.keys():
        own.put_setting(setting, session.settings[setting])
    if owner is not None:
        put_role(own, "role", (owner.oid, owner.name))
        own.role_settings = role_settings_of(
            cluster, own.database_oid, owner.oid, session.on_notice
        )
    yield LakeSubscriber(own, subscription)


def _connected(
    session: Session,
    parameters: dict[str, str],
    user: str,
    password: str | None,
    *,
    is_leaving: bool,
) -> Session:
    """Open a session at the publisher, and return it.

    Args:
        password: the user's password; None for a trusted user.
        is_leaving: see `open_publisher`.
    """
    _check_service(parameters)
    _check_port(parameters.get("port", ""))
    host = host_of(parameters)
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
    if is_leaving:
        with cluster.read(0) as catalog:
            superuser = get_role(catalog, BOOTSTRAP_SUPERUSER)
        user, password = superuser.name if superuser else user, None
    try:
        remote = Session.connect(
            cluster,
            database,
            user,
            session.on_notice,
            session.engine,
            password=password,
            is_worker=is_leaving,
            requested=command_line_settings(parameters.get("options", "")) | _OF_SENDERS,
        )
    except PostgresError as error:
        raise _refused(host, error) from error
    try:
        _check_sender(remote)
    except PostgresError as error:
        remote.close()
        raise _refused(host, error) from error
    return remote


def _check_sender(remote: Session) -> None:
    """Check that a session of the publisher may send changes."""
    with remote.read() as catalog:
        role = remote.privileges(catalog).role
    if not role.is_superuser and not role.can_replicate:
        raise ConnectNotPermitted(
            "permission denied to start WAL sender",
            detail="Only roles with the REPLICATION attribute may start a WAL sender process.",
        )


def _refused(host: str, error: PostgresError) -> ConnectionFailure:
    """Return the error for a failed connection to a publisher, in libpq's form."""
    text = f"{error.severity}:  {error.message}"
    text += f"\nDETAIL:  {error.detail}" if error.detail else ""
    text += f"\nHINT:  {error.hint}" if error.hint else ""
    return ConnectionFailure(
        f"could not connect to the publisher: {_server(host, '5432')} failed: {text}"
    )


def _other(cluster: Cluster, host: str) -> Cluster:
    """Open the cluster in another directory, and return it.

    Raises:
        ConnectionFailure: the cluster cannot be opened, for example because it is a copy or has
            another revision (08006).
    """
    try:
        return other_cluster(cluster, Path(host))
    except PostgresError as error:
        raise ConnectionFailure(
            f"could not connect to the publisher: {_server(host, '5432')} failed:"
            f" FATAL:  {error.message}",
            detail=error.detail,
            hint=error.hint,
        ) from error


def _check_service(parameters: Mapping[str, str]) -> None:
    """Check that a connection string names no service: its file could name any server."""
    if "service" not in parameters:
        return
    raise FeatureNotSupported(
        f'could not connect to the publisher: service "{parameters["service"]}" is not supported',
        detail="replctl does not read connection service files.",
        hint="Write the parameters of the service into the connection string: host and dbname.",
    )


def _check_port(port: str) -> None:
    """Check the port of a connection string.

    Raises:
        ConnectionFailure: `port` is no port number (parse_int_param, PQconnectPoll in libpq).
    """
    try:
        number = int(port or 1)
        if number.bit_length() > 31:
            raise ValueError
    except ValueError:  # libpq words this differently from a wrong number
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
            detail=f'There is no cluster in "{directory}". Sockets of PostgreSQL servers are not'
            " supported yet.",
            hint="Name the directory of the publisher's cluster: host=DIRECTORY. If it was"
            " moved, use ALTER SUBSCRIPTION ... CONNECTION.",
        )


def _check_peer(owner: Privileges, subscription: Subscription) -> None:
    """Check that a cluster belongs to the user of this process, or to root.  Tables can have any
    location, so the maker of a cluster could read all files of this user.

    Args:
        owner: the privileges of the subscription's owner.  They do not matter if a superuser has
            set password_required to false.
    """
    directory = host_of(parse_conninfo(subscription.conninfo))
    is_trusted = owner.acts_for(READ_SERVER_FILES) or not subscription.password_required
    if is_trusted or not directory.startswith("/"):
        return
    try:
        peer = Path(directory).stat().st_uid
    except OSError:  # connecting reports it
        return
    if peer not in (0, os.geteuid()):
        granted = PREDEFINED_ROLES[READ_SERVER_FILES]
        raise ConnectionFailure(
            f"could not connect to the publisher: {_server(directory, '5432')} failed:"
            f" the directory belongs to another user of the system (uid {peer})",
            detail=f'Only roles with privileges of the "{granted}" role may use the cluster of'
            " another user, because its tables can have any location.",
            hint=f"Use GRANT {granted} TO {quote_identifier(owner.role.name)}.",
        )


def _server(host: str, port: str) -> str:
    """Return libpq's description of the connection's target."""
    if not host or host.startswith("/"):
        return f'connection to server on socket "{host or "/tmp"}/.s.PGSQL.{port}"'
    return f'connection to server at "{host}", port {port}'
