"""The printed text of a view can be run, and makes the same view."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.execute import execute
from replctl.session import Session

_TABLES = (
    "CREATE TABLE a (x int, y int)",
    "CREATE TABLE b (x bigint, z int)",
    "CREATE TABLE c (v int, w int)",
)
#: Changes after which another column also has the name of the merged column.
_CHANGES = ("ALTER TABLE c RENAME v TO x", "ALTER TABLE a RENAME x TO v", "ALTER TABLE c ADD y int")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x, a.y, z, w FROM a FULL JOIN b USING (x) CROSS JOIN c",
        "SELECT x, c.w FROM a JOIN b USING (x) CROSS JOIN c",
        "SELECT a.y, q.v FROM a FULL JOIN b USING (x), (c JOIN (VALUES (1)) q(v) USING (v))",
        "SELECT (SELECT max(c.w) FROM c WHERE c.v = x) AS m FROM a FULL JOIN b USING (x)",
        "SELECT n FROM a FULL JOIN b USING (x), LATERAL (SELECT x + c.v AS n FROM c) s",
        "SELECT y FROM a FULL JOIN b USING (x) WHERE EXISTS (SELECT FROM c JOIN"
        " (VALUES (1)) q(v) USING (v) WHERE c.w = x AND EXISTS (SELECT FROM c d WHERE d.v = x))",
    ],
)
def test_view_has_the_same_text_when_its_text_is_run(session: Session, query: str) -> None:
    for statement in (*_TABLES, f"CREATE VIEW v1 AS {query}", *_CHANGES):
        list(execute(session, statement))
    printed = "SELECT pg_get_viewdef('{}'::regclass)"
    (first,) = next(iter(execute(session, printed.format("v1")))).rows
    assert answer_of(session, f"CREATE VIEW v2 AS {first[0]}") == ("CREATE VIEW",)
    (second,) = next(iter(execute(session, printed.format("v2")))).rows
    assert first == second


def test_column_of_a_subquery_does_not_hide_a_merged_column(session: Session) -> None:
    for statement in (
        *_TABLES,
        "CREATE VIEW s AS SELECT (SELECT max(c.w) FROM c WHERE c.v = x) AS m"
        " FROM a FULL JOIN b USING (x)",
        "ALTER TABLE c RENAME v TO x",
    ):
        list(execute(session, statement))
    (row,) = next(iter(execute(session, "SELECT pg_get_viewdef('s'::regclass)"))).rows
    assert "FROM c c(x_1, w)\n          WHERE (c.x_1 = x)" in str(row[0])
