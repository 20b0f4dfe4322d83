"""Replace user-defined types in expressions and queries, because engines have only built-in types.

A value of a domain becomes a value of its base type, and a cast to the domain includes its checks:
    p + 1           becomes  p + 1, where p is an integer
    x::posint       becomes  CoerceToDomain(x, integer, "posint", VALUE > 0)

Enums become text with the order of their labels (enum_order.py).  Values of composite types become
their texts (composite_text.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.composite_text import without_composites
from replctl.expr.enum_label import is_enum_array
from replctl.expr.enum_order import Transform, with_enum_order
from replctl.expr.environment import DomainRules, Environment
from replctl.expr.type_facts import TypeFacts
from replctl.relation_name import DomainName
from replctl.types.type_kind import TypeKind

#: NULL as an element in the text form of an array.
_NULL_ELEMENT = re.compile(r"[{,]NULL[,}]")


def without_user_types(
    environment: Environment, part: Any, transform: Transform = nodes.transform
) -> Any:
    """Return an expression or a query that uses only the types of engines.

    Raises:
        FeatureNotSupported: the expression uses an enum's order in another way.
        ObjectNotInPrerequisiteState: the expression uses the first or last value of an enum
            without values.
    """
    plain = without_composites(environment, part, transform)
    plain = without_domains(environment, plain, transform)
    return with_enum_order(environment, plain, transform)


def without_domains(
    environment: Environment, part: Any, transform: Transform = nodes.transform
) -> Any:
    """Return an expression or a query with base types instead of domains."""

    def inner(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(inner, part))
        return transform(part, partial(_replaced, environment, inner))

    return inner(part)


def stored_type(environment: Environment, name: str, typmod: int = -1) -> tuple[str, int]:
    """Return the type in which values are stored, and its modifier: the base type for a domain, an
    array of text for an array of an enum, and text for a composite type.
    """
    base, base_typmod = base_type(environment, name, typmod)
    if environment.type(base).is_composite:
        return "text", -1
    return ("_text", -1) if is_enum_array(environment, base) else (base, base_typmod)


def base_type(environment: Environment, name: str, typmod: int = -1) -> tuple[str, int]:
    """Return the base type of a domain, and an array of the base type for an array of a domain,
    with its modifier.  Return other types unchanged.
    """
    if not name.startswith("@"):
        return name, typmod
    types = TypeFacts(environment)
    base, base_typmod = types.base_and_typmod(name, typmod)
    element = types.element(base)
    if element is None or types.base(element) == element:
        return base, base_typmod
    element, element_typmod = types.base_and_typmod(element, -1)
    array = types.array(element)
    if array is None:
        raise FeatureNotSupported(
            f"arrays of domains over {types.format(element)} are not supported"
        )
    return array, element_typmod


def domain_rules(environment: Environment, name: str) -> DomainRules | None:
    """Return the rules for values of a type; None if it is not a domain."""
    type_ = environment.type(name)
    return environment.domain_rules(type_) if type_.kind == TypeKind.DOMAIN else None


def domain_check(environment: Environment, name: str, value: nodes.Expr) -> nodes.Expr:
    """Return the expression with which an engine checks a value of a domain's base type; the value
    itself if the domain has no checks.
    """
    checked: nodes.Expr = without_domains(environment, nodes.CoerceToDomain(value, name))
    return checked


def about_value(condition: nodes.Expr, value: nodes.Expr) -> nodes.Expr:
    """Return the condition of a domain's CHECK with `value` in the place of VALUE."""

    def replaced(node: Any) -> Any:
        match node:
            case nodes.Param(number=nodes.VALUE):
                return value
            case nodes.CoerceToDomain(arg=arg):  # its checks have their own VALUE
                return replace(node, arg=nodes.transform(arg, replaced))
        return None

    result: nodes.Expr = nodes.transform(condition, replaced)
    return result


def _replaced(environment: Environment, inner: Callable[[Any], Any], node: Any) -> Any:
    """Return the replacement of a node, or None to keep it; `inner` replaces nodes in its parts."""
    match node:
        case nodes.CoerceToDomain(domain=None):
            return _checked(environment, inner, node)
        case nodes.FuncExpr(name="pg_typeof", args=(arg,)) if _has_domain(environment, arg.type):
            name = nodes.Const("regtype", str(environment.type(arg.type).oid))
            if isinstance(arg, nodes.Var | nodes.Const):
                return name
            if isinstance(arg, nodes.RelabelType):
                return node  # replaced already
            return replace(node, args=(nodes.RelabelType(inner(arg), arg.type),))
    type_ = getattr(node, "type", None) if isinstance(node, nodes.Node) else None
    if type_ is None or not _has_domain(environment, type_):
        return None
    _refuse_unchecked(environment, node, type_)
    base, typmod = base_type(environment, type_)
    changes: dict[str, Any] = {"type": base}
    if hasattr(node, "typmod"):
        changes["typmod"] = typmod
    if isinstance(node, nodes.ArrayExpr):
        changes["element_type"] = base_type(environment, node.element_type)[0]
    return inner(replace(node, **changes))


def _refuse_unchecked(environment: Environment, node: nodes.Node, type_: str) -> None:
    """Refuse arrays of a domain made from text, because their elements are not checked."""
    is_text = isinstance(node, nodes.CoerceViaIO)
    has_null = isinstance(node, nodes.Const) and _NULL_ELEMENT.search(node.value or "") is not None
    element = TypeFacts(environment).element(type_)
    rules = None if element is None else domain_rules(environment, element)
    if rules is None:
        return
    if is_text and (rules.checks or rules.not_null):
        raise FeatureNotSupported(
            "casts of text to arrays of a domain with constraints are not supported"
        )
    if has_null and rules.not_null:
        raise FeatureNotSupported("NULL in an array of a domain with NOT NULL is not supported")


def _has_domain(environment: Environment, type_: str) -> bool:
    return type_.startswith("@") and base_type(environment, type_)[0] != type_


def _checked(
    environment: Environment, inner: Callable[[Any], Any], cast: nodes.CoerceToDomain
) -> nodes.Expr:
    arg: nodes.Expr = inner(cast.arg)
    domain = environment.type(cast.type)
    rules = environment.domain_rules(domain)
    if not rules.checks and not rules.not_null:
        return arg
    base, typmod = base_type(environment, cast.type)
    result: nodes.Expr = replace(
        cast,
        arg=arg,
        type=base,
        typmod=typmod,
        domain=DomainName(rules.schema, domain.sql_name, environment.format_type(cast.type)),
        not_null=rules.not_null,
        checks=inner(rules.checks),
    )
    return result
