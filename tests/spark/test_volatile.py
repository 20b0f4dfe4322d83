"""The Spark SQL of an expression has each volatile function once."""

from __future__ import annotations

import pytest

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.functions.sql_functions import WITHOUT_SESSION
from replctl.spark.expression_sql import to_sql
from replctl.spark.volatile import CALLS

_RANDOM = nodes.FuncExpr(1598, "random", "float8", ())
_OTHER = nodes.FuncExpr(1598, "random", "float8", ())


def _sql(expr: nodes.Expr) -> str:
    return to_sql(expr, lambda var: f"c{var.attnum}").text


def _floor(arg: nodes.Expr) -> nodes.Expr:
    return nodes.FuncExpr(2309, "floor", "float8", (arg,))


def test_a_call_is_written_once_for_each_place() -> None:
    assert _sql(_RANDOM) == "rand()"
    assert _sql(_floor(_RANDOM)).count("rand()") == 1
    both = nodes.OpExpr(670, "=", "float8eq", "bool", (_RANDOM, _OTHER))
    assert _sql(both).count("rand()") == 2


def test_what_python_computes_is_called_once() -> None:
    args = (nodes.CoerceViaIO(_RANDOM, "text"), nodes.Const("text", "[0-9]*$"))
    text = nodes.FuncExpr(2073, "substring", "text", args)
    sql = _sql(text)
    assert (sql.count("rand()"), sql.count("replctl_eval_")) == (1, 1)


def test_arguments_of_aggregates_are_refused() -> None:
    total = nodes.Aggref(2111, "sum", "float8", (_RANDOM,))
    with pytest.raises(FeatureNotSupported, match="in the arguments of an aggregate"):
        _sql(total)


def test_other_volatile_functions_are_those_of_the_session() -> None:
    assert set(CALLS) == WITHOUT_SESSION


@pytest.mark.parametrize("text", ["volatile_.v0", "\x01volatile_0\x01", "a -> b", "bound_"])
def test_texts_of_users_are_no_calls(text: str) -> None:
    constant = nodes.Const("text", text)
    assert _sql(constant) == f"'{text}'"
    both = nodes.OpExpr(
        654, "||", "textcat", "text", (constant, nodes.CoerceViaIO(_RANDOM, "text"))
    )
    other = nodes.OpExpr(
        654, "||", "textcat", "text", (nodes.Const("text", "b"), nodes.CoerceViaIO(_RANDOM, "text"))
    )
    assert _sql(both).count("rand()") == 1
    assert _sql(both).replace(text, "b") == _sql(other)
