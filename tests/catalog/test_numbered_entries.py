"""The numbers of log entries, without Spark: the changes of one statement in several tables."""

from __future__ import annotations

import pytest

from replctl.catalog.pg_wal import CHANGE, TRUNCATE, LogEntry, numbered


def _entry(lsn: int, relid: int, statement: int | None, action: str = CHANGE) -> LogEntry:
    detail = {} if statement is None else {"statement": statement}
    return LogEntry(lsn, 7, 100, 0, None, relid, 1, action, dict[str, object](detail))


@pytest.mark.parametrize(
    ("entries", "numbers"),
    [
        pytest.param([(1, 1, None), (2, 2, None)], [1, 2], id="two statements"),
        pytest.param([(1, 1, 1), (2, 2, 1)], [1, 1], id="one statement"),
        pytest.param([(1, 1, 1), (2, 2, 1), (3, 1, 3), (4, 2, 3)], [1, 1, 2, 2], id="two of each"),
        pytest.param([(1, 1, 1), (2, 1, None), (3, 2, 1)], [1, 2, 1], id="another program between"),
        pytest.param([(1, 1, None), (2, 1, 1), (3, 2, 1)], [1, 2, 2], id="its LSN is the number"),
        pytest.param(
            [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 2, 1)], [1, 2, 1, 2], id="several versions"
        ),
        pytest.param([(1, 9, 1), (2, 1, 1)], [1, 2], id="several published relations"),
        pytest.param(
            [(1, 1, 1, TRUNCATE), (2, 2, 1, TRUNCATE), (3, 1, 1)], [1, 1, 2], id="after a TRUNCATE"
        ),
    ],
)
def test_numbers(entries: list[tuple[int, int, int | None]], numbers: list[int]) -> None:
    found = numbered([_entry(*entry) for entry in entries], lambda entry: entry.relid // 9)
    assert [number for number, _entry in found] == numbers
