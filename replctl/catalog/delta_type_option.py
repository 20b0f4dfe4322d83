"""Read the attribute option that holds the Delta type of a native column."""

from __future__ import annotations

import json

from replctl.types.delta_type import native_type_name

#: The attribute option with the Delta type, in Spark's syntax.
DELTA_TYPE = "delta_type"


def options_and_type(attoptions: str | None, declared: str) -> tuple[dict[str, str], str]:
    """Return a column's options without that of the Delta type, and the column's type.

    Args:
        attoptions: pg_attribute.attoptions as JSON.
        declared: the type in pg_attribute, which is the result for a column that is not native.
    """
    options: dict[str, str] = json.loads(attoptions) if attoptions else {}
    return options, native_type_name(options.pop(DELTA_TYPE, "")) or declared
