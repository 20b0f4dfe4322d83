"""Build the nodes of copy.lark: COPY."""

from __future__ import annotations

from lark import Token

from replctl.errors import SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import start_of

Names = tuple[Token, ...]
Options = tuple[ast.CopyOption, ...]


class CopyBuilder:
    """Builds the nodes of copy.lark.  Each rule or alias has a method."""

    def copy_stmt(
        self,
        binary: Token | None,
        relation: ast.RangeVar,
        columns: Names | None,
        direction: Token,
        program: Token | None,
        file: Token,
        delimiters: ast.CopyOption | None,
        options: Options,
        where: tuple[Token, ast.RawExpr] | None,
    ) -> ast.Copy:
        is_from = direction.type == "FROM"
        old_words: list[ast.CopyOption] = []
        if binary is not None:
            old_words.append(ast.CopyOption("format", "binary", pos=start_of(binary)))
        if delimiters is not None:
            old_words.append(delimiters)
        if where is not None and not is_from:
            raise SqlSyntaxError(
                "WHERE clause not allowed with COPY TO", position=start_of(where[0])
            )
        return ast.Copy(
            relation,
            () if columns is None else tuple(map(str, columns)),
            None,
            is_from,
            _file(file, program),
            program is not None,
            (*old_words, *options),
            None if where is None else where[1],
            pos=relation.pos,
        )

    def copy_query_stmt(
        self,
        query: ast.SelectStmt | ast.Insert | ast.Update | ast.Delete,
        to: Token,
        program: Token | None,
        file: Token,
        options: Options,
    ) -> ast.Copy:
        is_program = program is not None
        name = _file(file, program, start_of(to))
        return ast.Copy(None, (), query, False, name, is_program, options)

    def copy_where(self, word: Token, condition: ast.RawExpr) -> tuple[Token, ast.RawExpr]:
        return word, condition

    def copy_delimiters(self, word: Token, text: Token) -> ast.CopyOption:
        return ast.CopyOption("delimiter", str(text), pos=start_of(word))

    def copy_words(self, with_word: object, *words: ast.CopyOption) -> Options:
        return words

    def copy_options(self, with_word: object, *options: ast.CopyOption) -> Options:
        return options

    def copy_flag(self, word: Token) -> ast.CopyOption:
        if word.type in ("BINARY", "CSV"):
            return ast.CopyOption("format", str(word).lower(), pos=start_of(word))
        return ast.CopyOption(str(word).lower(), "true", pos=start_of(word))

    def copy_string(self, word: Token, text: Token) -> ast.CopyOption:
        return ast.CopyOption(str(word).lower(), str(text), pos=start_of(word))

    def copy_force(self, *words_and_columns: Token | Names) -> ast.CopyOption:
        *words, columns = words_and_columns
        name = "_".join(str(word).lower() for word in words)
        first = words[0]
        assert isinstance(first, Token)
        names = None if isinstance(columns, Token) else tuple(map(str, columns))
        return ast.CopyOption(name, columns=names, is_star=names is None, pos=start_of(first))

    def copy_columns(self, columns: Token | Names) -> Token | Names:
        return columns

    def copy_option(self, name: Token, value: Token | None) -> ast.CopyOption:
        return ast.CopyOption(str(name), None if value is None else str(value), pos=start_of(name))

    def copy_option_default(self, name: Token) -> ast.CopyOption:
        return ast.CopyOption(str(name), "default", pos=start_of(name))

    def copy_option_number(self, name: Token, number: str) -> ast.CopyOption:
        return ast.CopyOption(str(name), number, number.isdigit(), pos=start_of(name))

    def copy_option_star(self, name: Token, star: Token) -> ast.CopyOption:
        return ast.CopyOption(str(name), is_star=True, pos=start_of(name))

    def copy_option_list(self, name: Token, *columns: Token) -> ast.CopyOption:
        return ast.CopyOption(str(name), columns=tuple(map(str, columns)), pos=start_of(name))


def _file(file: Token, program: Token | None, pos: int = -1) -> str | None:
    """Return the name of the file or program; None for STDIN and STDOUT, which mean the same here.

    Raises:
        SqlSyntaxError: STDIN or STDOUT follows PROGRAM.
    """
    if file.type == "SCONST":
        return str(file)
    if program is not None:
        raise SqlSyntaxError("STDIN/STDOUT not allowed with PROGRAM", position=pos)
    return None
