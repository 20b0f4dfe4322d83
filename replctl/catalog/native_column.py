"""Store the Delta types of native columns (types/delta_type.py), and refuse statements that cannot
use such columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from replctl.catalog.delta_type_option import DELTA_TYPE
from replctl.catalog.pg_class import Column, Relation
from replctl.errors import FeatureNotSupported
from replctl.types.delta_type import is_native, native_text

#: The subject of the error for expressions.
EXPRESSIONS = "expressions over columns of"
#: The subject of the error for statements that write a native column.
VALUES = "new values of"


def stored_options(column: Column) -> str | None:
    """Return a column's options in the form of pg_attribute.attoptions; None if it has none."""
    options = all_options(column)
    return json.dumps(options) if options else None


def all_options(column: Column) -> dict[str, str]:
    """Return the options of a column, including that of its Delta type."""
    native = native_text(column.type)
    return column.options | ({DELTA_TYPE: native} if native else {})


def have_one_type(one: Column, other: Column) -> bool:
    """Return whether two columns have the same type, and the same Delta type if they are native."""
    types = [(c.declared_type, c.type, c.typmod) for c in (one, other)]
    return types[0] == types[1]


def check_not_native(relation: Relation, what: str, attnums: Iterable[int]) -> None:
    """Check that none of these columns is native; 0 stands for the whole row.

    Args:
        what: the subject of the error, for example EXPRESSIONS.

    Raises:
        FeatureNotSupported: a column is native (0A000).
    """
    used = set(attnums)
    for column in relation.columns:
        if is_native(column.type) and not used.isdisjoint((0, column.attnum)):
            raise native_refused(column, relation.name, what)


def native_refused(column: Column, table: str, what: str) -> FeatureNotSupported:
    """Return the error for a statement that cannot use a native column."""
    return FeatureNotSupported(
        f"{what} Delta type {native_text(column.type)} are not supported",
        detail=f'Column "{column.name}" of table "{table}" has this type.',
    )
