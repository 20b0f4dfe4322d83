"""Build the nodes of transactions and maintenance in utility.lark: VACUUM, ANALYZE, CHECKPOINT."""

from __future__ import annotations

from lark import Token

from replctl.parser import ast
from replctl.parser.build_parts import Names, name_texts, start_of


class UtilityBuilder:
    """Builds the nodes of transactions and maintenance.  Each rule or alias has a method."""

    # -- transactions

    def transaction_word(self) -> None:
        return None

    def transaction_mode(self, *words: Token) -> ast.DefElem:
        return ast.DefElem(" ".join(words), None, pos=start_of(words[0]))

    def transaction_modes(self, *modes: ast.DefElem) -> tuple[ast.DefElem, ...]:
        return modes

    def chain(self, *words: Token) -> bool:
        return len(words) == 2

    def begin(self, word: None, modes: tuple[ast.DefElem, ...] | None) -> ast.TransactionStmt:
        return ast.TransactionStmt("begin", options=modes or ())

    def start_transaction(self, modes: tuple[ast.DefElem, ...] | None) -> ast.TransactionStmt:
        return ast.TransactionStmt("start", options=modes or ())

    def commit(self, word: None, chain: bool | None) -> ast.TransactionStmt:
        return ast.TransactionStmt("commit", chain=bool(chain))

    def rollback(self, word: None, chain: bool | None) -> ast.TransactionStmt:
        return ast.TransactionStmt("rollback", chain=bool(chain))

    def savepoint(self, name: Token) -> ast.TransactionStmt:
        return ast.TransactionStmt("savepoint", str(name))

    def release(self, name: Token) -> ast.TransactionStmt:
        return ast.TransactionStmt("release", str(name))

    def rollback_to(self, word: None, name: Token) -> ast.TransactionStmt:
        return ast.TransactionStmt("rollback to", str(name))

    # -- maintenance

    def checkpoint_stmt(self) -> ast.Checkpoint:
        return ast.Checkpoint()

    def discard_stmt(self, discard: Token, what: Token) -> ast.Discard:
        word = str(what).upper()
        return ast.Discard("TEMP" if word == "TEMPORARY" else word)

    def vacuum_words(self, *parts: Token | tuple[ast.VacuumRelation, ...] | None) -> ast.Vacuum:
        *words, relations = parts
        options = [
            ast.DefElem(str(word), None, pos=start_of(word))
            for word in words
            if isinstance(word, Token)
        ]
        return ast.Vacuum(tuple(options), relations if isinstance(relations, tuple) else ())

    def vacuum_stmt(
        self, options: tuple[ast.DefElem, ...], relations: tuple[ast.VacuumRelation, ...] | None
    ) -> ast.Vacuum:
        return ast.Vacuum(options, relations or ())

    def analyze_words(
        self, word: Token, verbose: Token | None, relations: tuple[ast.VacuumRelation, ...] | None
    ) -> ast.Vacuum:
        options = () if verbose is None else (ast.DefElem("verbose", None, pos=start_of(verbose)),)
        return ast.Vacuum(options, relations or (), is_analyze=True)

    def analyze_stmt(
        self,
        word: Token,
        options: tuple[ast.DefElem, ...],
        relations: tuple[ast.VacuumRelation, ...] | None,
    ) -> ast.Vacuum:
        return ast.Vacuum(options, relations or (), is_analyze=True)

    def explain_words(self, *parts: Token | ast.SelectStmt | None) -> ast.Explain:
        *words, query = parts
        options = tuple(
            ast.DefElem(str(word), None, pos=start_of(word))
            for word in words
            if isinstance(word, Token)
        )
        assert isinstance(query, ast.SelectStmt)
        return ast.Explain(query, options)

    def explain_stmt(self, options: tuple[ast.DefElem, ...], query: ast.SelectStmt) -> ast.Explain:
        return ast.Explain(query, options)

    def analyze_word(self, word: Token) -> Token:
        return Token(word.type, "analyze", word.start_pos)

    def vacuum_relations(self, *relations: ast.VacuumRelation) -> tuple[ast.VacuumRelation, ...]:
        return relations

    def vacuum_relation(self, relation: ast.RangeVar, columns: Names | None) -> ast.VacuumRelation:
        return ast.VacuumRelation(
            relation, () if columns is None else name_texts(columns), pos=relation.pos
        )

    def utility_options(self, *options: ast.DefElem) -> tuple[ast.DefElem, ...]:
        return options

    def utility_option(self, name: Token, value: Token | str | None) -> ast.DefElem:
        shown = None if value is None else str(value)
        is_number = value is not None and not isinstance(value, Token)
        is_integer = is_number and str(value).lstrip("-").isdigit()
        return ast.DefElem(str(name), shown, is_integer=is_integer, pos=start_of(name))
