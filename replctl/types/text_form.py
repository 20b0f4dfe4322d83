"""The input and output functions of one type, as text.py uses them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from replctl.record import dataclass

V = TypeVar("V")

BLANKS = " \t\n\v\f\r"  # isspace() in the C locale; str.strip() would also strip Unicode's blanks


def unchanged(value: V, typmod: int, explicit: bool) -> V:
    """Return the unchanged value, for types without a length coercion."""
    return value


@dataclass(frozen=True, slots=True)
class TextForm:
    """The functions of one type.

    Args:
        parse: returns the value of text, typmod, and time of the transaction (None: the current
            time).
        render: returns the canonical text of a value.
        coerce: returns a value that the modifier allows, given value, typmod, and whether the cast
            is explicit.
    """

    parse: Callable[[str, int, datetime | None], Any]
    render: Callable[[Any], str]
    coerce: Callable[[Any, int, bool], Any] = unchanged


def text_form(
    read: Callable[[str], V],
    render: Callable[[V], str],
    coerce: Callable[[V, int, bool], V] | None = None,
) -> TextForm:
    """Return the form of a type whose input only depends on the text; a modifier is applied to the
    value.
    """
    if coerce is None:
        return TextForm(lambda text, typmod, now: read(text), render)

    def parse(text: str, typmod: int, now: datetime | None) -> V:
        value = read(text)
        return value if typmod < 0 else coerce(value, typmod, False)

    return TextForm(parse, render, coerce)
