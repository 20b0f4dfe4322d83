"""Print constants (get_const_expr() of PostgreSQL's ruleutils.c)."""

from __future__ import annotations

from typing import Literal

from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.expr.value_text import shown_value
from replctl.types.quote import quote_identifier, quote_string


def constant(
    environment: Environment,
    const: nodes.Const,
    show_type: Literal["never", "needed", "always"] = "needed",
) -> str:
    """Return a constant as SQL: 5, true and 1.5 unchanged; `'-5'::integer`, `'a'::text`,
    `NULL::date`.

    Args:
        show_type: `needed` omits the type if the parser would find it.
    """
    if const.value is None:
        shown, is_plain = "NULL", False
    else:
        shown, is_plain = _literal(environment, const)
    if show_type == "never" or (show_type == "needed" and is_plain):
        label = ""
    else:
        label = f"::{environment.format_type(const.type, const.typmod)}"
    if show_type == "never" or const.collation in (None, environment.type(const.type).collation):
        return shown + label
    assert const.collation is not None
    return f"{shown}{label} COLLATE {quote_identifier(const.collation)}"


def is_bare_under_cast(const: nodes.Const, type_: str) -> bool:
    """Return whether a cast to `type_` makes a type after the constant superfluous.

    An example is `'abc'::varchar(2)`, in which the constant has the type, but not yet the length.
    """
    return const.type == type_ and const.typmod == -1


def _literal(environment: Environment, const: nodes.Const) -> tuple[str, bool]:
    """Return the constant's text, and whether the parser finds its type without a cast."""
    assert const.value is not None
    type_ = environment.type(const.type)
    text = shown_value(environment, type_, const.value)
    match const.type:
        case "int4":
            is_plain = not text.startswith("-")
            return text if is_plain else f"'{text}'", is_plain
        case "numeric":
            # Without a sign, and with a point or an exponent, the parser reads a numeric.
            # Otherwise it reads an int4 or int8.
            is_number = text[0].isdigit() and any(char in text for char in "eE.")
            return text if is_number else f"'{text}'", is_number and const.typmod < 0
        case "bool":
            return "true" if text == "t" else "false", True
        case "unknown":
            return quote_string(text), True
        case _:
            return quote_string(text), False
