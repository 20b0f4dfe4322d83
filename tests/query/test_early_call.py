"""INSERT calls functions of slots once, and only if the role may run the statement."""

from __future__ import annotations

import pytest

from replctl.errors import FeatureNotSupported, InternalError
from replctl.execute import execute
from replctl.session import Session

_SLOTS = "SELECT count(*) FROM pg_replication_slots"


def _count(session: Session) -> str | None:
    (result,) = execute(session, _SLOTS)
    return result.rows[0][0]


@pytest.fixture
def table(session: Session) -> Session:
    list(execute(session, "CREATE TABLE t (a text PRIMARY KEY)"))
    return session


@pytest.mark.parametrize(
    "arguments",
    ["x.relname FROM pg_class x", "relname FROM (SELECT relname FROM pg_class) AS y"],
)
def test_arguments_are_constants(table: Session, arguments: str) -> None:
    name, source = arguments.split(" FROM ", 1)
    call = f"LATERAL pg_create_physical_replication_slot({name}) AS s"
    with pytest.raises(FeatureNotSupported) as caught:
        list(execute(table, f"INSERT INTO t SELECT slot_name FROM {source}, {call}"))
    assert caught.value.message == (
        "arguments of pg_create_physical_replication_slot that are no constants are not supported"
    )
    assert _count(table) == "0"


def test_a_slot_is_not_dropped_by_a_refused_statement(table: Session) -> None:
    list(execute(table, "SELECT pg_create_physical_replication_slot('s')"))
    with pytest.raises(FeatureNotSupported):
        list(execute(table, "INSERT INTO t SELECT 'x' FROM pg_drop_replication_slot('s')"))
    assert _count(table) == "1"


def test_a_call_is_made_before_the_rows_are_written(table: Session) -> None:
    with pytest.raises(InternalError, match="this session has no Spark"):
        list(
            execute(
                table,
                "INSERT INTO t SELECT slot_name FROM pg_create_physical_replication_slot('s')",
            )
        )
    assert _count(table) == "1"
    assert not table.early_calls
