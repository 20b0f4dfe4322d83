"""0 and -0 are equal, but stored differently: a statement that changes one row does not change the
other."""

import pytest

from replctl.execute import execute
from replctl.session import Session

pytestmark = pytest.mark.spark


def _rows(session: Session) -> list[tuple[str | None, ...]]:
    (result,) = execute(session, "SELECT n, f, a FROM t ORDER BY n, f::text, a::text")
    return [tuple(row) for row in result.rows]


def test_rows_without_a_key(spark_session: Session) -> None:
    zeros = "(1, 0, '{0}'), (1, '-0', '{0}'), (1, 0, '{-0}')"
    list(
        execute(
            spark_session,
            f"CREATE TABLE t (n int, f float8, a float8[]); INSERT INTO t VALUES {zeros}",
        )
    )
    list(execute(spark_session, "UPDATE t SET n = n + 1"))
    assert _rows(spark_session) == [("2", "-0", "{0}"), ("2", "0", "{-0}"), ("2", "0", "{0}")]

    list(execute(spark_session, "DELETE FROM t WHERE f::text = '-0'"))
    assert _rows(spark_session) == [("2", "0", "{-0}"), ("2", "0", "{0}")]

    list(execute(spark_session, "UPDATE t SET n = 3 WHERE a::text = '{-0}'"))
    assert _rows(spark_session) == [("2", "0", "{0}"), ("3", "0", "{-0}")]
