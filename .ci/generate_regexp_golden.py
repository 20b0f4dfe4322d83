#!/usr/bin/env python3
"""Write tests/adt/data/regexp.tsv: the results of random regular expressions on a PostgreSQL 17
server.

    .ci/generate_regexp_golden.py 'host=localhost user=postgres dbname=postgres' [SEED COUNT]

The connection string is libpq's.  The ctype of the database must be C.UTF-8.  To search for new
differences, use another seed and a larger count, but do not commit the resulting file.

The first line has the names of the arguments, and the expressions to evaluate.  Each other line has
the arguments and the results: `=text`, NULL, or `!SQLSTATE message`.  Lines are in COPY's text
format.
"""

import random
import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "tests" / "adt" / "data" / "regexp.tsv"
ARGUMENTS = ("text", "pattern", "flags", "replacement", "start", "number", "grp")
EXPRESSIONS = (
    "text ~ pattern",
    "text !~* pattern",
    "substring(text from pattern)",
    "regexp_match(text, pattern, flags)",
    "regexp_replace(text, pattern, replacement, flags || 'g')",
    "regexp_replace(text, pattern, replacement, start, number, flags)",
    "regexp_count(text, pattern, start, flags)",
    "regexp_substr(text, pattern, start, number, flags, grp)",
    "regexp_instr(text, pattern, start, number, grp, flags, grp)",
    "regexp_split_to_array(text, pattern, flags)",
    "similar_to_escape(pattern)",
    "similar_to_escape(pattern, 'b')",
)
SETUP = """
SET client_min_messages = error;
CREATE TEMP TABLE item (id serial, text text, pattern text, flags text, replacement text,
                        start int, number int, grp int);
CREATE FUNCTION pg_temp.evaluate(expression text, id int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE shown text;
BEGIN
  EXECUTE format('SELECT (%s)::text FROM item WHERE id = %s', expression, id) INTO shown;
  RETURN coalesce('=' || shown, 'NULL');
EXCEPTION WHEN OTHERS THEN
  RETURN '!' || SQLSTATE || ' ' || SQLERRM;
END $$;
"""
SEED, COUNT = 20240229, 700
CONSTRAINTS = ("^", "$", r"\A", r"\Z", r"\m", r"\M", r"\y", r"\Y")
SETS = (".", "[ab]", "[^a]", "[a-c]", r"\w", r"\d", r"\s", r"\W", "[[:alpha:]]", r"[^\n]", r"\n")
QUANTIFIERS = (
    *("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}", "{1,1}", "{1,1}?", "{1,2}?"),
    *("{2,}", "{0,2}?", "{2}?", "{0}", "{0,0}", "{,2}", "{3,1}", "**"),
)
PIECES = (
    *"ab()[]{}*+?\\|^$.-:=12,# \nxwAéÉß",
    *("[:", "[.", "[=", "alpha", ".]", "=]", ":]", "(?", "***=", "***:", "[^", "hyphen"),
    *(r"\1", r"\(", r"\)", r"\{", r"\}", r"\<", r"\>", r"\u00e9", r"\x41", r"\101", r"\cA"),
)
FLAGS = ("", "", "", "", "i", "n", "p", "w", "x", "ix", "nx", "s", "c", "b", "e", "q", "qx", "m")


class Generator:
    """Yield expressions, most of them valid, and random sequences of their parts."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._groups = 0

    def case(self) -> tuple[str | int, ...]:
        choose, number = self._random.choice, self._random.randint
        self._groups = 0
        if self._random.random() < 0.3:
            pattern = "".join(choose(PIECES) for _ in range(number(1, 7)))
            text = "".join(choose("ab(){}[]*+?1-^$. \n#AéÉßx\\") for _ in range(number(0, 6)))
        else:
            pattern = self._alternatives(number(1, 3), captures=True)
            text = "".join(
                choose(choose(["abc", "aabbc", "abcAB \n1é"])) for _ in range(number(0, 9))
            )
        if self._random.random() < 0.1:
            pattern = f"(?{choose(['i', 'n', 'p', 'w', 'x', 'q', 'e', 'b', 'inx', 's'])}){pattern}"
        template = choose([r"<\1\2\&>", "x", r"\\", r"-\3\9"])
        return text, pattern, choose(FLAGS), template, number(1, 3), number(0, 2), number(0, 2)

    def _alternatives(self, depth: int, *, captures: bool) -> str:
        count = self._random.choice([1, 1, 1, 2, 2, 3])
        return "|".join(self._branch(depth, captures=captures) for _ in range(count))

    def _branch(self, depth: int, *, captures: bool) -> str:
        count = self._random.choice([0, 1, 1, 2, 2, 3, 3, 4])
        return "".join(self._piece(depth, captures=captures) for _ in range(count))

    def _piece(self, depth: int, *, captures: bool) -> str:
        atom = self._atom(depth, captures=captures)
        if atom in CONSTRAINTS or atom.startswith(("(?=", "(?!", "(?<")):
            return atom
        quantified = self._random.random() < 0.45
        return atom + (self._random.choice(QUANTIFIERS) if quantified else "")

    def _atom(self, depth: int, *, captures: bool) -> str:
        chosen, choose = self._random.random(), self._random.choice
        if chosen < 0.62:
            return choose(SETS) if chosen < 0.15 else choose("abc")
        if chosen < 0.65:
            return choose(CONSTRAINTS)
        if chosen < 0.73 and captures and self._groups:
            return f"\\{self._random.randint(1, min(9, self._groups))}"
        if not depth:
            return choose("abc")
        if chosen < 0.78:
            inner = self._alternatives(depth - 1, captures=False)
            return f"{choose(['(?=', '(?!', '(?<=', '(?<!'])}{inner})"
        inner = self._alternatives(depth - 1, captures=captures)
        if chosen < 0.93:
            self._groups += captures
            return f"({inner})"
        return f"(?:{inner})"


def escaped(value: str | int) -> str:
    return str(value).replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def golden(conninfo: str, seed: int, count: int) -> str:
    """Return the lines of the file."""
    generator = Generator(seed)
    lines = ["\t".join(map(escaped, generator.case())) + "\n" for _ in range(count)]
    script = f"{SETUP}COPY item ({', '.join(ARGUMENTS)}) FROM STDIN;\n{''.join(lines)}\\.\n"
    results = ", ".join(f"pg_temp.evaluate($q${item}$q$, id)" for item in EXPRESSIONS)
    script += f"COPY (SELECT {', '.join(ARGUMENTS)}, {results} FROM item ORDER BY id) TO STDOUT;\n"
    command = ["psql", conninfo, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
    found = subprocess.run(
        command, input=script, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    )
    return "\t".join((*ARGUMENTS, *map(escaped, EXPRESSIONS))) + "\n" + found.stdout


def main(conninfo: str, seed: int = SEED, count: int = COUNT) -> None:
    text = golden(conninfo, seed, count)
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET.name}: {count} expressions")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
