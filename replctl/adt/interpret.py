"""Compile typed expressions to Python functions (PostgreSQL's execExprInterp.c).

`compiled` returns a function of a row.  A row is a sequence whose item n - 1 is the value of
Param(n).  Engines use these functions for expressions that they cannot compute themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from replctl.adt import arrayfuncs, comparison, functions, jsonb, jsonpath_exec, network
from replctl.errors import (
    CheckViolation,
    FeatureNotSupported,
    InvalidTextRepresentation,
    NotNullViolation,
    NullValueNotAllowed,
    PostgresError,
)
from replctl.expr import nodes, object_identifier
from replctl.expr.node_name import sql_name
from replctl.relation_name import DomainName
from replctl.types import builtin
from replctl.types import text as type_text

#: Nodes that the engine of a query computes; a compiled expression gets their values.
OF_AN_ENGINE = (
    nodes.Var,
    nodes.SubLink,
    nodes.Aggref,
    nodes.WindowFunc,
    nodes.SqlValueFunction,
    nodes.GroupingFunc,
)
#: A function of a row and the value of Param(0) that returns the value of an expression.
Step: TypeAlias = Callable[[Sequence[Any], Any], Any]

#: substring(text SIMILAR pattern ESCAPE escape) is an SQL function: substring($1 from
#: similar_to_escape($2, $3)).  So the pattern is checked even if the text is NULL.
_SUBSTRING_SIMILAR, _SUBSTRING_REGEX, _SIMILAR_TO_ESCAPE = 2074, 2073, 1986
#: Functions that are `$2 + $1` in SQL, and therefore compute the second argument first.
_SWAPPED = frozenset(
    "timedate_pl timetzdate_pl interval_pl_time interval_pl_date interval_pl_timetz"
    " interval_pl_timestamp interval_pl_timestamptz integer_pl_date int8pl_inet".split()
)
#: Types whose values are OIDs: unsigned integers of 32 bits.
_NAMED = object_identifier.NAMED
_UNSIGNED = object_identifier.NUMBERED | {"oid"}
_NUMBERED = _UNSIGNED | {"int4"}


def compiled(expr: nodes.Expr) -> Callable[[Sequence[Any]], Any]:
    """Return a function that computes an expression for a row.

    Raises:
        FeatureNotSupported: a part of the expression is not implemented.
    """
    step = _compile(expr)
    return lambda row: step(row, None)


def _compile(expr: nodes.Expr) -> Step:
    match expr:
        case nodes.Param(number=0):
            return lambda row, operand: operand
        case nodes.Param(number=nodes.VALUE):
            return lambda row, operand: row[0]
        case nodes.Param(number=number):
            return lambda row, operand: row[number - 1]
        case nodes.Const():
            value = constant(expr)
            return lambda row, operand: value
        case nodes.OpExpr():
            oid = _function_of_operator(expr.operator_oid, expr.name)
            return _call(oid, expr.args, expr.input_collation)
        case nodes.FuncExpr(is_variadic=True) if _function(expr.function_oid).variadic == "any":
            return _variadic_call(_function(expr.function_oid), expr.args)
        case nodes.FuncExpr():
            if expr.returns_set:
                raise FeatureNotSupported(f"function {expr.name} is not supported here")
            result = _function(expr.function_oid).result
            call = _call(expr.function_oid, expr.args, expr.input_collation)
            return _converted(call, result, expr.type)
        case nodes.DistinctExpr():
            return _distinct(expr)
        case nodes.NullIfExpr():
            return _null_if(expr)
        case nodes.ScalarArrayOpExpr():
            return _any_or_all(expr)
        case nodes.BoolExpr():
            return _boolean(expr)
        case nodes.NullTest():
            return _null_test(expr)
        case nodes.BooleanTest():
            return _boolean_test(expr)
        case nodes.CaseExpr():
            return _case(expr)
        case nodes.CoalesceExpr():
            return _coalesce([_compile(arg) for arg in expr.args])
        case nodes.MinMaxExpr():
            return _min_max(expr)
        case nodes.RowCompareExpr():
            return _row_comparison(expr)
        case nodes.RelabelType():
            return _relabel(expr)
        case nodes.CoerceViaIO():
            return _via_text(expr)
        case nodes.ArrayCoerceExpr():
            return _array_coercion(expr)
        case nodes.CoerceToDomain() if expr.domain:
            return _domain(expr)
        case nodes.ArrayExpr():
            return _array(expr)
        case nodes.CollateExpr(arg=arg) | nodes.NamedArgExpr(arg=arg):
            return _compile(arg)
        case nodes.SubscriptingRef():
            return _subscript(expr)
    raise FeatureNotSupported(f"{sql_name(expr)} is not supported")


def constant(expr: nodes.Const) -> Any:
    """Return the value of a constant."""
    if expr.value is None:
        return None
    if expr.type == "unknown":
        return expr.value
    if expr.type == "jsonpath":
        jsonpath_exec.read(expr.value)  # refuse a bad path now, not at the first row
    return arrayfuncs.plain(type_text.parse(expr.type, expr.value))


def _function_of_operator(operator_oid: int, name: str) -> int:
    for operator in builtin.operators().get(name, ()):
        if operator.oid == operator_oid:
            return operator.function_oid
    raise FeatureNotSupported(f"user-defined operator {name} is not supported")


def _function(oid: int) -> builtin.Function:
    function = builtin.function_by_oid().get(oid)
    if function is None:
        raise FeatureNotSupported("user-defined functions are not supported")
    return function


def _variadic_call(function: builtin.Function, args: Sequence[nodes.Expr]) -> Step:
    """Compile a call like concat(VARIADIC array), whose arguments are the array's elements.

    If the array is NULL, format() gets no further arguments; other functions return NULL.
    """
    *before, array = args
    known = builtin.types().get(array.type)
    if known is None or known.element is None or function.source not in functions.VARIADIC:
        raise FeatureNotSupported(f"VARIADIC in a call of {function.name}() is not supported")
    steps, elements = [_compile(arg) for arg in before], _compile(array)
    types, element = [arg.type for arg in before], known.element
    takes_null = function.source == "text_format"

    def call(row: Sequence[Any], operand: Any) -> Any:
        values, found = [step(row, operand) for step in steps], elements(row, operand)
        if found is None and not takes_null:
            return None
        items = [] if found is None else list(arrayfuncs.flat(found))
        callee = functions.callee(function, [*types, *[element] * len(items)], None)
        return callee(*values, *items)

    return call


def _call(oid: int, args: Sequence[nodes.Expr], collation: str | None) -> Step:
    if oid == _SUBSTRING_SIMILAR:
        text, *pattern = args
        similar = nodes.FuncExpr(_SIMILAR_TO_ESCAPE, "similar_to_escape", "text", tuple(pattern))
        return _call(_SUBSTRING_REGEX, [text, similar], collation)
    function = _function(oid)
    args = functions.arguments(function, args)
    types = [arg.type for arg in args]
    callee = functions.callee(function, types, collation)  # names the function if it is missing
    steps = [_compile(arg) for arg in args]
    if not function.is_strict:
        return lambda row, operand: callee(*[step(row, operand) for step in steps])
    match steps:
        case [first]:

            def call_one(row: Sequence[Any], operand: Any) -> Any:
                value = first(row, operand)
                return None if value is None else callee(value)

            return call_one
        case [first, second] if function.name in _SWAPPED:

            def call_swapped(row: Sequence[Any], operand: Any) -> Any:
                right, left = second(row, operand), first(row, operand)
                return None if left is None or right is None else callee(left, right)

            return call_swapped
        case [first, _] if isinstance(args[1], nodes.Const) and args[1].value is not None:
            constant_argument = constant(args[1])

            def call_with_constant(row: Sequence[Any], operand: Any) -> Any:
                left = first(row, operand)
                return None if left is None else callee(left, constant_argument)

            return call_with_constant
        case [first, second]:

            def call_two(row: Sequence[Any], operand: Any) -> Any:
                left, right = first(row, operand), second(row, operand)
                return None if left is None or right is None else callee(left, right)

            return call_two

    def call(row: Sequence[Any], operand: Any) -> Any:
        values = [step(row, operand) for step in steps]
        return None if any(value is None for value in values) else callee(*values)

    return call


def _equality(operator_oid: int, args: tuple[nodes.Expr, nodes.Expr]) -> Callable[[Any, Any], Any]:
    function = _function(_function_of_operator(operator_oid, "="))
    return functions.callee(function, [arg.type for arg in args], None)


def _distinct(expr: nodes.DistinctExpr) -> Step:
    equal = _equality(expr.operator_oid, expr.args)
    first, second = (_compile(arg) for arg in expr.args)

    def evaluate(row: Sequence[Any], operand: Any) -> bool:
        left, right = first(row, operand), second(row, operand)
        if left is None or right is None:
            return (left is None) != (right is None)
        return not equal(left, right)

    return evaluate


def _null_if(expr: nodes.NullIfExpr) -> Step:
    equal = _equality(expr.operator_oid, expr.args)
    first, second = (_compile(arg) for arg in expr.args)

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        left, right = first(row, operand), second(row, operand)
        return None if left is not None and right is not None and equal(left, right) else left

    return evaluate


def _any_or_all(expr: nodes.ScalarArrayOpExpr) -> Step:
    left, array = expr.args
    known = builtin.types().get(array.type)
    if known is None or known.element is None:
        raise FeatureNotSupported(f"arrays of type {array.type} are not supported")
    element = known.element
    function = _function(_function_of_operator(expr.operator_oid, expr.name))
    item_test = nodes.FuncExpr(
        function.oid,
        function.name,
        "bool",
        (nodes.Param(1, left.type), nodes.Param(2, element)),
        input_collation=expr.input_collation,
    )
    value, items = _compile(left), _compile(array)
    test = _compile(item_test)
    use_or = expr.use_or

    def evaluate(row: Sequence[Any], operand: Any) -> bool | None:
        tested, elements = value(row, operand), items(row, operand)
        if elements is None:
            return None
        return _combined((test((tested, x), None) for x in arrayfuncs.flat(elements)), use_or)

    return evaluate


def _combined(results: Any, use_or: bool) -> bool | None:
    """Combine three-valued results by OR or AND; stop at the first result that decides."""
    has_null = False
    for result in results:
        if result is None:
            has_null = True
        elif bool(result) is use_or:
            return use_or
    return None if has_null else not use_or


def _boolean(expr: nodes.BoolExpr) -> Step:
    steps = [_compile(arg) for arg in expr.args]
    if expr.op == "not":
        (step,) = steps

        def negate(row: Sequence[Any], operand: Any) -> bool | None:
            value = step(row, operand)
            return None if value is None else not value

        return negate
    use_or = expr.op == "or"
    return lambda row, operand: _combined((step(row, operand) for step in steps), use_or)


def _null_test(expr: nodes.NullTest) -> Step:
    """Compile IS [NOT] NULL: a row IS NULL if all fields are NULL, and IS NOT NULL if none is."""
    args = expr.arg.args if expr.is_row and isinstance(expr.arg, nodes.RowExpr) else (expr.arg,)
    steps, is_null = [_compile(arg) for arg in args], expr.is_null
    return lambda row, operand: all((step(row, operand) is None) is is_null for step in steps)


def _boolean_test(expr: nodes.BooleanTest) -> Step:
    step, negated = _compile(expr.arg), expr.test.startswith("not ")
    wanted = {"true": True, "false": False, "unknown": None}[expr.test.removeprefix("not ")]
    return lambda row, operand: (step(row, operand) is wanted) is not negated


def _domain(expr: nodes.CoerceToDomain) -> Step:
    """Compile a cast to a domain, with the domain's checks (ExecEvalConstraintCheck)."""
    step, not_null, domain = _compile(expr.arg), expr.not_null, expr.domain
    assert domain is not None
    checks = [(check.name, _compile(check.condition)) for check in expr.checks]

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        value = step(row, operand)
        if value is None and not_null:
            raise null_in_domain(domain)
        for name, condition in checks:
            try:
                holds = condition((value,), None)
            except PostgresError as error:
                error.is_hard = True
                raise
            if holds is False:
                raise violated_domain(domain, name)
        return value

    return evaluate


