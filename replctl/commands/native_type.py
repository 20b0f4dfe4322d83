"""ALTER COLUMN ... SET (delta_type = ...): choose the Delta type of a native column
(types/delta_type.py) in a table that replctl makes, or follow the type in an adopted table.
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.delta_type_option import DELTA_TYPE
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.relation_kind import RelKind
from replctl.commands.alter_type import check_type_unused, is_adopted_as
from replctl.commands.ddl import Ddl
from replctl.commands.table_expression import columns_used
from replctl.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    WrongObjectType,
)
from replctl.lake.column_fault import delta_column
from replctl.lake.storage_place import REFUSED_IN_NAMES
from replctl.types.delta_type import SHOWN_AS, field_names, native_type_name, parsed
from replctl.types.quote import quote_identifier


def native_column(ddl: Ddl, relation: Relation, column: Column, text: str) -> Column:
    """Return a column with the chosen Delta type.

    A column of an adopted table may have another type before, if the Delta table has the chosen
    type.

    Args:
        text: the Delta type in Spark's SQL.

    Raises:
        InvalidParameterValue: the text is not a type of native columns.
        WrongObjectType: the column is not of type jsonb, or the table has partitions, parents or
            children.
        ObjectNotInPrerequisiteState: the Delta table already has the column.
        FeatureNotSupported: the statement resets the type, a field name is not supported, or
            another object uses the column.
    """
    found = parsed(text)
    if not text:
        raise FeatureNotSupported(f'resetting parameter "{DELTA_TYPE}" is not supported')
    native = native_type_name("" if found is None else found.text)
    chosen = replace(column, type=native, typmod=-1, collation=None, dimensions=0)
    is_there = is_adopted_as(relation, chosen)
    names = () if is_there else field_names(found)
    if any(set(REFUSED_IN_NAMES).intersection(name) for name in names):
        others = [quote_identifier(c.name) for c in relation.columns if c.name != column.name]
        raise FeatureNotSupported(
            f'parameter "{DELTA_TYPE}" is not supported for a STRUCT with this field name',
            detail=f"A name in {text} has a blank or one of ,;{{}}()=.",
            hint="To replicate the table without this column, give it a column list in its"
            f" publication: ({', '.join(others)}).",
        )
    if found is None or not found.is_native:
        raise InvalidParameterValue(
            f'invalid value for parameter "{DELTA_TYPE}": "{text}"',
            detail="It must be VARIANT, a STRUCT, a MAP, or an array of these or of arrays.",
        )
    storage = relation.storage
    is_plain = relation.kind == RelKind.TABLE and not relation.parents and storage is not None
    has_own_type = bool(column.domain or column.user_type)
    is_shown_alike = column.declared_type == SHOWN_AS or (is_there and not has_own_type)
    if not is_plain or not is_shown_alike or children_of(ddl.catalog, relation.oid):
        raise WrongObjectType(
            f'parameter "{DELTA_TYPE}" is only for columns of type jsonb in tables without'
            " partitions and children"
        )
    assert storage is not None
    if not is_there and storage.columns[column.attnum].since_version is not None:
        raise ObjectNotInPrerequisiteState(
            f'the Delta table of "{relation.name}" has column "{column.name}" already'
        )
    check_type_unused(ddl, relation, column)
    _check_unused(relation, column)
    known = delta_column(relation, column.attnum) if is_there else None
    return chosen if known is None else replace(chosen, field_names=known.field_names)


def _check_unused(relation: Relation, column: Column) -> None:
    """Check that a column has no default, and that no CHECK and no index uses it."""
    exprs = [c.check for c in relation.checks()]
    exprs += [index.predicate for index in relation.indexes]
    exprs += [expr for index in relation.indexes for expr in index.exprs]
    used = {attnum for expr in exprs if expr is not None for attnum in columns_used(expr)}
    used.update(attnum for index in relation.indexes for attnum in (*index.key, *index.including))
    is_used = not used.isdisjoint((0, column.attnum)) or column.default is not None
    if is_used or column.identity or column.missing_value is not None:
        raise FeatureNotSupported(
            f'parameter "{DELTA_TYPE}" is not supported for a column with a default, or used by a'
            " key or an expression",
            detail=f'Column "{column.name}" of table "{relation.name}" has one of these uses.',
        )
