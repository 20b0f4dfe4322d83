"""Rewrite queries that depend on the session's TimeZone, DateStyle and similar settings, and show
their results in the form of these settings.
"""

from __future__ import annotations

from typing import Any

from replctl.expr.environment import Environment
from replctl.expr.value_text import is_shown_otherwise, shown_value
from replctl.functions import settings_form
from replctl.query.tree import transform
from replctl.result import Result
from replctl.session import Session
from replctl.types.value_format import CANONICAL


def shown_result(session: Session, result: Result) -> Result:
    """Return rows in the output format of the session.

    Raises:
        FeatureNotSupported: the type of a column does not support this format (0A000).
    """
    if session.value_format == CANONICAL or result.columns is None:
        return result
    with session.read() as catalog:
        environment = session.environment(catalog)
        types = [
            environment.type(column.type) if is_shown_otherwise(environment, column.type) else None
            for column in result.columns
        ]
        if not any(types):
            return result
        rows = [
            [
                value if value is None or type_ is None else shown_value(environment, type_, value)
                for value, type_ in zip(row, types, strict=True)
            ]
            for row in result.rows
        ]
    return Result(result.tag, result.columns, rows)


def check_row_texts(environment: Environment, query: Any) -> None:
    """Refuse a query that converts a row to text, if the text depends on the session's settings.

    Args:
        query: a query with user-defined types, or a part of one.

    Raises:
        FeatureNotSupported: the query converts such a row (0A000).
    """
    settings_form.check_row_texts(environment, query, transform)


def in_form(session: Session, part: Any) -> Any:
    """Rewrite a query, or a part of one, so that with UTC and the default settings it computes the
    same result as with the session's settings.

    Raises:
        FeatureNotSupported: the query depends on a setting in an unsupported way (0A000).
    """
    return settings_form.in_form(session, part, transform)
