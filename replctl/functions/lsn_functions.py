"""PostgreSQL's functions about the log and its files, by their names in pg_proc.prosrc
(xlogfuncs.c, pg_controldata.c).

The functions return a numeric as its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from replctl.catalog import state_schema
from replctl.catalog.pg_control import check_writes_log
from replctl.catalog.transaction import insert_lsn, next_insert_lsn, switch_segment
from replctl.errors import InvalidParameterValue

if TYPE_CHECKING:
    from replctl.functions.function_context import FunctionContext

_TIMELINE = 1
_FILE_NAME = re.compile(r"[0-9A-Fa-f]{24}")
#: The versions of pg_control and of the catalogs in PostgreSQL 17.
_CONTROL_VERSION, _CATALOG_VERSION = 1700, 202406281


def _current(context: FunctionContext) -> int:
    check_writes_log(context.catalog.connection)
    return insert_lsn(context.catalog.connection)


def _current_insert(context: FunctionContext) -> int:
    check_writes_log(context.catalog.connection)
    return next_insert_lsn(context.catalog.connection)


def _switch_wal(context: FunctionContext) -> int:
    """Move the end of the log to the end of its segment; return the old end."""
    size = _segment_size(context)
    with context.cluster.begin(write=True) as connection:
        return switch_segment(connection, size)


# -- files


def _segment_size(context: FunctionContext) -> int:
    return int(context.session.setting("wal_segment_size"))


def _walfile_name(context: FunctionContext, lsn: int) -> str:
    size = _segment_size(context)
    high, low = divmod(lsn // size, 2**32 // size)
    return f"{_TIMELINE:08X}{high:08X}{low:08X}"


def _walfile_name_offset(context: FunctionContext, lsn: int) -> tuple[str, int]:
    return _walfile_name(context, lsn), lsn % _segment_size(context)


def _split_walfile_name(context: FunctionContext, name: str) -> tuple[str, int]:
    if _FILE_NAME.fullmatch(name) is None:
        raise InvalidParameterValue(f'invalid WAL file name "{name}"')
    timeline, high, low = (int(name[i : i + 8], 16) for i in (0, 8, 16))
    return str(high * (2**32 // _segment_size(context)) + low), timeline


# -- the cluster


def _control_system(context: FunctionContext) -> tuple[int, int, int, int]:
    modified = (context.cluster.path / "catalog.db").stat().st_mtime_ns // 1000
    identifier = context.catalog.connection.execute(
        select(state_schema.pg_control.c.system_identifier)
    )
    return _CONTROL_VERSION, _CATALOG_VERSION, int(identifier.scalar_one()), modified


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_current_wal_lsn": _current,
    "pg_current_wal_flush_lsn": _current,
    "pg_current_wal_insert_lsn": _current_insert,
    "pg_switch_wal": _switch_wal,
    "pg_log_standby_snapshot": _current,  # slots need no snapshot
    "pg_walfile_name": _walfile_name,
}

#: Functions that return a row, for FROM, by their names in pg_proc.prosrc.
ROW_FUNCTIONS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "pg_walfile_name_offset": _walfile_name_offset,
    "pg_split_walfile_name": _split_walfile_name,
    "pg_control_system": _control_system,
}
