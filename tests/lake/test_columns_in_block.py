"""Another program adds a column to a table whose columns an open block has changed."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from fix_cluster import relation_of
from fix_lake import Lake

from replctl import injection_point
from replctl.errors import PostgresError
from replctl.execute import execute


def _add(lake: Lake, name: str) -> None:
    DeltaTable(lake.location).alter.add_columns([Field(name, PrimitiveType("string"))])


def _columns(lake: Lake) -> list[str]:
    lake.enter()
    return [column.name for column in relation_of(lake.session, "t").columns]


@pytest.mark.parametrize(
    ("statement", "end", "columns"),
    [
        ("ALTER TABLE t ADD COLUMN own int", "COMMIT", ["id", "v", "own", "other"]),
        ("ALTER TABLE t ADD COLUMN own int", "ROLLBACK", ["id", "v", "other"]),
        ("ALTER TABLE t ADD COLUMN other text", "COMMIT", ["id", "v", "other"]),
        ("ALTER TABLE t ADD COLUMN other text", "ROLLBACK", ["id", "v", "other"]),
        ("ALTER TABLE t DROP COLUMN v", "COMMIT", ["id", "other"]),
        ("ALTER TABLE t DROP COLUMN v", "ROLLBACK", ["id", "v", "other"]),
        ("ALTER TABLE t RENAME COLUMN v TO w", "COMMIT", ["id", "w", "other"]),
        ("ALTER TABLE t RENAME COLUMN v TO w", "ROLLBACK", ["id", "v", "other"]),
    ],
)
def test_the_column_is_followed_after_the_block(
    lake: Lake, statement: str, end: str, columns: list[str]
) -> None:
    lake.run("BEGIN")
    lake.run(statement)
    _add(lake, "other")
    lake.run("SELECT count(*) FROM pg_class")
    lake.run(end)
    assert _columns(lake) == columns


def test_a_commit_that_fails_ends_the_block(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for begun in ("BEGIN", "BEGIN; SAVEPOINT s"):
        for statement in begun.split("; "):
            lake.run(statement)
        lake.run("ALTER TABLE t ADD COLUMN own int")
        injection_point._visits.clear()
        monkeypatch.setenv("REPLCTL_INJECTION_POINT", "block.before-commit:error")
        with pytest.raises(PostgresError):
            list(execute(lake.session, "COMMIT"))
        assert lake.session.block is None
        assert _columns(lake) == ["id", "v"]
