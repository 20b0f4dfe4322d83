"""ALTER TABLE ... SET (delta.name = value): change properties of an adopted Delta table."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.pg_class import Relation
from replctl.commands.ddl import Ddl
from replctl.commands.define import get_boolean
from replctl.errors import InvalidParameterValue, SqlSyntaxError, WrongObjectType
from replctl.lake.adopt import delta_settings
from replctl.lake.delta_log import latest_version
from replctl.lake.file_access import check_writable
from replctl.lake.small_definition import set_properties
from replctl.lake.spark_ability import check_spark_can_write
from replctl.lake.table_metadata import CHANGE_FEED
from replctl.lake.undo import storage_of
from replctl.parser import ast
from replctl.session import Session

_NAMESPACE = "delta."
#: The properties that can be set, by their names in lower case, because SQL folds names.
_PROPERTIES = {CHANGE_FEED.lower(): CHANGE_FEED}


def is_delta_property(option: ast.DefElem) -> bool:
    """Return whether an option is a property of Delta."""
    return option.name.lower().startswith(_NAMESPACE)


def set_delta_properties(
    ddl: Ddl, relation: Relation, options: Sequence[ast.DefElem], *, resets: bool
) -> None:
    """Request a commit that sets properties of a relation's Delta table, unless they are already
    set.

    Raises:
        WrongObjectType: the relation is not an adopted table (42809).
        InvalidParameterValue: a property cannot be set, is given twice, or has an invalid value
            (22023).
        SqlSyntaxError: the statement is RESET (42601).
        InsufficientPrivilege: the table's owner may not write files of the server (42501).
    """
    if not options:
        return
    storage = relation.storage
    if storage is None or not storage.is_adopted:
        raise WrongObjectType(
            f'storage parameter "{options[0].name}" is only for adopted tables',
            detail="Tables that replctl has made always have a change data feed.",
        )
    wanted = _wanted(relation, options, resets=resets)
    check_writable(ddl.catalog, [relation])
    settings = delta_settings(storage.location)
    changed = {k: v for k, v in wanted.items() if settings.get(k, "false").lower() != v}
    if changed:
        ddl.concerned.add(relation.oid)
        ddl.write_last(relation.oid, lambda: _set(ddl.session, relation, changed))


def _wanted(relation: Relation, options: Sequence[ast.DefElem], *, resets: bool) -> dict[str, str]:
    """Return the new values of properties by their names in Delta."""
    wanted: dict[str, str] = {}
    for option in options:
        name = _PROPERTIES.get(option.name.lower())
        if name is None:
            raise InvalidParameterValue(
                f'unrecognized parameter "{option.name}"',
                detail=f"Of Delta's properties, only {CHANGE_FEED} can be set.",
            )
        if resets:
            table = relation.quoted_name
            raise SqlSyntaxError(
                f'"{CHANGE_FEED}" cannot be reset',
                hint=f"Use ALTER TABLE {table} SET ({CHANGE_FEED} = false).",
            )
        if name in wanted:
            raise InvalidParameterValue(f'parameter "{option.name}" specified more than once')
        wanted[name] = _boolean(option)
    return wanted


def _boolean(option: ast.DefElem) -> str:
    try:
        return "true" if get_boolean(option) else "false"
    except SqlSyntaxError:
        raise InvalidParameterValue(
            f'invalid value for boolean option "{option.name}": {option.value}'
        ) from None


def _set(session: Session, relation: Relation, properties: dict[str, str]) -> int | None:
    """Commit properties of a Delta table.  Report all settings that change with them, such as the
    protocol.  Return the newest version afterwards.
    """
    check_spark_can_write(session, relation)
    location = storage_of(relation).location
    set_properties(session, location, properties)
    return latest_version(location)
