"""Refuse published columns of a native Delta type (types/delta_type.py) whose values a target would
have to convert.
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.pg_subscription import list_subscriptions, subscriptions_of_relation
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported
from replctl.lake.column_fault import has_type
from replctl.lake.column_repair import drop_column, key_names, retype_column
from replctl.replication.node import RemoteColumn, RemoteRelation
from replctl.replication.refresh_hint import refresh_hint
from replctl.replication.table_definition import native_statement
from replctl.types.builtin import types
from replctl.types.delta_type import is_native, native_text, shown_type
from replctl.types.quote import quote_identifier
from replctl.types.type_modifier import format_type


class ConvertedNative(FeatureNotSupported):
    """Raised if values of a native Delta type would have to be converted, or to become native."""


def check_native(catalog: Catalog, relation: Relation, remote: RemoteRelation) -> None:
    """Check that columns of a native Delta type receive values of this type, and that other columns
    receive no values of native types.

    Raises:
        ConvertedNative: values would have to be converted.
    """
    for sent in remote.columns:
        column = relation.column(sent.name)
        if column is None or sent.type == column.type:
            continue
        kinds = (sent.type, column.type)
        if any(map(is_native, kinds)):
            shown = [f"Delta type {native_text(t)}" if is_native(t) else f"type {t}" for t in kinds]
            raise ConvertedNative(
                f"conversion of {shown[0]} to {shown[1]} is not supported",
                detail=f'Column "{column.name}" of logical replication target relation'
                f' "{relation.qualified_name}" differs in its type from the published column.',
                hint=_hint(catalog, relation, column, sent),
            )


def _hint(catalog: Catalog, relation: Relation, column: Column, sent: RemoteColumn) -> str | None:
    """Return the hint with the statements that give a target's column the type of the published
    column, and its values again; None if there are no such statements.

    The values of an adopted table's column change their type only in the Delta table, by its owner.
    """
    type_ = types().get(shown_type(sent.type))
    if type_ is None:
        return None
    shown = format_type(type_, sent.typmod)
    if relation.storage is not None and relation.storage.is_adopted:
        now = replace(column, type=sent.type, typmod=sent.typmod, domain="", user_type="")
        if not has_type(relation, now):
            return None
        changes = [retype_column(relation, column, (sent.type, shown))]
    elif (
        relation.kind != RelKind.TABLE
        or relation.parents
        or children_of(catalog, relation.oid)
        or column.name in key_names(relation)
    ):
        return None
    else:
        name = quote_identifier(column.name)
        changes = [
            drop_column(relation, column),
            f"ALTER TABLE {relation.quoted_name} ADD COLUMN {name} {shown};",
        ]
        if is_native(sent.type):
            native = native_text(sent.type)
            changes.append(f"{native_statement(relation.quoted_name, column.name, native)};")
    oids = set(subscriptions_of_relation(catalog, relation.oid))
    subscriptions = [s for s in list_subscriptions(catalog) if s.oid in oids]
    refreshes = [refresh_hint(s, relation.relation_name) for s in subscriptions]
    return " ".join(["Use", *changes, *refreshes])
