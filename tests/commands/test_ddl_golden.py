"""DDL has the same answers as on a PostgreSQL 17 server (data/*.out), without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_script import differences

from replctl.session import Session

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.out")), ids=lambda path: path.stem)
def test_answers_as_postgresql_does(path: Path, session: Session) -> None:
    assert differences(session, path) == []
