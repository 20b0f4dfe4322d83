"""Row-level security: find the conditions of policies for the rows of a query (rowsecurity.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_policy import Policy, is_row_security_active, policies_of
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes
from replctl.query import stored
from replctl.query.tree import FromTable, Output, Query, transform
from replctl.record import dataclass

#: The varno of the policy's table in a stored condition, and of the table a statement changes.
POLICY_VARNO = 0x7FFF

_FALSE = nodes.Const("bool", "f")


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A condition that rows must satisfy.

    Attributes:
        policy: the name of the policy; None if the condition combines several policies.
        is_using: the condition is that of USING, for rows that ON CONFLICT DO UPDATE changes
            (WCO_RLS_CONFLICT_CHECK).
    """

    policy: str | None
    condition: nodes.Expr
    is_using: bool = False


def condition_query(relation: Relation, condition: nodes.Expr) -> Query:
    """Return the query `SELECT condition FROM relation`."""
    return Query((Output("", condition),), (FromTable(POLICY_VARNO, relation),))


def policy_condition(catalog: Catalog, text: str) -> nodes.Expr:
    """Return the condition that a policy stores as text."""
    return stored.expression(catalog, text)


def changed_rows(
    privileges: Privileges,
    relation: Relation,
    command: Privilege,
    row_security: str,
    *,
    reads: bool,
) -> tuple[tuple[nodes.Expr, ...], tuple[RowCheck, ...]]:
    """Return the conditions for the old rows of a command, and the checks of its new rows; two
    empty tuples if no policy applies.

    Args:
        command: INSERT, UPDATE or DELETE.
        row_security: the value of the setting row_security.
        reads: see `visible_rows`.

    Raises:
        InsufficientPrivilege: policies apply, and row_security is off (42501).
    """
    if not is_row_security_active(privileges, relation, row_security):
        return (), ()
    conditions = (
        ()
        if command == Privilege.INSERT
        else visible_rows(privileges, relation, command, reads=reads)
    )
    checks = (
        ()
        if command == Privilege.DELETE
        else row_checks(privileges, relation, command, reads=reads)
    )
    return conditions, checks


def visible_rows(
    privileges: Privileges, relation: Relation, command: Privilege, *, reads: bool
) -> tuple[nodes.Expr, ...]:
    """Return the conditions that make a row visible to a command (get_row_security_policies).

    Args:
        command: SELECT, UPDATE or DELETE.
        reads: the command reads values of the row, so policies for SELECT also apply.
    """
    catalog = privileges.catalog
    found = _conditions(catalog, _concerned(privileges, relation, command))
    if command != Privilege.SELECT and reads:
        found += _conditions(catalog, _concerned(privileges, relation, Privilege.SELECT))
    return tuple(found)


def row_checks(
    privileges: Privileges, relation: Relation, command: Privilege, *, reads: bool
) -> tuple[RowCheck, ...]:
    """Return the checks that the new rows of a command must pass (add_with_check_options).

    Args:
        command: INSERT or UPDATE.
        reads: see `visible_rows`.
    """
    catalog = privileges.catalog
    found = _checks(catalog, _concerned(privileges, relation, command), uses_check=True)
    if reads:
        found += _checks(
            catalog, _concerned(privileges, relation, Privilege.SELECT), uses_check=False
        )
    return tuple(found)


def conflict_checks(
    privileges: Privileges, relation: Relation, row_security: str
) -> tuple[tuple[RowCheck, ...], tuple[RowCheck, ...]]:
    """Return the checks of the rows that ON CONFLICT DO UPDATE changes: those of the old rows, and
    those of the new rows; two empty tuples if no policy applies.

    The update always reads the row, because it compares keys.

    Raises:
        InsufficientPrivilege: see `changed_rows`.
    """
    if not is_row_security_active(privileges, relation, row_security):
        return (), ()
    catalog = privileges.catalog
    old = [
        replace(check, is_using=True)
        for command in (Privilege.UPDATE, Privilege.SELECT)
        for check in _checks(catalog, _concerned(privileges, relation, command), uses_check=False)
    ]
    return tuple(old), row_checks(privileges, relation, Privilege.UPDATE, reads=True)


def numbered_as(expr: nodes.Expr, parent: Relation, child: Relation) -> nodes.Expr:
    """Convert a condition over a table to one over a child table; columns correspond by name."""
    numbers = {
        column.attnum: found.attnum
        for column in parent.columns
        if (found := child.column(column.name)) is not None
    }

    def replaced(part: Any) -> Any:
        if isinstance(part, nodes.Var) and part.varno == POLICY_VARNO and part.attnum > 0:
            return replace(part, attnum=numbers[part.attnum])
        return None

    result: nodes.Expr = transform(expr, replaced)
    return result


def _concerned(privileges: Privileges, relation: Relation, command: Privilege) -> list[Policy]:
    policies = policies_of(privileges.catalog, relation.oid)
    return [policy for policy in policies if policy.concerns(command, privileges)]


def _conditions(catalog: Catalog, policies: Sequence[Policy]) -> list[nodes.Expr]:
    """Return the conditions that a row must satisfy: those of all restrictive policies, and that of
    at least one permissive policy. Without permissive policies, return `false`
    (add_security_quals).
    """
    permissive = [p.using for p in policies if p.is_permissive and p.using is not None]
    if not permissive:
        return [_FALSE]
    restrictive = [p.using for p in policies if not p.is_permissive and p.using is not None]
    found = [policy_condition(catalog, text) for text in restrictive]
    return [*found, _any([policy_condition(catalog, text) for text in permissive])]


def _checks(catalog: Catalog, policies: Sequence[Policy], *, uses_check: bool) -> list[RowCheck]:
    def text_of(policy: Policy) -> str | None:
        is_given = uses_check and policy.check is not None
        return policy.check if is_given else policy.using

    permissive = [text for p in policies if p.is_permissive and (text := text_of(p)) is not None]
    if not permissive:
        return [RowCheck(None, _FALSE)]
    found = [RowCheck(None, _any([policy_condition(catalog, text) for text in permissive]))]
    found += [
        RowCheck(p.name, policy_condition(catalog, text))
        for p in policies
        if not p.is_permissive and (text := text_of(p)) is not None
    ]
    return found


def _any(conditions: Sequence[nodes.Expr]) -> nodes.Expr:
    return conditions[0] if len(conditions) == 1 else nodes.BoolExpr("or", tuple(conditions))
