"""replctl refuses a user-defined collation if it would decide the order of values."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.session import Session

REFUSED = "collations that users made are not supported here"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE u (a text COLLATE c)",
        "ALTER TABLE t ADD COLUMN b text COLLATE c",
        "ALTER TABLE t ALTER a TYPE text COLLATE c",
        "CREATE DOMAIN d AS text COLLATE c",
        "CREATE INDEX ON t (a COLLATE c)",
        "CREATE INDEX ON t ((lower(a) COLLATE c))",
        "SELECT a COLLATE c FROM t",
    ],
)
def test_it_is_refused(session: Session, statement: str) -> None:
    answer_of(session, 'CREATE COLLATION c FROM "C"')
    answer_of(session, "CREATE TABLE t (a text)")
    error = answer_of(session, statement)[0]
    assert error.startswith("ERROR 0A000")
    assert error.endswith(f": {REFUSED}")
