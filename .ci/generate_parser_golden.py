#!/usr/bin/env python3
"""Write the answers of PostgreSQL's parser to the statements in tests/parser/data.

    .ci/generate_parser_golden.py 'host=localhost user=postgres dbname=postgres'

A file there is a list of cases with an empty line between them.  A case is a statement of one or more
lines, followed by `-> ok` or `-> SQLSTATE POSITION MESSAGE`, which this script writes.  The server
executes nothing: the script adds a syntax error after each statement, so that PostgreSQL stops after
parsing.  The script also makes mutations.txt, from the statements of the other files.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import random
import re
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "tests" / "parser" / "data"
RESULT = "-> "
SENTINEL = "\n;)"
TOKEN = re.compile(
    r"\s+|--[^\n]*|[eEbBxXnN]?'(?:[^']|'')*'|\"[^\"]*\"|\$\$.*?\$\$|\w+|::|[<>=!]=|<>|[|~@#&?]+|.",
    re.S,
)
MUTATIONS = 4000
SEED = 17  # the same mutations each time


class Server:
    """A connection of libpq that returns the positions of errors."""

    def __init__(self, conninfo: str) -> None:
        library = ctypes.util.find_library("pq")
        assert library is not None, "libpq is needed"
        self._pq = ctypes.CDLL(library)
        for name in ("PQconnectdb", "PQexec"):
            getattr(self._pq, name).restype = ctypes.c_void_p
        self._pq.PQresultErrorField.restype = ctypes.c_char_p
        self._connection = ctypes.c_void_p(self._pq.PQconnectdb(conninfo.encode()))
        assert self._pq.PQstatus(self._connection) == 0, "no connection"
        self._execute("SET client_min_messages = error")

    def _execute(self, text: str) -> tuple[str, int, str] | None:
        """Return SQLSTATE, offset (-1 without one) and message of the error for `text`."""
        result = ctypes.c_void_p(self._pq.PQexec(self._connection, text.encode()))
        fields = [self._pq.PQresultErrorField(result, ord(code)) for code in "CPM"]
        self._pq.PQclear(result)
        if fields[0] is None:
            return None
        state, position, message = ((field or b"").decode() for field in fields)
        return state, int(position or 0) - 1, message

    def verdict(self, statement: str) -> str:
        """Return `ok`, or the error of PostgreSQL's raw parser."""
        error = self._execute(statement + SENTINEL)
        assert error is not None
        if error[1] == len(statement) + len(SENTINEL) - 1 and error[2].endswith('at or near ")"'):
            return "ok"
        error = self._execute(statement)  # without the effect of the sentinel on the error
        assert error is not None, statement
        state, position, message = error
        return f"{state} {position} {message}".replace("\n", "\\n")


def cases(path: Path) -> list[str]:
    """Return the statements of a file, without their results."""
    statements = []
    for block in re.split(r"\n{2,}", path.read_text("utf-8").strip("\n")):
        lines = [line for line in block.split("\n") if not line.startswith(RESULT)]
        statements.append("\n".join(lines))
    return statements


def mutations(statements: list[str], count: int) -> list[str]:
    """Yield statements in which a token is missing, doubled, exchanged, or taken from another
    statement.
    """
    chance = random.Random(SEED)
    tokens = [TOKEN.findall(statement) for statement in statements]
    pool = sorted({token for row in tokens for token in row if not token.isspace()})
    found: dict[str, None] = {}
    while len(found) < count:
        row = list(chance.choice(tokens))
        for _ in range(chance.choice((1, 1, 2))):
            places = [i for i, token in enumerate(row) if not token.isspace()]
            if not places:
                break
            i, j = chance.choice(places), chance.choice(places)
            match chance.randrange(5):
                case 0:
                    row[i] = ""
                case 1:
                    row[i] = f"{row[i]} {row[i]}"
                case 2:
                    row[i], row[j] = row[j], row[i]
                case 3:
                    row[i] = chance.choice(pool)
                case _:
                    row[i] = f"{row[i]} {chance.choice(pool)}"
        text = re.sub(r"\s+", " ", "".join(row)).strip()
        if text and text not in statements and "--" not in text:
            found[text] = None
    return list(found)


def write(path: Path, statements: list[str], server: Server) -> None:
    blocks = [f"{statement}\n{RESULT}{server.verdict(statement)}\n" for statement in statements]
    path.write_text("\n".join(blocks), encoding="utf-8")


def main(conninfo: str) -> None:
    server = Server(conninfo)
    seeds = []
    for path in sorted(DATA.glob("*.txt")):
        if path.name != "mutations.txt":
            statements = cases(path)
            write(path, statements, server)
            seeds += [s for s in statements if len(s) < 300 and "\n" not in s]
    write(DATA / "mutations.txt", mutations(seeds, MUTATIONS), server)


if __name__ == "__main__":
    main(sys.argv[1])
