"""Read and write default privileges: the access lists that new objects get."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.acl import (
    Acl,
    AclKind,
    decode_acl,
    default_acl,
    encode_acl,
    merged,
    sorted_acl,
)
from replctl.catalog.transaction import Catalog

#: pg_default_acl.defaclobjtype
OBJECT_TYPES: dict[AclKind, str] = {
    "table": "r",
    "sequence": "S",
    "function": "f",
    "type": "T",
    "schema": "n",
}
EVERYWHERE = 0


def stored_default_acl(
    catalog: Catalog, role_oid: int, schema_oid: int, kind: AclKind
) -> Acl | None:
    """Return the default privileges for objects that a role creates in a schema; None if there are
    none.  New objects get them in addition to the default privileges for EVERYWHERE.
    """
    table = schema.pg_default_acl
    row = catalog.first(
        table,
        table.c.defaclrole == role_oid,
        table.c.defaclnamespace == schema_oid,
        table.c.defaclobjtype == OBJECT_TYPES[kind],
    )
    return None if row is None else decode_acl(row.defaclacl)


def put_default_acl(
    catalog: Catalog, role_oid: int, schema_oid: int, kind: AclKind, acl: Acl | None
) -> None:
    """Replace default privileges.  None restores the built-in defaults."""
    table = schema.pg_default_acl
    where = (
        table.c.defaclrole == role_oid,
        table.c.defaclnamespace == schema_oid,
        table.c.defaclobjtype == OBJECT_TYPES[kind],
    )
    acl = None if acl is None else sorted_acl(acl)
    if acl is None:
        catalog.delete(table, *where)
    elif catalog.update(table, *where, defaclacl=encode_acl(acl)) == 0:
        catalog.insert(
            table,
            oid=catalog.new_oid(),
            defaclrole=role_oid,
            defaclnamespace=schema_oid,
            defaclobjtype=OBJECT_TYPES[kind],
            defaclacl=encode_acl(acl),
        )


def new_object_acl(
    catalog: Catalog, kind: AclKind, owner: int, schema_oid: int = EVERYWHERE
) -> str | None:
    """Return the stored access list of a new object; None if the built-in defaults apply
    (get_user_default_acl).
    """
    everywhere = stored_default_acl(catalog, owner, EVERYWHERE, kind)
    here = stored_default_acl(catalog, owner, schema_oid, kind) if schema_oid else None
    if everywhere is None and here is None:
        return None
    by_itself = default_acl(kind, owner)
    acl = merged(by_itself if everywhere is None else everywhere, here or ())
    return None if set(acl) == set(by_itself) else encode_acl(sorted_acl(acl))
