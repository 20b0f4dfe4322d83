"""Expressions that Spark runs in Python: each such subtree, down to the columns, is one function.

A function never fails.  It returns a struct of the value and the error.  Spark raises the error
only if it uses the value.  So CASE, AND and OR guard the function like Spark's own expressions,
although Spark computes Python functions for all rows beforehand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from replctl.adt import interpret
from replctl.errors import FeatureNotSupported, PostgresError
from replctl.expr import nodes, pg_node_tree
from replctl.record import dataclass
from replctl.recursion_limit import too_deep
from replctl.spark.data_type import element_type, storage_type, to_wire_value, unsigned, wire
from replctl.spark.sql_value import SqlValue, raised_text
from replctl.spark.volatile import CALLS, is_volatile
from replctl.types import builtin, text

if TYPE_CHECKING:
    import pyarrow as pa

#: Types whose values are texts in Python.
_TEXTS = frozenset(
    [
        "text",
        "varchar",
        "bpchar",
        "name",
        "json",
        "jsonb",
        "uuid",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "bit",
        "varbit",
        "unknown",
        "int4range",
        "int8range",
        "numrange",
        "daterange",
        "tsrange",
        "tstzrange",
    ]
)
#: Functions that depend on the query but not on the row, by prosrc.
_TIMES = frozenset(["now", "statement_timestamp"])
_PROGRAMS: dict[str, Program] = {}


@dataclass(frozen=True, slots=True)
class Program:
    """An expression over Param(1), Param(2) ..., in the format of pg_node_tree.dumps, with the
    types of its parameters and of its result.
    """

    expression: str
    parameters: tuple[str, ...]
    result: str

    @property
    def name(self) -> str:
        """Return the name of the function: a hash of its content, so that equal programs have equal
        names."""
        content = "\0".join((self.expression, *self.parameters, self.result))
        return f"replctl_eval_{hashlib.sha256(content.encode()).hexdigest()[:20]}"


def evaluated(expr: nodes.Expr, leaf: Callable[[Any], SqlValue]) -> SqlValue:
    """Translate an expression to the call of a Python function.

    Args:
        leaf: returns the SQL of a column, an aggregate, or another node that only the engine can
            compute.

    Raises:
        FeatureNotSupported: Python cannot compute the expression either.
    """
    values: list[SqlValue] = []
    numbers: dict[str, int] = {}
    subqueries: list[nodes.SubLink] = []

    def replaced(node: Any) -> Any:
        if not isinstance(node, interpret.OF_AN_ENGINE) and not _is_engines(node):
            return None
        if isinstance(node, nodes.SubLink):
            subqueries.append(node)
        value = leaf(node)
        if value.text not in numbers:
            values.append(value)
            numbers[value.text] = len(values)
        return nodes.Param(numbers[value.text], value.type, collation=nodes.collation(node))

    if getattr(expr, "is_multidimensional", False):
        # Spark's arrays have one dimension.  So the expression that uses this array must also run
        # in Python.
        raise FeatureNotSupported("arrays of more than one dimension are not supported")
    tree = nodes.transform(expr, replaced)
    if _has_free_operand(tree):
        raise FeatureNotSupported("the operand of CASE is computed with the whole CASE")
    if subqueries and any(map(is_volatile, values)):
        # Spark does not plan a subquery in the lambda's argument of a volatile call.
        raise FeatureNotSupported(
            "volatile functions next to aggregates or subqueries are not supported"
        )
    interpret.compiled(tree)  # refuse the expression now instead of at the first row
    if not values:
        values.append(SqlValue("0", "int4", "INT"))  # gives the number of rows
    program = Program(pg_node_tree.dumps(tree), tuple(value.type for value in values), expr.type)
    _PROGRAMS[program.name] = program
    return _call(program, values, expr.type)


def program_named(name: str) -> Program:
    """Return the program whose function has this name."""
    return _PROGRAMS[name]


def _is_engines(node: Any) -> bool:
    """Return whether the engine must compute a node, such as now() or random(): Python would not
    compute it once per query, or once per row.
    """
    if not isinstance(node, nodes.FuncExpr):
        return False
    function = builtin.function_by_oid().get(node.function_oid)
    return function is not None and (function.source in CALLS or function.source in _TIMES)


def _has_free_operand(node: Any) -> bool:
    """Return whether a Param(0) refers to an operand outside of the expression."""
    match node:
        case nodes.Param(number=0):
            return True
        case nodes.CaseExpr(arg=arg) if arg is not None:
            results = [when.result for when in node.whens]
            return any(map(_has_free_operand, [arg, *results, node.default]))
        case nodes.ArrayCoerceExpr():
            return _has_free_operand(node.arg)
    return any(map(_has_free_operand, nodes.children(node)))


def _call(program: Program, values: Sequence[SqlValue], type_name: str) -> SqlValue:
    args = ", ".join(_sent(value) for value in values)
    call = f"{program.name}({args})"
    if any(map(is_volatile, values)):
        checked = f"get(transform(array({call}), result_ -> {_checked('result_', type_name)}), 0)"
    else:
        checked = _checked(call, type_name)
    return SqlValue(checked, type_name, storage_type(type_name))


def _checked(result: str, type_name: str) -> str:
    value = wire(type_name).from_wire.format(f"{result}.v")
    return f"(CASE WHEN {result}.e IS NULL THEN {value} ELSE raise_error({result}.e) END)"


def _sent(value: SqlValue) -> str:
    """Return SQL that converts a value to its wire form; a numeric stays a DECIMAL or text."""
    if value.type == "numeric":
        return value.text
    return wire(value.type).to_wire.format(value.text)


def result_type(program: Program) -> pa.DataType:
    """Return the type of a function's result: a struct of a value and an error."""
    import pyarrow as pa

    return pa.struct([("v", wire(program.result).arrow), ("e", pa.string())])


def run(program: Program, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Compute a program for rows of values in wire form."""
    function = _function(program)
    readers = [_reader(name) for name in program.parameters]
    results = []
    for row in rows:
        try:
            value = function(
                [
                    None if item is None else read(item)
                    for read, item in zip(readers, row, strict=True)
                ]
            )
            results.append({"v": to_wire_value(program.result, -1, value), "e": None})
        except PostgresError as error:  # Spark raises it in the query
            results.append({"v": None, "e": raised_text(error)})
        except RecursionError:  # a worker's own error would hide its reason
            results.append({"v": None, "e": raised_text(too_deep())})
    return results


@cache
def _function(program: Program) -> Callable[[Sequence[Any]], Any]:
    return interpret.compiled(pg_node_tree.loads(program.expression))


def _reader(type_name: str) -> Callable[[Any], Any]:
    """Return a function that decodes a value in wire form."""
    element = element_type(type_name)
    if element is not None:
        read = _reader(element)
        return lambda value: [None if item is None else read(item) for item in value]
    if type_name == "interval":
        return lambda value: (value["m"], value["d"], value["us"])
    if type_name == "pg_lsn":
        return unsigned
    if type_name in _TEXTS:
        return lambda value: value
    return lambda value: text.parse(type_name, value) if isinstance(value, str) else value
