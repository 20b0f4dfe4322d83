"""Read and write user-defined types (enums, domains and the row types of tables), and convert the
names of all types.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replctl.catalog import schema
from replctl.catalog.pg_default_acl import new_object_acl
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.transaction import Catalog
from replctl.types import builtin
from replctl.types.delta_type import shown_type
from replctl.types.type_kind import TypeAlign, TypeCategory, TypeKind, TypeStorage


def type_name(oid: int) -> str:
    """Return the name of a type in typed expressions: its catalog name, or `@` and its OID if it is
    user-defined.  OID 0 gives ''.
    """
    if oid == 0:
        return ""
    known = builtin.types_by_oid().get(oid)
    return f"@{oid}" if known is None else known.name


def type_oid(name: str) -> int:
    """Return the OID of a type, given its name in typed expressions; 0 for ''."""
    if not name:
        return 0
    return int(name[1:]) if name.startswith("@") else builtin.types()[shown_type(name)].oid


def get_type(catalog: Catalog, name: str) -> builtin.Type:
    """Return the type that has this name in typed expressions.

    Raises:
        KeyError: there is no such type.
    """
    if not name.startswith("@"):
        return builtin.types()[shown_type(name)]
    row = catalog.first(schema.pg_type, schema.pg_type.c.oid == type_oid(name))
    if row is None:
        raise KeyError(name)
    return _type(catalog, row)


def find_type(catalog: Catalog, schema_oid: int, name: str) -> builtin.Type | None:
    """Return the user-defined type of that name in a schema; None if there is none."""
    pg_type = schema.pg_type
    row = catalog.first(pg_type, pg_type.c.typname == name, pg_type.c.typnamespace == schema_oid)
    return None if row is None else _type(catalog, row)


def type_schema_oid(catalog: Catalog, name: str) -> int:
    """Return the OID of a user-defined type's schema."""
    row = catalog.first(schema.pg_type, schema.pg_type.c.oid == type_oid(name))
    assert row is not None
    return int(row.typnamespace)


def enum_labels(catalog: Catalog, name: str) -> tuple[str, ...]:
    """Return the labels of an enum, in the enum's order."""
    pg_enum = schema.pg_enum
    rows = catalog.select(
        pg_enum, pg_enum.c.enumtypid == type_oid(name), order_by=[pg_enum.c.enumsortorder]
    )
    return tuple(str(row.enumlabel) for row in rows)


def insert_type(
    catalog: Catalog,
    name: str,
    schema_oid: int,
    owner: int,
    *,
    kind: TypeKind,
    relid: int = 0,
    **facts: object,
) -> str:
    """Add a type and its array type.

    Args:
        kind: ENUM, COMPOSITE for the row type of relation `relid`, or DOMAIN.
        facts: the values of further columns of pg_type.

    Returns:
        The name of the new type in typed expressions.
    """
    oid, array_oid = catalog.new_oid(), catalog.new_oid()
    common = {"typnamespace": schema_oid, "typowner": owner}
    category = TypeCategory.ENUM if kind == TypeKind.ENUM else TypeCategory.COMPOSITE
    own = {"typcategory": category, "typbasetype": 0, "typcollation": 0, **facts}
    acl = None if kind == TypeKind.COMPOSITE else new_object_acl(catalog, "type", owner, schema_oid)
    catalog.insert(
        schema.pg_type, oid=oid, typname=name, typtype=kind, typrelid=relid, typelem=0,
        typarray=array_oid, typacl=acl, **common, **own,
    )  # fmt: skip
    catalog.insert(
        schema.pg_type, oid=array_oid, typname=_array_name(catalog, name, schema_oid),
        typtype=TypeKind.BASE, typcategory=TypeCategory.ARRAY, typrelid=0, typelem=oid,
        typarray=0, typbasetype=0, typcollation=own["typcollation"], **common,
    )  # fmt: skip
    return type_name(oid)


def insert_enum_labels(catalog: Catalog, name: str, labels: tuple[str, ...]) -> None:
    """Add the labels of a new enum."""
    for order, label in enumerate(labels, start=1):
        catalog.insert(
            schema.pg_enum,
            oid=catalog.new_oid(),
            enumtypid=type_oid(name),
            enumsortorder=order,
            enumlabel=label,
        )


