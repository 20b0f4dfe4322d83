"""Fill the catalog of a new cluster (initdb.c): identifier, roles, databases and their schemas."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert

from replctl.catalog import schema, state_schema
from replctl.catalog.acl import ALL_RIGHTS, PUBLIC, AclItem, Privilege, default_acl, encode_acl
from replctl.catalog.pg_authid import DATABASE_OWNER, initial_memberships, initial_roles
from replctl.catalog.snapshot import BOOTSTRAP_XID
from replctl.types.builtin import FIRST_USER_OID

BOOTSTRAP_SUPERUSER = 10  # as BOOTSTRAP_SUPERUSERID in pg_authid.h
#: OIDs (pg_database.dat), names and comments of the databases that initdb creates.
TEMPLATE1_DATABASE, TEMPLATE0_DATABASE, POSTGRES_DATABASE = 1, 4, 5
_DATABASES = (
    (TEMPLATE1_DATABASE, "template1", "default template for new databases"),
    (TEMPLATE0_DATABASE, "template0", "unmodifiable empty database"),
    (POSTGRES_DATABASE, "postgres", "default administrative connection database"),
)
PG_CATALOG_NAMESPACE = 11
INFORMATION_SCHEMA = 13000
PUBLIC_NAMESPACE = 2200
_PG_DATABASE, _PG_NAMESPACE = 1262, 2615  # in pg_class
_FIRST_LSN = 0x1500000
_KEY_BYTES = 32


def bootstrap(connection: Connection, home: Path) -> None:
    """Create the objects that initdb creates: the roles, and the databases with their schemas.

    Args:
        home: the directory of the new cluster.
    """
    identifier = new_system_identifier()
    connection.execute(
        insert(state_schema.pg_control).values(
            system_identifier=identifier,
            signing_key=new_signing_key(),
            home=str(home),
            next_xid=BOOTSTRAP_XID + 2,
            next_oid=FIRST_USER_OID,
            insert_lsn=_FIRST_LSN,
            revision=schema.REVISION,
        )
    )
    for row in initial_roles(BOOTSTRAP_SUPERUSER):
        connection.execute(insert(schema.pg_authid).values(**row, xmin=BOOTSTRAP_XID))
    for row in initial_memberships(BOOTSTRAP_SUPERUSER):
        connection.execute(insert(schema.pg_auth_members).values(**row, xmin=BOOTSTRAP_XID))
    for oid, name, comment in _DATABASES:
        _bootstrap_database(connection, oid, name, comment)


def new_system_identifier() -> int:
    """Return a new unique number for a cluster."""
    seconds = int(time.time()) & 0x7FFFFFFF  # SQLite's integers are signed
    return (seconds << 32) | secrets.randbits(31)


def new_signing_key() -> str:
    """Return a new key for the marks of a cluster's commits."""
    return secrets.token_hex(_KEY_BYTES)


def _bootstrap_database(connection: Connection, oid: int, name: str, comment: str) -> None:
    """Create a database of initdb with its schemas.  Nobody can connect to template0, and the
    templates have access lists (setup_privileges() in initdb.c).
    """
    is_template = oid != POSTGRES_DATABASE
    owner = BOOTSTRAP_SUPERUSER
    owner_rights = AclItem(owner, owner, ALL_RIGHTS["database"])
    shared_rows = {
        schema.pg_database: {
            "oid": oid,
            "datname": name,
            "datdba": owner,
            "datistemplate": is_template,
            "datallowconn": oid != TEMPLATE0_DATABASE,
            "datacl": encode_acl((AclItem(PUBLIC, owner, Privilege.CONNECT), owner_rights))
            if is_template
            else None,
        },
        schema.pg_shdescription: {
            "objoid": oid,
            "classoid": _PG_DATABASE,
            "description": comment,
        },
    }
    rows = [
        *shared_rows.items(),
        *((schema.pg_namespace, row) for row in initial_schemas(oid)),
        *((schema.pg_description, row) for row in initial_comments(oid)),
    ]
    for table, row in rows:
        connection.execute(insert(table).values(**row, xmin=BOOTSTRAP_XID))


def initial_schemas(database_oid: int) -> list[dict[str, Any]]:
    """Return the rows of pg_namespace in a new database."""
    names = {
        PG_CATALOG_NAMESPACE: "pg_catalog",
        PUBLIC_NAMESPACE: "public",
        INFORMATION_SCHEMA: "information_schema",
    }
    owners = {PUBLIC_NAMESPACE: DATABASE_OWNER}
    rows = []
    for oid, name in names.items():
        owner = owners.get(oid, BOOTSTRAP_SUPERUSER)
        everybody = AclItem(PUBLIC, owner, Privilege.USAGE)
        acl = encode_acl((*default_acl("schema", owner), everybody))
        rows.append(
            {"dbid": database_oid, "oid": oid, "nspname": name, "nspowner": owner, "nspacl": acl}
        )
    return rows


def initial_comments(database_oid: int) -> list[dict[str, Any]]:
    """Return the rows of pg_description for the schemas of a new database."""
    texts = {
        PG_CATALOG_NAMESPACE: "system catalog schema",
        PUBLIC_NAMESPACE: "standard public schema",
    }
    return [
        {"dbid": database_oid, "objoid": oid, "classoid": _PG_NAMESPACE, "description": text}
        for oid, text in texts.items()
    ]
