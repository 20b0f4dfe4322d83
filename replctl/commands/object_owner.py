"""Give objects to other roles, for OWNER TO and REASSIGN OWNED (AlterObjectOwner_internal() in
alter.c, and its siblings for schemas, publications and subscriptions).
"""

from __future__ import annotations

from replctl.catalog import schema_table
from replctl.catalog.acl import Privilege, decode_acl, encode_acl, with_owner
from replctl.catalog.aclchk import privileges_of
from replctl.catalog.pg_publication import publications_by_oid, published_schemas
from replctl.catalog.pg_subscription import get_subscription
from replctl.commands.alter_table import check_new_owner
from replctl.commands.ddl import Ddl
from replctl.commands.subscription_permission import check_password_requirement
from replctl.errors import InsufficientPrivilege

#: The columns of each catalog for the owner, the access list and the schema.
_COLUMNS: dict[str, tuple[str, str | None, str | None]] = {
    "pg_namespace": ("nspowner", "nspacl", None),
    "pg_database": ("datdba", "datacl", None),
    "pg_type": ("typowner", "typacl", "typnamespace"),
    "pg_proc": ("proowner", "proacl", "pronamespace"),
    "pg_operator": ("oprowner", None, "oprnamespace"),
    "pg_collation": ("collowner", None, "collnamespace"),
    "pg_publication": ("pubowner", None, None),
    "pg_subscription": ("subowner", None, None),
}


def check_given(ddl: Ddl, class_name: str, oid: int, owner: int) -> None:
    """Check that the current role, which owns an object, may give it to another role.

    Args:
        class_name: the catalog of the object: any that has owners, except pg_class.

    Raises:
        InsufficientPrivilege: the current role cannot become the new owner, one of the roles may
            not create such objects, or only superusers may own or give the object.
    """
    privileges = ddl.privileges
    if privileges.is_superuser:
        return
    if class_name == "pg_subscription":
        subscription = get_subscription(ddl.catalog, oid)
        assert subscription is not None
        check_password_requirement(privileges, subscription)
    check_new_owner(ddl, owner, _schema_of(ddl, class_name, oid))
    if class_name in ("pg_namespace", "pg_subscription"):
        privileges.check_database(ddl.session.database_name, Privilege.CREATE)
    if class_name == "pg_publication":
        _check_publication(ddl, oid, owner)


def _schema_of(ddl: Ddl, class_name: str, oid: int) -> int | None:
    """Return the OID of an object's schema; None for built-in objects and for objects without a
    schema.
    """
    column = _COLUMNS[class_name][2]
    table = schema_table.metadata.tables[class_name]
    row = None if column is None else ddl.catalog.first(table, table.c.oid == oid)
    return None if row is None or column is None else int(row._mapping[column])


def _check_publication(ddl: Ddl, oid: int, owner: int) -> None:
    """Check that a role may own a publication (AlterPublicationOwner_internal)."""
    publication = publications_by_oid(ddl.catalog, [oid])[oid]
    taker = privileges_of(ddl.environment.catalog, owner)
    taker.check_database(ddl.session.database_name, Privilege.CREATE)
    what = "FOR ALL TABLES" if publication.all_tables else ""
    if published_schemas(ddl.catalog, publication.oid):
        what = "FOR TABLES IN SCHEMA"
    if what and not taker.is_superuser:
        raise InsufficientPrivilege(
            f'permission denied to change owner of publication "{publication.name}"',
            hint=f"The owner of a {what} publication must be a superuser.",
        )


def give_object(ddl: Ddl, class_name: str, oid: int, owner: int) -> None:
    """Change the owner of an object, and the owner in its access list, without checks.

    Args:
        class_name: see `check_given`.
    """
    table = schema_table.metadata.tables[class_name]
    owner_column, acl_column, _schema_column = _COLUMNS[class_name]
    row = ddl.catalog.first(table, table.c.oid == oid)
    assert row is not None
    old = int(row._mapping[owner_column])
    if owner == old:
        return
    changes: dict[str, object] = {owner_column: owner}
    acl = None if acl_column is None else decode_acl(row._mapping[acl_column])
    if acl_column is not None and acl is not None:
        changes[acl_column] = encode_acl(with_owner(acl, old, owner))
    ddl.catalog.update(table, table.c.oid == oid, **changes)
    if class_name == "pg_type":  # its array type has the same owner
        ddl.catalog.update(table, table.c.typelem == oid, typowner=owner)
