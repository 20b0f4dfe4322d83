"""Translate typed expressions to Spark SQL that has PostgreSQL's result for every row.

A translation consists of the SQL text and the Spark type of the value.  A numeric is a DECIMAL if
its precision is known and fits, else text.  The implementation in PostgreSQL (pg_proc.prosrc)
identifies a function or operator: see function_sql.py.  If Spark has no exact expression, Python
computes the whole subtree (python_program.py).  If Python cannot compute it either, replctl refuses
the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TypeAlias, assert_never

from replctl.adt import fold
from replctl.adt import functions as adt_functions
from replctl.adt.interpret import null_in_domain, relabelled, violated_domain
from replctl.errors import FeatureNotSupported, PostgresError
from replctl.expr import nodes
from replctl.record import dataclass
from replctl.spark import (
    aggregate_sql,
    comparison_sql,
    function_sql,
    numeric_sql,
    python_program,
    text_conversion,
)
from replctl.spark.data_type import element_type, literal, storage_type
from replctl.spark.sql_value import SqlValue, bound, check_lambda, raised_sql
from replctl.spark.values import EnumType
from replctl.spark.volatile import CALLS, VolatileCalls, is_volatile
from replctl.types import builtin, text

#: Returns the SQL of a column.
ColumnNamer: TypeAlias = Callable[[nodes.Var], str]


@dataclass(frozen=True, slots=True)
class Translation:
    """The context of one translation.

    Attributes:
        column: returns the SQL of a column.
        domain_value: the value of VALUE in a CHECK of a domain.
        case_operand: the value of Param(0) inside a CASE with an operand or an array cast.
        subquery: returns the SQL of a subquery; None where subqueries are not allowed.
        by_value: only the value of a numeric matters, not its trailing zeros.
        volatile: the volatile calls; Spark must compute each once per row.
    """

    column: ColumnNamer
    case_operand: SqlValue | None = None
    domain_value: SqlValue | None = None
    subquery: Callable[[nodes.SubLink], SqlValue] | None = None
    by_value: bool = False
    volatile: VolatileCalls = field(default_factory=VolatileCalls)


#: Maximum length of a translation.  Python computes longer ones: Spark would compile them too
#: slowly.
_MAX_LENGTH = 60_000


def to_sql(
    expr: nodes.Expr,
    column: ColumnNamer,
    subquery: Callable[[nodes.SubLink], SqlValue] | None = None,
) -> SqlValue:
    """Return the Spark SQL of an expression; see `translation.to_sql`."""
    return _whole(fold.simplified(expr), Translation(column, subquery=subquery))


def untranslatable(expr: nodes.Expr) -> str | None:
    """Return the reason why an expression cannot be translated; see
    `translation.untranslatable`."""
    try:
        expr = fold.simplified(expr)
    except PostgresError:
        return None  # it fails for every row, as in PostgreSQL
    try:
        to_sql(expr, lambda var: f"c{var.attnum}")
    except FeatureNotSupported as error:  # the caller refuses the filter before any row
        return error.message
    return None


def _whole(expr: nodes.Expr, context: Translation) -> SqlValue:
    """Translate an expression, and insert its volatile calls."""
    calls = VolatileCalls()
    return calls.placed(_translate(expr, replace(context, volatile=calls)), expr)


def _argument(expr: nodes.Expr, context: Translation) -> SqlValue:
    """Translate an argument of an aggregate.  Spark may compute it several times."""
    value = _translate(expr, context)
    if is_volatile(value):
        raise FeatureNotSupported(
            "volatile functions in the arguments of an aggregate are not supported"
        )
    return value


def _translate(expr: nodes.Expr, context: Translation) -> SqlValue:
    """Translate an expression to Spark SQL, or else to the call of a Python function."""
    try:
        value = _native(expr, context)
        if len(value.text) <= _MAX_LENGTH or isinstance(expr, nodes.Const) or _has_subquery(expr):
            return value
        why = FeatureNotSupported("expressions of this length are not supported")
    except FeatureNotSupported as error:  # Python may support it
        why = error
    if isinstance(expr, _ENGINES_OWN):
        raise why
    value = python_program.evaluated(expr, lambda node: _native(node, context))
    return context.volatile.named(value)


def _has_subquery(expr: nodes.Expr) -> bool:
    """Return whether an expression contains a subquery.  If so, its length does not matter."""
    return any(isinstance(node, nodes.SubLink) for node in nodes.walk(expr))


#: Nodes that Python cannot compute.
_ENGINES_OWN = (
    nodes.Const,
    nodes.Var,
    nodes.Aggref,
    nodes.WindowFunc,
    nodes.SubLink,
    nodes.SqlValueFunction,
    nodes.GroupingFunc,
)


def _native(expr: nodes.Expr, context: Translation) -> SqlValue:
    inner = replace(context, by_value=False) if context.by_value else context
    match expr:
        case nodes.Var():
            if expr.attnum <= 0:
                raise FeatureNotSupported("system columns and whole rows are not supported")
            return SqlValue(context.column(expr), expr.type, storage_type(expr.type, expr.typmod))
        case nodes.Const():
            return _constant(expr)
        case nodes.Param(number=nodes.VALUE) if context.domain_value is not None:
            return context.domain_value
        case nodes.Param():
            if expr.number != 0 or context.case_operand is None:
                raise FeatureNotSupported("parameters are not supported")
            return context.case_operand
        case nodes.OpExpr():
            function = _function_of_operator(expr.operator_oid, expr.name)
            return _call(function, expr.args, expr.type, expr.input_collation, context)
        case nodes.FuncExpr():
            return _function(expr, context)
        case nodes.DistinctExpr():
            valued = replace(context, by_value=True)
            left, right = (_translate(arg, valued) for arg in expr.args)
            return comparison_sql.is_distinct(left, right)
        case nodes.NullIfExpr():
            return _null_if(expr, context)
        case nodes.ScalarArrayOpExpr():
            return _any_or_all(expr, inner)
        case nodes.BoolExpr():
            return _boolean(expr, inner)
        case nodes.NullTest():
            return _null_test(expr, inner)
        case nodes.BooleanTest():
            tested = _tested(expr.arg, _translate(expr.arg, inner), _boolean_test(expr.test))
            return SqlValue(tested, "bool", "BOOLEAN")
        case nodes.CaseExpr():
            return _case(expr, context)
        case nodes.CoalesceExpr():
            args = _same_type([_translate(arg, context) for arg in expr.args], context)
            return SqlValue(f"coalesce({_joined(args)})", expr.type, args[0].spark)
        case nodes.MinMaxExpr():
            args = _same_type([_translate(arg, context) for arg in expr.args], context)
            return comparison_sql.greatest_or_least(expr.op, args)
        case nodes.RowCompareExpr():
            return _row_comparison(expr, inner)
        case nodes.RelabelType():
            return function_sql.relabel(_translate(expr.arg, context), expr.type)
        case nodes.CoerceViaIO():
            enum = None if expr.enum is None else EnumType(*expr.enum)
            return text_conversion.convert(_translate(expr.arg, inner), expr.type, enum)
        case nodes.ArrayCoerceExpr():
            return _array_coercion(expr, inner)
        case nodes.ArrayExpr():
            return _array(expr, inner)
        case nodes.CollateExpr():
            if expr.collation not in builtin.collations():
                raise FeatureNotSupported(f'collation "{expr.collation}" is not supported')
            return _translate(expr.arg, context)
        case nodes.SqlValueFunction():
            return function_sql.sql_value(expr.name, expr.type, expr.typmod)
        case nodes.SubscriptingRef():
            return _subscript(expr, inner)
        case nodes.SubLink():
            if context.subquery is None:
                raise FeatureNotSupported("subqueries are not supported here")
            return context.subquery(expr)
        case nodes.Aggref():
            return aggregate_sql.aggregate(expr, lambda arg: _argument(arg, inner))
        case nodes.WindowFunc():
            return aggregate_sql.window(expr, lambda arg: _argument(arg, inner))
        case nodes.RowExpr() | nodes.FieldSelect():
            raise FeatureNotSupported("row values are not supported")
        case nodes.JsonIsPredicate():
            raise FeatureNotSupported("IS JSON is not supported")
        case nodes.XmlIsDocument():
            raise FeatureNotSupported("IS DOCUMENT is not supported")
        case nodes.NamedArgExpr():
            return _translate(expr.arg, context)
        case nodes.CoerceToDomain():
            return _domain(expr, inner)
        case nodes.JsonValueExpr():
            return _translate(expr.formatted, context)
        case nodes.GroupingFunc():
            raise FeatureNotSupported("GROUPING is not supported")
        case nodes.SetToDefault():
            raise FeatureNotSupported("DEFAULT is not supported here")
    assert_never(expr)


def _domain(expr: nodes.CoerceToDomain, context: Translation) -> SqlValue:
    """Translate a cast to a domain: the value with the checks of the domain."""
    domain = expr.domain
    if domain is None:
        raise FeatureNotSupported("domains are not supported here")
    value = _translate(expr.arg, context)

    def build(args: Sequence[SqlValue]) -> str:
        (checked,) = args
        inside = replace(context, domain_value=checked, case_operand=None)
        whens = [
            f"WHEN NOT {_translate(check.condition, inside).text}"
            f" THEN {raised_sql(violated_domain(domain, check.name))}"
            for check in expr.checks
        ]
        if expr.not_null:
            error = raised_sql(null_in_domain(domain))
            whens.insert(0, f"WHEN {checked.text} IS NULL THEN {error}")
        return f"(CASE {' '.join(whens)} ELSE {checked.text} END)"

    return replace(value, text=bound([value], build))


def _constant(expr: nodes.Const) -> SqlValue:
    """Translate a constant.  A numeric gets exactly the precision of its digits, so that
    comparisons stay exact.
    """
    if expr.type == "numeric" and expr.value is not None:
        return numeric_sql.numeric_literal(expr.value)
    if expr.type == "numeric":
        return SqlValue("CAST(NULL AS DECIMAL(1,0))", "numeric", "DECIMAL(1,0)")
    if expr.type == "unknown":
        return SqlValue(literal("text", -1, expr.value), "text", "STRING")
    return SqlValue(
        literal(expr.type, expr.typmod, expr.value), expr.type, storage_type(expr.type, expr.typmod)
    )


def _function_of_operator(operator_oid: int, name: str) -> builtin.Function:
    for operator in builtin.operators().get(name, ()):
        if operator.oid == operator_oid:
            return builtin.function_by_oid()[operator.function_oid]
    raise FeatureNotSupported(f"user-defined operator {name} is not supported")


def _function(expr: nodes.FuncExpr, context: Translation) -> SqlValue:
    function = builtin.function_by_oid().get(expr.function_oid)
    if function is None:
        raise FeatureNotSupported(f"user-defined function {expr.name} is not supported")
    if expr.returns_set:
        raise FeatureNotSupported(f"function {expr.name} is not supported here")
    if function.source in CALLS:
        return context.volatile.value(expr, function.source)
    args = tuple(adt_functions.arguments(function, expr.args))
    if relabelled(function.result, expr.type) is None:
        return _call(function, args, expr.type, expr.input_collation, context)
    value = _call(function, args, function.result, expr.input_collation, context)
    return function_sql.relabel(value, expr.type)


def _call(
    function: builtin.Function,
    args: tuple[nodes.Expr, ...],
    result: str,
    collation: str | None,
    context: Translation,
) -> SqlValue:
    by_value = function_sql.is_comparison(function.source) or (
        context.by_value and function.source in numeric_sql.BY_VALUE
    )
    valued = replace(context, by_value=by_value)
    values = [_translate(arg, valued) for arg in args]
    constants = [arg if isinstance(arg, nodes.Const) else None for arg in args]

    def call(operands: Sequence[SqlValue]) -> SqlValue:
        return function_sql.call(function, operands, result, constants, collation)

    value = call(values)
    always = _computed_first(args) if function.is_strict else ()
    if not always:
        return value
    return replace(value, text=f"({bound(values, lambda x: call(x).text, always=always)})")


#: Pairs of an integer type and a wider integer type.
_WIDENED = (("int2", "int4"), ("int2", "int8"), ("int4", "int8"))


def _computed_first(args: Sequence[nodes.Expr]) -> Sequence[int]:
    """Return the indexes of the arguments that Spark must compute before it calls the function.

    PostgreSQL computes all arguments.  Spark may skip an argument in two cases: another argument is
    NULL, or another argument is a constant outside the range of the skipped argument's type.  For
    example, a division first checks whether its divisor is NULL.  The difference is visible only if
    an argument fails.
    """
    is_order_visible = any(
        _can_fail(arg)
        and any(
            not isinstance(other, nodes.Const) or (arg.type, other.type) in _WIDENED
            for j, other in enumerate(args)
            if j != i
        )
        for i, arg in enumerate(args)
    )
    if not is_order_visible:
        return ()
    return [i for i, arg in enumerate(args) if not isinstance(arg, nodes.Const)]


def _can_fail(expr: nodes.Expr) -> bool:
    """Return whether an expression may fail for some rows.  Queries of subqueries do not count:
    Spark always computes them, and before the expression.
    """
    for node in nodes.walk(expr):
        match node:
            case nodes.FuncExpr(function_oid=oid):
                function = builtin.function_by_oid().get(oid)
                if function is None or function_sql.can_fail(function.source):
                    return True
            case (
                nodes.OpExpr(operator_oid=oid, name=name)
                | nodes.ScalarArrayOpExpr(operator_oid=oid, name=name)
            ):
                if function_sql.can_fail(_function_of_operator(oid, name).source):
                    return True
            case nodes.CoerceViaIO(type=type_):
                if type_ != "text":
                    return True
            case nodes.ArrayCoerceExpr():
                return True
    return False


def _null_if(expr: nodes.NullIfExpr, context: Translation) -> SqlValue:
    left, right = (_translate(arg, context) for arg in expr.args)
    function = _function_of_operator(expr.operator_oid, "=")

    def build(args: Sequence[SqlValue]) -> str:
        equal = function_sql.call(function, args, "bool")
        return f"CASE WHEN {equal.text} THEN NULL ELSE {args[0].text} END"

    return SqlValue(
        f"({bound([left, right], build, _computed_first(expr.args))})", expr.type, left.spark
    )


def _same_type(args: list[SqlValue], context: Translation) -> list[SqlValue]:
    return comparison_sql.same_type(args, by_value=context.by_value)


def _any_or_all(expr: nodes.ScalarArrayOpExpr, context: Translation) -> SqlValue:
    """Translate `x = ANY (array)` and ALL.  Spark's exists() and forall() have the same
    three-valued logic."""
    left, array = expr.args
    function = _function_of_operator(expr.operator_oid, expr.name)
    valued = replace(context, by_value=function_sql.is_comparison(function.source))
    value = _translate(left, valued)
    elements = _elements(array)
    if elements is not None:
        items = [_translate(element, valued) for element in elements]
        constants = [element if isinstance(element, nodes.Const) else None for element in elements]
        glue, empty = (" OR ", "FALSE") if expr.use_or else (" AND ", "TRUE")

        def build(args: Sequence[SqlValue]) -> str:
            tests = [
                function_sql.call(
                    function, [args[0], item], "bool", [None, constant], expr.input_collation
                )
                for item, constant in zip(args[1:] or items, constants, strict=True)
            ]
            return glue.join(test.text for test in tests) or empty

        if any(map(_can_fail, elements)):
            text = bound([value, *items], build, always=range(1 + len(items)))
        else:
            text = bound([value], build)
        return SqlValue(f"({text})", "bool", "BOOLEAN")
    translated = _translate(array, context)
    item = SqlValue("item_", element_type(translated.type) or "text", translated.spark[6:-1])
    test = function_sql.call(
        function, [value, item], "bool", [None, None], expr.input_collation
    ).text
    check_lambda(test)
    quantifier = "exists" if expr.use_or else "forall"
    return SqlValue(f"{quantifier}({translated.text}, item_ -> {test})", "bool", "BOOLEAN")


def _elements(array: nodes.Expr) -> tuple[nodes.Expr, ...] | None:
    """Return the elements of an ARRAY[...] or a constant array; None for other arrays.  If each
    element is compared separately, Spark can push the comparisons into the scan, and patterns are
    constants.
    """
    if isinstance(array, nodes.ArrayExpr) and not array.is_multidimensional:
        return array.elements
    if not isinstance(array, nodes.Const) or array.value is None:
        return None
    element = element_type(array.type)
    values = None if element is None else text.parse(array.type, array.value)
    if element is None or not isinstance(values, list) or any(isinstance(v, list) for v in values):
        return None
    return tuple(
        nodes.Const(
            element,
            None if value is None else text.render(element, value),
            collation=array.collation,
        )
        for value in values
    )


def _boolean(expr: nodes.BoolExpr, context: Translation) -> SqlValue:
    args = [_translate(arg, context).text for arg in expr.args]
    text = f"(NOT {args[0]})" if expr.op == "not" else f"({f' {expr.op.upper()} '.join(args)})"
    return SqlValue(text, "bool", "BOOLEAN")


def _null_test(expr: nodes.NullTest, context: Translation) -> SqlValue:
    """Translate IS [NOT] NULL.  A row IS NULL if all its fields are NULL, and IS NOT NULL if no
    field is NULL."""
    args = expr.arg.args if expr.is_row and isinstance(expr.arg, nodes.RowExpr) else (expr.arg,)
    test = "IS NULL" if expr.is_null else "IS NOT NULL"
    tests = [_tested(arg, _translate(arg, context), test) for arg in args]
    return SqlValue(f"({' AND '.join(tests) or 'TRUE'})", "bool", "BOOLEAN")


def _tested(arg: nodes.Expr, value: SqlValue, test: str) -> str:
    """Return a NULL test that always computes its value, like PostgreSQL: this may raise an error.
    Spark could skip the computation.
    """
    always = [0] if _can_fail(arg) else []
    return f"({bound([value], lambda args: f'{args[0].text} {test}', always)})"


def _boolean_test(test: str) -> str:
    return "IS " + test.upper().replace("UNKNOWN", "NULL")


def _case(expr: nodes.CaseExpr, context: Translation) -> SqlValue:
    results = _same_type(
        [_translate(when.result, context) for when in expr.whens]
        + [_translate(expr.default, context)],
        context,
    )

    def build(operand: Sequence[SqlValue]) -> str:
        inner = replace(context, by_value=False)
        if operand:
            inner = replace(inner, case_operand=operand[0])
        conditions = [_translate(when.condition, inner).text for when in expr.whens]
        whens = " ".join(
            f"WHEN {condition} THEN {result.text}"
            for condition, result in zip(conditions, results[:-1], strict=True)
        )
        return f"CASE {whens} ELSE {results[-1].text} END"

    operands = [] if expr.arg is None else [_translate(expr.arg, replace(context, by_value=True))]
    return SqlValue(f"({bound(operands, build)})", expr.type, results[0].spark)


def _row_comparison(expr: nodes.RowCompareExpr, context: Translation) -> SqlValue:
    """Translate (a, b) < (c, d).  The first pair of values that are not equal decides.  If one of
    the two is NULL, the result is NULL.  Spark does not compute later pairs.
    """
    valued = replace(context, by_value=True)
    strict_operator = expr.name.rstrip("=")
    opposites = {"<": ">", ">": "<"}
    if strict_operator not in opposites:
        raise FeatureNotSupported(f"comparison of rows by {expr.name} is not supported")
    text: str | None = None
    for pair in reversed(list(zip(expr.left, expr.right, strict=True))):

        def build(args: Sequence[SqlValue], rest: str | None = text) -> str:
            if rest is None:
                return comparison_sql.comparison(expr.name, *args).text
            before = comparison_sql.comparison(strict_operator, *args).text
            after = comparison_sql.comparison(opposites[strict_operator], *args).text
            equal = comparison_sql.comparison("=", *args).text
            return (
                f"CASE WHEN {before} THEN TRUE WHEN {after} THEN FALSE WHEN {equal} THEN {rest} END"
            )

        text = bound([_translate(item, valued) for item in pair], build, _computed_first(pair))
    return SqlValue(f"({text})", "bool", "BOOLEAN")


def _array(expr: nodes.ArrayExpr, context: Translation) -> SqlValue:
    if expr.is_multidimensional:
        raise FeatureNotSupported("arrays of more than one dimension are not supported")
    items = comparison_sql.same_type([_translate(element, context) for element in expr.elements])
    if any(item.type == "numeric" for item in items):
        raise FeatureNotSupported("arrays of numeric are exact text")
    inner = items[0].spark if items else storage_type(expr.element_type)
    return SqlValue(
        f"CAST(array({_joined(items)}) AS ARRAY<{inner}>)", expr.type, f"ARRAY<{inner}>"
    )


def _array_coercion(expr: nodes.ArrayCoerceExpr, context: Translation) -> SqlValue:
    array = _translate(expr.arg, context)
    item = SqlValue("item_", element_type(array.type) or "text", array.spark[len("ARRAY<") : -1])
    inner = _translate(expr.element, replace(context, case_operand=item))
    check_lambda(inner.text)
    if inner.spark != storage_type(inner.type):
        raise FeatureNotSupported("arrays of numeric are exact text")
    return SqlValue(
        f"transform({array.text}, item_ -> {inner.text})", expr.type, f"ARRAY<{inner.spark}>"
    )


def _subscript(expr: nodes.SubscriptingRef, context: Translation) -> SqlValue:
    """Translate array[i].  Spark's get() also returns NULL outside of the array, but counts from
    0."""
    if expr.assigned is not None:
        raise FeatureNotSupported("assignments to elements are not supported")
    array = _translate(expr.arg, context)
    if (
        expr.lower is not None
        or len(expr.upper) != 1
        or expr.upper[0] is None
        or not array.spark.startswith("ARRAY<")
    ):
        raise FeatureNotSupported(
            "slices, and subscripts of other types than arrays, are not supported"
        )
    index = _translate(expr.upper[0], context)
    return SqlValue(
        f"get({array.text}, {index.text} - 1)", expr.type, array.spark[len("ARRAY<") : -1]
    )


def _joined(values: list[SqlValue]) -> str:
    return ", ".join(value.text for value in values)