def null_in_domain(domain: DomainName) -> NotNullViolation:
    """Return the error for NULL in a domain that forbids it."""
    return NotNullViolation(f"domain {domain.shown} does not allow null values", domain=domain)


def violated_domain(domain: DomainName, constraint: str) -> CheckViolation:
    """Return the error for a value that violates a domain's CHECK."""
    message = f'value for domain {domain.shown} violates check constraint "{constraint}"'
    return CheckViolation(message, constraint=constraint, domain=domain)


def _case(expr: nodes.CaseExpr) -> Step:
    tested = None if expr.arg is None else _compile(expr.arg)
    whens = [(_compile(when.condition), _compile(when.result)) for when in expr.whens]
    default = _compile(expr.default)

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        inner = operand if tested is None else tested(row, operand)
        for condition, result in whens:
            if condition(row, inner):
                return result(row, operand)
        return default(row, operand)

    return evaluate


def _coalesce(steps: list[Step]) -> Step:
    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        for step in steps:
            value = step(row, operand)
            if value is not None:
                return value
        return None

    return evaluate


def _min_max(expr: nodes.MinMaxExpr) -> Step:
    """Compile GREATEST or LEAST: ignore NULLs, and return the first of equal values."""
    steps, key = [_compile(arg) for arg in expr.args], comparison.key_of(expr.type)
    choose = max if expr.op == "greatest" else min

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        values = [value for step in steps if (value := step(row, operand)) is not None]
        return choose(values, key=key) if values else None

    return evaluate


