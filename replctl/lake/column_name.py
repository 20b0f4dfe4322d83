"""Choose names that PostgreSQL allows for columns of Delta tables."""

from __future__ import annotations

from collections.abc import Collection

from replctl.types.builtin import system_columns
from replctl.types.identifier import MAX_BYTES, clipped


def column_name(wanted: str, taken: Collection[str] = ()) -> str:
    """Return the name in its relation of a column of a Delta table: its own name, or a similar one
    if that is the name of another column or of a system column, or longer than 63 bytes.

    'xmin'  ->  'xmin_1'

    Args:
        taken: the names of the relation's other columns, including dropped ones.
    """
    name, number = clipped(wanted), 0
    while name in taken or name in system_columns():
        number += 1
        suffix = f"_{number}"
        name = clipped(wanted, MAX_BYTES - len(suffix)) + suffix
    return name


def column_names(delta_names: Collection[str]) -> dict[str, str]:
    """Return the name in an adopted relation of each column of a Delta table.

    ['xmin', 'xmin_1', 'v']  ->  {'xmin': 'xmin_2', 'xmin_1': 'xmin_1', 'v': 'v'}
    """
    taken = {name for name in delta_names if column_name(name) == name}
    names = {}
    for wanted in delta_names:
        names[wanted] = wanted if wanted in taken else column_name(wanted, taken)
        taken.add(names[wanted])
    return names
