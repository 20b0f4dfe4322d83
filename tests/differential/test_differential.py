"""Expressions and rows have the same results in replctl and on a PostgreSQL server.  Hypothesis
always draws the same ones here.  tests/expr/data and tests/spark/data have the findings of long
runs of `python -m tests.differential`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from replctl.session import Session

from .comparison import Comparison
from .drawing import drawn_expressions, drawn_table
from .select_values import SelectValues
from .server import Server, connected
from .spark_values import spark_values

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_EXPRESSIONS = 300
_SEED = 17


@pytest.fixture(scope="module")
def server(postgres_server: str) -> Iterator[Server]:
    with connected(postgres_server) as server:
        yield server


def test_texts_errors_and_values_in_python(server: Server) -> None:
    comparison = Comparison(server, server.store(drawn_table(_SEED)))
    items = comparison.supported(comparison.texts(drawn_expressions(_EXPRESSIONS, _SEED)))
    comparison.values_in_python(items)
    assert comparison.differences == []
    assert len(items) > _EXPRESSIONS / 2


def test_values_of_select(server: Server, session: Session) -> None:
    comparison = Comparison(server, server.store(drawn_table(_SEED)))
    items = comparison.texts(drawn_expressions(_EXPRESSIONS, _SEED))
    SelectValues(session, comparison).compare(items)
    assert comparison.differences == []
    assert len(items) - len(comparison.refused) > _EXPRESSIONS / 2


@pytest.mark.spark
def test_values_in_spark(server: Server, engine: Engine) -> None:
    comparison = Comparison(server, server.store(drawn_table(_SEED)))
    items = comparison.supported(comparison.texts(drawn_expressions(_EXPRESSIONS, _SEED)))
    with spark_values(engine, comparison) as values:
        values.compare(items)
    assert comparison.differences == []
