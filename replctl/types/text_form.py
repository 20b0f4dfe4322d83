"""The part of a type family that text.py uses: the input and the output function of one type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from replctl.record import dataclass

V = TypeVar("V")

BLANKS = " \t\n\v\f\r"  # isspace() in the C locale; str.strip() would take Unicode's blanks as well


def unchanged(value: V, typmod: int, explicit: bool) -> V:
    """Return the length coercion of a type that has none."""
    return value


@dataclass(frozen=True, slots=True)
class TextForm:
    """The functions of one type.

    Args:
        parse: makes a value of text, typmod, and time of the transaction (None: the current time).
        render: makes the canonical text of a value.
        coerce: makes of value, typmod, and whether the cast is explicit a value that the
            modifier allows.
    """

    parse: Callable[[str, int, datetime | None], Any]
    render: Callable[[Any], str]
    coerce: Callable[[Any, int, bool], Any] = unchanged


def text_form(
    read: Callable[[str], V],
    render: Callable[[V], str],
    coerce: Callable[[V, int, bool], V] | None = None,
) -> TextForm:
    """Return the form of a type whose input depends on the text alone; a modifier is applied to the
    value."""
    if coerce is None:
        return TextForm(lambda text, typmod, now: read(text), render)

    def parse(text: str, typmod: int, now: datetime | None) -> V:
        value = read(text)
        return value if typmod < 0 else coerce(value, typmod, False)

    return TextForm(parse, render, coerce)
