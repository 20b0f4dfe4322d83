#!/usr/bin/env python3
"""Write dumps of the database of tests/dump/data/pg_dump/shop.sql, and the output of psql 17 for it.

    .ci/generate_shop_dump.py VERSION PROGRAMS CONNINFO

VERSION is 15, 17 or 18.  The dump of 17 also has rows.  PROGRAMS is the directory with pg_dump and psql
of that version.  CONNINFO is the connection string of a server of that version, without a database: the
script makes and drops the database `replctl_shop`.  The roles of shop.sql stay.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "tests" / "dump" / "data" / "pg_dump"
DATABASE = "replctl_shop"


def main() -> None:
    version, programs, conninfo = sys.argv[1:]
    psql = [f"{programs}/psql", "-X", "-q", "-d"]
    server, database = f"{conninfo} dbname=postgres", f"{conninfo} dbname={DATABASE}"
    subprocess.run([*psql, server, "-c", f"CREATE DATABASE {DATABASE}"], check=True)
    try:
        subprocess.run([*psql, database, "-f", str(DATA / "shop.sql")], check=True)
        dump = [f"{programs}/pg_dump", "-d", database]
        if version != "17":
            write(f"shop_{version}.sql", [*dump, "--schema-only"])
        else:
            write("shop_rows.sql", dump)
            for name in ("describe", "rows"):
                write(f"{name}.out", [*psql, database, "-f", str(DATA / f"{name}.sql")])
    finally:
        subprocess.run([*psql, database, "-c", "DROP SUBSCRIPTION sub"], check=False)
        subprocess.run([*psql, server, "-c", f"DROP DATABASE {DATABASE}"], check=True)


def write(name: str, command: list[str]) -> None:
    """Write the output of a command to a file."""
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (DATA / name).write_text(printed, encoding="utf-8")


if __name__ == "__main__":
    main()
