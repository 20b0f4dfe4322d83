"""Build the nodes of sequences in table.lark: CREATE and ALTER SEQUENCE, and options of identity
columns.
"""

from __future__ import annotations

from lark import Token

from replctl.errors import FeatureNotSupported, SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import Names, name_texts, start_of


class SequenceBuilder:
    """Builds the nodes of sequences.  Each rule or alias has a method."""

    def create_sequence(
        self,
        persistence: str | None,
        if_not_exists: bool | None,
        relation: ast.RangeVar,
        *options: ast.DefElem,
    ) -> ast.CreateSequence:
        is_unlogged = persistence == "unlogged"
        if persistence is not None and not is_unlogged:
            raise FeatureNotSupported(f"{persistence} sequences are not supported")
        return ast.CreateSequence(
            relation, options, bool(if_not_exists), is_unlogged, pos=relation.pos
        )

    def sequence_type(self, word: Token, type_name: ast.TypeName) -> ast.DefElem:
        shown = ".".join(type_name.names)
        return ast.DefElem("as", shown, is_name=True, type_name=type_name, pos=start_of(word))

    def sequence_cycle(self, word: Token) -> ast.DefElem:
        return ast.DefElem("cycle", "true", pos=start_of(word))

    def sequence_no_cycle(self, word: Token) -> ast.DefElem:
        return ast.DefElem("cycle", "false", pos=start_of(word))

    def sequence_number(self, *words: Token | None) -> Token:
        assert words[0] is not None
        return words[0]

    def sequence_value(self, word: Token, value: str) -> ast.DefElem:
        return ast.DefElem(str(word), value, pos=start_of(word))

    def sequence_default(self, word: Token, limit: Token) -> ast.DefElem:
        return ast.DefElem(str(limit), None, pos=start_of(word))

    def sequence_restart(self, word: Token) -> ast.DefElem:
        return ast.DefElem("restart", None, pos=start_of(word))

    def sequence_owner(self, word: Token, name: Names) -> ast.DefElem:
        return ast.DefElem("owned_by", None, names=name_texts(name), pos=start_of(word))

    def sequence_name(self, word: Token, name: Names) -> ast.DefElem:
        return ast.DefElem("sequence_name", None, names=name_texts(name), pos=start_of(word))

    def alter_sequence(
        self, if_exists: bool | None, relation: ast.RangeVar, *options: ast.DefElem
    ) -> ast.AlterSequence:
        return ast.AlterSequence(relation, options, bool(if_exists), pos=relation.pos)

    def set_identity_restart(self, word: Token, value: str) -> ast.DefElem:
        return ast.DefElem("restart", value, pos=start_of(word))

    def set_identity_option(self, option: ast.DefElem) -> ast.DefElem:
        if option.name in ("as", "restart", "owned_by"):
            raise SqlSyntaxError(
                f'sequence option "{option.name}" not supported here', position=option.pos
            )
        return option

    def set_identity_generated(self, when: Token) -> ast.DefElem:
        return ast.DefElem("generated", str(when), pos=start_of(when))

    def signed_number(self, *tokens: Token) -> str:
        return "".join(tokens).lstrip("+")

    signed_integer = signed_number
