"""The expressions of data/*.tsv and data/aggregates.tsv in a SELECT without tables have the results
of a PostgreSQL server, without Spark."""

from __future__ import annotations

import pytest
from golden_evaluation import TOPICS, analyzed, columns, golden_lines, rows
from select_values import is_same, values_of_select

from replctl.expr.context import ExprContext
from replctl.session import Session

#: The refused expressions of data/inputs.  docs/explanation/differences.md has the reasons.
REFUSED = {"jb @? '$.datetime(\"HH24\")'", "js IS JSON", "to_char(1, '9')"}


@pytest.mark.parametrize("topic", TOPICS)
def test_values(topic: str, session: Session) -> None:
    found = {}
    for line in golden_lines(topic):
        results = values_of_select(session, analyzed(line.expression), columns(), rows())
        if not all(map(is_same, line.results, results)):
            found[line.expression] = [
                (i, pair)
                for i, pair in enumerate(zip(line.results, results, strict=True), start=1)
                if not is_same(*pair)
            ]
    refused = {
        expression
        for expression, pairs in found.items()
        if all(actual.startswith("!0A000") for _number, (_expected, actual) in pairs)
    }
    assert {text: pairs for text, pairs in found.items() if text not in refused} == {}
    assert refused == REFUSED & {line.expression for line in golden_lines(topic)}


def test_aggregates(session: Session) -> None:
    found = {}
    lines = golden_lines("aggregates")
    for line in lines:
        expr = analyzed(line.expression, ExprContext.SELECT_TARGET)
        (found[line.expression],) = values_of_select(session, expr, columns(), rows())
    assert found == {line.expression: line.results[0] for line in lines}
