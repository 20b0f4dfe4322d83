"""Follow type widening by other programs in a Delta table: the relation's column gets the new type
if nothing depends on the old type.
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.transaction import Catalog
from replctl.lake.adopt import DeltaColumn
from replctl.lake.column_dependents import has_type_dependents
from replctl.types import type_modifier
from replctl.types.numeric import precision_and_scale

#: Decimal digits of the integer types.
_DIGITS = {"int2": 5, "int4": 10, "int8": 19}
#: Other types that contain all values of a type, by type.
_WIDER = {
    "int2": ("float8",),
    "int4": ("float8",),
    "float4": ("float8",),
    "date": ("timestamp",),
}


def widened(
    catalog: Catalog, relation: Relation, column: Column, found: DeltaColumn
) -> Column | None:
    """Return a column with the type that it has in the Delta table; None if this type is not wider,
    or if something depends on the old type.  A text gets a longer length even then.

    Args:
        relation: the table of the column.
        found: the column in the Delta table.
    """
    if not is_wider((column.type, column.typmod), (found.type, found.typmod)):
        return None
    if not has_type_dependents(catalog, relation, column.attnum):
        return replace(column, type=found.type, typmod=found.typmod)
    is_alone = not relation.parents and not children_of(catalog, relation.oid)
    if column.type in ("varchar", "_varchar") and is_alone:  # nothing else reads the length
        return replace(column, typmod=found.typmod if found.type == column.type else -1)
    return None


def is_wider(old: tuple[str, int], new: tuple[str, int]) -> bool:
    """Return whether the type `new` contains all values of the type `old`, and more.

    int8 is wider than int4, numeric(12,4) than numeric(10,2), and varchar(9) and text than
    varchar(5); float8 is not wider than int8.  An array is wider than another if its element type
    is.

    Args:
        old, new: type and typmod.
    """
    if old[0].startswith("_") and new[0].startswith("_"):
        return is_wider((old[0][1:], old[1]), (new[0][1:], new[1]))
    if old[0] == "varchar" and new[0] in ("varchar", "text"):
        return old != new and type_modifier.is_wider("varchar", old[1], new[1])
    before, after = _digits(*old), _digits(*new)
    if before is None or after is None:
        return new[0] in _WIDER.get(old[0], ())
    if new[0] != "numeric" and old[0] == "numeric":
        return False
    is_same = before == after and old[0] == new[0]
    return not is_same and before[0] <= after[0] and before[1] <= after[1]


def _digits(type_: str, typmod: int) -> tuple[int, int] | None:
    """Return the maximum numbers of digits before and after the decimal point; None for other
    types.
    """
    if type_ == "numeric" and typmod >= 0:
        precision, scale = precision_and_scale(typmod)
        return precision - scale, scale
    return (_DIGITS[type_], 0) if type_ in _DIGITS else None
