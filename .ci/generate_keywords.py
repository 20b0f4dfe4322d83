#!/usr/bin/env python3
"""Write grammar/keywords.lark: the words that are tokens of the grammar.

These are the words that a rule mentions, and the words that PostgreSQL does not allow as names.  For
each place in a statement, scan.py decides whether a word is a keyword or a name.
"""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GRAMMAR = ROOT / "grammar"
KEYWORDS = ROOT / "replctl" / "types" / "data" / "pg_keywords.tsv"


def main() -> None:
    with KEYWORDS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    used = set()
    for path in GRAMMAR.glob("*.lark"):
        if path.name != "keywords.lark":
            text = re.sub(r"(?m)//.*$", "", path.read_text(encoding="utf-8"))
            used |= {word.lower() for word in re.findall(r"\b[A-Z][A-Z_]+\b", text)}
    words = [row for row in rows if row["catcode"] != "U" or row["word"] in used]
    lines = [
        "// Made by .ci/generate_keywords.py from PostgreSQL's pg_get_keywords(). Words match in"
        " any case.",
        "",
    ]
    lines += [f'{row["word"].upper()}: "{row["word"].upper()}"' for row in words]
    (GRAMMAR / "keywords.lark").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
