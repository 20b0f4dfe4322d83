"""How a constant is printed: get_const_expr() of PostgreSQL's ruleutils.c."""

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
    """5, true, 1.5 as they are; `'-5'::integer`, `'a'::text`, `NULL::date`.

    Args:
        show_type: `needed` leaves the type out where the parser would find it.
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
    """Return whether a cast to `type_` suffices as the label of a constant.

    So it is for `'abc'::varchar(2)`, a constant that is not cut yet below its length coercion.
    """
    return const.type == type_ and const.typmod == -1


def _literal(environment: Environment, const: nodes.Const) -> tuple[str, bool]:
    """Return the value, and whether the parser gives it this type without a label."""
    assert const.value is not None
    type_ = environment.type(const.type)
    text = shown_value(environment, type_, const.value)
    match const.type:
        case "int4":
            is_plain = not text.startswith("-")
            return text if is_plain else f"'{text}'", is_plain
        case "numeric":
            # Without a sign, and a point or an exponent: else it would be read as int4 or int8.
            is_number = text[0].isdigit() and any(char in text for char in "eE.")
            return text if is_number else f"'{text}'", is_number and const.typmod < 0
        case "bool":
            return "true" if text == "t" else "false", True
        case "unknown":
            return quote_string(text), True
        case _:
            return quote_string(text), False
