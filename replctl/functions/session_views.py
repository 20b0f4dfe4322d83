"""The rows of the system views about roles, settings and sessions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from replctl.catalog.pg_authid import READ_ALL_STATS, memberships
from replctl.catalog.pg_db_role_setting import EVERY
from replctl.functions.function_context import FunctionContext
from replctl.functions.view_rows import Row, RowsOf, array_text, stored_rows
from replctl.session_setting import reset_value
from replctl.types import guc, text
from replctl.types.timestamp import micros

#: Stands for every password in the views that all roles may read.
_HIDDEN = "********"


def _pg_db_role_setting(context: FunctionContext) -> Iterator[Row]:
    for row in stored_rows(context, "pg_db_role_setting"):
        yield {**row, "setconfig": array_text(json.loads(row["setconfig"]))}


def _pg_authid(context: FunctionContext) -> Iterator[Row]:
    for row in stored_rows(context, "pg_authid"):
        until = row["rolvaliduntil"]
        yield {**row, "rolvaliduntil": None if until is None else text.parse("timestamptz", until)}


def _pg_roles(context: FunctionContext) -> Iterator[Row]:
    configs = _configs(context)
    for row in _pg_authid(context):
        yield {**row, "rolpassword": _HIDDEN, "rolconfig": configs.get(row["oid"])}


def _configs(context: FunctionContext) -> dict[int, str]:
    """Return the settings of roles that apply in all databases, as PostgreSQL's arrays."""
    return {
        row["setrole"]: row["setconfig"]
        for row in _pg_db_role_setting(context)
        if row["setdatabase"] == EVERY
    }


def _pg_settings(context: FunctionContext) -> Iterator[Row]:
    configured = context.session.configured
    reads_all = context.environment.privileges.reads_all_settings
    for key, setting in guc.settings().items():
        if not guc.is_readable(setting, reads_all=reads_all):
            continue
        if key in context.session.settings:
            source = "session"
        elif key in context.session.client_settings:
            source = "client"
        else:
            source = "configuration file" if key in configured else "default"
        yield {
            "name": setting.name, "setting": context.session.setting(key),
            "unit": setting.unit or None, "category": setting.category,
            "short_desc": setting.description, "extra_desc": setting.extra_description or None,
            "context": setting.context, "vartype": setting.type, "source": source,
            "min_val": setting.minimum or None, "max_val": setting.maximum or None,
            "enumvals": array_text(list(setting.values)) if setting.values else None,
            "boot_val": setting.boot_value
            if setting.compiled_value is None
            else setting.compiled_value,
            "reset_val": reset_value(context.session, key), "pending_restart": 0,
        }  # fmt: skip


def _pg_user(context: FunctionContext) -> Iterator[Row]:
    for row in _pg_shadow(context):
        yield {**row, "passwd": _HIDDEN}


def _pg_shadow(context: FunctionContext) -> Iterator[Row]:
    """Yield the roles that can log in."""
    configs = _configs(context)
    for row in _pg_authid(context):
        if row["rolcanlogin"]:
            yield {
                "usename": row["rolname"], "usesysid": row["oid"],
                "usecreatedb": row["rolcreatedb"], "usesuper": row["rolsuper"],
                "userepl": row["rolreplication"], "usebypassrls": row["rolbypassrls"],
                "passwd": row["rolpassword"], "valuntil": row["rolvaliduntil"],
                "useconfig": configs.get(row["oid"]),
            }  # fmt: skip


def _pg_group(context: FunctionContext) -> Iterator[Row]:
    """Yield the roles that cannot log in, with their members."""
    members = memberships(context.catalog)
    for row in stored_rows(context, "pg_authid"):
        if not row["rolcanlogin"]:
            oids = [member.member for member in members if member.role == row["oid"]]
            yield {
                "groname": row["rolname"], "grosysid": row["oid"],
                "grolist": array_text(oids, "_oid"),
            }  # fmt: skip


def _pg_stat_activity(context: FunctionContext) -> Iterator[Row]:
    """Yield the row of this session only; replctl does not know the others."""
    session, privileges = context.session, context.environment.privileges
    row: Row = {
        "datid": session.database_oid, "datname": session.database_name, "pid": os.getpid(),
        "usesysid": session.login_oid, "usename": session.login_name,
        "application_name": session.setting("application_name"),
    }  # fmt: skip
    if privileges.acts_for(READ_ALL_STATS) or privileges.acts_for(session.login_oid):
        row |= {"state": "active", "backend_type": "client backend"}
        row |= {
            "xact_start": micros(session.transaction_start),
            "query_start": micros(session.statement_start),
        }
    else:  # HAS_PGSTAT_PERMISSIONS
        row["query"] = "<insufficient privilege>"
    yield row


#: The functions that yield the rows of each view.
SESSION_VIEWS: dict[str, RowsOf] = {
    "pg_authid": _pg_authid,
    "pg_db_role_setting": _pg_db_role_setting,
    "pg_roles": _pg_roles,
    "pg_settings": _pg_settings,
    "pg_shadow": _pg_shadow,
    "pg_user": _pg_user,
    "pg_group": _pg_group,
    "pg_stat_activity": _pg_stat_activity,
}
