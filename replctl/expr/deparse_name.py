"""Print names of operators and functions, with a schema if the name alone would mean another one:
generate_operator_name() and generate_function_name() of PostgreSQL's ruleutils.c.
"""

from __future__ import annotations

from replctl.errors import PostgresError
from replctl.expr import nodes
from replctl.expr.cast_path import UNKNOWN, CastPaths
from replctl.expr.function_candidates import Call, FoundFunction, find_function
from replctl.expr.operators import find_operator
from replctl.expr.type_facts import TypeFacts
from replctl.types.quote import quote_identifier, quote_qualified_identifier


class NamePrinter:
    """Prints names of one environment."""

    def __init__(self, paths: CastPaths) -> None:
        self._paths = paths
        self._environment = paths.environment

    @property
    def types(self) -> TypeFacts:
        """Return the types of the environment."""
        return self._paths.types

    def operator(self, expr: nodes.OpExpr) -> str:
        """Return the name of an operator: `=` or `OPERATOR(s.=)`."""
        *left, right = (arg.type for arg in expr.args)
        return self._operator_name(expr.operator_oid, left[0] if left else None, right)

    def array_operator(self, expr: nodes.ScalarArrayOpExpr) -> str:
        """Return the name of the operator in `x op ANY (array)`."""
        left, right = expr.args
        element = self.types.base_element(right.type)
        return self._operator_name(expr.operator_oid, left.type, element or UNKNOWN)

    def row_operator(self, expr: nodes.RowCompareExpr) -> str:
        """Return the operator to print between two rows: that of their first columns."""
        return self._operator_name(expr.operator_oids[0], expr.left[0].type, expr.right[0].type)

    def function(self, expr: nodes.FuncExpr) -> str:
        """Return the name of a function: `lower`, `"left"` or `s.f`."""
        names = tuple(arg.name for arg in expr.args if isinstance(arg, nodes.NamedArgExpr))
        return self._function_name(expr.function_oid, expr.args, names, expr.is_variadic)

    def aggregate(self, expr: nodes.Aggref) -> str:
        """Return the name of an aggregate."""
        args = (*expr.direct_args, *expr.args)
        return self._function_name(expr.function_oid, args, (), expr.is_variadic)

    def window_function(self, expr: nodes.WindowFunc) -> str:
        """Return the name of a window function."""
        return self._function_name(expr.function_oid, expr.args, (), expr.is_variadic)

    def _operator_name(self, oid: int, left: str | None, right: str) -> str:
        name = self._environment.operator(oid).name
        try:
            found = find_operator(self._paths, (name,), left, right).oid
        except PostgresError:  # its bare name is not found, so it needs its schema
            found = None
        if found == oid:
            return name
        schema = quote_identifier(self._environment.operator(oid).schema)
        return f"OPERATOR({schema}.{name})"

    def _function_name(
        self, oid: int, args: tuple[nodes.Expr, ...], names: tuple[str, ...], is_variadic: bool
    ) -> str:
        name = self._environment.function(oid).name
        call = Call(
            (name,),
            tuple(arg.type for arg in args),
            names,
            expand_variadic=not is_variadic,
            may_cast=False,
        )
        found = find_function(self._paths, call)
        if isinstance(found, FoundFunction) and found.function.oid == oid:
            return quote_identifier(name)
        return quote_qualified_identifier(self._environment.function(oid).schema, name)
