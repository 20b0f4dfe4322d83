"""PostgreSQL's functions for catalog queries, which SQLite calls: under their names in
pg_proc.prosrc.

A value is what SQLite holds of it (query/sqlite.py): booleans are 0 and 1, numbers and LSNs ints,
an OID of any kind an int, everything else canonical text.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from replctl.adt import like, regexp, varlena
from replctl.adt.format_ import format_text
from replctl.catalog import (
    acl_functions,
    definition_functions,
    information_functions,
    lsn_functions,
    origin_functions,
    privilege_functions,
    recovery_functions,
    replication_functions,
    state_schema,
)
from replctl.catalog.function_context import FunctionContext, Implementation
from replctl.catalog.pg_class import get_relation, load_relations
from replctl.catalog.pg_control import check_not_in_recovery
from replctl.catalog.pg_description import get_comment, get_shared_comment
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.pg_publication import Memberships, find_publication, is_publishable
from replctl.catalog.pg_sequence import owned_sequences
from replctl.catalog.pg_type import type_name
from replctl.catalog.session_value import micros
from replctl.catalog.storage import set_acceptance
from replctl.catalog.table_home import located
from replctl.errors import (
    DivisionByZero,
    InvalidName,
    InvalidParameterValue,
    NumericValueOutOfRange,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
)
from replctl.expr import object_identifier, pg_node_tree
from replctl.types import builtin, guc, text
from replctl.types.quote import quote_identifier, quote_literal, quote_qualified_identifier

if TYPE_CHECKING:
    pass

#: Reported by version(); the behaviour is that of this server.
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
    """Take commits with marks that this catalog does not know, of its newer state or of a copy, for
    another writer's, when the table is looked at next."""
    relation = get_relation(context.catalog, relid)
    if relation is None:
        raise UndefinedTable(f"relation with OID {relid} does not exist")
    context.environment.privileges.check_relation_owner(relation)
    with context.cluster.begin(write=True) as connection:
        set_acceptance(connection, relid, accepts=True)
    return ""


def _pg_get_userbyid(context: FunctionContext, oid: int) -> str:
    return context.environment.role_name(oid) or f"unknown (OID={oid})"


def _is_publishable(context: FunctionContext, relid: int) -> int | None:
    if relid in builtin.system_relations_by_oid():
        return 0
    relation = get_relation(context.catalog, relid)
    return None if relation is None else int(is_publishable(relation))


def _current_xid(context: FunctionContext) -> int:
    with context.session.write(changes_definitions=False) as catalog:
        return catalog.top_xid


def _table_is_visible(context: FunctionContext, relid: int) -> int | None:
    is_visible = context.environment.is_relation_visible(relid)
    return None if is_visible is None else int(is_visible)


def _currval(context: FunctionContext, relid: int) -> int:
    context.environment.privileges.check_sequence(relid, "rU")
    return context.sequences.current(context.catalog, relid)


def _nextval(context: FunctionContext, relid: int) -> int:
    context.environment.privileges.check_sequence(relid, "Uw")
    check_not_in_recovery(context.catalog.connection, "nextval()")
    return context.sequences.take(context.catalog, relid)[0]


def _setval(context: FunctionContext, relid: int, value: int, is_called: int = 1) -> int:
    context.environment.privileges.check_sequence(relid, "w")
    check_not_in_recovery(context.catalog.connection, "setval()")
    return context.sequences.put(context.catalog, relid, value, is_called=bool(is_called))


def _current_schema(context: FunctionContext) -> str | None:
    return next((name for name, _oid in context.environment.creation_path), None)


def _serial_sequence(context: FunctionContext, table: str, column: str) -> str | None:
    """Return the qualified name of the sequence that a column owns (pg_get_serial_sequence)."""
    oid = object_identifier.read(context.environment, "regclass", table)
    relation = get_relation(context.catalog, int(oid))
    if relation is None:
        return None
    found = relation.column(column)
    if found is None:
        raise UndefinedColumn(f'column "{column}" of relation "{relation.name}" does not exist')
    for sequence in owned_sequences(context.catalog, relation.oid, found.attnum):
        owned = get_relation(context.catalog, sequence.relid)
        if owned is not None:
            return quote_qualified_identifier(owned.schema, owned.name)
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
        return context.settings.shown_setting(name)
    except (UndefinedObject, InvalidName):
        if missing_ok:
            return None
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"') from None


def _set_config(
    context: FunctionContext, name: str, value: str | None, is_local: int | None
) -> str:
    """As SET, or SET LOCAL, which changes nothing without a block; NULL is the default."""
    return context.settings.change_setting(name, value, is_local=bool(is_local))


def _reload_conf(context: FunctionContext) -> int:
    context.settings.reload_configuration()
    return 1


def _array_items(value: str) -> list[str | None]:
    parsed: Any = text.parse("_text", value)
    return list(parsed)


