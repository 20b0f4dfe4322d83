"""The views and functions of slots, without Spark."""

from __future__ import annotations

from golden_script import answer_of

from replctl.session import Session


def test_slot_holds_back_the_first_transaction_behind_it(session: Session) -> None:
    def number_of(statement: str) -> int:
        return int(answer_of(session, statement)[0].removeprefix("| "))

    held_back = "SELECT catalog_xmin FROM pg_replication_slots"

    answer_of(session, "SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
    first = number_of(held_back)
    assert number_of("SELECT txid_current()") == first
    answer_of(session, "CREATE TABLE t (a int)")
    assert number_of(held_back) == first
    answer_of(session, "SELECT pg_replication_slot_advance('s', pg_current_wal_lsn())")
    second = number_of(held_back)
    assert number_of("SELECT txid_current()") == second > first
