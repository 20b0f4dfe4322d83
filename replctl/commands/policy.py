"""CREATE and ALTER POLICY (policy.c); ENABLE and FORCE ROW LEVEL SECURITY."""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.acl import PUBLIC, Privilege, find_privilege
from replctl.catalog.heap import update_relation
from replctl.catalog.native_column import EXPRESSIONS, check_not_native
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_policy import Policy, find_policy, put_policy
from replctl.catalog.relation_kind import TABLE_KINDS
from replctl.commands.ddl import Ddl, carry_out, without_position
from replctl.commands.find_relation import find_relation
from replctl.commands.role import role_oid
from replctl.commands.view_dependency import use_relations
from replctl.does_not_exist import no_relation
from replctl.errors import (
    DuplicateObject,
    InsufficientPrivilege,
    SqlSyntaxError,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr.context import ExprContext
from replctl.expr.refused_dependency import check_dependencies
from replctl.parser import ast
from replctl.query import stored
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.permission import used_columns
from replctl.query.range_table import FromScope, relation_entry
from replctl.query.row_policy import POLICY_VARNO, condition_query
from replctl.session import Session
from replctl.types.builtin import FIRST_USER_OID

#: The commands whose policies have no WITH CHECK.
_WITHOUT_CHECK = (Privilege.SELECT, Privilege.DELETE)


def create_policy(session: Session, statement: ast.CreatePolicy) -> str:
    """Create a policy.

    Raises:
        DuplicateObject: the table already has a policy of that name.
        PostgresError: a condition is wrong, or the current role does not own the table.
    """
    return carry_out(session, lambda ddl: _create_policy(ddl, statement))


def _create_policy(ddl: Ddl, statement: ast.CreatePolicy) -> str:
    command = find_privilege(statement.command)  # None for ALL
    if statement.check is not None and command in _WITHOUT_CHECK:
        raise SqlSyntaxError("WITH CHECK cannot be applied to SELECT or DELETE")
    if statement.using is not None and command == Privilege.INSERT:
        raise SqlSyntaxError("only WITH CHECK expression allowed for INSERT")
    roles = _roles(ddl, statement.roles)
    relation = _table(ddl, statement.relation)
    using = _condition(ddl, relation, statement.using)
    check = _condition(ddl, relation, statement.check)
    if find_policy(ddl.catalog, relation.oid, statement.name) is not None:
        raise _duplicate(relation, statement.name)
    put_policy(
        ddl.catalog,
        Policy(
            ddl.catalog.new_oid(), statement.name, relation.oid, command,
            statement.is_permissive, roles, using, check,
        ),
    )  # fmt: skip
    return "CREATE POLICY"


def alter_policy(session: Session, statement: ast.AlterPolicy) -> str:
    """Change the roles or the conditions of a policy.

    Raises:
        UndefinedObject: the table has no policy of that name.
        PostgresError: see `create_policy`.
    """
    return carry_out(session, lambda ddl: _alter_policy(ddl, statement))


def _alter_policy(ddl: Ddl, statement: ast.AlterPolicy) -> str:
    roles = None if statement.roles is None else _roles(ddl, statement.roles)
    relation = _table(ddl, statement.relation)
    using = _condition(ddl, relation, statement.using)
    check = _condition(ddl, relation, statement.check)
    policy = _existing(ddl, relation, statement.name)
    if policy.command == Privilege.INSERT and using is not None:
        raise SqlSyntaxError("only WITH CHECK expression allowed for INSERT")
    if policy.command in _WITHOUT_CHECK and check is not None:
        raise SqlSyntaxError("only USING expression allowed for SELECT, DELETE")
    changed = replace(
        policy,
        roles=policy.roles if roles is None else roles,
        using=policy.using if using is None else using,
        check=policy.check if check is None else check,
    )
    put_policy(ddl.catalog, changed)
    return "ALTER POLICY"


def rename_policy(ddl: Ddl, statement: ast.Rename) -> None:
    """Rename a policy.

    Raises:
        UndefinedObject, DuplicateObject: there is no such policy, or the new name is taken.
    """
    relation = find_relation(ddl, statement.name)  # IF EXISTS changes nothing, as in PostgreSQL
    assert relation is not None
    _check_table(ddl, relation)
    if find_policy(ddl.catalog, relation.oid, statement.new_name) is not None:
        raise _duplicate(relation, statement.new_name)
    policy = _existing(ddl, relation, statement.sub_name or "")
    put_policy(ddl.catalog, replace(policy, name=statement.new_name))


def set_row_security(ddl: Ddl, relation: Relation, words: str) -> None:
    """Change row-level security of a table.

    Args:
        words: `enable`, `disable`, `force` or `no force`.
    """
    if words in ("enable", "disable"):
        changed = replace(relation, has_row_security=words == "enable")
    else:
        changed = replace(relation, forces_row_security=words == "force")
    update_relation(ddl.catalog, changed)


def _existing(ddl: Ddl, relation: Relation, name: str) -> Policy:
    policy = find_policy(ddl.catalog, relation.oid, name)
    if policy is None:
        raise UndefinedObject(f'policy "{name}" for table "{relation.name}" does not exist')
    return policy


def _duplicate(relation: Relation, name: str) -> DuplicateObject:
    return DuplicateObject(f'policy "{name}" for table "{relation.name}" already exists')


def _roles(ddl: Ddl, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the OIDs of roles.  If PUBLIC is one of them, ignore the others.

    Source: policy_role_list_to_array() in policy.c.
    """
    if "public" in names and len(names) > 1:
        ddl.notice(
            "ignoring specified roles other than PUBLIC",
            severity="WARNING",
            sqlstate="22023",
            hint="All roles are members of the PUBLIC role.",
        )
    if not names or "public" in names:
        return (PUBLIC,)
    return tuple(dict.fromkeys(role_oid(ddl.session, ddl.catalog, name) for name in names))


def _table(ddl: Ddl, name: ast.RangeVar) -> Relation:
    shown = name.name if name.schema is None else f"{name.schema}.{name.name}"
    oid = ddl.environment.relation_oid(name.schema, name.name)
    if oid is None:
        raise no_relation(shown)
    if oid < FIRST_USER_OID:
        raise InsufficientPrivilege(f'permission denied: "{name.name}" is a system catalog')
    relation = get_relation(ddl.catalog, oid)
    assert relation is not None
    _check_table(ddl, relation)
    return relation


def _check_table(ddl: Ddl, relation: Relation) -> None:
    ddl.privileges.check_relation_owner(relation)
    if relation.kind not in TABLE_KINDS:
        raise WrongObjectType(f'"{relation.name}" is not a table')


def _condition(ddl: Ddl, relation: Relation, raw: ast.RawExpr | None) -> str | None:
    """Return the stored form of a condition over the rows of a table.

    Raises:
        PostgresError: the condition is wrong or not a boolean.
    """
    if raw is None:
        return None
    analyzer = QueryAnalyzer(ddl.environment, ddl.now)
    entry = relation_entry(ddl.environment, relation, POLICY_VARNO, None)
    inner = analyzer.analyzer(FromScope((entry,), entry.columns), ExprContext.POLICY)
    with without_position():
        condition = analyzer.finished(inner.boolean(raw, "POLICY"))
    check_dependencies(condition)
    check_not_native(relation, EXPRESSIONS, used_columns(condition).get(POLICY_VARNO, ()))
    use_relations(ddl.catalog, condition_query(relation, condition))
    return stored.dumps(condition)
