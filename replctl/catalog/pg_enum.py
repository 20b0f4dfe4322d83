"""Find the enum labels that a transaction has added, and rename labels, which are stored as text in
each value (pg_enum.c).
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Table, select

from replctl.catalog import schema
from replctl.catalog.pg_type import type_name, type_oid
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported
from replctl.types import text

#: Columns that store expressions and queries as JSON.
_STORED = (
    (schema.pg_attrdef, "adbin"),
    (schema.pg_constraint, "conbin"),
    (schema.pg_index, "indpred"),
    (schema.pg_partitioned_table, "partexprs"),
    (schema.pg_policy, "polqual"),
    (schema.pg_policy, "polwithcheck"),
    (schema.pg_rewrite, "ev_action"),
    (schema.pg_type, "typdefaultbin"),
)


def unsafe_labels(catalog: Catalog, enum: str) -> frozenset[str]:
    """Return the labels that the open transaction has added to an older enum.  Such labels may not
    be used before COMMIT (check_safe_enum_use).
    """
    own = catalog.xids.all
    if not own:
        return frozenset()
    oid = type_oid(enum)
    rows = catalog.select(schema.pg_enum, schema.pg_enum.c.enumtypid == oid)
    added = [row for row in rows if row.xmin in own and not _was_there(catalog, row.oid, own)]
    if not added:
        return frozenset()
    made = _first_xmin(catalog, schema.pg_type, oid)
    first = {row.oid: _first_xmin(catalog, schema.pg_enum, row.oid) for row in added}
    return frozenset(str(row.enumlabel) for row in added if first[row.oid] != made)


def _was_there(catalog: Catalog, oid: int, own: list[int]) -> bool:
    """Return whether a label is older than the transaction.  If so, the transaction has only
    renamed it.
    """
    return _first_xmin(catalog, schema.pg_enum, oid) not in own


def _first_xmin(catalog: Catalog, table: Table, oid: int) -> int:
    """Return the transaction that created an object."""
    query = select(table.c.xmin).where(table.c.oid == oid).order_by(table.c.xmin)
    found = catalog.connection.execute(query).scalars().first()
    return 0 if found is None else int(found)


def rename_label(catalog: Catalog, enum: str, old: str, new: str) -> None:
    """Rename a label, even in stored expressions, partition bounds and defaults.  The caller
    changes the rows of tables.
    """
    pg_enum, oid = schema.pg_enum, type_oid(enum)
    catalog.update(pg_enum, pg_enum.c.enumtypid == oid, pg_enum.c.enumlabel == old, enumlabel=new)
    array = next(
        type_name(int(row.typarray))
        for row in catalog.select(schema.pg_type, schema.pg_type.c.oid == oid)
    )
    renaming = _Renaming(enum, array, old, new)
    for table, column in _STORED:
        for row in catalog.select(table):
            before = row._mapping[column]
            if before is not None and (enum in before or array in before):
                _put(catalog, table, row, column, before, renaming.stored(before))
    _rename_in_columns(catalog, renaming)


def _rename_in_columns(catalog: Catalog, renaming: _Renaming) -> None:
    """Rename a label in partition bounds, and in the values that a new column has in older rows."""
    pg_attribute, pg_class = schema.pg_attribute, schema.pg_class
    for row in catalog.select(pg_attribute, pg_attribute.c.attmissingval.is_not(None)):
        before = row.attmissingval
        after = renaming.constant(type_name(int(row.atttypid)), before)
        _put(catalog, pg_attribute, row, "attmissingval", before, after)
    for row in catalog.select(pg_class, pg_class.c.relpartbound.is_not(None)):
        before = row.relpartbound
        after = json.dumps(_bound(catalog, row, renaming), ensure_ascii=False)
        _put(catalog, pg_class, row, "relpartbound", before, after)


def _bound(catalog: Catalog, partition: Any, renaming: _Renaming) -> Any:
    """Return the bound of a partition with the renamed label."""
    inherits, key = schema.pg_inherits, schema.pg_partitioned_table
    bound = json.loads(partition.relpartbound)
    above = catalog.first(inherits, inherits.c.inhrelid == partition.oid)
    assert above is not None
    parent = catalog.first(key, key.c.partrelid == above.inhparent)
    assert parent is not None
    types = [_column_type(catalog, parent.partrelid, int(n)) for n in parent.partattrs.split()]
    if "values" in bound:
        bound["values"] = [
            value if value is None else renaming.constant(types[0], value)
            for value in bound["values"]
        ]
    for end in ("lower", "upper"):
        if end in bound:
            bound[end] = [
                [kind, value if value is None else renaming.constant(type_, value)]
                for (kind, value), type_ in zip(bound[end], types, strict=True)
            ]
    return bound


def _column_type(catalog: Catalog, relid: int, attnum: int) -> str:
    pg_attribute = schema.pg_attribute
    row = catalog.first(
        pg_attribute, pg_attribute.c.attrelid == relid, pg_attribute.c.attnum == attnum
    )
    return "" if row is None else type_name(int(row.atttypid))


def _put(catalog: Catalog, table: Table, row: Any, column: str, before: str, after: str) -> None:
    if after != before:
        key = [table.c[name] == row._mapping[name] for name in _key(table)]
        catalog.update(table, *key, **{column: after})


def _key(table: Table) -> list[str]:
    """Return the columns that identify the object of a row."""
    names = [column.name for column in table.c]
    keys = (["oid"], ["indexrelid"], ["partrelid"], ["adrelid", "adnum"], ["attrelid", "attnum"])
    for key in keys:
        if set(key) <= set(names):
            return key
    raise AssertionError(table.name)


class _Renaming:
    """Renames a label in the JSON of expressions."""

    def __init__(self, enum: str, array: str, old: str, new: str) -> None:
        self._enum, self._array, self._old, self._new = enum, array, old, new

    def stored(self, text: str) -> str:
        """Return the text of an expression or a query with the renamed label."""
        return json.dumps(self.renamed(json.loads(text)), ensure_ascii=False, separators=(",", ":"))

    def renamed(self, value: Any) -> Any:
        """Return JSON with the renamed label, even in nested JSON texts."""
        if isinstance(value, list):
            return [self.renamed(item) for item in value]
        if isinstance(value, str) and value.startswith('{"node":'):  # partexprs
            return self.stored(value)
        if not isinstance(value, dict):
            return value
        if value.get("node") == "Const" and value.get("value") is not None:
            return {**value, "value": self.constant(value["type"], value["value"])}
        return {name: self.renamed(item) for name, item in value.items()}

    def constant(self, type_: str, value: str) -> str:
        """Return a constant with the renamed label."""
        if type_ == self._enum:
            return self._new if value == self._old else value
        if type_ == self._array:
            items = text.parse("_text", value)
            if self._old in str(items) and type(items) is not list:
                raise FeatureNotSupported("renaming a label in arrays with bounds is not supported")
            return text.render("_text", self._items(items))
        return value

    def _items(self, items: Any) -> Any:
        if isinstance(items, list):
            return [self._items(item) for item in items]
        return self._new if items == self._old else items
