"""Read the storage parameters for the layout of a Delta table's files: the columns by which the
table is partitioned or clustered, and Delta's own properties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replctl.types.quote import quote_identifier, split_identifiers

#: The storage parameters with the names of the columns by which Delta partitions or clusters the
#: files of a table.
PARTITION_BY, CLUSTER_BY = LAYOUT = ("partition_by", "cluster_by")

#: The namespace of the storage parameters that are properties of Delta.
DELTA_NAMESPACE = "delta."


def layout_columns(options: Mapping[str, str], parameter: str) -> tuple[str, ...]:
    """Return the columns that PARTITION_BY or CLUSTER_BY names; () if it is not set.

    Args:
        options: the storage parameters of a table.
    """
    return tuple(split_identifiers(options.get(parameter, "")) or ())


def layout_text(columns: Sequence[str]) -> str:
    """Return the value of PARTITION_BY or CLUSTER_BY for these columns."""
    return ", ".join(map(quote_identifier, columns))


def delta_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the storage parameters that are properties of Delta, by their names in Delta."""
    return {name: value for name, value in options.items() if name.startswith(DELTA_NAMESPACE)}
