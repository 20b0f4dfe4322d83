"""Nodes of the sequences in table.lark: CREATE SEQUENCE, and options of identity columns."""

from __future__ import annotations

from lark import Token

from replctl.errors import FeatureNotSupported
from replctl.parser import ast
from replctl.parser.node import Names, start_of


class SequenceBuilder:
    """A method for each rule or alias of a sequence."""

    def create_sequence(
        self,
        persistence: str | None,
        if_not_exists: bool | None,
        relation: ast.RangeVar,
        *options: ast.DefElem,
    ) -> ast.CreateSequence:
        if persistence is not None:
            raise FeatureNotSupported(f"{persistence} sequences are not supported")
        return ast.CreateSequence(relation, options, bool(if_not_exists), pos=relation.pos)

    def sequence_type(self, type_name: ast.TypeName) -> ast.DefElem:
        return ast.DefElem("as", ".".join(type_name.names), is_name=True, pos=type_name.pos)

    def sequence_cycle(self) -> ast.DefElem:
        return ast.DefElem("cycle", "true")

    def sequence_no_cycle(self) -> ast.DefElem:
        return ast.DefElem("cycle", "false")

    def sequence_number(self, *words: Token | None) -> Token:
        assert words[0] is not None
        return words[0]

    def sequence_value(self, word: Token, value: str) -> ast.DefElem:
        return ast.DefElem(str(word), value, pos=start_of(word))

    def sequence_default(self, word: Token) -> ast.DefElem:
        return ast.DefElem(str(word), None, pos=start_of(word))

    def sequence_restart(self) -> ast.DefElem:
        return ast.DefElem("restart", None)

    def sequence_owner(self, name: Names) -> ast.DefElem:
        return ast.DefElem("owned_by", ".".join(name), is_name=True, pos=start_of(name[0]))

    def sequence_name(self, name: Names) -> ast.DefElem:
        return ast.DefElem("sequence_name", ".".join(name), is_name=True, pos=start_of(name[0]))

    def signed_number(self, *tokens: Token) -> str:
        return "".join(tokens).lstrip("+")

    signed_integer = signed_number
