"""Attributes after constraints (DEFERRABLE, INITIALLY DEFERRED, NOT VALID, NO INHERIT, NOT
ENFORCED), and checks that they do not contradict each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple, cast

from lark import Token

from replctl.errors import FeatureNotSupported, SqlSyntaxError
from replctl.parser import ast

_KIND_NAMES = {
    "check": "CHECK",
    "not_null": "NOT NULL",
    "unique": "UNIQUE",
    "primary": "PRIMARY KEY",
    "foreign": "FOREIGN KEY",
    "exclusion": "EXCLUDE",
}
#: The attributes that each kind of table constraint may have (processCASbits in gram.y).
_ALLOWED = {
    "check": {"not valid", "no inherit"},
    "not_null": set(),
    "unique": {"deferrable", "initially deferred"},
    "primary": {"deferrable", "initially deferred", "not enforced"},
    "exclusion": {"deferrable", "initially deferred"},
    "foreign": {"deferrable", "initially deferred", "not valid"},
}
_MARKS = {"initially deferred": "DEFERRABLE"}


_ATTRIBUTES = {
    "deferrable", "not deferrable", "initially deferred", "initially immediate", "not valid",
    "no inherit", "not enforced",
}  # fmt: skip


class Attribute(NamedTuple):
    """An attribute: `name` has its words in lower case, `word` is the first token, and `last` the
    offset of the last one.
    """

    word: Token
    name: str
    last: int

    @property
    def pos(self) -> int:
        return cast(int, self.word.start_pos)


def with_table_attributes(
    constraint: ast.Constraint, attributes: Iterable[Attribute]
) -> ast.Constraint:
    """Return a table constraint with the attributes after it (ConstraintAttributeSpec in gram.y).

    Raises:
        SqlSyntaxError: the attributes contradict each other.
        FeatureNotSupported: a constraint of this kind cannot have such an attribute.
    """
    names: set[str] = set()
    for attribute in attributes:
        names.add(attribute.name)
        if attribute.name not in _ATTRIBUTES:  # NOT before another word
            word = attribute.name.partition(" ")[2]
            raise SqlSyntaxError(f'syntax error at or near "{word}"', position=attribute.last)
        if {"not deferrable", "initially deferred"} <= names:
            raise SqlSyntaxError(
                "constraint declared INITIALLY DEFERRED must be DEFERRABLE", position=attribute.pos
            )
        if {"not deferrable", "deferrable"} <= names or {
            "initially immediate",
            "initially deferred",
        } <= names:
            raise SqlSyntaxError("conflicting constraint properties", position=attribute.pos)
    for name in ("deferrable", "initially deferred", "not valid", "no inherit", "not enforced"):
        if name in names and name not in _ALLOWED[constraint.kind]:
            mark = _MARKS.get(name, name.upper())
            raise FeatureNotSupported(
                f"{_KIND_NAMES[constraint.kind]} constraints cannot be marked {mark}"
            )
    return dataclasses.replace(
        constraint,
        deferrable=bool(names & {"deferrable", "initially deferred"}),
        initially_deferred="initially deferred" in names,
        skip_validation="not valid" in names,
        no_inherit="no inherit" in names,
        not_enforced="not enforced" in names,
    )


def with_attributes(items: Iterable[ast.Constraint | Attribute]) -> tuple[ast.Constraint, ...]:
    """Return column constraints, each with the attributes after it (transformConstraintAttrs in
    parse_utilcmd.c).
    """
    constraints: list[ast.Constraint] = []
    saw_deferrability = saw_initially = False
    for item in items:
        if isinstance(item, ast.Constraint):
            constraints.append(item)
            saw_deferrability = saw_initially = False
            continue
        words = item.name.upper()
        is_deferrability = item.name.endswith("deferrable")
        if not constraints or constraints[-1].kind not in (
            "primary",
            "unique",
            "exclusion",
            "foreign",
        ):
            raise SqlSyntaxError(f"misplaced {words} clause", position=item.pos)
        last = constraints[-1]
        if saw_deferrability if is_deferrability else saw_initially:
            clauses = (
                "DEFERRABLE/NOT DEFERRABLE" if is_deferrability else "INITIALLY IMMEDIATE/DEFERRED"
            )
            raise SqlSyntaxError(f"multiple {clauses} clauses not allowed", position=item.pos)
        if is_deferrability:
            saw_deferrability = True
            last = dataclasses.replace(last, deferrable=item.name == "deferrable")
        else:
            saw_initially = True
            last = dataclasses.replace(last, initially_deferred=item.name == "initially deferred")
            if last.initially_deferred and not saw_deferrability:
                last = dataclasses.replace(last, deferrable=True)
        if last.initially_deferred and not last.deferrable:
            raise SqlSyntaxError(
                "constraint declared INITIALLY DEFERRED must be DEFERRABLE", position=item.pos
            )
        constraints[-1] = last
    return tuple(constraints)
