"""PostgreSQL's functions that SQLite calls in catalog queries, by their names in pg_proc.prosrc.

Values have SQLite's form (query/sqlite_value.py).  Booleans are 0 and 1.  Numbers, LSNs and OIDs of
any kind are ints.  All other values are canonical texts.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import select

from replctl.adt.value_sets import VALUE_SETS
from replctl.catalog import state_schema
from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.namespace import is_relation_visible
from replctl.catalog.pg_authid import PREDEFINED_ROLES, READ_SERVER_FILES, WRITE_SERVER_FILES
from replctl.catalog.pg_class import Relation, get_relation, load_relations
from replctl.catalog.pg_control import check_not_in_recovery
from replctl.catalog.pg_description import get_comment, get_shared_comment
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.pg_publication import Memberships, find_publication, is_publishable
from replctl.catalog.pg_sequence import open_sequence, owned_sequences
from replctl.catalog.pg_type import type_name
from replctl.catalog.storage import adopt_again, set_acceptance
from replctl.catalog.table_home import located
from replctl.does_not_exist import no_column
from replctl.errors import (
    InsufficientPrivilege,
    InvalidName,
    InvalidParameterValue,
    NullValueNotAllowed,
    ObjectNotInPrerequisiteState,
    ReadOnlySqlTransaction,
    UndefinedObject,
    UndefinedTable,
)
from replctl.expr import object_identifier, pg_node_tree
from replctl.functions import (
    acl_functions,
    definition_functions,
    information_functions,
    lsn_functions,
    origin_functions,
    privilege_functions,
    recovery_functions,
    replication_functions,
    statistics_functions,
)
from replctl.functions.function_context import FunctionContext, Implementation
from replctl.session_setting import change_setting, reload_configuration, shown_setting
from replctl.types import builtin, guc, text
from replctl.types.quote import quote_identifier
from replctl.types.timestamp import micros

#: The result of version(): replctl behaves like this version of PostgreSQL.
_VERSION = "PostgreSQL 17.0 (replctl) on Delta Lake, run by Spark"


def _format_type(context: FunctionContext, oid: int | None, typmod: int | None) -> str | None:
    if oid is None:
        return None
    if context.environment.type_by_oid(oid) is None:
        return "???" if oid else "-"
    return context.environment.format_type(type_name(oid), typmod)


def _pg_relation_filepath(context: FunctionContext, relid: int) -> str | None:
    table = state_schema.storage_table
    found = context.catalog.connection.execute(
        select(table.c.location).where(table.c.relid == relid)
    ).scalar_one_or_none()
    return None if found is None else located(context.catalog.connection, str(found))


def _accept_commits(context: FunctionContext, relid: int) -> str:
    """Accept commits with unknown marks: when replctl next reads the table, it treats them as
    commits of another writer.

    Such commits come from a newer state of this catalog, or from a copy of it.
    """
    _owned_relation(context, relid)
    _check_writable(context, "replctl_accept_commits()")
    with context.cluster.begin(write=True) as connection:
        set_acceptance(connection, relid, accepts=True)
    return ""


def _adopt_again(context: FunctionContext, relid: int) -> str:
    """Let a copy of a cluster write a table that it could only read.  The definition stays.

    Raises:
        ObjectNotInPrerequisiteState: the table does not belong to another cluster (55000).
        InsufficientPrivilege: the role is not the table's owner, or may not write files of the
            server; or the owner may not read and write them (42501).
    """
    relation = _owned_relation(context, relid)
    _check_writable(context, "replctl_adopt_again()")
    if not context.environment.privileges.acts_for(WRITE_SERVER_FILES):
        raise InsufficientPrivilege(
            "permission denied to adopt a table again",
            detail=f'Only roles with privileges of the "{PREDEFINED_ROLES[WRITE_SERVER_FILES]}"'
            " role may write tables with a LOCATION.",
        )
    if relation.storage is None or not relation.storage.is_read_only:
        raise ObjectNotInPrerequisiteState(
            f'relation "{relation.qualified_name}" does not belong to another cluster'
        )
    _check_may_use_files(context, relation)
    with context.cluster.begin(write=True) as connection:
        adopt_again(connection, relid)
    return ""


def _check_may_use_files(context: FunctionContext, relation: Relation) -> None:
    """Check that a table's owner may use tables with a LOCATION.  Otherwise nobody could read the
    table afterwards.
    """
    owner = Privileges(context.catalog, relation.owner)
    needed = (READ_SERVER_FILES, WRITE_SERVER_FILES)
    lacking = [PREDEFINED_ROLES[role] for role in needed if not owner.acts_for(role)]
    if lacking:
        raise InsufficientPrivilege(
            "permission denied to adopt a table again",
            detail=f'The owner "{owner.role.name}" of table "{relation.name}" does not have'
            " privileges of the roles that tables with a LOCATION need.",
            hint=f"Use GRANT {', '.join(lacking)} TO {quote_identifier(owner.role.name)}.",
        )


def _owned_relation(context: FunctionContext, relid: int) -> Relation:
    relation = get_relation(context.catalog, relid)
    if relation is None:
        raise UndefinedTable(f"relation with OID {relid} does not exist")
    context.environment.privileges.check_relation_owner(relation)
    return relation


def _pg_get_userbyid(context: FunctionContext, oid: int) -> str:
    return context.environment.role_name(oid) or f"unknown (OID={oid})"


def _is_publishable(context: FunctionContext, relid: int) -> int | None:
    if relid in builtin.system_relations_by_oid():
        return 0
    relation = get_relation(context.catalog, relid)
    return None if relation is None else int(is_publishable(relation))


def _current_xid(context: FunctionContext) -> int:
    """Return the number of the transaction.  All calls of a statement have the same result."""
    if context.xid is None:
        with context.session.write(changes_definitions=False) as catalog:
            context.xid = catalog.top_xid
    return context.xid


def _table_is_visible(context: FunctionContext, relid: int) -> int | None:
    is_visible = is_relation_visible(context.environment, relid)
    return None if is_visible is None else int(is_visible)


def _currval(context: FunctionContext, relid: int) -> int:
    context.environment.privileges.check_sequence(relid, (Privilege.SELECT, Privilege.USAGE))
    return context.sequences.current(context.catalog, relid)


def _check_sequence(
    context: FunctionContext, relid: int, privileges: tuple[Privilege, ...], what: str
) -> None:
    """Check that a function may change a sequence.  The kind of the relation comes first."""
    open_sequence(context.catalog, relid)
    context.environment.privileges.check_sequence(relid, privileges)
    _check_writable(context, what)


def _check_writable(context: FunctionContext, what: str) -> None:
    check_not_in_recovery(context.catalog.connection, what)
    if context.session.is_read_only:
        raise ReadOnlySqlTransaction(f"cannot execute {what} in a read-only transaction")


def _nextval(context: FunctionContext, relid: int) -> int:
    _check_sequence(context, relid, (Privilege.USAGE, Privilege.UPDATE), "nextval()")
    return context.sequences.take(context.catalog, relid)[0]


def _lastval(context: FunctionContext) -> int:
    relid, value = context.sequences.last(context.catalog)
    context.environment.privileges.check_sequence(relid, (Privilege.SELECT, Privilege.USAGE))
    return value


def _setval(context: FunctionContext, relid: int, value: int, is_called: int = 1) -> int:
    _check_sequence(context, relid, (Privilege.UPDATE,), "setval()")
    return context.sequences.put(context.catalog, relid, value, is_called=bool(is_called))


def _current_schema(context: FunctionContext) -> str | None:
    return next((name for name, _oid in context.environment.search_path.for_creation), None)


def _serial_sequence(context: FunctionContext, table: str, column: str) -> str | None:
    """Return the qualified name of the sequence that a column owns; None if it owns none
    (pg_get_serial_sequence).
    """
    oid = object_identifier.read(context.environment, "regclass", table)
    relation = get_relation(context.catalog, int(oid))
    if relation is None:
        return None
    found = relation.column(column)
    if found is None:
        raise no_column(column, relation.name)
    for sequence in owned_sequences(context.catalog, relation.oid, found.attnum):
        owned = get_relation(context.catalog, sequence.relid)
        if owned is not None:
            return owned.quoted_name
    return None


def _obj_description(
    context: FunctionContext, oid: int, class_name: str = "pg_class"
) -> str | None:
    if class_name not in builtin.system_relations():
        return None
    return get_comment(context.catalog, class_name, oid)


def _shobj_description(context: FunctionContext, oid: int, class_name: str) -> str | None:
    if class_name not in builtin.system_relations():
        return None
    return get_shared_comment(context.catalog, class_name, oid)


def _current_setting(context: FunctionContext, name: str, missing_ok: int = 0) -> str | None:
    try:
        if name.lower() not in guc.ROLE_SETTINGS:
            reads_all = context.environment.privileges.reads_all_settings
            guc.check_readable(guc.find_setting(name), reads_all=reads_all)
        return shown_setting(context.session, name)
    except (UndefinedObject, InvalidName):
        if missing_ok:
            return None
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"') from None


def _set_config(
    context: FunctionContext, name: str | None, value: str | None, is_local: int | None
) -> str:
    """Change a setting like SET or, if `is_local`, like SET LOCAL, which has no effect outside a
    transaction block.  NULL restores the default.
    """
    if name is None:
        raise NullValueNotAllowed("SET requires parameter name")
    return change_setting(context.session, name, value, is_local=bool(is_local))


def _reload_conf(context: FunctionContext) -> int:
    reload_configuration(context.session)
    return 1


def _array_items(value: str) -> list[str | None]:
    parsed: Any = text.parse("_text", value)
    return list(parsed)


def _as_set(function: Callable[..., tuple[Any, ...]]) -> Callable[..., list[tuple[Any, ...]]]:
    return lambda context, *args: [function(context, *args)]


def _simple(function: Callable[..., Any]) -> Implementation:
    """Return a function that ignores the context, and calls `function`."""
    return lambda context, *args: function(*args)


#: The functions by their names in pg_proc.prosrc.  Except those in NOT_STRICT, they return NULL if
#: an argument is NULL.
FUNCTIONS: dict[str, Implementation] = {
    "format_type": _format_type,
    "pg_relation_filepath": _pg_relation_filepath,
    "replctl_accept_commits": _accept_commits,
    "replctl_adopt_again": _adopt_again,
    "pg_get_userbyid": _pg_get_userbyid,
    "pg_current_xact_id": _current_xid,
    "pg_current_xact_id_if_assigned": lambda context: context.catalog.xids.top or context.xid,
    "pg_relation_is_publishable": _is_publishable,
    "pg_table_is_visible": _table_is_visible,
    "text_regclass": lambda context, name: object_identifier.relation_of_name(
        context.environment, name
    ),
    "nextval_oid": _nextval,
    "currval_oid": _currval,
    "lastval": _lastval,
    "setval_oid": _setval,
    "setval3_oid": _setval,
    "pg_get_serial_sequence": _serial_sequence,
    "current_database": lambda context: context.environment.database,
    "current_schema": _current_schema,
    "current_user": lambda context: context.role_name,
    "session_user": lambda context: context.session_role_name,
    "pgsql_version": lambda context: _VERSION,
    "show_config_by_name": _current_setting,
    "show_config_by_name_missing_ok": _current_setting,
    "set_config_by_name": _set_config,
    "pg_reload_conf": _reload_conf,
    "now": lambda context: micros(context.session.transaction_start),
    "statement_timestamp": lambda context: micros(context.session.statement_start),
    "clock_timestamp": lambda context: time.time_ns() // 1000,
    "drandom": _simple(random.random),
    "gen_random_uuid": _simple(lambda: str(uuid.uuid4())),
    **acl_functions.FUNCTIONS,
    **definition_functions.FUNCTIONS,
    **information_functions.FUNCTIONS,
    **recovery_functions.FUNCTIONS,
    **lsn_functions.FUNCTIONS,
    **origin_functions.FUNCTIONS,
    **replication_functions.FUNCTIONS,
    **privilege_functions.FUNCTIONS,
    **statistics_functions.FUNCTIONS,
}

#: Functions that PostgreSQL writes in SQL, and that therefore have no prosrc, by their names.
FUNCTIONS_BY_NAME: dict[str, Implementation] = {
    "obj_description": _obj_description,
    "col_description": lambda context, oid, number: get_comment(
        context.catalog, "pg_class", oid, number
    ),
    "shobj_description": _shobj_description,
}

#: Volatile functions that need no session.  Spark therefore has them, too (spark/volatile.py).
WITHOUT_SESSION = frozenset({"clock_timestamp", "drandom", "gen_random_uuid"})

#: Functions that are called even if an argument is NULL.
NOT_STRICT = frozenset(
    {
        "format_type",
        "set_config_by_name",
        "pg_stat_reset_replication_slot",
        "pg_stat_reset_shared",
        "pg_stat_reset_slru",
        "pg_stat_reset_subscription_stats",
    }
)


def series_of(start: int, stop: int, step: int = 1) -> range:
    """Return the values that generate_series() returns."""
    return range(start, stop + (1 if step > 0 else -1), step)


def _series(context: FunctionContext, start: int, stop: int, step: int = 1) -> list[list[int]]:
    if step == 0:
        raise InvalidParameterValue("step size cannot equal zero")
    return [[value] for value in series_of(start, stop, step)]


def _publication_tables(context: FunctionContext, names: str) -> list[list[Any]]:
    """Return the tables and columns of publications, without partitions if a publication publishes
    their root instead (pg_get_publication_tables).
    """
    catalog = context.catalog
    publications = []
    for name in _array_items(names):
        publication = None if name is None else find_publication(catalog, name)
        if publication is None:
            raise UndefinedObject(f'publication "{name}" does not exist')
        publications.append(publication)
    memberships = Memberships(catalog, publications)
    members = [(item, oid) for item in publications for oid in memberships.members(item)]
    if any(item.publish_via_partition_root for item in publications):
        oids = {oid for _, oid in members}
        members = [pair for pair in members if not oids & set(ancestors_of(catalog, pair[1]))]
    relations = load_relations(catalog, [oid for _, oid in members])
    rows = []
    for publication, oid in members:
        relation = relations[oid]
        member = memberships.membership(publication, relation)
        listed = None if member is None else member.columns
        attnums = [
            column.attnum
            for column in relation.columns
            if not column.generated and (listed is None or column.attnum in listed)
        ]
        row_filter = None if member is None else member.row_filter
        tree = None if row_filter is None else pg_node_tree.dumps(row_filter)
        rows.append([publication.oid, oid, " ".join(map(str, attnums)), tree])
    return rows


def _without_context(
    function: Callable[..., Sequence[Sequence[Any]]],
) -> Callable[..., Sequence[Sequence[Any]]]:
    return lambda context, *args: function(*args)


#: Functions that return a set, as rows, by their names in pg_proc.prosrc.
SET_FUNCTIONS: dict[str, Callable[..., Sequence[Sequence[Any]]]] = {
    "generate_series_int4": _series,
    "generate_series_int8": _series,
    "generate_series_step_int4": _series,
    "generate_series_step_int8": _series,
    **{
        source: _as_set(function)
        for source, function in (
            replication_functions.ROW_FUNCTIONS
            | lsn_functions.ROW_FUNCTIONS
            | statistics_functions.ROW_FUNCTIONS
        ).items()
    },
    **{source: _without_context(function) for source, function in VALUE_SETS.items()},
    **origin_functions.SET_FUNCTIONS,
    **acl_functions.SET_FUNCTIONS,
    **statistics_functions.SET_FUNCTIONS,
    "pg_get_publication_tables": _publication_tables,
    "array_unnest": lambda context, array: [[item] for item in _array_items(array)],
}

#: Functions that return a set and read tables.  Because this takes long, replctl runs them before
#: the query (query/logical_slot.py).
EVALUATED_BEFORE = frozenset(
    f"pg_logical_slot_{verb}_{kind}changes" for verb in ("get", "peek") for kind in ("", "binary_")
)
