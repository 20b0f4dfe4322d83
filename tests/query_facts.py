"""Compare the tables that a query of Spark SQL says it reads with those that its text names."""

from __future__ import annotations

import re
from collections.abc import Collection

from replctl.spark import SparkQuery

_TABLE = re.compile(r"delta\.`((?:[^`]|``)+)`")
_FEED = re.compile(r"table_changes_by_path\('((?:[^'\\]|\\.)*)'")
_ESCAPED = re.compile(r"\\(.)")


def named_feeds(text: str) -> set[str]:
    """Return the locations of the tables whose change data feeds a text reads."""
    return {_ESCAPED.sub(r"\1", quoted) for quoted in _FEED.findall(text)}


def named_tables(text: str) -> set[str]:
    """Return the locations of the tables that a text names."""
    return {name.replace("``", "`") for name in _TABLE.findall(text)} | named_feeds(text)


def check_facts(query: SparkQuery, large_views: Collection[str] = ()) -> None:
    """Check that a query knows all tables and large views that its text names."""
    text = query.sql
    assert named_tables(text) <= query.tables, text
    assert named_feeds(text) <= query.feeds, text
    named = {view for view in tuple(large_views) if re.search(rf"(?<![\w.]){view}\b", text)}
    assert named <= query.views, text
