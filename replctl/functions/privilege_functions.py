"""has_table_privilege() and similar functions, by their names in pg_proc.prosrc (acl.c)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from replctl.catalog import schema
from replctl.catalog.acl import ALL_RIGHTS, PUBLIC, Privilege, find_privilege
from replctl.catalog.aclchk import Privileges, privileges_of
from replctl.catalog.pg_authid import find_role
from replctl.catalog.pg_class import get_relation
from replctl.catalog.pg_policy import is_row_security_active
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.system_privilege import has_on_system_relation, may_call_builtin
from replctl.does_not_exist import no_column, no_schema
from replctl.errors import (
    InvalidCatalogName,
    InvalidParameterValue,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr import object_identifier
from replctl.types import builtin
from replctl.types.builtin import FIRST_USER_OID, SystemRelation
from replctl.types.text_form import BLANKS

if TYPE_CHECKING:
    from replctl.functions.function_context import FunctionContext

#: Returns whether a role has a privilege on an object; None if there is no such object.  The
#: arguments are the context, the role's privileges, the object's OID, the privilege, and whether
#: the grant option is tested instead.
_Check = Callable[["FunctionContext", Privileges, int, Privilege, bool], bool | None]
_GRANT_OPTION = " with grant option"

#: The privileges on each kind of object.
_ON: dict[str, str] = dict(ALL_RIGHTS.items(), parameter=Privilege.SET + Privilege.ALTER_SYSTEM)


def _role_oid(context: FunctionContext, role: str | int) -> int:
    if isinstance(role, int):
        return role
    found = find_role(context.catalog, role)
    if found is None:
        raise UndefinedObject(f'role "{role}" does not exist')
    return found.oid


def _privileges(context: FunctionContext, roles: Sequence[str | int]) -> Privileges:
    """Return the privileges of the role or of PUBLIC, if one is given; else those of the current
    role.
    """
    if not roles:
        return context.environment.privileges
    oid = PUBLIC if roles[0] == "public" else _role_oid(context, roles[0])
    return privileges_of(context.environment.catalog, oid)


def _wanted(kind: str, words: str) -> list[tuple[Privilege, bool]]:
    """Return pairs of a privilege and a flag for its grant option, one for each word.

    Raises:
        InvalidParameterValue: the kind of object has no such privilege.
    """
    found = []
    for word in words.split(","):
        bare = word.strip(BLANKS).lower()
        as_option = bare.endswith(_GRANT_OPTION)
        bare = bare.removesuffix(_GRANT_OPTION)
        privilege = find_privilege(bare)
        if privilege is None or privilege not in _ON[kind]:
            raise InvalidParameterValue(f'unrecognized privilege type: "{word.strip(BLANKS)}"')
        found.append((privilege, as_option))
    return found


def _relation_oid(context: FunctionContext, name: str) -> int:
    return int(object_identifier.read(context.environment, "regclass", name))


def _function_oid(context: FunctionContext, name: str) -> int:
    return int(object_identifier.read(context.environment, "regprocedure", name))


def _type_oid(context: FunctionContext, name: str) -> int:
    return int(object_identifier.read(context.environment, "regtype", name))


def _schema_oid(context: FunctionContext, name: str) -> int:
    oid = context.environment.schema_oid(name)
    if oid is None:
        raise no_schema(name)
    return oid


def _database_oid(context: FunctionContext, name: str) -> int:
    table = schema.pg_database
    row = context.catalog.first(table, table.c.datname == name)
    if row is None:
        raise InvalidCatalogName(f'database "{name}" does not exist')
    return int(row.oid)


def _on_relation(
    context: FunctionContext,
    privileges: Privileges,
    oid: int,
    privilege: Privilege,
    as_option: bool,
) -> bool | None:
    if oid in builtin.system_relations_by_oid():
        system = builtin.system_relations_by_oid()[oid]
        if as_option:
            return privileges.is_superuser
        return has_on_system_relation(privileges, system, privilege)
    relation = get_relation(context.catalog, oid)
    if relation is None:
        return None
    return privileges.has_on_relation(relation, privilege, as_option=as_option)


def _on_any_column(
    context: FunctionContext,
    privileges: Privileges,
    oid: int,
    privilege: Privilege,
    as_option: bool,
) -> bool | None:
    return _on_columns(context, privileges, oid, privilege, as_option, ())


def _on_columns(
    context: FunctionContext,
    privileges: Privileges,
    oid: int,
    privilege: Privilege,
    as_option: bool,
    attnums: Collection[int],
) -> bool | None:
    """Return whether a role has a privilege on columns; None if there is no such relation.

    Args:
        attnums: the columns; if it is empty, one column with the privilege suffices.
    """
    system = builtin.system_relations_by_oid().get(oid)
    if system is not None:
        chosen = [attnums] if attnums else [[a] for a in range(1, len(system.columns) + 1)]
        return privileges.is_superuser or (
            not as_option
            and any(has_on_system_relation(privileges, system, privilege, some) for some in chosen)
        )
    relation = get_relation(context.catalog, oid)
    if relation is None:
        return None
    return privileges.has_on_relation(relation, privilege, attnums, as_option=as_option)


def _on_sequence(
    context: FunctionContext,
    privileges: Privileges,
    oid: int,
    privilege: Privilege,
    as_option: bool,
) -> bool | None:
    relation = builtin.system_relations_by_oid().get(oid) or get_relation(context.catalog, oid)
    if relation is None:
        return None
    if isinstance(relation, SystemRelation) or relation.kind != RelKind.SEQUENCE:
        raise WrongObjectType(f'"{relation.name}" is not a sequence')
    return privileges.has_on_relation(relation, privilege, as_option=as_option)


def _on_schema(
    context: FunctionContext,
    privileges: Privileges,
    oid: int,
    privilege: Privilege,
    as_option: bool,
) -> bool | None:
    if context.environment.schema_name(oid) is None:
        return None
    return privileges.has_on_schema(oid, privilege, as_option=as_option)


def _on_database(
    context: FunctionContext,
    privileges: Privileges,
    oid: int,
    privilege: Privilege,
    as_option: bool,
) -> bool | None:
    table = schema.pg_database
    if context.catalog.first(table, table.c.oid == oid) is None:
        return None
    return privileges.has_on_database(privilege, oid, as_option=as_option)


def _on_function(
    context: FunctionContext,
    privileges: Privileges,
    oid: int,
    privilege: Privilege,
    as_option: bool,
) -> bool | None:
    if oid in builtin.function_by_oid():
        return privileges.is_superuser or (not as_option and may_call_builtin(privileges, oid))
    table = schema.pg_proc
    if context.catalog.first(table, table.c.oid == oid) is None:
        return None
    return privileges.has_on_function(oid, privilege, as_option=as_option)


def _on_type(
    context: FunctionContext,
    privileges: Privileges,
    oid: int,
    privilege: Privilege,
    as_option: bool,
) -> bool | None:
    if context.environment.type_by_oid(oid) is None:
        return None
    if oid < FIRST_USER_OID:
        return privileges.is_superuser or not as_option
    return privileges.has_on_type(oid, privilege, as_option=as_option)


_Implementation = Callable[..., int | None]


def _variants(
    name: str, kind: str, find: Callable[[FunctionContext, str], int], check: _Check
) -> dict[str, _Implementation]:
    """Return the forms of a function: with and without a role, and with names or OIDs."""

    def call(context: FunctionContext, *args: Any) -> int | None:
        *roles, target, words = args
        privileges = _privileges(context, roles)
        # acl.c looks up the object first, except sequences.
        early = _wanted(kind, words) if kind == "sequence" else None
        oid = target if isinstance(target, int) else find(context, target)
        wanted = early or _wanted(kind, words)
        verdicts = [check(context, privileges, oid, privilege, flag) for privilege, flag in wanted]
        return None if None in verdicts else int(any(verdicts))

    suffixes = ("name_name", "name_id", "id_name", "id_id", "name", "id")
    return {f"{name}_{suffix}": call for suffix in suffixes}


def _has_column(context: FunctionContext, *args: Any) -> int | None:
    """Implement has_column_privilege([role,] table, column, privileges); columns can be numbers."""
    *roles, table, column, words = args
    privileges = _privileges(context, roles)
    oid = table if isinstance(table, int) else _relation_oid(context, table)
    names = _column_names(context, oid)
    if isinstance(column, str) and names:
        if column not in names.values():
            name = context.environment.relation_name(oid)
            raise no_column(column, name)
        column = next(attnum for attnum, name in names.items() if name == column)
    wanted = _wanted("column", words)
    if column not in names:
        return None
    return int(
        any(
            _on_columns(context, privileges, oid, privilege, as_option, [column])
            for privilege, as_option in wanted
        )
    )


def _column_names(context: FunctionContext, oid: int) -> dict[int, str]:
    """Return the names of a relation's columns by number; {} if there is no such relation."""
    system = builtin.system_relations_by_oid().get(oid)
    if system is not None:
        return dict(enumerate((name for name, _type in system.columns), start=1))
    relation = get_relation(context.catalog, oid)
    return {} if relation is None else {c.attnum: c.name for c in relation.columns}


