#!/usr/bin/env python3
"""Write replctl/adt/data/character_class.tsv: the characters of each class in C.UTF-8, without the
classes that are the same in each collation.

    .ci/generate_character_classes.py 'host=localhost user=postgres dbname=postgres'

A line has a class and its ranges of code points, in hexadecimal, including ASCII.  The last line
has the characters for which unicode_assigned() is true.
"""

import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "replctl" / "adt" / "data" / "character_class.tsv"
CLASSES = ("alpha", "alnum", "upper", "lower", "space", "punct", "graph", "print")
QUERY = """
SELECT string_agg(to_hex(low) || CASE WHEN low = high THEN '' ELSE '-' || to_hex(high) END, ' '
                  ORDER BY low)
  FROM (SELECT min(code) AS low, max(code) AS high
          FROM (SELECT code, code - row_number() OVER (ORDER BY code) AS island
                  FROM generate_series(1, x'10ffff'::int) AS code
                 WHERE code NOT BETWEEN x'd800'::int AND x'dfff'::int
                   AND {condition}) AS members
         GROUP BY island) AS islands
"""


def main(conninfo: str) -> None:
    lines = []
    conditions = {name: f"chr(code) ~ '[[:{name}:]]'" for name in CLASSES}
    for name, condition in {**conditions, "assigned": "unicode_assigned(chr(code))"}.items():
        command = ["psql", conninfo, "-X", "-A", "-t", "-c", QUERY.format(condition=condition)]
        ranges = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
        lines.append(f"{name}\t{ranges.strip()}\n")
    TARGET.write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1])
