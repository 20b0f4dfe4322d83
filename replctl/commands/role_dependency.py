"""Find objects that depend on a role: it owns them, or privileges or policies name it
(pg_shdepend.c).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from replctl.catalog import schema, schema_table
from replctl.catalog.acl import decode_acl
from replctl.catalog.pg_authid import memberships, role_names
from replctl.catalog.pg_default_acl import OBJECT_TYPES
from replctl.catalog.pg_policy import list_policies
from replctl.catalog.relation_kind import INDEX_KINDS
from replctl.commands.ddl import Ddl
from replctl.commands.dependency import describe
from replctl.commands.object_address import Kind, Object, relation_object
from replctl.record import dataclass
from replctl.types.type_kind import TypeKind


@dataclass(frozen=True, slots=True)
class RoleDependency:
    """An object that depends on a role.  The role owns the object, or is the grantee or grantor of
    privileges on it, or the object is a policy that names the role.

    Attributes:
        class_name: the catalog of the object.
        number: the attnum if the object is a column.
        database_oid: the database of the object; 0 if the whole cluster shares it.
    """

    kind: Literal["owner", "acl", "policy"]
    class_name: str
    oid: int
    number: int = 0
    database_oid: int = 0


#: Catalogs, and their columns for owners and access lists.
_CATALOGS = (
    ("pg_namespace", "nspowner", "nspacl"),
    ("pg_class", "relowner", "relacl"),
    ("pg_attribute", None, "attacl"),
    ("pg_type", "typowner", "typacl"),
    ("pg_proc", "proowner", "proacl"),
    ("pg_operator", "oprowner", None),
    ("pg_collation", "collowner", None),
    ("pg_publication", "pubowner", None),
    ("pg_default_acl", "defaclrole", "defaclacl"),
    ("pg_database", "datdba", "datacl"),
    ("pg_subscription", "subowner", None),
)
_KINDS: dict[str, Kind] = {
    "pg_namespace": "schema",
    "pg_type": "type",
    "pg_proc": "function",
    "pg_operator": "operator",
    "pg_collation": "collation",
}
_DEFAULT_ACL_WORDS = {"table": "relations"}


def role_dependencies(ddl: Ddl, role_oid: int) -> list[RoleDependency]:
    """Return the objects in all databases that depend on a role, ordered by OID."""
    found = [*_owned_and_granted(ddl, role_oid), *_granted_memberships(ddl, role_oid)]
    found += [
        RoleDependency("policy", "pg_policy", policy.oid, 0, ddl.catalog.database_oid)
        for policy in list_policies(ddl.catalog)
        if role_oid in policy.roles
    ]
    return sorted(found, key=lambda item: (item.oid, item.number))


def dependency_lines(ddl: Ddl, role_oid: int) -> list[str]:
    """Return the DETAIL lines that name the objects that depend on a role
    (checkSharedDependencies).
    """
    here = (0, ddl.catalog.database_oid)
    dependencies = role_dependencies(ddl, role_oid)
    words = {"owner": "owner of", "acl": "privileges for", "policy": "target of"}
    lines = [
        f"{words[item.kind]} {describe_dependency(ddl, item)}"
        for item in dependencies
        if item.database_oid in here
    ]
    elsewhere = [item.database_oid for item in dependencies if item.database_oid not in here]
    table = schema.pg_database
    for oid in dict.fromkeys(elsewhere):
        row = ddl.catalog.first(table, table.c.oid == oid)
        count = elsewhere.count(oid)
        name = "" if row is None else str(row.datname)
        lines.append(f"{count} object{'' if count == 1 else 's'} in database {name}")
    return lines


def _owned_and_granted(ddl: Ddl, role_oid: int) -> Iterator[RoleDependency]:
    for class_name, owner, acl in _CATALOGS:
        table = schema_table.metadata.tables[class_name]
        for row in ddl.catalog.select_everywhere(table):
            values = row._mapping
            if _goes_with_another(class_name, values) or values.get("attisdropped"):
                continue
            place = int(values.get("dbid", 0))
            oid, number = int(values.get("oid") or values["attrelid"]), 0
            if class_name == "pg_attribute":
                number = int(values["attnum"])
            if owner is not None and int(values[owner]) == role_oid:
                if values.get("typtype") != TypeKind.COMPOSITE:  # its relation has the same owner
                    yield RoleDependency("owner", class_name, oid, number, place)
                continue
            items = (decode_acl(values[acl]) if acl is not None else None) or ()
            if any(role_oid in (item.grantee, item.grantor) for item in items):
                yield RoleDependency("acl", class_name, oid, number, place)


def _goes_with_another(class_name: str, values: Any) -> bool:
    """Return whether an object is only a part of another object: an index or an array type."""
    if class_name == "pg_class":
        return values["relkind"] in INDEX_KINDS
    return class_name == "pg_type" and values["typtype"] == TypeKind.BASE


def _granted_memberships(ddl: Ddl, role_oid: int) -> Iterator[RoleDependency]:
    for item in memberships(ddl.catalog):
        if role_oid == item.grantor:
            yield RoleDependency("acl", "pg_auth_members", item.oid)


def describe_dependency(ddl: Ddl, item: RoleDependency) -> str:
    """Return the description of an object for messages: `table t`, `column a of table t`, ...
    (getObjectDescription).
    """
    catalog = ddl.catalog
    table = schema_table.metadata.tables[item.class_name]
    match item.class_name:
        case "pg_class":
            return describe(ddl, relation_object(ddl.relation(item.oid)))
        case "pg_attribute":
            return describe(ddl, Object("column", item.oid, item.number))
        case "pg_policy":
            return describe(ddl, Object("policy", item.oid))
        case "pg_auth_members":
            member = next(m for m in memberships(catalog) if m.oid == item.oid)
            names = role_names(catalog)
            return f"membership of role {names[member.member]} in role {names[member.role]}"
        case "pg_default_acl":
            row = catalog.first(table, table.c.oid == item.oid)
            assert row is not None
            kind = next(k for k, letter in OBJECT_TYPES.items() if letter == row.defaclobjtype)
            what = _DEFAULT_ACL_WORDS.get(kind, f"{kind}s")
            role = role_names(catalog)[int(row.defaclrole)]
            text = f"default privileges on new {what} belonging to role {role}"
            if row.defaclnamespace:
                place = ddl.environment.schema_name(int(row.defaclnamespace)) or ""
                text += f" in schema {place}"
            return text
        case "pg_publication" | "pg_subscription" | "pg_database":
            row = catalog.first(table, table.c.oid == item.oid)
            assert row is not None
            name = next(str(value) for key, value in row._mapping.items() if key in _NAME_COLUMNS)
            return f"{item.class_name.removeprefix('pg_')} {name}"
    return describe(ddl, Object(_KINDS[item.class_name], item.oid))


_NAME_COLUMNS: Sequence[str] = ("pubname", "subname", "datname")
