"""replctl's parser has the results of PostgreSQL's parser for each statement in data/.

.ci/generate_parser_golden.py writes the files from a PostgreSQL 17 server.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replctl.errors import PostgresError
from replctl.parser.parse import parse

DATA = Path(__file__).parent / "data"
OK = "ok"

#: Statements for which replctl differs from PostgreSQL, and the reasons.
KNOWN_DIFFERENCES = [
    # ESCAPE is always an operator in an expression, even where only a label makes sense
    re.compile(r"^SELECT .*\bESCAPE\b"),
    # the position is that of ORDER, which the tree does not keep
    re.compile(r"^SELECT \w+\(.* order by 2\) 'x'"),
    # replctl takes IS after IS DISTINCT FROM for a label, not for a second IS
    re.compile(r"^SELECT a IS DISTINCT FROM b IS$"),
    # PostgreSQL's parser checks the names of options; replctl refuses these commands anyway
    re.compile(r"^(CREATE|ALTER) (ROLE|USER|GROUP|DATABASE) "),
]


def _cases(name: str) -> list[tuple[str, str]]:
    blocks = re.split(r"\n{2,}", (DATA / name).read_text("utf-8").strip("\n"))
    cases = [block.rpartition("\n-> ") for block in blocks]
    return [(statement, verdict) for statement, _, verdict in cases]


def _verdict(statement: str) -> str:
    try:
        parse(statement)
    except PostgresError as error:
        return f"{error.sqlstate} {error.position} {error.message}".replace("\n", "\\n")
    return OK


def _is_refused(verdict: str) -> bool:
    return verdict.startswith("0A000 ") and verdict.endswith(" not supported")


@pytest.mark.parametrize("name", ["expressions.txt", "statements.txt", "mutations.txt"])
def test_errors_are_those_of_postgresql(name: str) -> None:
    differences = []
    for statement, expected in _cases(name):
        verdict = _verdict(statement)
        if verdict == expected or (expected == OK and _is_refused(verdict)):
            continue
        if not any(pattern.search(statement) for pattern in KNOWN_DIFFERENCES):
            differences.append((statement, expected, verdict))
    assert differences == []


def test_known_differences_are_not_outdated() -> None:
    statements = [
        statement
        for name in ("expressions.txt", "mutations.txt")
        for statement, expected in _cases(name)
        if _verdict(statement) != expected
    ]
    for pattern in KNOWN_DIFFERENCES:
        assert any(pattern.search(statement) for statement in statements), pattern.pattern


def test_other_commands_of_postgresql_are_refused_by_name() -> None:
    for statement, expected in _cases("unsupported.txt"):
        verdict = _verdict(statement)
        if expected == OK:
            assert _is_refused(verdict), (statement, verdict)
        else:
            assert verdict == expected, statement


@pytest.mark.parametrize(
    ("statement", "message", "position"),
    [
        ("CREATE TRIGGER a BEFORE INSERT ON b EXECUTE FUNCTION c()", "CREATE TRIGGER", 0),
        ("SELECT 1; LOCK TABLE a", "LOCK", 10),
        ("SELECT a, xmlconcat(b) FROM c", "XMLCONCAT", 10),
        ("SELECT * FROM a TABLESAMPLE system (1)", "TABLESAMPLE", 14),
        ("ALTER TABLE a ADD b int, SET TABLESPACE c", "SET TABLESPACE", 25),
        ("DROP RULE a ON b", "DROP RULE", 0),
        # replctl has other forms of these statements
        ("ALTER DATABASE a CONNECTION LIMIT 5", "ALTER DATABASE ... WITH", 0),
        ("ALTER TYPE a SET (b = 1)", "ALTER TYPE ... SET", 0),
        ("ALTER OPERATOR = (b, c) SET SCHEMA d", "ALTER OPERATOR ... SET SCHEMA", 0),
        ("ALTER INDEX a DEPENDS ON EXTENSION b", "ALTER INDEX ... DEPENDS ON EXTENSION", 0),
        ("CREATE COLLATION a (locale = 'b')", "CREATE COLLATION WITH OPTIONS", 0),
        ("COMMENT ON COLLATION a IS 'b'", "COMMENT ON COLLATION", 11),
        ("EXPLAIN DELETE FROM a", "EXPLAIN DELETE", 8),
        ("EXPLAIN REFRESH MATERIALIZED VIEW a", "EXPLAIN REFRESH MATERIALIZED VIEW", 8),
    ],
)
def test_refusals_point_at_what_is_refused(statement: str, message: str, position: int) -> None:
    assert _verdict(statement) == f"0A000 {position} {message} is not supported"
