"""Check who may open a session: passwords and connection limits (postinit.c, auth.c)."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count
from pathlib import Path

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_authid import Role, find_role
from replctl.catalog.pg_control import check_connectable, read_control
from replctl.catalog.pg_database import allows_connections, find_database
from replctl.catalog.scram import is_password
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    ConnectNotPermitted,
    DatabaseDoesNotExist,
    DatabaseNotAcceptingConnections,
    InvalidAuthorizationSpecification,
    InvalidPassword,
    TooManyConnections,
)
from replctl.record import dataclass
from replctl.types import text

_numbers = count(1)  # numbers of this process's connections


@dataclass(frozen=True, slots=True)
class Login:
    """A role in a database.

    Attributes:
        mark: a file that represents the connection, which counts while its process lives; None if
            the connection does not count.
    """

    role: Role
    database_oid: int
    mark: Path | None

    def end(self) -> None:
        """Stop counting the connection."""
        if self.mark is not None:
            with suppress(OSError):  # a mark without its process does not count
                self.mark.unlink(missing_ok=True)


def log_in(
    cluster: Cluster,
    database_name: str,
    role_name: str,
    *,
    password: str | None = None,
    is_worker: bool = False,
) -> Login:
    """Connect a role to a database.

    Args:
        password: the client's password; None for a trusted client.
        is_worker: the session belongs to a background process, to which no limit applies.

    Raises:
        CannotConnectNow: a standby has replaced the cluster (FATAL).
        InvalidPassword: the password is wrong or has expired (28P01, FATAL).
        InvalidAuthorizationSpecification: there is no such role, or it may not log in (FATAL).
        TooManyConnections: the role's connection limit is reached (53300, FATAL).
        DatabaseDoesNotExist, DatabaseNotAcceptingConnections, ConnectNotPermitted: the database
            does not exist, nobody can connect to it, or the role may not connect to it (FATAL).
    """
    with cluster.begin(write=False) as connection:
        check_connectable(read_control(connection))
        catalog = Catalog(connection, 0)
        role = find_role(catalog, role_name) if _is_text(role_name) else None
        database_oid = find_database(catalog, database_name) if _is_text(database_name) else None
    if password is not None:
        _authenticate(cluster, role_name, role, password)
    if role is None:
        raise InvalidAuthorizationSpecification(f'role "{role_name}" does not exist')
    if not role.can_login:
        raise InvalidAuthorizationSpecification(f'role "{role_name}" is not permitted to log in')
    is_counted = not is_worker and cluster.refusal is None
    mark = _marked(cluster, role) if is_counted else None
    try:
        return Login(role, _connectable(cluster, database_oid, database_name, role), mark)
    except BaseException:
        Login(role, 0, mark).end()
        raise


def _connectable(cluster: Cluster, oid: int | None, name: str, role: Role) -> int:
    """Return the OID of a database, after checks that it exists and that a role may connect."""
    if oid is None:
        raise DatabaseDoesNotExist(f'database "{name}" does not exist')
    with cluster.read(oid) as catalog:
        if not allows_connections(catalog):
            raise DatabaseNotAcceptingConnections(
                f'database "{name}" is not currently accepting connections'
            )
        if not Privileges(catalog, role.oid).has_on_database(Privilege.CONNECT):
            raise ConnectNotPermitted(
                f'permission denied for database "{name}"',
                detail="User does not have CONNECT privilege.",
            )
    return oid


def _is_text(name: str) -> bool:
    """Return whether a name consists of valid characters.  Python represents invalid bytes as
    surrogates.
    """
    try:
        name.encode()
    except UnicodeEncodeError:  # PostgreSQL has no role or database with such a name
        return False
    return True


def _authenticate(cluster: Cluster, role_name: str, role: Role | None, password: str) -> None:
    """Check a password. The client's error does not tell the reason of a failure; the cluster's log
    does.
    """
    reason = None
    if role is None:
        reason = f'Role "{role_name}" does not exist.'
    elif role.password is None:
        reason = f'User "{role_name}" has no password assigned.'
    elif _is_past(role.valid_until):
        reason = f'User "{role_name}" has an expired password.'
    elif not is_password(password, role.password):
        reason = f'Password does not match for user "{role_name}".'
    if reason is None:
        return
    error = InvalidPassword(f'password authentication failed for user "{role_name}"')
    noted = InvalidPassword(error.message, detail=reason)
    cluster.log.report_error(noted, backend_type="client backend")
    raise error


def _is_past(valid_until: str | None) -> bool:
    if valid_until is None:
        return False
    end = text.parse("timestamptz", valid_until)
    assert isinstance(end, int)
    return end < time.time_ns() // 1000


def _marked(cluster: Cluster, role: Role) -> Path:
    """Create and return the mark of a new connection.

    Raises:
        TooManyConnections: the new connection exceeds the role's limit.
    """
    folder = cluster.path / "lock"
    mark = folder / f"connection.{cluster.backend}.{next(_numbers)}.{role.oid}"
    mark.touch(mode=0o600)
    if role.connection_limit >= 0 and not role.is_superuser:
        found = folder.glob(f"connection.*.{role.oid}")
        if sum(_counts(cluster, path) for path in found) > role.connection_limit:
            mark.unlink()
            raise TooManyConnections(f'too many connections for role "{role.name}"')
    return mark


def _counts(cluster: Cluster, mark: Path) -> bool:
    """Return whether a mark belongs to a live process; remove other marks."""
    if cluster.is_alive(mark.name.split(".")[1]):
        return True
    mark.unlink(missing_ok=True)
    return False
