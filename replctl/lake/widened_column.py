"""Follow type widening by others in a Delta table: the relation's column gets the new type if
nothing depends on the old one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.pg_policy import policies_of
from replctl.catalog.pg_publication import published_tables
from replctl.catalog.pg_rewrite import view_rules
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes
from replctl.lake.adopt import DeltaColumn
from replctl.types.numeric import precision_and_scale

#: Decimal digits of the integer types.
_DIGITS = {"int2": 5, "int4": 10, "int8": 19}
#: Other types that contain all values of a type.
_WIDER = {
    "int2": ("float8",),
    "int4": ("float8",),
    "float4": ("float8",),
    "date": ("timestamp",),
}


def widened(
    catalog: Catalog, relation: Relation, column: Column, found: DeltaColumn
) -> Column | None:
    """Return a column with its new type in the Delta table; None if the type is not wider, or if
    something depends on the old one.

    Args:
        relation: the table of the column.
        found: the column in the Delta table.
    """
    if not is_wider((column.type, column.typmod), (found.type, found.typmod)):
        return None
    if _has_dependents(catalog, relation, column.attnum):
        return None
    return replace(column, type=found.type, typmod=found.typmod)


def is_wider(old: tuple[str, int], new: tuple[str, int]) -> bool:
    """Return whether a type contains all values of another one, and more.

    int4 to int8 and numeric(10,2) to numeric(12,4) are wider; int8 to float8 is not.

    Args:
        old, new: type and typmod.
    """
    before, after = _digits(*old), _digits(*new)
    if before is None or after is None:
        return new[0] in _WIDER.get(old[0], ())
    if new[0] != "numeric" and old[0] == "numeric":
        return False
    is_same = before == after and old[0] == new[0]
    return not is_same and before[0] <= after[0] and before[1] <= after[1]


def _digits(type_: str, typmod: int) -> tuple[int, int] | None:
    """Return the number of digits before and after the point."""
    if type_ == "numeric" and typmod >= 0:
        precision, scale = precision_and_scale(typmod)
        return precision - scale, scale
    return (_DIGITS[type_], 0) if type_ in _DIGITS else None


def _has_dependents(catalog: Catalog, relation: Relation, attnum: int) -> bool:
    """Return whether something may depend on a column's type (as alter_type._check_unused)."""
    if relation.parents or children_of(catalog, relation.oid) or policies_of(catalog, relation.oid):
        return True
    if any(str(relation.oid) in text for text in view_rules(catalog).values()):
        return True
    has_expression = any(0 in i.key or i.predicate is not None for i in relation.indexes)
    if has_expression or relation.foreign_keys() or relation.column_at(attnum).identity:
        return True
    used = chain.from_iterable(map(nodes.walk, _expressions(catalog, relation)))
    is_used = any(isinstance(node, nodes.Var) and node.attnum in (attnum, 0) for node in used)
    return is_used or relation.column_at(attnum).default is not None


def _expressions(catalog: Catalog, relation: Relation) -> Iterator[nodes.Expr]:
    """Yield the expressions over a relation's columns."""
    parts = [check.check for check in relation.checks()]
    parts += [column.default for column in relation.columns]
    parts += [m.row_filter for m in published_tables(catalog, relids=[relation.oid])]
    return (part for part in parts if part is not None)
