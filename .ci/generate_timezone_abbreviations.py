#!/usr/bin/env python3
"""Write replctl/types/data/timezone_abbreviation.tsv from a running PostgreSQL 17 server.

    .ci/generate_timezone_abbreviations.py 'host=localhost user=postgres dbname=postgres'

The connection string is libpq's.  Its user must be a superuser, because the script reads the server's
file of abbreviations.  The meaning of an abbreviation is one of

    -18000                      seconds east of UTC
    Asia/Irkutsk                the offset of a zone at the time
    10800,1301191200:14400      other offsets, each from a local time (seconds since 1970) on
"""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "replctl/types/data/timezone_abbreviation.tsv"

ABBREVIATIONS = r"""
    SELECT match[1], match[3] IS NOT NULL AS is_dst, match[2]
      FROM pg_config c,
           regexp_split_to_table(pg_read_file(c.setting || '/timezonesets/Default'), E'\n') AS line,
           regexp_match(line, '^([A-Za-z]\S*)\s+([A-Za-z/_]+|-?\d+)(\s+D)?') AS match
     WHERE c.name = 'SHAREDIR' AND match IS NOT NULL
     ORDER BY match[1] COLLATE "C"
"""

#: A query that counts the times at which the abbreviation and its zone have different offsets.
DIFFERENCES = """
    SELECT count(*)
      FROM generate_series(timestamp '1850-01-01', timestamp '2060-01-01', interval '5 days') AS t
     WHERE ((t || ' {abbreviation}')::timestamptz) <> ((t || ' {zone}')::timestamptz)
"""

OFFSETS = """
    SELECT s, extract(epoch FROM t - ((t || ' {abbreviation}')::timestamptz)::timestamp)::int
      FROM (SELECT s, 'epoch'::timestamp + s * interval '1 second' AS t FROM {seconds} AS times(s))
     ORDER BY s
"""
FIVE_DAYS = 5 * 86400


def ask(conninfo: str, query: str) -> list[list[str]]:
    """Return the rows of `query`."""
    command = ["psql", "--no-psqlrc", "--tuples-only", "--no-align", "--field-separator=\t"]
    command += ["--set=ON_ERROR_STOP=1", f"--command=SET timezone = 'UTC'; {query}", conninfo]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in output.splitlines() if line != "SET"]


def steps(conninfo: str, abbreviation: str) -> str:
    """Return the first offset, and each later one with its first time: `10800,1301191200:14400`."""

    def offsets(seconds: str) -> list[tuple[int, int]]:
        query = OFFSETS.format(abbreviation=abbreviation, seconds=seconds)
        return [(int(second), int(offset)) for second, offset in ask(conninfo, query)]

    samples = offsets(f"generate_series(-3786825600, 2840140800, {FIVE_DAYS})")
    result = [str(samples[0][1])]
    for (before, offset), (after, changed) in pairwise(samples):
        if offset == changed:
            continue
        while after - before > 1:
            middle = (before + after) // 2
            is_changed = offsets(f"(VALUES ({middle}::bigint))")[0][1] != offset
            before, after = (before, middle) if is_changed else (middle, after)
        result.append(f"{after}:{changed}")
    return ",".join(result)


def meaning(conninfo: str, abbreviation: str, written: str) -> str:
    """Return the text for the file: the result of `steps` if the offset of its zone differs at some
    times.
    """
    if written.lstrip("-").isdigit():
        return written
    [[count]] = ask(conninfo, DIFFERENCES.format(abbreviation=abbreviation, zone=written))
    return written if count == "0" else steps(conninfo, abbreviation)


def main() -> None:
    conninfo = sys.argv[1]
    rows = [
        (abbreviation, is_dst, meaning(conninfo, abbreviation, written))
        for abbreviation, is_dst, written in ask(conninfo, ABBREVIATIONS)
    ]
    lines = ["abbreviation\tis_dst\tmeaning", *("\t".join(row) for row in rows)]
    TARGET.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
