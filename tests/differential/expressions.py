"""Expressions that Hypothesis draws, from a wanted type down to columns and literals.

A few are wrong on purpose: with an operand of a wrong type, or a name that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

from replctl.types import builtin

from .forms import WORDS, Form, forms, type_names
from .rows import COLUMNS
from .values import TYPES, value_texts

#: Kinds of expressions.  Frequent kinds occur several times.
_KINDS = ["special"] * 4 + ["operator"] * 3 + ["function"] * 3 + ["cast"]
_INNER_KINDS = ["leaf"] * 3 + _KINDS
_DEPTHS = st.sampled_from([1, 2, 2, 3])
#: Types.  The usual types of row filters occur several times.
_WANTED = ["bool"] * 3 * len(TYPES) + [*TYPES] + ["int4", "numeric", "text", "timestamp"] * 5
_WRONG = [
    "nothere",
    "i44",
    "dt.zz",
    "other.i4",
    "nofunction({})",
    "lower({}, 1)",
    "{} + {}",
    "{} === {}",
    "{}::nosuchtype",
    "sum({})",
    "now()",
    "random()",
    "ctid",
    "generate_series(1, 2)",
    "{} COLLATE nowhere",
    "'x'::int4",
    "'2024-02-30'::date",
    "{} = {} = {}",
    "{} LIKE 1",
    "CASE WHEN {} THEN 1 END",
    "COALESCE({}, {})",
    "-{}",
    "ROW({}, 1) = ROW(1)",
    "ARRAY[{}, {}]",
    "{} IN ({}, {})",
    "k[1]",
    "EXTRACT(nofield FROM {})",
    "{}::int4[]",
]
_COLUMNS_BY_TYPE = {
    type_: [name for name, _, other in COLUMNS if other == type_] for _, _, type_ in COLUMNS
}
T = TypeVar("T")

_OF_100 = st.integers(0, 99)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Draw an expression over the columns of rows.py, as SQL."""
    drawing = _Drawing(draw)
    wanted = draw(st.sampled_from(_WANTED))
    return drawing.expression(wanted, draw(_DEPTHS), _KINDS)


class _Drawing:
    """Draws one expression."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def expression(self, wanted: str, depth: int, kinds: Sequence[str]) -> str:
        """Draw an expression of a type, with at most `depth` levels of operators and calls."""
        if self._chance(1):
            return self._filled(self._one_of(_WRONG), depth)
        if self._chance(1):
            wanted = self._one_of(TYPES)
        kind = "leaf" if depth == 0 else self._one_of(kinds)
        group = [] if kind == "leaf" else forms()[wanted][kind]
        return self._form(self._one_of(group), depth) if group else self._leaf(wanted)

    def _form(self, form: Form, depth: int) -> str:
        operands = [self._operand(operand, depth - 1) for operand in form.operands]
        return _word.sub(self._word, form.template).format(*operands)

    def _filled(self, template: str, depth: int) -> str:
        count = template.count("{}")
        return template.format(
            *(self._operand(self._one_of(TYPES), max(depth - 1, 0)) for _ in range(count))
        )

    def _operand(self, wanted: str, depth: int) -> str:
        text = self.expression(wanted, depth, _INNER_KINDS)
        is_atomic = re.fullmatch(r"\w+|'[^']*'|\w+\([^()]*\)", text)
        return text if is_atomic or self._chance(4) else f"({text})"

    def _word(self, match: re.Match[str]) -> str:
        return self._one_of(WORDS[match[1]]).replace("{", "{{").replace("}", "}}")

    def _leaf(self, type_: str) -> str:
        return self._one_of(_COLUMNS_BY_TYPE[type_]) if self._chance(65) else self._literal(type_)

    def _literal(self, type_: str) -> str:
        if self._chance(6):
            return self._one_of(["NULL", f"NULL::{type_names(type_)[0]}"])
        text = self._draw(value_texts(type_))
        if type_ == "bool" and self._chance(70):
            return self._one_of(["TRUE", "FALSE", "true", "false"])
        if _is_number(type_) and self._chance(60):
            return self._number(text)
        if type_ == "text" and self._chance(70):
            return self._quoted(text)
        quoted = self._quoted(text) if self._chance(20) else _quote(text)
        name = self._one_of(type_names(type_))
        spelling = self._one_of(["bare", "::", "::", "cast", "typed"])
        if spelling == "bare":
            return quoted
        if spelling == "cast":
            return f"CAST({quoted} AS {name})"
        if spelling == "typed" and "[" not in name:
            return f"{name} {quoted}"
        return f"{quoted}::{name}"

    def _number(self, text: str) -> str:
        """Return a numeric constant.  A value that is not a number in SQL (NaN) stays quoted."""
        if not re.fullmatch(r"-?\d*\.?\d*(e[-+]?\d+)?", text):
            return _quote(text)
        if text.isdigit() and self._chance(10):
            return self._one_of([hex(int(text)), oct(int(text)), f"{int(text):_}", f"{text}."])
        return f"({text})" if text.startswith("-") and self._chance(80) else text

    def _quoted(self, text: str) -> str:
        """Return a string constant in one of its spellings."""
        spelling = self._one_of(["plain", "plain", "plain", "escape", "dollar", "unicode"])
        if spelling == "escape":
            return "E" + _quote(text.replace("\\", "\\\\").replace("\n", "\\n"))
        if spelling == "dollar" and "$" not in text:
            return f"$${text}$$"
        if spelling == "unicode" and "\\" not in text:
            return "U&" + _quote(text.replace("é", "\\00e9"))
        return _quote(text)

    def _chance(self, percent: int) -> bool:
        return bool(self._draw(_OF_100) >= 100 - percent)

    def _one_of(self, items: Iterable[T]) -> T:
        drawn: T = self._draw(_sampled(tuple(items)))
        return drawn


_word = re.compile(r"<(\w+)>")


@cache
def _sampled(items: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(items)


def _is_number(type_: str) -> bool:
    return builtin.types()[type_].category == "N"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
