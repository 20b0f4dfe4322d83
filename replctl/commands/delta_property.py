"""Delta's properties as storage parameters: ALTER TABLE ... SET (delta.name = value) of adopted
tables, and all properties of tables that replctl makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from replctl.catalog.file_layout import DELTA_NAMESPACE, delta_properties
from replctl.catalog.pg_class import Relation
from replctl.catalog.storage import DELETION_VECTORS, SCHEMA_CHANGES
from replctl.commands.ddl import Ddl
from replctl.commands.define import get_boolean
from replctl.errors import InvalidParameterValue, SqlSyntaxError, WrongObjectType
from replctl.lake.adopt import delta_settings
from replctl.lake.delta_log import latest_version
from replctl.lake.file_access import check_writable
from replctl.lake.property_change import change_properties
from replctl.lake.small_definition import set_properties
from replctl.lake.spark_ability import check_spark_can_write
from replctl.lake.table_metadata import CHANGE_FEED
from replctl.lake.table_state import table_state
from replctl.lake.undo import storage_of
from replctl.parser import ast
from replctl.session import Session
from replctl.types.guc import plain_number

#: The properties of adopted tables that can be set, by their names in lower case, because SQL folds
#: names.
_PROPERTIES = {CHANGE_FEED.lower(): CHANGE_FEED}

LOG_RETENTION = "delta.logRetentionDuration"
FILE_RETENTION = "delta.deletedFileRetentionDuration"
INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"
CHECKPOINT_INTERVAL = "delta.checkpointInterval"
_SECONDS = {
    "week": 604_800,
    "day": 86_400,
    "hour": 3_600,
    "minute": 60,
    "second": 1,
    "millisecond": 1e-3,
    "microsecond": 1e-6,
}
_INTERVAL = re.compile(
    rf"(?:interval\s+)?(\d{{1,9}})\s+({'|'.join(_SECONDS)})s?", re.ASCII | re.IGNORECASE
)
#: Delta's defaults.
_RETENTION = {LOG_RETENTION: "interval 30 days", FILE_RETENTION: "interval 7 days"}


def is_delta_property(option: ast.DefElem) -> bool:
    """Return whether an option is a property of Delta."""
    return option.name.lower().startswith(DELTA_NAMESPACE)


# ---------------------------------------------------------------------------------------------
# Adopted tables


def set_delta_properties(
    ddl: Ddl, relation: Relation, options: Sequence[ast.DefElem], *, resets: bool
) -> None:
    """Request a commit that sets properties of an adopted Delta table, unless they are already set.

    Raises:
        InvalidParameterValue: a property cannot be set, is given twice, or has an invalid value
            (22023).
        SqlSyntaxError: the statement is RESET (42601).
        InsufficientPrivilege: the table's owner may not write files of the server (42501).
    """
    if not options:
        return
    wanted = _wanted(relation, options, resets=resets)
    check_writable(ddl.catalog, [relation])
    settings = delta_settings(storage_of(relation).location)
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


# ---------------------------------------------------------------------------------------------
# Tables that replctl makes


def own_property_name(name: str) -> str:
    """Return the name in Delta of a property of tables that replctl makes.

    Args:
        name: the name in a statement, in any case.

    Raises:
        WrongObjectType: the property is only for adopted tables (42809).
        InvalidParameterValue: the property cannot be set (22023).
    """
    if name.lower() in _PROPERTIES:
        raise WrongObjectType(
            f'storage parameter "{name}" is only for adopted tables',
            detail="Tables that replctl has made always have a change data feed.",
        )
    known = {own.lower(): own for own in _OWN}.get(name.lower())
    if known is None:
        raise InvalidParameterValue(
            f'unrecognized parameter "{name}"',
            detail=f"Of Delta's properties, these can be set: {', '.join(_OWN)}.",
            hint=_HINTS.get(name.lower()),
        )
    return known


def own_property_value(option: ast.DefElem) -> str:
    """Return the value of a property of tables that replctl makes, as Delta stores it.

    Raises:
        InvalidParameterValue: the value is not valid (22023).
        WrongObjectType: see `own_property_name`.
    """
    name = own_property_name(option.name)
    value = _OWN[name]("true" if option.value is None else option.value)
    if value is None:
        raise InvalidParameterValue(
            f'invalid value for parameter "{name}": "{option.value or ""}"', detail=_DETAILS[name]
        )
    return value


def check_retention(options: Mapping[str, str]) -> None:
    """Check that the log is kept at least as long as removed files.

    Args:
        options: the storage parameters of a table.

    Raises:
        InvalidParameterValue: the log is kept for a shorter time (22023).
    """
    log, files = (options.get(name, default) for name, default in _RETENTION.items())
    if _seconds(log) < _seconds(files):
        raise InvalidParameterValue(
            f'parameter "{LOG_RETENTION}" must not be less than "{FILE_RETENTION}"',
            detail=f'They are "{log}" and "{files}".',
            hint=f"Set {LOG_RETENTION} to the same value, too.",
        )


def _seconds(interval: str) -> float:
    found = _INTERVAL.fullmatch(interval)
    assert found is not None  # own_property_value allows no other
    return int(found[1]) * _SECONDS[found[2].lower()]


def request_properties(ddl: Ddl, relation: Relation, options: Mapping[str, str]) -> None:
    """Request a commit that changes the properties of a table that replctl has made, unless the
    Delta table has them already.

    Args:
        relation: the table with its present storage parameters.
        options: the new storage parameters.

    Raises:
        InsufficientPrivilege: the table's owner may not write files of the server (42501).
    """
    before, after = delta_properties(relation.options), delta_properties(options)
    storage = relation.storage
    if before == after or storage is None or not storage.is_made:
        return
    check_writable(ddl.catalog, [relation])
    current = table_state(storage.location).properties
    changed = {name: value for name, value in after.items() if current.get(name) != value}
    removed = [name for name in before if name not in after and name in current]
    if changed or removed:
        ddl.concerned.add(relation.oid)
        ddl.write_last(
            relation.oid, lambda: change_properties(ddl.session, relation, changed, removed)
        )


def _interval(value: str) -> str | None:
    found = _INTERVAL.fullmatch(value.strip())
    return None if found is None else f"interval {int(found[1])} {found[2].lower()}s"


def _number(minimum: int) -> Callable[[str], str | None]:
    def read(value: str) -> str | None:
        number = plain_number(value)
        is_right = number is not None and minimum <= number < 2**31 and number == int(number)
        return str(int(number)) if is_right and number is not None else None

    return read


#: The properties that can be set, each with a function that returns a value as Delta stores it, or
#: None if the value is wrong.  Spark honours them in each write.  replctl's writers without Spark
#: leave tables with the last two to Spark (small_commit.py).
_OWN: dict[str, Callable[[str], str | None]] = {
    LOG_RETENTION: _interval,
    FILE_RETENTION: _interval,
    CHECKPOINT_INTERVAL: _number(1),
    INDEXED_COLUMNS: _number(-1),
}
_DURATION = "It must be a number of weeks, days, hours, minutes or seconds, such as 30 days."
_DETAILS = {
    LOG_RETENTION: _DURATION,
    FILE_RETENTION: _DURATION,
    CHECKPOINT_INTERVAL: "It must be a number of versions, at least 1.",
    INDEXED_COLUMNS: "It must be a number of columns, or -1 for all columns.",
}
_BY_METADATA = f"Use {SCHEMA_CHANGES} = metadata instead."
#: The HINTs for properties that another storage parameter sets, by their names in lower case.
_HINTS = {
    "delta.enabledeletionvectors": f"Use {DELETION_VECTORS} instead.",
    "delta.columnmapping.mode": _BY_METADATA,
    "delta.enabletypewidening": _BY_METADATA,
}