def _array_to_text(
    context: FunctionContext, array: str, separator: str, null: str | None = None
) -> str:
    items = [null if item is None else item for item in _array_items(array)]
    return separator.join(item for item in items if item is not None)


def _array_length(context: FunctionContext, array: str, dimension: int) -> int | None:
    items = _array_items(array)
    return len(items) or None if dimension == 1 else None


def _concat(context: FunctionContext, *items: str | None) -> str:
    return "".join(item for item in items if item is not None)


def _concat_ws(context: FunctionContext, separator: str | None, *items: str | None) -> str | None:
    if separator is None:
        return None
    return separator.join(item for item in items if item is not None)


def _quote_nullable(context: FunctionContext, value: str | None) -> str:
    return "NULL" if value is None else quote_literal(value)


def _substring(context: FunctionContext, value: str, start: int, length: int | None = None) -> str:
    end = None if length is None else max(start + length - 1, 0)
    return value[max(start - 1, 0) : end]


def _of_text(function: Callable[..., Any]) -> Implementation:
    """Return a function of adt/, whose results become what SQLite holds of them."""

    def call(context: FunctionContext, *args: Any) -> Any:
        value = function(*args)
        if isinstance(value, list):
            return text.render("_text", value)
        return int(value) if isinstance(value, bool) else value

    return call


_COLLATED = {**varlena.COLLATED, **like.COLLATED, **regexp.COLLATED}


def _integer_operations() -> dict[str, Implementation]:
    """+, -, *, /, % of integers, with PostgreSQL's overflow; the result is of the wider type."""
    limits = {"2": ("smallint", 15), "4": ("integer", 31), "8": ("bigint", 63)}
    operations: dict[str, Callable[[int, int], int]] = {
        "pl": lambda a, b: a + b,
        "mi": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": _quotient,
        "mod": lambda a, b: a - b * _quotient(a, b),
    }
    result: dict[str, Implementation] = {}
    for first in limits:
        for second in limits:
            prefix = f"int{first}" if first == second else f"int{first}{second}"
            name, bits = limits[max(first, second)]
            for suffix, operation in operations.items():
                result[prefix + suffix] = _checked(operation, name, bits)
    for digit, (name, bits) in limits.items():
        result[f"int{digit}um"] = _checked(lambda a: -a, name, bits)
        result[f"int{digit}abs"] = _checked(abs, name, bits)
        result[f"int{digit}up"] = lambda context, a: a
    for source, (name, bits) in {
        "i4toi2": limits["2"], "int82": limits["2"], "int84": limits["4"], "i2toi4": limits["4"],
        "int28": limits["8"], "int48": limits["8"], "oidtoi8": limits["8"], "i8tooid": ("OID", 32),
    }.items():  # fmt: skip
        result[source] = _checked(lambda a: a, name, bits)
    return result


def _checked(operation: Callable[..., int], name: str, bits: int) -> Implementation:
    def compute(context: FunctionContext, *args: int) -> int:
        value = operation(*args)
        if not -(2**bits) <= value < 2**bits:
            raise NumericValueOutOfRange(f"{name} out of range")
        return value

    return compute