def _row_comparison(expr: nodes.RowCompareExpr) -> Step:
    """Compile (a, b) < (c, d): the result is NULL if the column that decides has a NULL."""
    if expr.name not in comparison.OPERATORS:
        raise FeatureNotSupported(f"comparison of rows by {expr.name} is not supported")
    pairs = [
        (_compile(left), _compile(right), comparison.compare("=", left.type, right.type),
         comparison.compare(expr.name, left.type, right.type))
        for left, right in zip(expr.left, expr.right, strict=True)
    ]  # fmt: skip
    if_equal = "=" in expr.name

    def evaluate(row: Sequence[Any], operand: Any) -> bool | None:
        for first, second, equal, test in pairs:
            left, right = first(row, operand), second(row, operand)
            if left is None or right is None:
                return None
            if not equal(left, right):
                return test(left, right)
        return if_equal

    return evaluate


def _relabel(expr: nodes.RelabelType) -> Step:
    return _converted(_compile(expr.arg), expr.arg.type, expr.type)


def _converted(step: Step, source: str, target: str) -> Step:
    """Return a step whose values are those of a binary-compatible type.

    A cast can call a function whose result has another type: int2 becomes oid by int4(int2).
    """
    convert = relabelled(source, target)
    if convert is None:
        return step

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        value = step(row, operand)
        return None if value is None else convert(value)

    return evaluate


