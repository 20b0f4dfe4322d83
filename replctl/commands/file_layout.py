"""The storage parameters partition_by and cluster_by: the columns by which Delta partitions or
clusters the files of a table that replctl makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from replctl.catalog.file_layout import (
    CLUSTER_BY,
    LAYOUT,
    PARTITION_BY,
    delta_properties,
    layout_columns,
    layout_text,
)
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.storage import Storage
from replctl.commands.delta_property import INDEXED_COLUMNS, check_retention
from replctl.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidParameterValue,
    InvalidTableDefinition,
    SqlSyntaxError,
    TooManyColumns,
    UndefinedColumn,
)
from replctl.lake.own_commit import stored_type
from replctl.spark import TableColumn
from replctl.types.delta_type import DeltaType
from replctl.types.quote import quote_literal, split_identifiers

#: The types by which Delta partitions, and whose values its log keeps as texts without a loss.
_PARTITION_TYPES = frozenset(
    (
        *("bool", "int2", "int4", "int8", "numeric", "date"),
        *("text", "varchar", "bpchar", "name", "uuid"),
    )
)
#: The types for which Delta keeps the least and the greatest value of each file.
_CLUSTER_TYPES = _PARTITION_TYPES - {"bool"} | {"float4", "float8", "timestamp", "timestamptz"}
_TYPES = {PARTITION_BY: _PARTITION_TYPES, CLUSTER_BY: _CLUSTER_TYPES}
_VERBS = {PARTITION_BY: "partition", CLUSTER_BY: "cluster"}
#: Maximum number of columns by which Delta clusters a table (DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS).
_MOST_CLUSTERED = 4
#: The number of columns with statistics if delta.dataSkippingNumIndexedCols is not set.
_INDEXED = 32


def check_layout(relation: Relation) -> None:
    """Check the layout and the properties of Delta that a table's storage parameters ask for.

    Raises:
        InvalidParameterValue: a value is not a list of names, or `check_retention` fails (22023).
        UndefinedColumn, DuplicateColumn: a name is wrong, or given twice.
        SqlSyntaxError: both parameters are set.
        FeatureNotSupported: Delta cannot partition or cluster by a column's type, or has no
            statistics for a column (0A000).
        TooManyColumns: there are more clustering columns than Delta allows (54011).
        InvalidTableDefinition: no column would be left in the data files (42P16).
    """
    given = [name for name in LAYOUT if name in relation.options]
    if len(given) == len(LAYOUT):
        raise SqlSyntaxError(f"{PARTITION_BY} and {CLUSTER_BY} are mutually exclusive options")
    check_retention(relation.options)
    for parameter in given:
        columns = _named_columns(relation, parameter)
        for column in columns:
            _check_type(parameter, column, columns)
        if parameter == PARTITION_BY:
            _check_left(relation, [c for c in relation.columns if c not in columns])
        else:
            _check_clustered(relation, columns)


def _named_columns(relation: Relation, parameter: str) -> list[Column]:
    value = relation.options[parameter]
    names = split_identifiers(value)
    if not names:
        raise InvalidParameterValue(
            f'invalid value for parameter "{parameter}": "{value}"',
            detail="It must be a list of column names, separated by commas.",
        )
    columns: list[Column] = []
    for name in names:
        column = relation.column(name)
        if column is None:
            raise UndefinedColumn(
                f'column "{name}" named in storage parameter "{parameter}" does not exist'
            )
        if column in columns:
            raise DuplicateColumn(f'column "{name}" specified more than once')
        columns.append(column)
    return columns


def _check_type(parameter: str, column: Column, columns: list[Column]) -> None:
    if column.type in _TYPES[parameter] and not column.user_type:
        return
    raise FeatureNotSupported(
        f'storage parameter "{parameter}" does not support column "{column.name}"',
        detail=f"Delta cannot {_VERBS[parameter]} a table by values of its type without a loss.",
        hint=_other_layout(columns) if parameter == PARTITION_BY else None,
    )


def _other_layout(columns: list[Column]) -> str | None:
    """Return the HINT to cluster a table by columns by which Delta cannot partition it."""
    if any(c.type not in _CLUSTER_TYPES or c.user_type for c in columns):
        return None
    value = quote_literal(layout_text([column.name for column in columns]))
    return f"Use {CLUSTER_BY} = {value} instead."


def _check_left(relation: Relation, left: list[Column]) -> None:
    if not left:
        raise InvalidTableDefinition(
            f'cannot partition the Delta table of "{relation.name}" by all of its columns'
        )


def _check_clustered(relation: Relation, columns: list[Column]) -> None:
    if len(columns) > _MOST_CLUSTERED:
        raise TooManyColumns(f"cannot cluster a Delta table by more than {_MOST_CLUSTERED} columns")
    most = int(relation.options.get(INDEXED_COLUMNS, _INDEXED))
    place = 0
    for column in relation.columns:
        if column in columns and most >= 0 and place >= most:
            raise FeatureNotSupported(
                f'storage parameter "{CLUSTER_BY}" does not support column "{column.name}"',
                detail=f"Delta keeps statistics of the first {most} columns only.",
                hint=f"Also set {INDEXED_COLUMNS} = -1.",
            )
        place += sum(1 for _leaf in _leaves(stored_type(_in_storage(column))))


def _in_storage(column: Column) -> TableColumn:
    return TableColumn(column.attnum, column.type, column.typmod, column.name)


def _leaves(type_: DeltaType) -> Iterator[str]:
    """Yield the types in a type that Delta counts as columns."""
    if type_.name != "STRUCT":
        yield type_.name
        return
    for _label, part in type_.parts:
        yield from _leaves(part)


# ---------------------------------------------------------------------------------------------
# Changes


def check_layout_change(relation: Relation, options: Mapping[str, str]) -> None:
    """Check that a table may get other storage parameters.

    Args:
        relation: the table with its present parameters.

    Raises:
        FeatureNotSupported: the Delta table exists already, and has another layout (0A000).
        PostgresError: see `check_layout`.
    """
    changed = [name for name in LAYOUT if options.get(name) != relation.options.get(name)]
    if changed and relation.storage is not None and _is_begun(relation.storage):
        raise FeatureNotSupported(
            f'the option "{changed[0]}" of a table that has been written cannot be changed',
            hint="Make a new table with this option, and copy the rows.",
        )
    if changed or delta_properties(options) != delta_properties(relation.options):
        check_layout(replace(relation, options=dict(options)))


def _is_begun(storage: Storage) -> bool:
    """Return whether the Delta table exists, or a dead process may have made it."""
    return storage.is_made or storage.was_empty is not None


def renamed_in_layout(relation: Relation, old: str, new: str) -> dict[str, str]:
    """Return a table's storage parameters after one of its columns was renamed."""
    options = dict(relation.options)
    for parameter in LAYOUT:
        names = layout_columns(options, parameter)
        if old in names:
            options[parameter] = layout_text([new if name == old else name for name in names])
    return options


def check_not_in_layout(relation: Relation, column: Column, verb: str) -> None:
    """Check that a table's files are not partitioned or clustered by a column.

    Args:
        verb: what the statement does with the column: `alter` or `drop`.

    Raises:
        InvalidTableDefinition: a storage parameter names the column (42P16).
    """
    for parameter in LAYOUT:
        if column.name in layout_columns(relation.options, parameter):
            raise InvalidTableDefinition(
                f'cannot {verb} column "{column.name}" because storage parameter "{parameter}" of'
                f' relation "{relation.name}" names it'
            )


def check_can_be_dropped(relation: Relation, attnum: int) -> None:
    """Check that the layout of a table's files allows to drop a column.

    Raises:
        InvalidTableDefinition: the files are partitioned or clustered by the column, or by all
            other columns (42P16).
    """
    partitions = layout_columns(relation.options, PARTITION_BY)
    column = next((c for c in relation.columns if c.attnum == attnum), None)
    if column is None:
        return
    check_not_in_layout(relation, column, "drop")
    if partitions:
        _check_left(
            relation,
            [c for c in relation.columns if c.name not in (*partitions, column.name)],
        )
