"""Read and write roles and their memberships (pg_authid, pg_auth_members)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog
from replctl.record import dataclass

DATABASE_OWNER = 6171  # pg_database_owner, the owner of schema public
READ_ALL_DATA, WRITE_ALL_DATA, CREATE_SUBSCRIPTION, MAINTAIN = 6181, 6182, 6304, 6337
READ_SERVER_FILES, WRITE_SERVER_FILES, EXECUTE_SERVER_PROGRAM = 4569, 4570, 4571
MONITOR, READ_ALL_SETTINGS, READ_ALL_STATS, STAT_SCAN_TABLES = 3373, 3374, 3375, 3377
SIGNAL_BACKEND, CHECKPOINT = 4200, 4544
#: Roles that initdb creates in addition to the superuser (pg_authid.dat).
PREDEFINED_ROLES = {
    MONITOR: "pg_monitor",
    READ_ALL_SETTINGS: "pg_read_all_settings",
    READ_ALL_STATS: "pg_read_all_stats",
    STAT_SCAN_TABLES: "pg_stat_scan_tables",
    SIGNAL_BACKEND: "pg_signal_backend",
    CHECKPOINT: "pg_checkpoint",
    4550: "pg_use_reserved_connections",
    READ_SERVER_FILES: "pg_read_server_files",
    WRITE_SERVER_FILES: "pg_write_server_files",
    EXECUTE_SERVER_PROGRAM: "pg_execute_server_program",
    DATABASE_OWNER: "pg_database_owner",
    READ_ALL_DATA: "pg_read_all_data",
    WRITE_ALL_DATA: "pg_write_all_data",
    CREATE_SUBSCRIPTION: "pg_create_subscription",
    MAINTAIN: "pg_maintain",
}
#: Memberships of predefined roles (system_functions.sql): pairs of role and member.
_PREDEFINED_MEMBERSHIPS = (
    (READ_ALL_SETTINGS, MONITOR),
    (READ_ALL_STATS, MONITOR),
    (STAT_SCAN_TABLES, MONITOR),
)
#: OIDs of the predefined roles by name.
PREDEFINED_OIDS = {name: oid for oid, name in PREDEFINED_ROLES.items()}
_FIRST_MEMBERSHIP = 13000  # the first OID of initdb's memberships (FirstUnpinnedObjectId is 12000)


@dataclass(frozen=True, slots=True)
class Role:
    """A row of pg_authid."""

    oid: int
    name: str
    is_superuser: bool = False
    inherits: bool = True
    may_create_roles: bool = False
    may_create_databases: bool = False
    can_login: bool = False
    can_replicate: bool = False
    bypasses_rls: bool = False
    connection_limit: int = -1
    password: str | None = None  # a SCRAM-SHA-256 verifier
    valid_until: str | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """A row of pg_auth_members: `member` belongs to `role`."""

    oid: int
    role: int
    member: int
    grantor: int
    is_admin: bool = False
    inherits: bool = True
    may_set: bool = True


_COLUMNS = {
    "oid": "oid", "name": "rolname", "is_superuser": "rolsuper", "inherits": "rolinherit",
    "may_create_roles": "rolcreaterole", "may_create_databases": "rolcreatedb",
    "can_login": "rolcanlogin", "can_replicate": "rolreplication", "bypasses_rls": "rolbypassrls",
    "connection_limit": "rolconnlimit", "password": "rolpassword", "valid_until": "rolvaliduntil",
}  # fmt: skip


def initial_roles(superuser: int) -> list[dict[str, Any]]:
    """Return the rows of pg_authid in a new cluster."""
    rights = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolreplication")
    first = {"oid": superuser, "rolname": "postgres", "rolbypassrls": True}
    others = [{"oid": oid, "rolname": name} for oid, name in PREDEFINED_ROLES.items()]
    return [first | dict.fromkeys(rights, True), *others]


def initial_memberships(superuser: int) -> list[dict[str, Any]]:
    """Return the rows of pg_auth_members in a new cluster."""
    return [
        {"oid": oid, "roleid": role, "member": member, "grantor": superuser}
        for oid, (role, member) in enumerate(_PREDEFINED_MEMBERSHIPS, start=_FIRST_MEMBERSHIP)
    ]


def find_role(catalog: Catalog, name: str) -> Role | None:
    """Return the role of that name; None if there is none."""
    row = catalog.first(schema.pg_authid, schema.pg_authid.c.rolname == name)
    return None if row is None else _role(row)


def get_role(catalog: Catalog, oid: int) -> Role | None:
    """Return the role with that OID; None if there is none."""
    row = catalog.first(schema.pg_authid, schema.pg_authid.c.oid == oid)
    return None if row is None else _role(row)


def role_names(catalog: Catalog) -> dict[int, str]:
    """Return the names of all roles by OID."""
    return {int(row.oid): str(row.rolname) for row in catalog.select(schema.pg_authid)}


def insert_role(catalog: Catalog, role: Role) -> None:
    """Add a role."""
    catalog.insert(schema.pg_authid, **_values(role))


def update_role(catalog: Catalog, role: Role) -> None:
    """Replace the stored state of a role."""
    catalog.update(schema.pg_authid, schema.pg_authid.c.oid == role.oid, **_values(role))


def delete_role(catalog: Catalog, oid: int) -> None:
    """Remove a role and its memberships. The role must not own any object."""
    table = schema.pg_auth_members
    catalog.delete(table, (table.c.roleid == oid) | (table.c.member == oid))
    catalog.delete(schema.pg_authid, schema.pg_authid.c.oid == oid)


def memberships(catalog: Catalog) -> list[Membership]:
    """Return all memberships, in their order of creation."""
    table = schema.pg_auth_members
    return [
        Membership(
            int(row.oid),
            int(row.roleid),
            int(row.member),
            int(row.grantor),
            bool(row.admin_option),
            bool(row.inherit_option),
            bool(row.set_option),
        )
        for row in catalog.select(table, order_by=[table.c.oid])
    ]


def put_membership(catalog: Catalog, membership: Membership) -> None:
    """Add a membership, or change its options."""
    table = schema.pg_auth_members
    values = {
        "roleid": membership.role,
        "member": membership.member,
        "grantor": membership.grantor,
        "admin_option": membership.is_admin,
        "inherit_option": membership.inherits,
        "set_option": membership.may_set,
    }
    if catalog.update(table, table.c.oid == membership.oid, **values) == 0:
        catalog.insert(table, oid=membership.oid, **values)


def delete_membership(catalog: Catalog, oid: int) -> None:
    """Remove a membership."""
    catalog.delete(schema.pg_auth_members, schema.pg_auth_members.c.oid == oid)


def _values(role: Role) -> dict[str, Any]:
    return {_COLUMNS[name]: value for name, value in asdict(role).items()}


def _role(row: Any) -> Role:
    return Role(**{name: row._mapping[column] for name, column in _COLUMNS.items()})
