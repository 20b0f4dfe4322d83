"""The messages of VACUUM, without Spark."""

from __future__ import annotations

from golden_script import answer_of

from replctl.session import Session


def test_verbose_tells_of_a_table_that_nobody_has_written(session: Session) -> None:
    answer_of(session, "CREATE TABLE t (a int)")
    assert answer_of(session, "VACUUM (VERBOSE) t") == (
        'INFO 00000: finished vacuuming "postgres.public.t": 0 files and 0 entries of the log'
        " removed, all versions are kept",
        "VACUUM",
    )
