#!/usr/bin/env python3
"""How long row filters take: one of them, after the start; and a publication of many filtered
tables.

filters.py [TABLES]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from replctl.catalog.cluster import Cluster
from replctl.execute import execute
from replctl.session import Session

#: A short filter, and one of each family of constructs.
_FILTERS = [
    "a > 5 AND c = 'NSW'",
    "n BETWEEN 1.5 AND 20 AND c LIKE 'N%' OR a IN (1, 2, 3) AND d IS NOT NULL",
    "CASE WHEN a > 0 THEN n / a ELSE 0 END > 1 AND upper(trim(c)) <> 'X' AND d >= '2024-01-01'",
]
_COLUMNS = "id int PRIMARY KEY, a int, c text, n numeric(10,2), d date"
_RUNS = 50


def main(tables: int) -> None:
    """Measure, and print a line for each."""
    with tempfile.TemporaryDirectory() as home:
        cluster = Cluster.open(Path(home))
        session = Session.connect(cluster, "postgres", "postgres")
        list(execute(session, f"CREATE TABLE t ({_COLUMNS})"))
        for text in _FILTERS:
            print(f"{_one_filter(session, text) * 1000:8.2f} ms  {text}")
        _many_tables(home, tables)


def _one_filter(session: Session, text: str) -> float:
    """Seconds to parse, check, store and print a filter: what it adds to an unfiltered table."""
    taken: dict[str, list[float]] = {"": [], f" WHERE ({text})": []}
    for _ in range(_RUNS):
        for where, seconds in taken.items():
            start = time.perf_counter()
            list(execute(session, f"CREATE PUBLICATION p FOR TABLE t{where}"))
            list(execute(session, "SELECT pg_get_expr(prqual, prrelid) FROM pg_publication_rel"))
            seconds.append(time.perf_counter() - start)
            list(execute(session, "DROP PUBLICATION p"))
    bare, filtered = map(statistics.median, taken.values())
    return filtered - bare


def _many_tables(home: str, tables: int) -> None:
    names = [f"t{i:04}" for i in range(tables)]
    create = Path(home) / "create.sql"
    create.write_text("".join(f"CREATE TABLE {name} ({_COLUMNS});\n" for name in names))
    members = ", ".join(
        f"{name} WHERE (a > {i} AND c = 'NSW' AND n BETWEEN 1.5 AND {i})"
        for i, name in enumerate(names)
    )
    publish = Path(home) / "publish.sql"
    publish.write_text(f"CREATE PUBLICATION many FOR TABLE {members};\n")
    for what, argv in (
        (f"{tables} tables created", ["-q", "-f", str(create)]),
        (f"a publication of {tables} filtered tables", ["-q", "-f", str(publish)]),
        (r"\dRp+ of it", ["-c", r"\dRp+ many"]),
    ):
        start = time.perf_counter()
        command = [sys.executable, "-m", "replctl", "-X", *argv]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "REPLCTL_HOME": home}
        )
        print(f"{time.perf_counter() - start:8.2f} s   {what}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
