"""Composite types in queries: engines store their values as the text of record_out.

(c).b                 becomes  the second item of the text, read by the input function of b
ROW(1, b)::ct         becomes  '(' || the texts of the fields, quoted if needed || ')'
c IS NULL             becomes  a test that all items of the text are empty
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.enum_array import Inner
from replctl.expr.enum_label import is_enum, is_enum_array, operator, source_of
from replctl.expr.enum_order import Transform
from replctl.expr.environment import Environment
from replctl.expr.type_facts import TypeFacts
from replctl.types import builtin
from replctl.types.type_kind import TypeKind

#: An item of a row's text in double quotes.
_QUOTED = r'"(?:[^"\\]|""|\\\\)*"'
#: An item without quotes, which may be empty. An empty item is NULL.
_PLAIN = '[^",)]'
_ITEM = f"(?:{_QUOTED}|{_PLAIN}*)"
_NOT_NULL_ITEM = f"(?:{_QUOTED}|{_PLAIN}+)"
#: A text that needs quotes (record_out).
_NEEDS_QUOTES = '^(|.*[ \t\n\v\f\r"\\\\(),].*)$'
#: Functions that neither compare nor print their arguments.
_ALLOWED = frozenset(
    ("count", "any_value", "first_value", "last_value", "nth_value", "lag", "lead")
)
_CALLS = (
    nodes.FuncExpr | nodes.OpExpr | nodes.Aggref | nodes.WindowFunc
    | nodes.DistinctExpr | nodes.NullIfExpr | nodes.ScalarArrayOpExpr
)  # fmt: skip


def without_composites(
    environment: Environment, part: Any, transform: Transform = nodes.transform
) -> Any:
    """Return an expression or a query in which texts replace the values of composite types.

    Raises:
        FeatureNotSupported: an expression compares, sorts or converts such values.
    """

    def inner(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(inner, part))
        return transform(part, partial(_replaced, environment, inner))

    return inner(part)


def _replaced(environment: Environment, inner: Inner, node: Any) -> Any:
    """Return the replacement of a node, or None to keep it; `inner` replaces nodes in its parts."""
    _refuse(environment, node)
    match node:
        case nodes.FieldSelect(arg=arg) if is_composite(environment, arg.type):
            return _field(environment, node, text_of(inner(arg)))
        case nodes.NullTest(is_row=True, arg=arg) if is_composite(environment, arg.type):
            return _null_test(environment, node, inner(arg))
        case nodes.FuncExpr(name="pg_typeof", args=(arg,)) if is_composite(environment, arg.type):
            return nodes.Const("regtype", str(environment.type(arg.type).oid))
        case nodes.RowExpr(args=args) if is_composite(environment, node.type):
            return _row(environment, args, tuple(map(inner, args)))
        case nodes.Const() if is_composite(environment, node.type):
            return text_of(node)
        case nodes.CoerceViaIO(arg=arg) if is_composite(environment, arg.type):
            return nodes.RelabelType(text_of(inner(arg)), node.type, collation=node.collation)
    if not is_composite(environment, getattr(node, "type", "")):
        return None
    collation = {"collation": "default"} if hasattr(node, "collation") else {}
    return inner(replace(node, type="text", **collation))


def is_composite(environment: Environment, type_: str) -> bool:
    """Return whether a type was made by CREATE TYPE ... AS (...)."""
    return type_.startswith("@") and environment.type(type_).is_composite


def text_of(row: nodes.Expr) -> nodes.Expr:
    """Return a composite value as text."""
    if isinstance(row, nodes.Const):
        return nodes.Const("text", row.value, collation="default")
    return row if row.type == "text" else nodes.RelabelType(row, "text", collation="default")


# ---------------------------------------------------------------------------------------------
# Refused expressions


def check_no_rows(environment: Environment, expr: Any, what: str) -> None:
    """Check that an expression is neither a row nor an array of rows.

    Args:
        what: the use of the expression, for the error message.

    Raises:
        FeatureNotSupported: the expression has such a type (0A000).
    """
    type_ = getattr(expr, "type", "")
    if is_composite(environment, type_):
        shown = environment.format_type(type_)
        raise FeatureNotSupported(f"{what} type {shown} are not supported")
    element = environment.type(type_).element if type_.startswith("@") else None
    if element is not None and environment.type(element).kind == TypeKind.COMPOSITE:
        shown = environment.format_type(element)
        raise FeatureNotSupported(f"arrays of type {shown} are not supported")


def _refuse(environment: Environment, node: Any) -> None:
    def check(exprs: Sequence[Any], what: str) -> None:
        for expr in exprs:
            check_no_rows(environment, expr, what)

    match node:
        case nodes.SubscriptingRef(arg=arg):
            check([arg], "elements of")
        case nodes.ArrayCoerceExpr(arg=arg):
            check([node, arg], "casts of")
        case nodes.SortKey(expr=expr):
            check([expr], "comparisons of")
        case nodes.CoerceViaIO() if node.type != node.arg.type:
            check([node], "casts of other types to")
            if node.type not in ("text", "varchar"):
                check([node.arg], "casts to other types of")
        case nodes.MinMaxExpr():
            check([node], "comparisons of")
        case nodes.RowCompareExpr(left=left, right=right):
            check([*left, *right], "comparisons of")
        case nodes.Aggref(is_distinct=True, args=args):
            check(args, "comparisons of")
        case nodes.FuncExpr(name="pg_typeof"):
            pass
        case nodes.FuncExpr() | nodes.Aggref() | nodes.WindowFunc():
            if node.name not in _ALLOWED:
                check([*node.args, node], f"calls of {node.name}() with")
            check(getattr(node, "partition_by", ()), "comparisons of")
        case nodes.ArrayExpr(elements=elements):
            check(elements, "arrays of")
        case _ if isinstance(node, _CALLS):
            check([*node.args, node], "comparisons of")


# ---------------------------------------------------------------------------------------------
# Fields


def _field(environment: Environment, node: nodes.FieldSelect, row: nodes.Expr) -> nodes.Expr:
    """Return a field of a row, read from the row's text."""
    return _read(environment, _plain(_raw_item(row, node.field_number)), node)


