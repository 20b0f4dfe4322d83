"""Draws scripts from the statements of the tests, and mutates them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from random import Random

_TESTS = Path(__file__).parent.parent
#: Strings, names, numbers, operators and blanks; of a statement nothing is lost.
_TOKEN = re.compile(
    r"\$\$.*?\$\$|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[A-Za-z_]\w*|\d+(?:\.\d+)?|\s+|::|[<>=!~@#&|*/+-]+|.",
    re.DOTALL,
)
_CREATE = re.compile(r"\s*create\b", re.IGNORECASE)
_COPY = re.compile(r"\bfrom stdin\b", re.IGNORECASE)
_NUMBERS = (
    "0", "-1", "1", "2147483647", "-2147483648", "2147483648", "9223372036854775807",
    "-9223372036854775809", "1e308", "1e-400", "1e131071", "'NaN'", "'Infinity'", "0x7fffffff",
    "1_000", "1" * 200, "1" * 5000, "00", "$1", "NULL",
)  # fmt: skip
_TEXTS = (
    "''", "'\u00e4\U0001f600'", "'\u202e'", "E'\\\\'", "'{'", "'{}'", "'[1,2'", "'infinity'", "'''",
    "'x", '"', "$$", "$a$", "U&'\\0041'", "'\x01'", "'" + "x" * 3000 + "'", "'{{{1}}}'", "'null'",
    "'0/0'", "'epoch'", "'-1 mon'", "B'101'", "x'fg'", "/*", "*/", "--", "\udcff", "\0", "\ufeff",
    "\u00a0", "\ud7ff",
)  # fmt: skip
_TYPES = (
    "int", "text", "numeric", "jsonb", "int[]", "interval", "timestamptz", "regclass", "bytea",
    "uuid", "int4range", "name", "pg_lsn", "bit(3)", "xml", "oid", "char(2)", "float8", "date",
)  # fmt: skip
_MANY = 300
_STATEMENTS, _CREATED = 4, 8


@cache
def sources() -> tuple[tuple[str, ...], ...]:
    """Return the statements of each script of the tests, with their rows for COPY."""
    found = [_statements(path) for path in sorted(_TESTS.glob("**/data/**/*.sql"))]
    return tuple(statements for statements in found if statements)


def _statements(path: Path) -> tuple[str, ...]:
    statements: list[str] = []
    lines: list[str] = []
    is_data = False
    for line in path.read_text("utf-8").splitlines(keepends=True):
        lines.append(line)
        if is_data:
            is_data = line.strip() != "\\."
        elif line.rstrip().endswith(";") or line.startswith("\\"):
            is_data = bool(_COPY.search("".join(lines)))
        if not is_data and (line.strip() == "\\." or line.rstrip().endswith(";")):
            statements.append("".join(lines))
            lines = []
    return tuple(statements)


def script(seed: int) -> str:
    """Return a few statements that follow each other in a script, most of them changed, after some
    of those that made their objects."""
    random = Random(seed)
    statements = random.choice(sources())
    start = random.randrange(len(statements))
    chosen = list(statements[start : start + _STATEMENTS])
    for place, statement in enumerate(chosen):
        for _ in range(random.choice((0, 1, 1, 2, 4))):
            statement = _mutated(random, statement)
        chosen[place] = statement
    made = [statement for statement in statements[:start] if _CREATE.match(statement)]
    text = "".join((*made[-_CREATED:], *chosen))
    return text.replace("\\watch", "\\echo")  # which has no end


def _mutated(random: Random, statement: str) -> str:
    tokens = _TOKEN.findall(statement)
    if not tokens:
        return statement
    place = random.randrange(len(tokens))
    match random.randrange(12):
        case 0:
            other = random.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        case 1:
            del tokens[place : place + random.choice((1, 1, 2, 5))]
        case 2:
            tokens.insert(place, tokens[place] + " ")
        case 3:
            donor = _TOKEN.findall(random.choice(random.choice(sources())))
            start = random.randrange(len(donor))
            tokens[place:place] = [" ", *donor[start : start + random.randrange(1, 12)], " "]
        case 4:
            numbers = [i for i, token in enumerate(tokens) if token[0].isdigit()]
            tokens[random.choice(numbers or [place])] = random.choice(_NUMBERS)
        case 5:
            texts = [i for i, token in enumerate(tokens) if token[0] in "'\""]
            tokens[random.choice(texts or [place])] = random.choice(_TEXTS)
        case 6:
            tokens.insert(place, random.choice(_TEXTS))
        case 7:
            del tokens[place:]
            tokens.append(random.choice(("", ";\n", "\n\\.\n", "\n")))
        case 8:
            tokens[place] = (tokens[place] + " ") * _MANY
        case 9:
            end = min(len(tokens), place + random.randrange(1, 8))
            tokens[place:end] = ["(" * _MANY, *tokens[place:end], ")" * _MANY]
        case 10:
            tokens.insert(place + 1, "::" + random.choice(_TYPES))
        case _:
            tokens[place] = random.choice(_TOKEN.findall(random.choice(random.choice(sources()))))
    return "".join(tokens)
