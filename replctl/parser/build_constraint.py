"""Build the nodes of column and table constraints in table.lark."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from lark import Token

from replctl.errors import FeatureNotSupported, SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import Names, Options, name_texts, optional_text, start_of
from replctl.parser.constraint_attributes import Attribute, with_table_attributes


class _KeyAction(NamedTuple):
    """The action on a row when the row that it references changes; `word` is the ON before it."""

    event: str
    effect: str
    columns: tuple[str, ...]
    word: Token


class ConstraintBuilder:
    """Builds the nodes of constraints.  Each rule or alias has a method."""

    # -- column constraints

    def named_constraint(
        self, word: Token, name: Token, constraint: ast.Constraint
    ) -> ast.Constraint:
        return dataclasses.replace(constraint, name=str(name), pos=start_of(word))

    def constraint_not_null(self, word: Token) -> ast.Constraint:
        return ast.Constraint("not_null", pos=start_of(word))

    def constraint_null(self, word: Token) -> ast.Constraint:
        return ast.Constraint("null", pos=start_of(word))

    def constraint_unique(
        self,
        word: Token,
        nulls_not_distinct: bool | None,
        options: Options | None,
        tablespace: Token | None,
    ) -> ast.Constraint:
        return ast.Constraint(
            "unique",
            nulls_not_distinct=bool(nulls_not_distinct),
            options=options or (),
            tablespace=optional_text(tablespace),
            pos=start_of(word),
        )

    def constraint_primary(
        self, word: Token, options: Options | None, tablespace: Token | None
    ) -> ast.Constraint:
        return ast.Constraint(
            "primary",
            options=options or (),
            tablespace=optional_text(tablespace),
            pos=start_of(word),
        )

    def constraint_check(
        self, word: Token, expr: ast.RawExpr, no_inherit: bool | None
    ) -> ast.Constraint:
        return ast.Constraint("check", expr=expr, no_inherit=bool(no_inherit), pos=start_of(word))

    def constraint_default(self, word: Token, expr: ast.RawExpr) -> ast.Constraint:
        return ast.Constraint("default", expr=expr, pos=start_of(word))

    def constraint_identity(
        self, word: Token, when: Token, *options: ast.DefElem | None
    ) -> ast.Constraint:
        return ast.Constraint(
            "identity",
            generated_when=str(when),  # type: ignore[arg-type]
            sequence=tuple(option for option in options if option is not None),
            pos=start_of(word),
        )

    def constraint_generated(self, word: Token, when: Token, expr: ast.RawExpr) -> ast.Constraint:
        if when != "always":
            raise SqlSyntaxError(
                "for a generated column, GENERATED ALWAYS must be specified",
                position=start_of(when),
            )
        return ast.Constraint("generated", expr=expr, pos=start_of(word))

    def generated_when(self, *words: Token) -> Token:
        return Token(words[0].type, " ".join(words), words[0].start_pos)

    def referenced(
        self,
        word: Token,
        relation: ast.RangeVar,
        columns: Names | None,
        match: str | None,
        actions: dict[str, Any],
    ) -> ast.Constraint:
        return ast.Constraint(
            "foreign",
            references=relation,
            ref_columns=name_texts(columns),
            match=match or "simple",  # type: ignore[arg-type]
            **actions,
            pos=start_of(word),
        )

    def constraint_references(self, constraint: ast.Constraint) -> ast.Constraint:
        return constraint

    def nulls_distinct(self, *words: Token) -> bool:
        return len(words) == 3

    def key_match(self, *words: Token) -> str:
        kind = str(words[-1])
        if kind == "partial":
            raise FeatureNotSupported(
                "MATCH PARTIAL not yet implemented", position=start_of(words[0])
            )
        return kind

    def key_actions(self, *actions: _KeyAction | None) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for action in actions:
            if action is not None:
                fields[f"on_{action.event}"] = action.effect
                if action.event == "delete":
                    fields["on_delete_columns"] = action.columns
        return fields

    def key_update(self, word: Token, action: tuple[str, tuple[str, ...]]) -> _KeyAction:
        effect, columns = action
        if columns:
            raise FeatureNotSupported(
                f"a column list with {effect.upper()} is only supported for ON DELETE actions",
                position=start_of(word),
            )
        return _KeyAction("update", effect, (), word)

    def key_delete(self, word: Token, action: tuple[str, tuple[str, ...]]) -> _KeyAction:
        return _KeyAction("delete", *action, word)

    def key_action(self, effect: str) -> tuple[str, tuple[str, ...]]:
        return effect, ()

    def key_set_action(self, effect: str, columns: Names | None) -> tuple[str, tuple[str, ...]]:
        return effect, name_texts(columns)

    def _joined(self, *words: Token) -> str:
        return " ".join(words)

    key_effect = set_effect = _joined

    def _attribute(self, *words: Token) -> Attribute:
        return Attribute(words[0], " ".join(words), start_of(words[-1]))

    constraint_attribute = table_constraint_attribute = _attribute

    # -- table constraints

    def named_table_constraint(
        self, word: Token, name: Token, constraint: ast.Constraint, *attributes: Attribute
    ) -> ast.Constraint:
        named = dataclasses.replace(constraint, name=str(name), pos=start_of(word))
        return with_table_attributes(named, attributes)

    def unnamed_table_constraint(
        self, constraint: ast.Constraint, *attributes: Attribute
    ) -> ast.Constraint:
        return with_table_attributes(constraint, attributes)

    def table_check(self, word: Token, expr: ast.RawExpr) -> ast.Constraint:
        return ast.Constraint("check", expr=expr, pos=start_of(word))

    def constraint_index(
        self,
        including: Names | None = None,
        options: Options | None = None,
        tablespace: Token | None = None,
    ) -> dict[str, Any]:
        return {
            "including": name_texts(including),
            "options": options or (),
            "tablespace": optional_text(tablespace),
        }

    def table_unique(
        self, word: Token, nulls_not_distinct: bool | None, columns: Names, index: dict[str, Any]
    ) -> ast.Constraint:
        return ast.Constraint(
            "unique",
            columns=name_texts(columns),
            nulls_not_distinct=bool(nulls_not_distinct),
            **index,
            pos=start_of(word),
        )

    def table_unique_index(self, word: Token, index: Token) -> ast.Constraint:
        return ast.Constraint("unique", index_name=str(index), pos=start_of(word))

    def table_primary(self, word: Token, columns: Names, index: dict[str, Any]) -> ast.Constraint:
        return ast.Constraint("primary", columns=name_texts(columns), **index, pos=start_of(word))

    def table_primary_index(self, word: Token, index: Token) -> ast.Constraint:
        return ast.Constraint("primary", index_name=str(index), pos=start_of(word))

    def table_foreign(
        self, word: Token, columns: Names, constraint: ast.Constraint
    ) -> ast.Constraint:
        return dataclasses.replace(constraint, columns=name_texts(columns), pos=start_of(word))

    def table_exclusion(
        self, word: Token, access_method: Token | None, *rest: Any
    ) -> ast.Constraint:
        *exclusions, index, where = rest
        return ast.Constraint(
            "exclusion",
            access_method=optional_text(access_method),
            exclusions=tuple(exclusions),
            where=where,
            **index,
            pos=start_of(word),
        )

    def exclusion_elem(
        self, element: ast.IndexElem, operator: Names
    ) -> tuple[ast.IndexElem, tuple[str, ...]]:
        return element, name_texts(operator)