def _raw_item(row: nodes.Expr, number: int) -> nodes.Expr:
    """Return the item of a row's text at a place (from 1), with its quotes."""
    pattern = rf"^\({f'{_ITEM},' * (number - 1)}({_ITEM})[,)]"
    return _call("substring", row, _text(pattern))


def _plain(item: nodes.Expr) -> nodes.Expr:
    """Return the text of an item without its quotes; NULL for an empty item."""
    found = operator("=", "text")
    there = nodes.NullIfExpr(
        found.oid, source_of(found), "text", (item, _text("")), "default", input_collation="default"
    )
    whole = _call("regexp_replace", there, _text('^"(.*)"$'), _text("\\1"))
    plain = _call("replace", whole, _text('""'), _text('"'))
    return _call("replace", plain, _text("\\\\"), _text("\\"))


def _read(environment: Environment, value: nodes.Expr, node: nodes.FieldSelect) -> nodes.Expr:
    """Return the value of a field's text.  The text is canonical, and domains are checked."""
    type_, _typmod = TypeFacts(environment).base_and_typmod(node.type, node.typmod)
    if is_composite(environment, type_) or type_ == "text":
        return value
    if is_enum(environment, type_):
        return nodes.RelabelType(value, node.type, collation="default")
    if is_enum_array(environment, type_):
        return nodes.CoerceViaIO(value, "_text", collation="default")
    if type_ in ("varchar", "bpchar"):
        return nodes.RelabelType(value, type_, collation=node.collation)
    if not environment.type(type_).is_builtin:
        shown = environment.format_type(node.type)
        raise FeatureNotSupported(f"selecting a field of type {shown} is not supported")
    return nodes.CoerceViaIO(value, type_, collation=node.collation)


# ---------------------------------------------------------------------------------------------
# Rows


