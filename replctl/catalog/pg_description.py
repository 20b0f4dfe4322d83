"""Read and write comments on objects: pg_description for a database, pg_shdescription for the
cluster.
"""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog
from replctl.types import builtin

#: Catalogs whose objects have shared comments, because they belong to the whole cluster.  Comments
#: on subscriptions are not shared.
_SHARED = ("pg_authid", "pg_database")


def set_comment(
    catalog: Catalog, class_name: str, oid: int, text: str | None, *, number: int = 0
) -> None:
    """Replace the comment on an object.  None removes it.

    Args:
        class_name: the catalog of the object.
        number: the attnum for a comment on a column, else 0.
    """
    table = schema.pg_shdescription if class_name in _SHARED else schema.pg_description
    key = {"objoid": oid, "classoid": builtin.system_relations()[class_name].oid}
    if class_name not in _SHARED:
        key["objsubid"] = number
    catalog.delete(table, *(table.c[name] == value for name, value in key.items()))
    if text is not None:
        catalog.insert(table, **key, description=text)


def get_comment(catalog: Catalog, class_name: str, oid: int, number: int = 0) -> str | None:
    """Return the comment on an object of a database; None if there is none."""
    table = schema.pg_description
    class_oid = builtin.system_relations()[class_name].oid
    row = catalog.first(
        table, table.c.objoid == oid, table.c.classoid == class_oid, table.c.objsubid == number
    )
    if row is not None:
        return str(row.description)
    return builtin.type_descriptions().get(oid) if class_name == "pg_type" else None


def get_shared_comment(catalog: Catalog, class_name: str, oid: int) -> str | None:
    """Return the comment on a role or a database; None if there is none."""
    table = schema.pg_shdescription
    class_oid = builtin.system_relations()[class_name].oid
    row = catalog.first(table, table.c.objoid == oid, table.c.classoid == class_oid)
    return None if row is None else str(row.description)