def _quotient(a: int, b: int) -> int:
    """Division that truncates toward zero."""
    if b == 0:
        raise DivisionByZero("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _as_set(function: Callable[..., tuple[Any, ...]]) -> Callable[..., list[tuple[Any, ...]]]:
    return lambda context, *args: [function(context, *args)]


def _simple(function: Callable[..., Any]) -> Implementation:
    """Return a function that needs no context."""
    return lambda context, *args: function(*args)


#: prosrc -> function; NULL in, NULL out, except for NOT_STRICT.
FUNCTIONS: dict[str, Implementation] = {
    **_integer_operations(),
    "format_type": _format_type,
    "pg_relation_filepath": _pg_relation_filepath,
    "replctl_accept_commits": _accept_commits,
    "pg_get_userbyid": _pg_get_userbyid,
    "pg_current_xact_id": _current_xid,
    "pg_current_xact_id_if_assigned": lambda context: context.catalog.xids.top,
    "pg_relation_is_publishable": _is_publishable,
    "pg_table_is_visible": _table_is_visible,
    "nextval_oid": _nextval,
    "currval_oid": _currval,
    "lastval": lambda context: context.sequences.last(context.catalog),
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
    "array_to_text": _array_to_text,
    "array_to_text_null": _array_to_text,
    "array_length": _array_length,
    "array_upper": _array_length,
    "array_cardinality": _simple(lambda array: len(_array_items(array))),
    "text_concat": _concat,
    "text_concat_ws": _concat_ws,
    "textcat": _simple(lambda a, b: a + b),
    "textanycat": _simple(lambda a, b: a + b),
    "anytextcat": _simple(lambda a, b: a + b),
    "quote_ident": _simple(quote_identifier),
    "quote_literal": _simple(quote_literal),
    "textlen": _simple(len),
    "text_reverse": _simple(lambda value: value[::-1]),
    "text_substr": _substring,
    "text_substr_no_len": _substring,
    "replace_text": _simple(lambda value, old, new: value.replace(old, new) if old else value),
    "textpos": _simple(lambda value, part: value.find(part) + 1),
    "text_starts_with": _simple(lambda value, prefix: int(value.startswith(prefix))),
    "btrim1": _simple(lambda value: value.strip(" ")),
    "ltrim1": _simple(lambda value: value.lstrip(" ")),
    "rtrim1": _simple(lambda value: value.rstrip(" ")),
    "name_text": _simple(lambda value: value),
    "booltext": _simple(lambda value: "true" if value else "false"),
    "text_name": _simple(lambda value: text.canonical("name", value)),
    "bool_int4": _simple(int),
    **{f"int{size}_numeric": _simple(str) for size in (2, 4, 8)},
    "int4_bool": _simple(lambda value: int(value != 0)),
    "quote_nullable": _quote_nullable,
    "select pg_catalog.quote_nullable($1::pg_catalog.text)": _quote_nullable,
    "select pg_catalog.quote_literal($1::pg_catalog.text)": _simple(quote_literal),
    "text_format": lambda context, template, *values: (
        None if template is None else format_text(template, *values)
    ),
    "text_format_nv": _simple(format_text),
    **acl_functions.FUNCTIONS,
    **definition_functions.FUNCTIONS,
    **information_functions.FUNCTIONS,
    **recovery_functions.FUNCTIONS,
    **lsn_functions.FUNCTIONS,
    **origin_functions.FUNCTIONS,
    **replication_functions.FUNCTIONS,
    **privilege_functions.FUNCTIONS,
    **{
        name: _of_text(function)
        for name, function in {**like.FUNCTIONS, **regexp.FUNCTIONS, **_COLLATED}.items()
        if "bytea" not in name
    },
}

#: Those that differ in collation C, which knows the letters of ASCII alone.
FUNCTIONS_IN_C: dict[str, Implementation] = {
    name: _of_text(partial(function, ascii_only=True)) for name, function in _COLLATED.items()
}

#: Functions that take values of any type, as texts.
TAKES_TEXT = frozenset(
    f"select pg_catalog.quote_{word}($1::pg_catalog.text)" for word in ("nullable", "literal")
)

#: Functions written in SQL have no prosrc: name -> function.
FUNCTIONS_BY_NAME: dict[str, Implementation] = {
    "obj_description": _obj_description,
    "col_description": lambda context, oid, number: get_comment(
        context.catalog, "pg_class", oid, number
    ),
    "shobj_description": _shobj_description,
    **lsn_functions.FUNCTIONS_BY_NAME,
}

#: Functions that are called with NULL arguments, too.
NOT_STRICT = frozenset(
    {
        "format_type",
        "quote_nullable",
        "select pg_catalog.quote_nullable($1::pg_catalog.text)",
        "text_format",
        "text_concat",
        "text_concat_ws",
        "array_to_text_null",
        "set_config_by_name",
        "pg_stat_reset_replication_slot",
        "pg_stat_reset_subscription_stats",
    }
)


def _series(context: FunctionContext, start: int, stop: int, step: int = 1) -> list[list[int]]:
    if step == 0:
        raise InvalidParameterValue("step size cannot equal zero")
    return [[value] for value in range(start, stop + (1 if step > 0 else -1), step)]


def _publication_tables(context: FunctionContext, names: str) -> list[list[Any]]:
    """Return what publications contain; a partition stands back for a root that one of them
    publishes its changes by (pg_get_publication_tables)."""
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


#: prosrc -> function that returns a set, as rows of its columns.
SET_FUNCTIONS: dict[str, Callable[..., Sequence[Sequence[Any]]]] = {
    "generate_series_int4": _series,
    "generate_series_int8": _series,
    "generate_series_step_int4": _series,
    "generate_series_step_int8": _series,
    **{
        source: _as_set(function)
        for source, function in (
            replication_functions.ROW_FUNCTIONS | lsn_functions.ROW_FUNCTIONS
        ).items()
    },
    **origin_functions.SET_FUNCTIONS,
    **acl_functions.SET_FUNCTIONS,
    "pg_get_publication_tables": _publication_tables,
    "array_unnest": lambda context, array: [[item] for item in _array_items(array)],
}

#: Functions that return a set and read tables, which takes long: they are carried out before the
#: query that they stand in (query/logical_slot.py).
EVALUATED_BEFORE = frozenset(
    f"pg_logical_slot_{verb}_{kind}changes" for verb in ("get", "peek") for kind in ("", "binary_")
)
