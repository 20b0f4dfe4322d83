"""COMMENT ON (comment.c)."""

from __future__ import annotations

from replctl.catalog.aclchk import owner_of
from replctl.catalog.pg_authid import get_role
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_database import find_database
from replctl.catalog.pg_description import set_comment
from replctl.catalog.pg_type import type_name, type_oid
from replctl.catalog.relation_kind import RelKind
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.domain import named_constraint, owned_domain
from replctl.commands.find_object import (
    find_function,
    find_operator,
    find_schema_oid,
    find_type_of_name,
    publication_of_name,
    subscription_of_name,
)
from replctl.commands.find_relation import RELATION_KINDS, find_relation
from replctl.commands.role import is_admin, role_oid
from replctl.does_not_exist import no_column
from replctl.errors import (
    InsufficientPrivilege,
    SqlSyntaxError,
    UndefinedObject,
    WrongObjectType,
)
from replctl.parser import ast
from replctl.record import dataclass
from replctl.session import Session
from replctl.types.type_kind import TypeKind


@dataclass(frozen=True, slots=True)
class _Commented:
    """An object, identified by its catalog and OID; `number` is the attnum of a column, else 0."""

    class_name: str
    oid: int
    number: int = 0


def comment(session: Session, statement: ast.Comment) -> str:
    """Set or remove the comment of an object, and return the command tag.

    Raises:
        PostgresError: there is no such object.
    """
    return carry_out(session, lambda ddl: _comment(ddl, statement))


def _comment(ddl: Ddl, statement: ast.Comment) -> str:
    found = _find(ddl, statement)
    if found is not None:
        _check_permitted(ddl, statement, found)
        set_comment(ddl.catalog, found.class_name, found.oid, statement.text, number=found.number)
    return "COMMENT"


def _check_permitted(ddl: Ddl, statement: ast.Comment, found: _Commented) -> None:
    """Check that the current role may comment on an object.

    Raises:
        InsufficientPrivilege: another role owns the object.
    """
    privileges, name = ddl.privileges, statement.name[-1]
    if privileges.is_superuser:
        return
    if statement.sub_type == "domain":
        return  # _find has checked its owner
    if found.class_name in ("pg_class", "pg_constraint"):
        parts = statement.name[:-1] if statement.object_type == "column" else statement.name
        relation = find_relation(ddl, parts)
        assert relation is not None
        if statement.object_type in ("column", "constraint"):
            privileges.check_owner(relation.owner, "relation", relation.name)
        privileges.check_relation_owner(relation)
        return
    if found.class_name == "pg_authid":
        _check_role(ddl, found.oid)
        return
    owner, word = owner_of(ddl.catalog, found.class_name, found.oid), statement.object_type
    if found.class_name == "pg_type":
        word, name = "type", ddl.environment.format_type(type_name(found.oid))
    privileges.check_owner(owner, word, name)


def _check_role(ddl: Ddl, oid: int) -> None:
    """Check that the current role, which is not a superuser, may comment on a role
    (check_object_ownership).
    """
    role = get_role(ddl.catalog, oid)
    missing = None
    if role is not None and role.is_superuser:
        missing = "SUPERUSER attribute"
    elif not ddl.privileges.role.may_create_roles:
        missing = "CREATEROLE attribute"
    elif role is not None and not is_admin(ddl, oid):
        missing = f'ADMIN option on role "{role.name}"'
    if missing is not None:
        raise InsufficientPrivilege(
            "permission denied", detail=f"The current user must have the {missing}."
        )


def _find(ddl: Ddl, statement: ast.Comment) -> _Commented | None:
    name = statement.name
    match statement.object_type:
        case "table" | "view" | "materialized view" | "index" | "sequence":
            return _Commented("pg_class", _relation(ddl, statement).oid)
        case "column":
            return _column(ddl, name)
        case "constraint":
            return _constraint(ddl, statement)
        case "schema":
            return _Commented("pg_namespace", find_schema_oid(ddl, name[-1]))
        case "database":
            oid = find_database(ddl.catalog, name[-1])
            if oid is None:  # a warning only: a dump may be restored under another name
                message = f'database "{name[-1]}" does not exist'
                ddl.notice(message, severity="WARNING", sqlstate="3D000")
            return None if oid is None else _Commented("pg_database", oid)
        case "role":
            return _Commented("pg_authid", role_oid(ddl.session, ddl.catalog, name[-1]))
        case "publication":
            return _Commented("pg_publication", publication_of_name(ddl, name[-1]).oid)
        case "subscription":
            return _Commented("pg_subscription", subscription_of_name(ddl, name[-1]).oid)
        case "type" | "domain":
            return _type(ddl, statement)
        case "function" | "routine" | "procedure" as kind:
            return _Commented("pg_proc", find_function(ddl, name, statement.arguments, kind).oid)
        case "operator":
            return _Commented(
                "pg_operator", find_operator(ddl, name, statement.arguments or ()).oid
            )
    raise TypeError(f"no comment on a {statement.object_type}")


def _relation(ddl: Ddl, statement: ast.Comment) -> Relation:
    relation = find_relation(ddl, statement.name)
    assert relation is not None
    kind = statement.object_type
    if relation.kind not in RELATION_KINDS[kind]:
        article = "an" if kind == "index" else "a"
        raise WrongObjectType(f'"{relation.name}" is not {article} {kind}')
    return relation


def _column(ddl: Ddl, name: tuple[str, ...]) -> _Commented:
    if len(name) == 1:
        raise SqlSyntaxError("column name must be qualified")
    relation = find_relation(ddl, name[:-1])
    assert relation is not None
    if relation.kind not in (
        RelKind.TABLE,
        RelKind.VIEW,
        RelKind.MATERIALIZED_VIEW,
        RelKind.PARTITIONED_TABLE,
        RelKind.FOREIGN_TABLE,
        RelKind.COMPOSITE_TYPE,
    ):
        raise WrongObjectType(
            f'cannot set comment on relation "{relation.name}"',
            detail=f"This operation is not supported for {relation.kind.plural}.",
        )
    column = relation.column(name[-1])
    if column is None:
        raise no_column(name[-1], ".".join(name[:-1]))
    return _Commented("pg_class", relation.oid, column.attnum)


def _constraint(ddl: Ddl, statement: ast.Comment) -> _Commented:
    if statement.sub_type == "domain":
        domain = owned_domain(ddl, statement.name)
        found = named_constraint(ddl, domain.name, statement.sub_name or "")
        return _Commented("pg_constraint", found.oid)
    relation = find_relation(ddl, statement.name)
    assert relation is not None
    for constraint in relation.constraints:
        if constraint.name == statement.sub_name:
            return _Commented("pg_constraint", constraint.oid)
    raise UndefinedObject(
        f'constraint "{statement.sub_name}" for table "{relation.name}" does not exist'
    )


def _type(ddl: Ddl, statement: ast.Comment) -> _Commented:
    type_ = find_type_of_name(ddl, statement.name)
    if statement.object_type == "domain" and type_.kind != TypeKind.DOMAIN:
        raise WrongObjectType(f'"{".".join(statement.name)}" is not a domain')
    oid = type_.oid if type_.is_builtin else type_oid(type_.name)
    return _Commented("pg_type", oid)
