"""Compare the columns of a data file with those that Spark would read from it.

Files of other writers may spell the name of a column in another case, or store another type.  Spark
ignores the case of names, and refuses most of the types.  Arrow and delta-rs find no column of that
name, and so read NULL.  They also convert values to the wanted type: 1.5 becomes 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def are_read_alike(file: pa.Schema, wanted: Mapping[str, pa.DataType]) -> bool:
    """Return whether this process reads the same values as Spark from columns of a file.

    Args:
        file: the schema of the file.
        wanted: the columns, each with the type in which Spark stores it.  If the file lacks a
            column, this process and Spark both read NULL.
    """
    spelled = Counter(name.lower() for name in file.names)
    return all(
        spelled[name.lower()] == (name in file.names)
        and (name not in file.names or _is_stored_as(file.field(name).type, own))
        for name, own in wanted.items()
    )


def _is_stored_as(arrow: pa.DataType, own: pa.DataType) -> bool:
    """Return whether a type in a file has the same values as the type in which Spark stores
    them."""
    import pyarrow as pa

    if pa.types.is_list(own):
        is_list = pa.types.is_list(arrow) or pa.types.is_large_list(arrow)
        return is_list and _is_stored_as(arrow.value_type, own.value_type)
    variants = {
        pa.string(): (pa.large_string(), pa.string_view()),
        pa.binary(): (pa.large_binary(), pa.binary_view()),
    }
    return arrow in (own, *variants.get(own, ()))
