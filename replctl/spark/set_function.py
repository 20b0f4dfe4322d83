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
    rows = _array_sql(name, args)
    if with_ordinality:
        return (
            f"c1, CAST(place + 1 AS BIGINT) AS c2 FROM (SELECT posexplode({rows}) AS (place, c1))"
        )
    return f"explode({rows}) AS c1"


def zipped_sets_sql(calls: Sequence[tuple[str, Sequence[SqlValue]]]) -> str:
    """Return the SELECT list for the rows of several set-returning functions next to each other,
    with NULLs in the shorter sets. The columns are c1, c2, ...

    Args:
        calls: names of functions, with their arguments.

    Raises:
        FeatureNotSupported: a function has no translation.
    """
    sets = ", ".join(f"coalesce({_array_sql(name, args)}, array())" for name, args in calls)
    names = ", ".join(f"c{i}" for i in range(1, len(calls) + 1))
    return f"inline(arrays_zip({sets})) AS ({names})"


def _array_sql(name: str, args: Sequence[SqlValue]) -> str:
    """Return SQL of an array with the rows of a set-returning function."""
    match name:
        case "generate_series" if {arg.type for arg in args} <= {"int4", "int8"}:
            start, stop = args[0].text, args[1].text
            step = args[2].text if len(args) > 2 else "1"
            zero = raise_error_sql("22023", "step size cannot equal zero")
            return (
                f"CASE WHEN {step} = 0 THEN {zero} WHEN ({step} > 0) = ({start} <= {stop})"
                f" OR {start} = {stop} THEN sequence({start}, {stop}, {step}) END"
            )
        case "unnest" if len(args) == 1:
            return args[0].text
    raise FeatureNotSupported(f"function {name} is not supported in FROM")
