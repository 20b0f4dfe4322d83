"""Queries of small tables run in SQLite, and answer as Spark does."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.session import Session

TYPES = (
    "bool", "int2", "int4", "int8", "numeric", "numeric(9,2)", "float4", "float8", "text",
    "varchar(9)", "char(5)", "bytea", "date", "time", "timetz", "timestamp", "timestamptz",
    "interval", "uuid", "json", "jsonb", "pg_lsn", "oid", "regtype", "name", "mood", "positive",
    "text[]", "int4[]", "date[]", "timestamptz[]", "numeric(9,2)[]", "interval[]", "inet", "bit(3)",
)  # fmt: skip
ROWS = (
    """true, -7, 8, 9000000000, 1.50, 1.5, 0.1, -0.0, E'it''s\\n', 'v ', 'c', '\\x00ff',
    '2024-02-29', '24:00', '12:30+05:30', '0044-03-15 BC', '2024-02-29 12:00:00.000001+02',
    '1 mon -2 days 03:04', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"b": 1, "a": 2}',
    '{"b": 1, "a": 2}', 'FFFFFFFF/FFFFFFFF', 4294967295, 'int4', 'n', 'sad', 1, '{a,NULL,"b c"}',
    '{1,NULL}', '{2024-01-01,0001-01-01}', '{2024-01-01 00:00+00}', '{1.5,2}', '{1 day}',
    '10.0.0.1/8', '101'""",
    """false, 0, 0, 0, 'NaN', -1, 'NaN', 'Infinity', '', '', '', '', 'infinity', '00:00',
    '00:00-12', 'infinity', '-infinity', '0', '00000000-0000-0000-0000-000000000000', 'null',
    'null', '0/0', 0, 'text', '', 'happy', 2, '{}', '{}', '{}', '{infinity}', '{}', '{}', '::1',
    '000'""",
    ", ".join(["NULL"] * 35),
)
QUERIES = (
    "SELECT * FROM v",
    "SELECT * FROM v WHERE c9 <> 'x' ORDER BY c26, c5 DESC LIMIT 3",
    "SELECT id, tableoid::regclass FROM v ORDER BY c1 NULLS FIRST",
    "SELECT c1, count(*), sum(c5), max(c17), array_agg(c9 ORDER BY id) FROM v GROUP BY c1"
    " ORDER BY 1",
    "SELECT a.id, b.id FROM v a LEFT JOIN v b ON a.c7 = b.c7 AND a.id <> b.id ORDER BY 1, 2",
    "SELECT id, row_number() OVER (PARTITION BY c1 ORDER BY id DESC) FROM v ORDER BY 1",
    "SELECT DISTINCT c5, c8 FROM v ORDER BY 1, 2",
    "SELECT c21->'a', c28[1], c18 * 2, c17 - c17 FROM v WHERE id IN (SELECT max(id) FROM v)",
    "SELECT c10 FROM v UNION SELECT 'v ' ORDER BY 1",
    "SELECT 1 / (id - 2) FROM v",
    "TABLE p ORDER BY a, b",
    "SELECT tableoid::regclass, a FROM ONLY p",
    "TABLE many",
)


@pytest.fixture
def tables(spark_session: Session) -> Session:
    """Return a session with tables whose rows were updated, deleted and moved."""
    columns = ", ".join(f"c{i} {type_}" for i, type_ in enumerate(TYPES, start=1))
    for statement in (
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE DOMAIN positive AS int CHECK (value > 0)",
        f"CREATE TABLE v (id serial PRIMARY KEY, {columns})",
        *(f"INSERT INTO v VALUES (DEFAULT, {row})" for row in ROWS * 2),
        "INSERT INTO v (id) VALUES (100), (101)",
        "UPDATE v SET c9 = 'new', c2 = 1 WHERE id = 1",
        "DELETE FROM v WHERE id IN (4, 100)",
        "ALTER TABLE v ADD COLUMN added text DEFAULT 'x'",
        "CREATE TABLE p (a int, b text) PARTITION BY LIST (a)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)",
        "INSERT INTO p VALUES (2, 'b'), (1, 'a'), (1, 'c')",
        "UPDATE p SET a = 2 WHERE b = 'c'",
        "CREATE TABLE many (a int PRIMARY KEY, b int)",  # its log has a checkpoint
        *(f"INSERT INTO many VALUES ({n})" for n in (9, 2, 8, 3, 7, 4, 6, 5, 1, 0, 12, 11)),
        "UPDATE many SET b = 1 WHERE a = 8",
    ):
        answer = answer_of(spark_session, statement)
        assert not any(line.startswith("ERROR") for line in answer), answer
    return spark_session


@pytest.mark.spark
def test_answers_are_those_of_spark(tables: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the engine, a query fails unless this process runs it without Spark."""
    answer_of(tables, "SET replctl.small_table_rows = 0")
    of_spark = [answer_of(tables, query) for query in QUERIES]
    answer_of(tables, "RESET replctl.small_table_rows")
    monkeypatch.setattr(Session, "engine", lambda self: pytest.fail("Spark was asked"))
    assert [answer_of(tables, query) for query in QUERIES] == of_spark
