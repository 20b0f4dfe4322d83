"""Views and policies in queries: replace each reference to a view by the view's query, and add the
conditions of policies to tables (rewriteHandler.c).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges, privileges_of
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_policy import is_row_security_active
from replctl.catalog.pg_rewrite import view_rule
from replctl.catalog.transaction import Catalog
from replctl.errors import InternalError, InvalidObjectDefinition, ObjectNotInPrerequisiteState
from replctl.expr import nodes
from replctl.expr.user_type import without_user_types
from replctl.functions.function_context import FunctionContext
from replctl.query import stored
from replctl.query.composite_key import check_composite_keys
from replctl.query.exists import with_plain_exists
from replctl.query.inline_function import check_no_calls, inlined
from replctl.query.outer_aggregate import with_own_aggregates
from replctl.query.plain_sets import with_plain_sets
from replctl.query.project_set import with_sets_in_from
from replctl.query.row_policy import condition_query, visible_rows
from replctl.query.settings_rewrite import check_row_texts, in_form
from replctl.query.tree import (
    FromCte,
    FromFunction,
    FromSubquery,
    FromTable,
    Query,
    tables_of,
    transform,
    transform_parts,
    with_output_keys,
)


def view_query(catalog: Catalog, view: Relation) -> Query:
    """Return the query of a view, materialized or not."""
    text = view_rule(catalog, view.oid)
    if text is None:
        raise InternalError(f'relation "{view.name}" has no rewrite rule')
    return stored.loads(catalog, text)


def is_invoker(view: Relation) -> bool:
    """Return whether a view checks the privileges of its reader instead of its owner."""
    return view.options.get("security_invoker", "false").lower() in _TRUE


_TRUE = ("true", "on", "1", "yes", "t", "y")


def rewritten(
    context: FunctionContext,
    query: Query,
    *,
    conditions: Mapping[int, tuple[nodes.Expr, ...]] | None = None,
    keeps_calls: bool = False,
) -> Query:
    """Return a query that an engine can run: replace views by their queries, add the conditions of
    policies, inline user-defined functions, apply the session's settings, and move set-returning
    calls, and aggregates that subqueries use, to FROM.

    Args:
        conditions: by varno, the conditions for tables to which the policies for SELECT do not
            apply, such as the table that a statement changes.
        keeps_calls: keep calls of functions that cannot be inlined; else refuse them.

    Raises:
        ObjectNotInPrerequisiteState: a materialized view has no rows yet.
        InvalidObjectDefinition: a view or a policy reads itself.
        InsufficientPrivilege: a policy applies and row_security is off; or the current role may not
            call a function.
        FeatureNotSupported: a function call or a use of a setting is not supported (0A000).
    """
    reader = context.environment.privileges
    result: Query = _Rewriter(context, query, conditions or {}, reader).rewritten(query, (), reader)
    _check_populated(result)
    result = inlined(context.environment, context.session.transaction_start, result)
    check_composite_keys(context.environment, result)
    check_row_texts(context.environment, result)
    result = without_user_types(context.environment, with_output_keys(result), transform)
    result = in_form(context.session, result)
    varnos = count(max(_varnos(result), default=0) + 1)
    result = with_own_aggregates(with_plain_exists(result), varnos)
    result = with_plain_sets(with_sets_in_from(context.environment, result, varnos))
    if not keeps_calls:
        check_no_calls(context.environment, result)
    return result


def _check_populated(query: Query) -> None:
    for table in tables_of(query):
        relation = table.relation
        if isinstance(relation, Relation) and not relation.is_populated:
            raise ObjectNotInPrerequisiteState(
                f'materialized view "{relation.name}" has not been populated',
                hint="Use the REFRESH MATERIALIZED VIEW command.",
            )


class _Rewriter:
    """Rewrites a query.  Varnos stay unique: items of FROM in a view's query or a policy's
    condition get the next free varnos.
    """

    def __init__(
        self,
        context: FunctionContext,
        query: Query,
        conditions: Mapping[int, tuple[nodes.Expr, ...]],
        reader: Privileges,
    ) -> None:
        self._catalog = context.catalog
        self._environment = context.environment
        self._row_security = context.session.setting("row_security")
        self._conditions = conditions
        self._reader = reader
        self._varnos = count(max(_varnos(query), default=0) + 1)

    def rewritten(self, part: Any, within: tuple[int, ...], privileges: Privileges) -> Any:
        """Return a query or an expression with views replaced, and with conditions of policies.

        Args:
            part: a query, or an expression.
            within: the views, and the tables with policies, that contain the part.
        """

        def replaced(part: Any) -> Any:
            if not isinstance(part, FromTable) or not isinstance(part.relation, Relation):
                return None
            if part.is_view:
                return self._view(part, part.relation, within)
            return self._with_conditions(part, part.relation, within, privileges)

        return transform(part, replaced)

    def _view(self, item: FromTable, view: Relation, within: tuple[int, ...]) -> FromSubquery:
        if view.oid in within:
            raise InvalidObjectDefinition(
                f'infinite recursion detected in rules for relation "{view.name}"'
            )
        privileges = self._reader
        if not is_invoker(view):
            privileges = privileges_of(self._environment.catalog, view.owner)
        inner = self._renumbered(view_query(self._catalog, view))
        inner = self.rewritten(inner, (*within, view.oid), privileges)
        return FromSubquery(item.varno, inner, alias=item.alias)

    def _with_conditions(
        self, item: FromTable, table: Relation, within: tuple[int, ...], privileges: Privileges
    ) -> FromTable | None:
        conditions = self._conditions.get(item.varno)
        if conditions is None:
            if not is_row_security_active(privileges, table, self._row_security):
                return None
            conditions = visible_rows(privileges, table, Privilege.SELECT, reads=True)
        if table.oid in within and any(_has_subquery(condition) for condition in conditions):
            raise InvalidObjectDefinition(
                f'infinite recursion detected in policy for relation "{table.name}"'
            )
        within = (*within, table.oid)
        own = tuple(
            self.rewritten(self._condition(condition, table, item.varno), within, privileges)
            for condition in conditions
        )
        return replace(item, conditions=own)

    def _condition(self, condition: nodes.Expr, table: Relation, varno: int) -> nodes.Expr:
        """Return a policy's condition with `varno` as the number of its table."""
        query = self._renumbered(condition_query(table, condition))
        (own,) = query.from_
        assert isinstance(own, FromTable)

        def replaced(part: Any) -> Any:
            is_own = isinstance(part, nodes.Var) and part.varno == own.varno
            return replace(part, varno=varno) if is_own else None

        result: nodes.Expr = transform(query.outputs[0].expr, replaced)
        return result

    def _renumbered(self, query: Query) -> Query:
        numbers = {varno: next(self._varnos) for varno in sorted(_varnos(query))}

        def replaced(part: Any) -> Any:
            match part:
                case nodes.Var(varno=varno) if varno:
                    return replace(part, varno=numbers[varno])
                case FromSubquery():
                    query = transform(part.query, replaced)
                    return replace(part, varno=numbers[part.varno], query=query)
                case FromFunction():
                    return replace(transform_parts(part, replaced), varno=numbers[part.varno])
                case FromTable() | FromCte():
                    return replace(part, varno=numbers[part.varno])
            return None

        result: Query = transform(query, replaced)
        return result


def _has_subquery(expr: nodes.Expr) -> bool:
    return any(isinstance(node, nodes.SubLink) for node in nodes.walk(expr))


def _varnos(query: Query) -> set[int]:
    """Return the varnos of all items in FROM, including those in subqueries."""
    found: set[int] = set()

    def note(part: Any) -> None:
        if isinstance(part, FromTable | FromSubquery | FromCte | FromFunction):
            found.add(part.varno)

    transform(query, note)
    return found