def relabelled(source: str, target: str) -> Callable[[Any], Any] | None:
    """Return the conversion of values of binary-compatible types; None if they do not change.

    Raises:
        FeatureNotSupported: the values of one type are names, and those of the other are numbers.
    """
    if (source in _NUMBERED and target in _NAMED) or (source in _NAMED and target in _NUMBERED):
        raise FeatureNotSupported(f"casts of {source} to {target} are not supported")
    if (source, target) == ("cidr", "inet"):
        return lambda value: network.dump(network.load(value))
    if source == "int4" and target in _UNSIGNED:
        return lambda value: value % 2**32
    if source in _UNSIGNED and target == "int4":
        return lambda value: value - 2**32 if value >= 2**31 else value
    return None


def _via_text(expr: nodes.CoerceViaIO) -> Step:
    step, source, target = _compile(expr.arg), expr.arg.type, expr.type
    enum, labels = expr.enum or ("", None)
    for name in (source, target) if labels is None else (source,):
        if not type_text.is_supported(name):
            raise type_text.unsupported(name)

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        value = step(row, operand)
        if value is None:
            return None
        shown = type_text.render(source, value)
        if labels is not None and shown not in labels:
            raise InvalidTextRepresentation(f'invalid input value for enum {enum}: "{shown}"')
        return arrayfuncs.plain(type_text.parse(target, shown))

    return evaluate


def _array_coercion(expr: nodes.ArrayCoerceExpr) -> Step:
    array, element = _compile(expr.arg), _compile(expr.element)

    def convert(value: Any, row: Sequence[Any]) -> Any:
        if isinstance(value, list):
            return [convert(item, row) for item in value]
        return element(row, value)

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        value = array(row, operand)
        return None if value is None else convert(value, row)

    return evaluate


