"""Limits of a statement: its memory (`replctl.max_query_memory`), its depth and its time."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from golden_script import answer_of

from replctl.catalog.cluster import Cluster
from replctl.errors import ConnectionFailure
from replctl.session import Session

#: Statements that need more than 16 MB: for one value or for many, in Python and in SQLite.  Large
#: values have more than 32 MB: for these, malloc takes new memory even if the process has free
#: memory.
LARGE = {
    "a value": "SELECT length(repeat('x', 1000000000))",
    "values in a value": "SELECT length(repeat('x', 40000000) || repeat('y', 40000000))",
    "an array": "SELECT array_length(array_fill(1, ARRAY[100000000]), 1)",
    "a set": "SELECT count(*) FROM generate_series(1, (SELECT 100000000))",
    "rows of a set": "SELECT * FROM generate_series(1, 1000000)",
    "an aggregate": "SELECT length(string_agg(repeat('x', 100000), ',')) FROM pg_proc",
    "a replacement": "SELECT length(replace(repeat('x', 100000), 'x', repeat('y', 100000)))",
    "a recursive query": "WITH RECURSIVE t(a) AS (SELECT 'x' UNION ALL SELECT a || a FROM t)"
    " SELECT length(a) FROM t LIMIT 40",
    "rows of catalogs": "SELECT * FROM pg_proc, pg_class",
}
LONG = f"SELECT 1 IN ({','.join(['1'] * 40_000)})"
REFUSED = (
    "ERROR 53200: out of memory",
    "DETAIL: The statement needs more than 16384kB in this process.",
    'HINT: Increase the configuration parameter "replctl.max_query_memory".',
)


def _used() -> int:
    return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()


@pytest.mark.parametrize(
    ("option", "name"), [("v", "address space"), ("d", "data memory")], ids=["-v", "-d"]
)
def test_a_limit_of_the_process_is_named(option: str, name: str, tmp_path: Path) -> None:
    """A setting of replctl would not help."""
    statement = LARGE["a set"]
    answer = subprocess.run(
        [
            "bash", "-c", f'ulimit -{option} 250000; exec "$@"', "",
            sys.executable, "-m", "replctl", "--home", tmp_path / "home", "-Xqc", statement,
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-3:] == [
        "ERROR:  out of memory",
        f"DETAIL:  The {name} of this process is limited to 250000kB.",
        f'HINT:  Raise the limit, for example with "ulimit -{option} unlimited".',
    ]


@pytest.mark.parametrize("statement", LARGE.values(), ids=LARGE)
def test_a_statement_takes_no_more_memory_than_it_may(session: Session, statement: str) -> None:
    answer_of(session, "SET replctl.max_query_memory = '16MB'")
    answer_of(session, "SELECT count(*) FROM pg_proc, pg_am")  # fills the cache of catalogs
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    assert answer_of(session, statement) == REFUSED
    assert resource.getrlimit(resource.RLIMIT_DATA) == limits
    assert answer_of(session, "SELECT count(*) FROM pg_am") == ("| 7", "SELECT 1")


def test_the_memory_of_a_failed_statement_is_free(session: Session) -> None:
    used = []
    for _ in range(4):
        assert answer_of(session, LARGE["an aggregate"])[0] == REFUSED[0]
        used.append(_used())
    assert used[-1] - used[0] < 256 << 20


def test_a_block_fails_and_can_be_left(session: Session) -> None:
    for statement in ("SET replctl.max_query_memory = '16MB'", "BEGIN", "CREATE TABLE t (a int)"):
        answer_of(session, statement)
    assert answer_of(session, LARGE["a set"]) == REFUSED
    assert answer_of(session, "SELECT 1")[0].startswith("ERROR 25P02")
    assert answer_of(session, "ROLLBACK") == ("ROLLBACK",)
    assert answer_of(session, "CREATE TABLE t (a int)") == ("CREATE TABLE",)


def test_the_hint_helps(session: Session) -> None:
    statement = "SELECT length(repeat('x', 100000000))"
    answer_of(session, "SET replctl.max_query_memory = '16MB'")
    assert answer_of(session, statement) == REFUSED
    answer_of(session, "SET replctl.max_query_memory = '256MB'")
    assert answer_of(session, statement) == ("| 100000000", "SELECT 1")
    assert answer_of(session, "RESET replctl.max_query_memory; SHOW replctl.max_query_memory")[
        1
    ] == ("| 512MB")


def test_spark_is_not_limited(cluster: Cluster) -> None:
    usual = resource.getrlimit(resource.RLIMIT_DATA)
    seen = []

    def engine() -> NoReturn:
        seen.append(resource.getrlimit(resource.RLIMIT_DATA))
        raise ConnectionFailure("there is no Spark")

    session = Session.connect(cluster, "postgres", "postgres", engine=engine)
    assert answer_of(session, "CREATE TABLE t (a int)") == ("CREATE TABLE",)
    assert answer_of(session, "INSERT INTO t SELECT 1") == ("ERROR 08006: there is no Spark",)
    assert seen[:1] == [usual]


#: PostgreSQL's answers, or 54001 if SQLite or Python has less room than PostgreSQL's stack.
DEEP = {
    "SELECT " + "(" * 3000 + "1" + ")" * 3000: ("| 1", "SELECT 1"),
    "SELECT " + " AND ".join(["true"] * 3000): ("| t", "SELECT 1"),
    "SELECT " + " OR ".join(f"relname = 'x{i}'" for i in range(3000)) + " FROM pg_class LIMIT 1": (
        "| f",
        "SELECT 1",
    ),
    "SELECT count(*) FROM pg_am WHERE " + " OR ".join(f"oid = {i}" for i in range(2000)): (
        "| 4",
        "SELECT 1",
    ),
    f"SELECT {','.join(['1'] * 1665)}": (
        "ERROR 54011: target lists can have at most 1664 entries",
    ),
    f"SELECT concat({','.join(['1'] * 101)})": (
        "ERROR 54023 @7: cannot pass more than 100 arguments to a function",
    ),
    f"CREATE TABLE t ({','.join(f'c{i} int' for i in range(1601))})": (
        "ERROR 54011: tables can have at most 1600 columns",
    ),
    "SELECT " + "+".join(["1"] * 40_000): ("ERROR 54001: stack depth limit exceeded",),
    "SELECT " + "NOT " * 20_000 + "true": ("ERROR 54001: stack depth limit exceeded",),
    " UNION ALL ".join(["SELECT 1"] * 1000): ("ERROR 54001: stack depth limit exceeded",),
    "SELECT 1 FROM pg_am a" + "".join(f", pg_am a{i}" for i in range(70)): (
        "ERROR 54000: query of catalogs is too large",
        "DETAIL: at most 64 tables in a join.",
    ),
}


@pytest.mark.parametrize("statement", DEEP, ids=lambda statement: statement[:20])
def test_a_deep_query_ends_in_an_error_of_postgresql(
    session: Session, statement: str, deep_recursion: None
) -> None:
    assert answer_of(session, statement) == DEEP[statement]
    assert answer_of(session, "SELECT 1") == ("| 1", "SELECT 1")


def test_the_time_of_a_statement_begins_with_its_text(session: Session) -> None:
    answer_of(session, "SET statement_timeout = '100ms'")
    assert answer_of(session, LONG) == (
        "ERROR 57014: canceling statement due to statement timeout",
    )
