"""A part of the long run of mutated scripts, for a fixed time (docs/explanation/reliability.md)."""

from __future__ import annotations

from .run import faults

SECONDS = 20


def test_mutated_scripts_end_in_results_and_errors_of_postgresql() -> None:
    found = list(faults(range(1, 10_000), seconds=SECONDS))
    assert len(found) > 1
    assert [fault for fault in found if fault is not None] == []
