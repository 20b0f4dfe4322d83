"""A query takes values of a sequence in portions: few transactions, and no value twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_class import find_relation_oid
from replctl.errors import DivisionByZero
from replctl.execute import execute
from replctl.session import Session


def _rows(session: Session, statement: str) -> list[list[str | None]]:
    """Return the rows of a statement's last result."""
    return [list(row) for result in execute(session, statement) for row in result.rows]


def _values(session: Session, count: int) -> list[int]:
    """Return values that a query takes from sequence s."""
    rows = _rows(session, f"select nextval('s') from generate_series(1, {count})")
    return [int(row[0] or 0) for row in rows]


def test_values_take_few_transactions(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    list(execute(session, "create sequence s"))
    begun, begin = [], Cluster.begin

    @contextmanager
    def counted(cluster: Cluster, *, write: bool, **options: Any) -> Iterator[Connection]:
        if write:
            begun.append(1)
        with begin(cluster, write=write, **options) as connection:
            yield connection

    monkeypatch.setattr(Cluster, "begin", counted)
    assert _values(session, 5000) == list(range(1, 5001))
    assert len(begun) < 20
    assert _values(session, 1) == [5001]


def test_values_of_two_sessions_differ(session: Session) -> None:
    other = Session.connect(session.cluster, "postgres", "postgres")
    list(execute(session, "create sequence s"))
    with session.read() as catalog:
        oid = find_relation_oid(catalog, "s", 2200)
        assert oid is not None
        with session.sequences.in_portions():
            own = [session.sequences.take(catalog, oid)[0] for _number in range(5)]
            assert session.sequences.current(catalog, oid) == 5
            others = _values(other, 3)
            own += [session.sequences.take(catalog, oid)[0] for _number in range(5)]
    assert len({*own, *others}) == 13
    assert min(others) > 5
    assert _values(other, 1)[0] > max(own + others)


def test_values_that_a_failed_query_has_not_given_are_left(session: Session) -> None:
    list(execute(session, "create sequence s"))
    with pytest.raises(DivisionByZero):
        _rows(session, "select 1 / (5 - nextval('s')) from generate_series(1, 100)")
    assert _values(session, 2) == [6, 7]