def _has_parameter(context: FunctionContext, *args: Any) -> int:
    """Implement has_parameter_privilege(): only superusers have privileges on parameters."""
    *roles, _name, words = args
    _wanted("parameter", words)
    return int(_privileges(context, roles).is_superuser)


def _has_role(context: FunctionContext, *args: Any) -> int:
    *members, role, words = args
    privileges = context.environment.privileges
    if members:
        privileges = privileges_of(context.environment.catalog, _role_oid(context, members[0]))
    oid = _role_oid(context, role)
    verdicts: dict[str, Callable[[], bool]] = {
        "usage": lambda: privileges.acts_for(oid),
        "member": lambda: privileges.is_superuser or oid in privileges.memberships,
        "set": lambda: privileges.may_become(oid),
        "admin": lambda: privileges.is_admin_of(oid),
    }
    found = []
    for word in words.split(","):
        bare = word.strip(BLANKS).lower()
        for option in (_GRANT_OPTION, " with admin option"):
            if bare.endswith(option) and bare.removesuffix(option) in ("usage", "member", "set"):
                bare = "admin"
        if bare not in verdicts or word.strip(BLANKS).lower() == "admin":
            raise InvalidParameterValue(f'unrecognized privilege type: "{word.strip(BLANKS)}"')
        found.append(verdicts[bare])
    return int(any(verdict() for verdict in found))


