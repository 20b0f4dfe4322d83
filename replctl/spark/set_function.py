"""Translate set-returning functions in FROM to Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.errors import FeatureNotSupported
from replctl.spark.sql_value import SqlValue, raise_error_sql


def set_function_sql(name: str, args: Sequence[SqlValue], *, with_ordinality: bool = False) -> str:
    """Return the SELECT list for a set-returning function.  Its column c1 is the function's result;
    WITH ORDINALITY adds c2, the row's number.

    Raises:
        FeatureNotSupported: the function has no translation.
    """
    match name:
        case "generate_series" if {arg.type for arg in args} <= {"int4", "int8"}:
            start, stop = args[0].text, args[1].text
            step = args[2].text if len(args) > 2 else "1"
            zero = raise_error_sql("22023", "step size cannot equal zero")
            rows = (
                f"CASE WHEN {step} = 0 THEN {zero} WHEN ({step} > 0) = ({start} <= {stop})"
                f" OR {start} = {stop} THEN sequence({start}, {stop}, {step}) END"
            )
        case "unnest" if len(args) == 1:
            rows = args[0].text
        case _:
            raise FeatureNotSupported(f"function {name} is not supported in FROM")
    if with_ordinality:
        return (
            f"c1, CAST(place + 1 AS BIGINT) AS c2 FROM (SELECT posexplode({rows}) AS (place, c1))"
        )
    return f"explode({rows}) AS c1"