def insert_enum_label(
    catalog: Catalog, name: str, label: str, neighbor: str | None = None, *, is_after: bool = False
) -> None:
    """Add one label to an enum: at the end, or before or after `neighbor` (AddEnumLabel)."""
    pg_enum = schema.pg_enum
    rows = catalog.select(
        pg_enum, pg_enum.c.enumtypid == type_oid(name), order_by=[pg_enum.c.enumsortorder]
    )
    orders = [float(row.enumsortorder) for row in rows]
    place = len(orders)
    if neighbor is not None:
        place = [str(row.enumlabel) for row in rows].index(neighbor) + is_after
    before = orders[place - 1] if place else None
    after = orders[place] if place < len(orders) else None
    if before is None:
        order = 1.0 if after is None else after - 1
    else:
        order = before + 1 if after is None else (before + after) / 2
    catalog.insert(
        pg_enum,
        oid=catalog.new_oid(),
        enumtypid=type_oid(name),
        enumsortorder=order,
        enumlabel=label,
    )


def delete_type(catalog: Catalog, name: str) -> None:
    """Remove a type, its array type, its labels and its constraints."""
    oid = type_oid(name)
    catalog.delete(schema.pg_constraint, schema.pg_constraint.c.contypid == oid)
    catalog.delete(schema.pg_type, schema.pg_type.c.oid == oid)
    catalog.delete(schema.pg_type, schema.pg_type.c.typelem == oid)
    catalog.delete(schema.pg_enum, schema.pg_enum.c.enumtypid == oid)


def _array_name(catalog: Catalog, name: str, schema_oid: int) -> str:
    """Return `_name`, or `_name_1` and so on if that type exists (makeArrayTypeName)."""
    candidate, number = f"_{name}", 0
    while find_type(catalog, schema_oid, candidate) is not None:
        number += 1
        candidate = f"_{name}_{number}"
    return candidate


def _type(catalog: Catalog, row: object) -> builtin.Type:
    fields = row._mapping  # type: ignore[attr-defined]
    if fields["typtype"] == TypeKind.DOMAIN:
        return _domain(catalog, fields)
    is_array = fields["typcategory"] == TypeCategory.ARRAY
    kind = TypeKind(fields["typtype"])
    is_enum = kind == TypeKind.ENUM
    return builtin.Type(
        oid=int(fields["oid"]),
        name=type_name(int(fields["oid"])),
        sql_name=str(fields["typname"]),
        length=4 if is_enum else -1,
        kind=kind,
        category=TypeCategory(fields["typcategory"]),
        is_preferred=False,
        delimiter=",",
        is_by_value=is_enum,
        align=TypeAlign.INT if is_enum or is_array else TypeAlign.DOUBLE,
        storage=TypeStorage.PLAIN if is_enum else TypeStorage.EXTENDED,
        element=type_name(int(fields["typelem"])) if is_array else None,
        array=type_name(int(fields["typarray"])) if fields["typarray"] else None,
        collation=None,
        has_typmod=False,
        has_btree=True,
        has_hash=True,
        is_composite=kind == TypeKind.COMPOSITE and _is_composite(catalog, int(fields["typrelid"])),
    )


def _is_composite(catalog: Catalog, relid: int) -> bool:
    row = catalog.first(schema.pg_class, schema.pg_class.c.oid == relid)
    return row is not None and row.relkind == RelKind.COMPOSITE_TYPE


def _domain(catalog: Catalog, fields: Any) -> builtin.Type:
    """Return a domain as a type, which has most properties of its base type."""
    base = get_type(catalog, type_name(int(fields["typbasetype"])))
    collations = {oid: name for name, oid in builtin.collations().items()}
    return replace(
        base,
        oid=int(fields["oid"]),
        name=type_name(int(fields["oid"])),
        sql_name=str(fields["typname"]),
        kind=TypeKind.DOMAIN,
        category=TypeCategory(fields["typcategory"]),
        is_preferred=False,
        element=None,
        is_composite=False,
        array=type_name(int(fields["typarray"])),
        collation=collations.get(int(fields["typcollation"])),
        has_typmod=False,
    )
