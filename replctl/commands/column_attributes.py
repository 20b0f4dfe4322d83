"""ALTER TABLE: storage attributes and statistics targets of columns (tablecmds.c).

These attributes do not affect how Delta stores values.  replctl keeps them in the catalog because
dumps contain them.
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.delta_type_option import DELTA_TYPE
from replctl.catalog.heap import update_column
from replctl.catalog.native_column import all_options
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.commands.alter_column import existing_column
from replctl.commands.column_storage import compression_of, storage_of
from replctl.commands.ddl import Ddl
from replctl.commands.native_type import native_column
from replctl.commands.reloptions import changed_column_options
from replctl.errors import InvalidParameterValue
from replctl.parser import ast

_MAX_STATISTICS = 10000


def set_storage(ddl: Ddl, relation: Relation, name: str, word: str, *, recurses: bool) -> None:
    """Set the storage of a column, here and in child tables (ATExecSetStorage)."""
    column = existing_column(relation, name)
    storage = storage_of(ddl.environment, column.type, word)
    for oid, own in _columns(ddl, relation, name, recurses):
        update_column(ddl.catalog, oid, replace(own, storage=storage))


def set_compression(ddl: Ddl, relation: Relation, name: str, word: str) -> None:
    """Set the compression of a column, in this table only (ATExecSetCompression)."""
    column = existing_column(relation, name)
    compression = compression_of(ddl.environment, column.type, word)
    update_column(ddl.catalog, relation.oid, replace(column, compression=compression))


def set_statistics(ddl: Ddl, relation: Relation, name: str, text: str, *, recurses: bool) -> None:
    """Set the statistics target of a column, here and in child tables (ATExecSetStatistics).

    Raises:
        InvalidParameterValue: the number is negative.
    """
    target = None if text in ("default", "-1") else int(text)
    if target is not None and target < 0:
        raise InvalidParameterValue(f"statistics target {target} is too low")
    if target is not None and target > _MAX_STATISTICS:
        target = _MAX_STATISTICS
        ddl.notice(f"lowering statistics target to {target}", severity="WARNING", sqlstate="22023")
    existing_column(relation, name)
    for oid, own in _columns(ddl, relation, name, recurses):
        update_column(ddl.catalog, oid, replace(own, statistics=target))


def set_column_options(ddl: Ddl, relation: Relation, command: ast.AlterTableCmd) -> None:
    """Change a column's options, in this table only (ATExecSetOptions)."""
    column = existing_column(relation, command.name or "")
    resets = command.kind == "reset_column_options"
    before = all_options(column)
    options = changed_column_options(before, command.options, resets=resets)
    if options.get(DELTA_TYPE) != before.get(DELTA_TYPE):
        column = native_column(ddl, relation, column, options.get(DELTA_TYPE, ""))
    options.pop(DELTA_TYPE, None)
    update_column(ddl.catalog, relation.oid, replace(column, options=options))


def _columns(ddl: Ddl, relation: Relation, name: str, recurses: bool) -> list[tuple[int, Column]]:
    """Return a column and the columns that inherit it, each with the OID of its table."""
    found = [(relation.oid, existing_column(relation, name))]
    for oid in children_of(ddl.catalog, relation.oid) if recurses else ():
        found += _columns(ddl, ddl.own_child(oid), name, recurses)
    return found