def with_attributes(
    environment: Environment,
    row: nodes.Expr,
    type_: str,
    changed: str,
    places: Sequence[int | None],
) -> nodes.Expr:
    """Return the text of a row after a composite type in it has lost or got attributes.

    Args:
        row, type_: the text of the row before, and its type.
        changed: the type whose attributes change: `type_`, or the type of a part.
        places: for each attribute after the change its number before; None if it is new.
    """
    if type_ == changed:
        items = [_text("") if place is None else _raw_item(row, place) for place in places]
    else:
        items = []
        for number, column in enumerate(TypeFacts(environment).columns(type_) or (), start=1):
            item = _raw_item(row, number)
            if changed in TypeFacts(environment).contained(column.type):
                part = _plain(item)
                item = _item(with_attributes(environment, part, column.type, changed, places))
            items.append(item)
    when = nodes.CaseWhen(nodes.NullTest(row, is_null=False), _row_text(items))
    nothing = nodes.Const("text", None, collation="default")
    return nodes.CaseExpr("text", None, (when,), nothing, collation="default")


def _row_text(items: Sequence[nodes.Expr]) -> nodes.Expr:
    result: nodes.Expr = _text("(")
    for number, item in enumerate(items):
        if number:
            result = _joined(result, _text(","))
        result = _joined(result, item)
    return _joined(result, _text(")"))


def _row(
    environment: Environment, fields: Sequence[nodes.Expr], plain: Sequence[nodes.Expr]
) -> nodes.Expr:
    """Return the text of ROW(...).

    Args:
        plain: the fields without user-defined types.
    """
    pairs = zip(fields, plain, strict=True)
    return _row_text([_item(_shown(environment, field.type, value)) for field, value in pairs])


def _shown(environment: Environment, type_: str, value: nodes.Expr) -> nodes.Expr:
    """Return a field's text, as the output function of its type prints it."""
    type_, _typmod = TypeFacts(environment).base_and_typmod(type_, -1)
    if is_composite(environment, type_) or is_enum(environment, type_):
        return text_of(value)
    if value.type in ("text", "varchar", "bpchar", "name"):
        return text_of(value)
    if value.type == "bool":
        words = nodes.CaseWhen(value, _text("t")), nodes.CaseWhen(_not(value), _text("f"))
        nothing = nodes.Const("text", None, collation="default")
        return nodes.CaseExpr("text", None, words, nothing, collation="default")
    return nodes.CoerceViaIO(value, "text", collation="default")


def _item(shown: nodes.Expr) -> nodes.Expr:
    """Return the text of a field as an item of a row, with quotes if it needs them."""
    doubled = _call("replace", shown, _text("\\"), _text("\\\\"))
    doubled = _call("replace", doubled, _text('"'), _text('""'))
    quoted = _call("regexp_replace", doubled, _text(_NEEDS_QUOTES), _text('"\\1"'))
    return nodes.CoalesceExpr("text", (quoted, _text("")), collation="default")


def _null_test(environment: Environment, test: nodes.NullTest, row: nodes.Expr) -> nodes.Expr:
    """Return `row IS NULL` (all fields are NULL) or `row IS NOT NULL` (no field is NULL)."""
    fields = TypeFacts(environment).columns(test.arg.type) or ()
    item = "" if test.is_null else _NOT_NULL_ITEM
    pattern = rf"^\({','.join([item] * len(fields))}\)$"
    if_null = nodes.Const("bool", "t" if test.is_null else "f")
    return nodes.CoalesceExpr("bool", (_matches(text_of(row), pattern), if_null))


# ---------------------------------------------------------------------------------------------
# Calls of functions of texts


def _text(value: str) -> nodes.Const:
    return nodes.Const("text", value, collation="default")


def _call(name: str, *args: nodes.Expr) -> nodes.FuncExpr:
    types = tuple(arg.type for arg in args)
    function = next(f for f in builtin.functions()[name] if f.argument_types == types)
    return nodes.FuncExpr(
        function.oid, name, function.result, args, collation="default", input_collation="default"
    )


def _binary(name: str, left: nodes.Expr, right: nodes.Expr, type_: str) -> nodes.OpExpr:
    found = operator(name, "text")
    collation = "default" if type_ == "text" else None
    return nodes.OpExpr(
        found.oid,
        name,
        source_of(found),
        type_,
        (left, right),
        collation,
        input_collation="default",
    )


def _joined(left: nodes.Expr, right: nodes.Expr) -> nodes.OpExpr:
    return _binary("||", left, right, "text")


def _matches(left: nodes.Expr, pattern: str) -> nodes.OpExpr:
    return _binary("~", left, _text(pattern), "bool")


def _not(value: nodes.Expr) -> nodes.BoolExpr:
    return nodes.BoolExpr("not", (value,))