def _array(expr: nodes.ArrayExpr) -> Step:
    steps = [_compile(element) for element in expr.elements]
    if not expr.is_multidimensional:
        return lambda row, operand: [step(row, operand) for step in steps]

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        items = [step(row, operand) for step in steps]
        present = [item for item in items if item]
        if not present:
            return []
        sizes = arrayfuncs.dimensions(present[0])
        if len(present) < len(items) or any(arrayfuncs.dimensions(x) != sizes for x in present):
            raise _mismatch()
        arrayfuncs.check_dimensions(len(sizes) + 1)
        return items

    return evaluate


def _mismatch() -> PostgresError:
    from replctl.errors import ArraySubscriptError

    return ArraySubscriptError(
        "multidimensional arrays must have array expressions with matching dimensions"
    )


def _subscript(expr: nodes.SubscriptingRef) -> Step:
    container = _compile(expr.arg)
    if expr.assigned is not None:
        return _assignment(expr, container, _compile(expr.assigned))
    if expr.arg.type == "jsonb":
        return _jsonb_subscript(expr, container)
    uppers = [None if item is None else _compile(item) for item in expr.upper]
    if expr.lower is None:

        def element(row: Sequence[Any], operand: Any) -> Any:
            value = container(row, operand)
            indexes = [step(row, operand) for step in uppers if step is not None]
            if value is None or any(index is None for index in indexes):
                return None
            return arrayfuncs.subscript(value, indexes)

        return element
    if len(uppers) != 1:
        raise FeatureNotSupported("slices of arrays of more than one dimension are not supported")
    (upper,) = uppers
    lower = None if expr.lower[0] is None else _compile(expr.lower[0])

    def part(row: Sequence[Any], operand: Any) -> Any:
        value = container(row, operand)
        bounds = [None if step is None else step(row, operand) for step in (lower, upper)]
        given = [
            bound for step, bound in zip((lower, upper), bounds, strict=True) if step is not None
        ]
        if value is None or any(bound is None for bound in given):
            return None
        return arrayfuncs.array_slice(value, *bounds)

    return part


def _jsonb_subscript(expr: nodes.SubscriptingRef, container: Step) -> Step:
    """Compile value['a'][0], which equals value #> '{a,0}'."""
    if expr.lower is not None:
        raise FeatureNotSupported("jsonb subscript does not support slices")
    steps = [_compile(item) for item in expr.upper if item is not None]
    extract = functions.PLAIN["jsonb_extract_path"]

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        value = container(row, operand)
        path = [step(row, operand) for step in steps]
        if value is None or any(item is None for item in path):
            return None
        return extract(value, [str(item) for item in path])

    return evaluate


def _assignment(expr: nodes.SubscriptingRef, container: Step, assigned: Step) -> Step:
    """Compile the assignment of a value to a part of an array or of a jsonb value.  The whole may
    be NULL (array_subscript_assign, jsonb_subscript_assign).
    """
    uppers = [None if item is None else _compile(item) for item in expr.upper]
    lowers = [None if item is None else _compile(item) for item in expr.lower or ()]
    is_jsonb = expr.type == "jsonb"
    expects_array = is_jsonb and expr.upper[0] is not None and expr.upper[0].type == "int4"

    def evaluate(row: Sequence[Any], operand: Any) -> Any:
        value, new = container(row, operand), assigned(row, operand)
        upper, lower = (
            [None if step is None else _given(step(row, operand), is_jsonb) for step in steps]
            for steps in (uppers, lowers)
        )
        if is_jsonb:
            empty = "[]" if expects_array else "{}"
            return jsonb.with_element(value or empty, [str(item) for item in upper], new)
        whole = [] if value is None else value
        if expr.lower is None:
            return arrayfuncs.with_element(whole, [i for i in upper if i is not None], new)
        return arrayfuncs.with_slice(whole, lower, upper, new)

    return evaluate


def _given(subscript: Any, is_jsonb: bool) -> Any:
    if subscript is None:
        what = "jsonb" if is_jsonb else "array"
        raise NullValueNotAllowed(f"{what} subscript in assignment must not be null")
    return subscript