def _is_row_security_active(context: FunctionContext, target: str | int) -> int | None:
    oid = target if isinstance(target, int) else _relation_oid(context, target)
    relation = get_relation(context.catalog, oid)
    if relation is None:
        return None
    return int(is_row_security_active(context.environment.privileges, relation))


FUNCTIONS: dict[str, Callable[..., int | None]] = {
    "row_security_active": _is_row_security_active,
    "row_security_active_name": _is_row_security_active,
    **_variants("has_table_privilege", "table", _relation_oid, _on_relation),
    **_variants("has_any_column_privilege", "column", _relation_oid, _on_any_column),
    **_variants("has_sequence_privilege", "sequence", _relation_oid, _on_sequence),
    **_variants("has_schema_privilege", "schema", _schema_oid, _on_schema),
    **_variants("has_database_privilege", "database", _database_oid, _on_database),
    **_variants("has_function_privilege", "function", _function_oid, _on_function),
    **_variants("has_type_privilege", "type", _type_oid, _on_type),
    **{
        f"has_column_privilege_{suffix}": _has_column
        for suffix in (
            "name_name_name", "name_name_attnum", "name_id_name", "name_id_attnum",
            "id_name_name", "id_name_attnum", "id_id_name", "id_id_attnum",
            "name_name", "name_attnum", "id_name", "id_attnum",
        )
    },
    **{
        f"has_parameter_privilege_{suffix}": _has_parameter
        for suffix in ("name_name", "id_name", "name")
    },
    **{
        f"pg_has_role_{suffix}": _has_role
        for suffix in ("name_name", "name_id", "id_name", "id_id", "name", "id")
    },
}  # fmt: skip
