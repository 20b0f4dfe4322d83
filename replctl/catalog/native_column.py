"""Native columns (types/delta_type.py) in the catalog: where their Delta type is kept, and what
statements cannot do with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from replctl.errors import FeatureNotSupported
from replctl.types.delta_type import is_native, native_text, native_type_name

if TYPE_CHECKING:
    from replctl.catalog.pg_class import Column, Relation

#: The attribute option that holds the Delta type in Spark's words.
DELTA_TYPE = "delta_type"
#: The subject of the error of an expression.
EXPRESSIONS = "expressions over columns of"
#: The subject of the error of a statement that writes a native column.
VALUES = "new values of"


def options_and_type(attoptions: str | None, declared: str) -> tuple[dict[str, str], str]:
    """Return the other options of a column, and its type.

    Args:
        attoptions: pg_attribute.attoptions as JSON.
        declared: the type of pg_attribute.
    """
    options: dict[str, str] = json.loads(attoptions) if attoptions else {}
    return options, native_type_name(options.pop(DELTA_TYPE, "")) or declared


def stored_options(column: Column) -> str | None:
    """Return pg_attribute.attoptions of a column."""
    options = all_options(column)
    return json.dumps(options) if options else None


def all_options(column: Column) -> dict[str, str]:
    """Return the options of a column, with that of its Delta type."""
    native = native_text(column.type)
    return column.options | ({DELTA_TYPE: native} if native else {})


def have_one_type(one: Column, other: Column) -> bool:
    """Return whether two columns have one type, and one Delta type if they are native."""
    types = [(c.declared_type, c.type, c.typmod) for c in (one, other)]
    return types[0] == types[1]


def check_not_native(relation: Relation, what: str, attnums: Iterable[int]) -> None:
    """Check that none of some columns is native; 0 is the whole row.

    Args:
        what: the subject of the error, like EXPRESSIONS.

    Raises:
        FeatureNotSupported: one is.
    """
    used = set(attnums)
    for column in relation.columns:
        if is_native(column.type) and not used.isdisjoint((0, column.attnum)):
            raise native_refused(column, relation.name, what)


def native_refused(column: Column, table: str, what: str) -> FeatureNotSupported:
    """Return the error of a statement that cannot use a native column."""
    return FeatureNotSupported(
        f"{what} Delta type {native_text(column.type)} are not supported",
        detail=f'Column "{column.name}" of table "{table}" has this type.',
    )
