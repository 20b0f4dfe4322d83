"""The common interface of a type's input and output functions, which text.py calls."""

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
        parse: returns a value, given its text, the typmod, and the time of the transaction (None
            for the current time).
        render: returns the canonical text of a value.
        coerce: returns a value that the modifier allows, given a value, the typmod, and a flag for
            an explicit cast.
    """

    parse: Callable[[str, int, datetime | None], Any]
    render: Callable[[Any], str]
    coerce: Callable[[Any, int, bool], Any] = unchanged


def text_form(
    read: Callable[[str], V],
    render: Callable[[V], str],
    coerce: Callable[[V, int, bool], V] | None = None,
) -> TextForm:
    """Return the functions of a type whose input function needs only the text.  `coerce` then
    applies the modifier to the value.
    """
    if coerce is None:
        return TextForm(lambda text, typmod, now: read(text), render)

    def parse(text: str, typmod: int, now: datetime | None) -> V:
        value = read(text)
        return value if typmod < 0 else coerce(value, typmod, False)

    return TextForm(parse, render, coerce)
