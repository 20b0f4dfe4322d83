"""Zeros of both signs are equal, regardless of the statistics in data files."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.session import Session

_COUNT = 3000


@pytest.mark.spark
def test_zeros_of_the_other_sign_are_found(spark_session: Session) -> None:
    """The file of many equal values has a dictionary.  The file of a single value only has
    statistics."""
    answer_of(spark_session, "SET replctl.small_table_rows = 0")
    for sign in ("", "-"):
        for count in (1, _COUNT):
            answer_of(spark_session, "CREATE TABLE z (a float8, b float4, c float8[])")
            zero = f"'{sign}0'"
            rows = f"SELECT {zero}::float8, {zero}::float4, '{{{sign}0}}'::float8[]"
            made = f"INSERT INTO z {rows} FROM generate_series(1, {count})"
            assert answer_of(spark_session, made) == (f"INSERT 0 {count}",)
            for condition in (
                *("a = '0'", "a = '-0'", "b = '0'", "b = '-0'", "c = '{0}'", "c = '{-0}'"),
                *("a IN ('-0', 1)", "a <= '-0'", "b >= '0'", "a BETWEEN '0' AND '0'"),
            ):
                query = f"SELECT count(*) FROM z WHERE {condition}"
                assert answer_of(spark_session, query)[0] == f"| {count}", (sign, count, query)
            answer_of(spark_session, "DROP TABLE z")


@pytest.mark.parametrize("type_", ["float8", "float4", "float8[]"])
def test_a_zero_of_the_other_sign_is_a_duplicate(session: Session, type_: str) -> None:
    """The other zero is in an earlier row of the statement, or in a row of the table."""
    zero, other = ("'{0}'", "'{-0}'") if type_.endswith("[]") else ("'0'", "'-0'")
    answer_of(session, f"CREATE TABLE u (i int, f {type_}, PRIMARY KEY (i, f))")
    found = (
        'ERROR 23505: duplicate key value violates unique constraint "u_pkey"',
        f"DETAIL: Key (i, f)=(1, {other[1:-1]}) already exists.",
    )
    assert answer_of(session, f"INSERT INTO u VALUES (1, {zero}), (1, {other})") == found
    assert answer_of(session, f"INSERT INTO u VALUES (1, {zero})") == ("INSERT 0 1",)
    assert answer_of(session, f"INSERT INTO u VALUES (1, {other})") == found
