"""Keys of a few new rows are checked without Spark, unless they may exist already."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.session import Session
from replctl.spark import uniqueness

DUPLICATE = "ERROR 23505: duplicate key value violates unique constraint"


@pytest.mark.spark
def test_new_keys_are_known_without_spark(
    spark_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for statement in (
        "CREATE TABLE t (a int PRIMARY KEY, b text UNIQUE)",
        "INSERT INTO t VALUES (1, 'x')",
        "CREATE TABLE arrays (c int[] UNIQUE)",
        "CREATE TABLE p (a int, b date, UNIQUE NULLS NOT DISTINCT (a, b)) PARTITION BY LIST (a)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
        "CREATE TABLE p2 PARTITION OF p DEFAULT",
        "INSERT INTO p VALUES (1, '2024-01-01')",
    ):
        assert not answer_of(spark_session, statement)[0].startswith("ERROR")
    with monkeypatch.context() as patch:
        patch.setattr(uniqueness, "earliest_row", lambda *args: pytest.fail("Spark was asked"))
        for statement in (
            "INSERT INTO t VALUES (2, 'y'), (3, NULL), (4, NULL)",
            "UPDATE t SET b = 'z' WHERE a = 2",
            "INSERT INTO p VALUES (1, '2024-02-02'), (2, '2024-02-03')",
        ):
            assert not answer_of(spark_session, statement)[0].startswith("ERROR"), statement
    for statement, constraint in (
        ("INSERT INTO t VALUES (5), (2)", "t_pkey"),
        ("INSERT INTO t VALUES (5), (5)", "t_pkey"),
        ("INSERT INTO t VALUES (5, 'z')", "t_b_key"),
        ("UPDATE t SET b = 'z' WHERE a = 1", "t_b_key"),
        ("INSERT INTO arrays VALUES ('{1}'), ('{1}')", "arrays_c_key"),
        ("INSERT INTO p VALUES (1, '2024-02-02')", "p1_a_b_key"),
        ("INSERT INTO p VALUES (3, NULL), (3, NULL)", "p2_a_b_key"),
    ):
        assert answer_of(spark_session, statement)[0] == f'{DUPLICATE} "{constraint}"', statement
