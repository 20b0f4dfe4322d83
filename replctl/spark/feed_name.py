"""Names of change data feeds in Spark SQL."""

from __future__ import annotations

import re

from replctl.spark.data_type import quote

_FEED = re.compile(r"table_changes_by_path\('((?:[^'\\]|\\.)*)'")
_ESCAPED = re.compile(r"\\(.)")


def feed_of(location: str, first: int, last: int) -> str:
    """Return SQL that reads a table's change data feed from version `first` to version `last`,
    including both."""
    return f"table_changes_by_path({quote(location)}, {first}, {last})"


def feeds_in(text: str) -> list[str]:
    """Return the locations of the tables whose change data feeds a statement reads."""
    return [_ESCAPED.sub(r"\1", quoted) for quoted in _FEED.findall(text)]
