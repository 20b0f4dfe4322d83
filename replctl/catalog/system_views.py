"""The rows of PostgreSQL's catalogs and system views, for queries: pg_publication_tables, pg_class
...

A row is a dict of the columns that are known here; the others have the value that PostgreSQL gives
them in a database without such features, else NULL.  Values are as in catalog.functions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select

from replctl.catalog import schema
from replctl.catalog.acl import decode_acl
from replctl.catalog.aclchk import acl_items
from replctl.catalog.cluster import INFORMATION_SCHEMA, PG_CATALOG_NAMESPACE
from replctl.catalog.functions import FunctionContext
from replctl.catalog.horizon import oldest_xid_behind
from replctl.catalog.pg_authid import READ_ALL_STATS, memberships
from replctl.catalog.pg_class import load_relations, relation_oids
from replctl.catalog.pg_publication import Memberships, list_publications
from replctl.catalog.pg_replication_slots import ReplicationSlot, list_slots, origin_status
from replctl.catalog.pg_sequence import get_sequence, last_value
from replctl.catalog.pg_subscription import list_subscriptions
from replctl.catalog.pg_type import type_oid
from replctl.catalog.ruleutils import get_expr, index_definition
from replctl.catalog.wal_availability import WalLimits, wal_availability
from replctl.catalog.worker import APPLY, last_replies, live_walsenders, live_workers
from replctl.errors import FeatureNotSupported
from replctl.types import builtin, guc, text

Row = dict[str, Any]


def system_rows(context: FunctionContext, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a catalog or system view, in the order of its columns.

    Raises:
        FeatureNotSupported: it is one that replctl does not have.
    """
    relation = builtin.system_relations()[name]
    rows = _VIEWS.get(name)
    if name in _EMPTY and name not in schema.metadata.tables:
        rows = _nothing
    if rows is None and name not in schema.metadata.tables:
        raise FeatureNotSupported(f'catalog "{name}" is not supported')
    found = _stored_rows(context, name) if rows is None else rows(context)
    defaults = _DEFAULTS.get(name, {})
    for row in found:
        yield tuple(row.get(column, defaults.get(column)) for column, _type in relation.columns)


def _stored_rows(context: FunctionContext, name: str) -> Iterator[Row]:
    """The visible rows of one of our tables."""
    catalog = context.catalog
    for row in catalog.connection.execute(select(catalog.rows_of(schema.metadata.tables[name]))):
        values = dict(row._mapping)
        acl = _ACL_COLUMNS.get(name)
        if acl is not None and values[acl] is not None:
            values[acl] = _array(acl_items(catalog, decode_acl(values[acl])) or [])
        yield values


_ACL_COLUMNS = {
    "pg_class": "relacl",
    "pg_attribute": "attacl",
    "pg_namespace": "nspacl",
    "pg_database": "datacl",
    "pg_proc": "proacl",
    "pg_type": "typacl",
    "pg_default_acl": "defaclacl",
}


def _array(items: list[Any], type_name: str = "_text") -> str:
    return text.render(type_name, items)


# -- relations, columns, types


def _pg_sequences(context: FunctionContext) -> Iterator[Row]:
    for relation in load_relations(context.catalog, relation_oids(context.catalog, "S")).values():
        sequence = get_sequence(context.catalog, relation.oid)
        assert sequence is not None
        yield {
            "schemaname": relation.schema, "sequencename": relation.name,
            "sequenceowner": context.environment.role_name(relation.owner),
            "data_type": type_oid(sequence.type), "start_value": sequence.start,
            "min_value": sequence.minimum, "max_value": sequence.maximum,
            "increment_by": sequence.increment, "cycle": int(sequence.cycles),
            "cache_size": sequence.cache, "last_value": last_value(context.catalog, relation.oid),
        }  # fmt: skip


_SYSTEM_SCHEMAS = {
    "pg_catalog": PG_CATALOG_NAMESPACE,
    "information_schema": INFORMATION_SCHEMA,
}


def _pg_class(context: FunctionContext) -> Iterator[Row]:
    oids = []
    for relation in builtin.system_relations_by_oid().values():
        yield {
            "oid": relation.oid, "relname": relation.name, "relowner": 10,
            "relnamespace": _SYSTEM_SCHEMAS[relation.schema],
            "relkind": relation.kind, "relnatts": len(relation.columns), "relreplident": "n",
        }  # fmt: skip
    rows = list(_stored_rows(context, "pg_class"))
    oids = [int(row["oid"]) for row in rows]
    relations = load_relations(context.catalog, oids)
    parents = {oid for relation in relations.values() for oid in relation.parents}
    triggered = _with_triggers(context)
    for row in rows:
        relation_ = relations[int(row["oid"])]
        yield {
            **row,
            "relnatts": len(relation_.columns) + len(relation_.dropped_attnums),
            "reloptions": _array([f"{k}={v}" for k, v in relation_.options.items()])
            if relation_.options
            else None,
            "relhasrules": int(relation_.kind in "vm"),
            "relhastriggers": int(relation_.oid in triggered),
            "relhasindex": int(bool(relation_.indexes)),
            "relchecks": len(relation_.checks()),
            "relhassubclass": int(relation_.oid in parents),
            "relam": 403 if relation_.kind in ("i", "I") else 2 if relation_.kind == "r" else 0,
        }


def _pg_attribute(context: FunctionContext) -> Iterator[Row]:
    for relation in builtin.system_relations_by_oid().values():
        for attnum, (name, type_name) in enumerate(relation.columns, start=1):
            type_ = builtin.types().get(type_name)  # arrays of catalogs' rows are not among them
            yield {
                "attrelid": relation.oid, "attname": name, "attnum": attnum,
                "atttypid": 0 if type_ is None else type_.oid,
                "attlen": -1 if type_ is None else type_.length, "atttypmod": -1,
            }  # fmt: skip
    columns: dict[tuple[int, int], Row] = {}
    for stored in _stored_rows(context, "pg_attribute"):
        known = context.environment.type_by_oid(int(stored["atttypid"]))
        length = -1 if known is None else known.length
        has_default = stored["atthasdef"] and not stored["attidentity"]
        row = {**stored, "attlen": length, "atthasdef": has_default}
        columns[int(row["attrelid"]), int(row["attnum"])] = row
        yield row
    for index in _stored_rows(context, "pg_index"):
        for attnum, key in enumerate(map(int, str(index["indkey"]).split()), start=1):
            column = columns.get((int(index["indrelid"]), key))
            if column is not None:  # else an expression
                yield {
                    **column, "attrelid": index["indexrelid"], "attnum": attnum,
                    "attnotnull": 0, "atthasdef": 0, "attidentity": "", "attgenerated": "",
                    "attislocal": 1, "attinhcount": 0, "attacl": None,
                }  # fmt: skip


def _pg_attrdef(context: FunctionContext) -> Iterator[Row]:
    """The defaults but for those of identity columns, which are our own way to say so."""
    identities = {
        (row["attrelid"], row["attnum"])
        for row in _stored_rows(context, "pg_attribute")
        if row["attidentity"]
    }
    for row in _stored_rows(context, "pg_attrdef"):
        if (row["adrelid"], row["adnum"]) not in identities:
            yield row


def _pg_type(context: FunctionContext) -> Iterator[Row]:
    types = builtin.types()
    for type_ in types.values():
        yield {
            "oid": type_.oid, "typname": type_.name, "typnamespace": 11, "typowner": 10,
            "typlen": type_.length, "typbyval": int(type_.is_by_value), "typtype": type_.kind,
            "typcategory": type_.category, "typispreferred": int(type_.is_preferred),
            "typdelim": type_.delimiter, "typalign": type_.align, "typstorage": type_.storage,
            "typelem": types[type_.element].oid if type_.element else 0,
            "typarray": types[type_.array].oid if type_.array else 0,
            "typcollation": builtin.collations()[type_.collation] if type_.collation else 0,
        }  # fmt: skip
    yield from _stored_rows(context, "pg_type")


def _pg_proc(context: FunctionContext) -> Iterator[Row]:
    types = builtin.types()
    for function in builtin.function_by_oid().values():
        yield {
            "oid": function.oid, "proname": function.name, "pronamespace": 11, "proowner": 10,
            "prokind": function.kind, "proisstrict": int(function.is_strict),
            "proretset": int(function.returns_set), "provolatile": function.volatility,
            "pronargs": len(function.argument_types), "prorettype": types[function.result].oid,
            "proargtypes": " ".join(str(types[name].oid) for name in function.argument_types),
            "prosrc": function.source,
        }  # fmt: skip
    for row in _stored_rows(context, "pg_proc"):
        yield {**row, "pronargs": len(row["proargtypes"].split())}


def _pg_operator(context: FunctionContext) -> Iterator[Row]:
    types = builtin.types()
    for group in builtin.operators().values():
        for operator in group:
            yield {
                "oid": operator.oid, "oprname": operator.name, "oprnamespace": 11, "oprowner": 10,
                "oprkind": "b" if operator.left else "l",
                "oprleft": types[operator.left].oid if operator.left else 0,
                "oprright": types[operator.right].oid, "oprresult": types[operator.result].oid,
                "oprcode": operator.function_oid,
            }  # fmt: skip
    yield from _stored_rows(context, "pg_operator")


def _pg_index(context: FunctionContext) -> Iterator[Row]:
    collations = {
        (row["attrelid"], row["attnum"]): row["attcollation"]
        for row in _stored_rows(context, "pg_attribute")
    }
    for row in _stored_rows(context, "pg_index"):
        attnums = row["indkey"].split()
        keys = attnums[: row["indnkeyatts"]]
        yield {
            **row, "indnatts": len(attnums), "indoption": " ".join("0" for _ in keys),
            "indcollation": " ".join(
                str(collations.get((row["indrelid"], int(attnum)), 0)) for attnum in keys
            ),
        }  # fmt: skip


def _pg_db_role_setting(context: FunctionContext) -> Iterator[Row]:
    for row in _stored_rows(context, "pg_db_role_setting"):
        yield {**row, "setconfig": _array(json.loads(row["setconfig"]))}


def _pg_policy(context: FunctionContext) -> Iterator[Row]:
    for row in _stored_rows(context, "pg_policy"):
        yield {**row, "polroles": _array(json.loads(row["polroles"]), "_oid")}


def _pg_constraint(context: FunctionContext) -> Iterator[Row]:
    for row in _stored_rows(context, "pg_constraint"):
        arrays = {
            name: None if row[name] is None else "{" + row[name].replace(" ", ",") + "}"
            for name in ("conkey", "confkey")
        }
        yield {**row, **arrays}


def _pg_partitioned_table(context: FunctionContext) -> Iterator[Row]:
    for row in _stored_rows(context, "pg_partitioned_table"):
        yield {**row, "partnatts": len(row["partattrs"].split())}


def _pg_tables(context: FunctionContext) -> Iterator[Row]:
    triggered = _with_triggers(context)
    for relation in _user_relations(context, "rp"):
        yield {
            "schemaname": relation.schema, "tablename": relation.name,
            "tableowner": context.environment.role_name(relation.owner),
            "hasindexes": int(bool(relation.indexes)), "hasrules": 0,
            "hastriggers": int(relation.oid in triggered),
            "rowsecurity": int(relation.has_row_security),
        }  # fmt: skip


def _with_triggers(context: FunctionContext) -> set[int]:
    """The tables at both ends of foreign keys, which triggers of PostgreSQL's check."""
    table = schema.pg_constraint
    rows = context.catalog.select(table, table.c.contype == "f")
    return {int(oid) for row in rows for oid in (row.conrelid, row.confrelid)}


def _user_relations(context: FunctionContext, kinds: str) -> list[Any]:
    table = schema.pg_class
    rows = context.catalog.select(table, table.c.relkind.in_(list(kinds)), order_by=[table.c.oid])
    return list(load_relations(context.catalog, [int(row.oid) for row in rows]).values())


# -- roles, databases, settings


def _pg_roles(context: FunctionContext) -> Iterator[Row]:
    for row in _stored_rows(context, "pg_authid"):
        yield {**row, "rolpassword": "********", "oid": row["oid"]}


def _pg_settings(context: FunctionContext) -> Iterator[Row]:
    configured = context.settings.configured
    reads_all = context.environment.privileges.reads_all_settings
    for key, setting in guc.settings().items():
        if not guc.is_readable(setting, reads_all=reads_all):
            continue
        if key in context.settings.settings:
            source = "session"
        else:
            source = "configuration file" if key in configured else "default"
        yield {
            "name": setting.name, "setting": context.settings.setting(key),
            "unit": setting.unit or None, "category": setting.category,
            "short_desc": setting.description, "extra_desc": setting.extra_description or None,
            "context": setting.context, "vartype": setting.type, "source": source,
            "min_val": setting.minimum or None, "max_val": setting.maximum or None,
            "enumvals": _array(list(setting.values)) if setting.values else None,
            "boot_val": setting.boot_value,
            "reset_val": configured.get(key, setting.boot_value), "pending_restart": 0,
        }  # fmt: skip


# -- publications and subscriptions


def _pg_publication_tables(context: FunctionContext) -> Iterator[Row]:
    publications = list_publications(context.catalog)
    memberships = Memberships(context.catalog, publications)
    for publication in publications:
        members = load_relations(context.catalog, memberships.members(publication))
        for relation in members.values():
            table = memberships.membership(publication, relation)
            listed = None if table is None else table.columns
            row_filter = None if table is None else table.row_filter
            names: list[Any] = [
                column.name
                for column in relation.columns
                if not column.generated and (listed is None or column.attnum in listed)
            ]
            yield {
                "pubname": publication.name,
                "schemaname": relation.schema,
                "tablename": relation.name,
                "attnames": _array(names, "_name") if names else None,
                "rowfilter": None
                if row_filter is None
                else get_expr(context.environment, relation, row_filter),
            }


def _pg_subscription(context: FunctionContext) -> Iterator[Row]:
    for row in _stored_rows(context, "pg_subscription"):
        yield {**row, "subpublications": _array(json.loads(row["subpublications"]))}


def _own_subscriptions(context: FunctionContext) -> dict[int, str]:
    """The subscriptions of the current database: statistics are a database's own here.

    PostgreSQL shows those of the cluster; databases that replicate to each other are clusters of
    their own there, and are databases of one cluster here.
    """
    return {
        subscription.oid: subscription.name for subscription in list_subscriptions(context.catalog)
    }


def _pg_subscription_rel(context: FunctionContext) -> Iterator[Row]:
    table = schema.pg_subscription_rel
    own = _own_subscriptions(context)
    for row in context.catalog.connection.execute(select(table)):
        if row.srsubid in own:
            yield dict(row._mapping)


def _pg_stat_subscription(context: FunctionContext) -> Iterator[Row]:
    workers = live_workers(context.cluster, context.catalog.connection)
    for oid, name in _own_subscriptions(context).items():
        found = [worker for worker in workers if worker.subscription_oid == oid]
        if not found:
            yield {"subid": oid, "subname": name}
        for worker in found:
            is_apply = worker.relid == APPLY
            yield {
                "subid": oid,
                "subname": name,
                "worker_type": "apply" if is_apply else "table synchronization",
                "pid": worker.pid,
                "relid": None if is_apply else worker.relid,
                "received_lsn": worker.received_lsn,
                "last_msg_send_time": worker.last_msg_time,
                "last_msg_receipt_time": worker.last_msg_time,
                "latest_end_lsn": worker.received_lsn,
                "latest_end_time": worker.last_msg_time,
            }


def _pg_stat_replication(context: FunctionContext) -> Iterator[Row]:
    """Roles without pg_read_all_stats see who is there (pg_stat_get_wal_senders)."""
    connection, privileges = context.catalog.connection, context.environment.privileges
    reads_all = privileges.acts_for(READ_ALL_STATS)
    walsenders = live_walsenders(context.cluster, connection)
    for slot in list_slots(connection):
        walsender = walsenders.get(slot.name)
        if walsender is None:
            continue
        lsn = slot.confirmed_flush_lsn
        row: Row = {
            "pid": walsender.pid, "usesysid": walsender.role_oid,
            "usename": context.environment.role_name(walsender.role_oid),
            "application_name": walsender.application_name,
        }  # fmt: skip
        if reads_all or privileges.acts_for(walsender.role_oid):
            row["backend_start"] = walsender.backend_start
        if reads_all:
            row |= {
                "state": walsender.state, "sent_lsn": lsn, "write_lsn": lsn, "flush_lsn": lsn,
                "replay_lsn": lsn, "sync_priority": 0, "sync_state": "async",
                "reply_time": walsender.reply_time,
            }  # fmt: skip
        yield row


def _pg_stat_subscription_stats(context: FunctionContext) -> Iterator[Row]:
    table = schema.pg_stat_subscription_stats
    counts = {int(row.subid): row for row in context.catalog.connection.execute(select(table))}
    for oid, name in _own_subscriptions(context).items():
        row = counts.get(oid)
        yield {
            "subid": oid,
            "subname": name,
            "apply_error_count": 0 if row is None else row.apply_error_count,
            "sync_error_count": 0 if row is None else row.sync_error_count,
            "stats_reset": None if row is None else row.stats_reset,
        }


def _pg_stat_subscription_conflicts(context: FunctionContext) -> Iterator[Row]:
    """What pg_stat_subscription_stats of PostgreSQL 18 has beside the columns of 17."""
    table = schema.pg_stat_subscription_stats
    counts = {int(row.subid): row for row in context.catalog.connection.execute(select(table))}
    kinds = [column.name for column in table.c if column.name.startswith("confl_")]
    for oid, name in _own_subscriptions(context).items():
        row = counts.get(oid)
        counted = {kind: 0 if row is None else getattr(row, kind) for kind in kinds}
        reset = None if row is None else row.stats_reset
        yield {"subid": oid, "subname": name, **counted, "stats_reset": reset}


#: What physical slots do not have.
_NO_DATABASE = dict.fromkeys(
    ("plugin", "datoid", "catalog_xmin", "confirmed_flush_lsn", "conflicting")
)


def _pg_replication_slots(context: FunctionContext) -> Iterator[Row]:
    table = schema.pg_database
    names = {int(row.oid): row.datname for row in context.catalog.select(table)}
    connection = context.catalog.connection
    limits = WalLimits.of(context.settings.setting)
    walsenders = live_walsenders(context.cluster, connection)
    replies = last_replies(connection)
    for slot in list_slots(connection):
        wal = wal_availability(connection, slot, limits)
        walsender = walsenders.get(slot.name)
        yield {
            "slot_name": slot.name, "plugin": slot.plugin, "slot_type": slot.type,
            "datoid": slot.database_oid, "database": names.get(slot.database_oid),
            "temporary": int(slot.temporary),
            "active": int(slot.temporary or walsender is not None),
            "active_pid": slot.owner_pid if walsender is None else walsender.pid,
            "catalog_xmin": oldest_xid_behind(connection, slot.confirmed_flush_lsn),
            "restart_lsn": slot.restart_lsn or None,
            "confirmed_flush_lsn": slot.confirmed_flush_lsn, "wal_status": wal.status,
            "safe_wal_size": wal.safe_size, "two_phase": int(slot.two_phase),
            "inactive_since": None if walsender else _inactive_since(slot, replies),
            "conflicting": 0,
            "invalidation_reason": slot.invalidation_reason, "failover": int(slot.failover),
            "synced": int(slot.synced),
            **({} if slot.is_logical else _NO_DATABASE),
        }  # fmt: skip


def _inactive_since(slot: ReplicationSlot, replies: Mapping[str, int]) -> int | None:
    known = [time for time in (slot.inactive_since, replies.get(slot.name)) if time is not None]
    return max(known, default=None)


def _pg_stat_replication_slots(context: FunctionContext) -> Iterator[Row]:
    connection = context.catalog.connection
    table = schema.pg_stat_replication_slots
    counts = {row.slot_name: dict(row._mapping) for row in connection.execute(select(table))}
    for slot in list_slots(connection):
        if slot.is_logical:
            nothing = {"slot_name": slot.name, "total_txns": 0, "total_bytes": 0}
            yield counts.get(slot.name, nothing)


def _pg_replication_origin(context: FunctionContext) -> Iterator[Row]:
    table = schema.pg_replication_origin
    for row in context.catalog.connection.execute(select(table)):
        yield dict(row._mapping)


def _pg_replication_origin_status(context: FunctionContext) -> Iterator[Row]:
    for oid, name, remote_lsn, local_lsn in origin_status(context.catalog.connection):
        yield {
            "local_id": oid,
            "external_id": name,
            "remote_lsn": remote_lsn,
            "local_lsn": local_lsn,
        }


def _nothing(context: FunctionContext) -> Iterator[Row]:
    return iter(())


#: Catalogs and views of what there cannot be here.
_EMPTY = frozenset(
    """pg_trigger pg_event_trigger pg_foreign_table pg_foreign_server pg_foreign_data_wrapper
    pg_user_mapping pg_user_mappings pg_extension pg_available_extensions
    pg_available_extension_versions pg_statistic pg_statistic_ext pg_statistic_ext_data pg_stats
    pg_stats_ext pg_stats_ext_exprs pg_prepared_xacts pg_prepared_statements pg_cursors pg_seclabel
    pg_seclabels pg_shseclabel pg_transform pg_largeobject pg_largeobject_metadata
    pg_parameter_acl pg_rules pg_stat_wal_receiver pg_stat_progress_vacuum
    pg_stat_progress_analyze pg_stat_progress_basebackup pg_stat_progress_cluster
    pg_stat_progress_copy pg_stat_progress_create_index pg_stat_user_functions
    pg_stat_xact_user_functions pg_default_acl pg_db_role_setting pg_policy pg_policies
    pg_hba_file_rules pg_ident_file_mappings pg_file_settings""".split()
)


def _pg_user(context: FunctionContext) -> Iterator[Row]:
    """The roles that may log in."""
    for row in _stored_rows(context, "pg_authid"):
        if row["rolcanlogin"]:
            yield {
                "usename": row["rolname"], "usesysid": row["oid"],
                "usecreatedb": row["rolcreatedb"], "usesuper": row["rolsuper"],
                "userepl": row["rolreplication"], "usebypassrls": row["rolbypassrls"],
                "passwd": "********",
            }  # fmt: skip


def _pg_group(context: FunctionContext) -> Iterator[Row]:
    """The roles that may not log in, with their members."""
    members = memberships(context.catalog)
    for row in _stored_rows(context, "pg_authid"):
        if not row["rolcanlogin"]:
            oids = [member.member for member in members if member.role == row["oid"]]
            yield {
                "groname": row["rolname"], "grosysid": row["oid"],
                "grolist": _array(oids, "_oid"),
            }  # fmt: skip


def _pg_indexes(context: FunctionContext) -> Iterator[Row]:
    for table in _user_relations(context, "rpm"):
        for index in table.indexes:
            yield {
                "schemaname": table.schema, "tablename": table.name, "indexname": index.name,
                "indexdef": index_definition(context.environment, table, index),
            }  # fmt: skip


def _pg_tablespace(context: FunctionContext) -> Iterator[Row]:
    for oid, name in ((1663, "pg_default"), (1664, "pg_global")):
        yield {"oid": oid, "spcname": name, "spcowner": 10}


def _pg_language(context: FunctionContext) -> Iterator[Row]:
    """The languages that functions may be declared in."""
    for oid, name, is_trusted in ((12, "internal", 0), (13, "c", 0), (14, "sql", 1)):
        yield {
            "oid": oid, "lanname": name, "lanowner": 10, "lanispl": 0,
            "lanpltrusted": is_trusted, "lanplcallfoid": 0, "laninline": 0, "lanvalidator": 0,
        }  # fmt: skip


def _pg_am(context: FunctionContext) -> Iterator[Row]:
    for oid, name, handler, kind in (
        (2, "heap", 3, "t"), (403, "btree", 330, "i"), (405, "hash", 331, "i"),
        (783, "gist", 332, "i"), (2742, "gin", 333, "i"), (3580, "brin", 335, "i"),
        (4000, "spgist", 334, "i"),
    ):  # fmt: skip
        yield {"oid": oid, "amname": name, "amhandler": handler, "amtype": kind}


def _pg_collation(context: FunctionContext) -> Iterator[Row]:
    for name, oid in builtin.collations().items():
        yield {
            "oid": oid, "collname": name, "collnamespace": 11, "collowner": 10,
            "collprovider": "d" if name == "default" else "c", "collisdeterministic": 1,
            "collencoding": -1, "collcollate": None if name == "default" else name,
            "collctype": None if name == "default" else name,
        }  # fmt: skip


def _pg_cast(context: FunctionContext) -> Iterator[Row]:
    types = builtin.types()
    for number, cast in enumerate(builtin.casts().values()):
        if cast.source in types and cast.target in types:
            yield {
                "oid": 10000 + number, "castsource": types[cast.source].oid,
                "casttarget": types[cast.target].oid, "castfunc": cast.function_oid,
                "castcontext": cast.context, "castmethod": cast.method,
            }  # fmt: skip


def _pg_stat_activity(context: FunctionContext) -> Iterator[Row]:
    """This session: others are not known."""
    session, privileges = context.session, context.environment.privileges
    row: Row = {
        "datid": session.database_oid, "datname": session.database_name, "pid": os.getpid(),
        "usesysid": session.login_oid, "usename": session.login_name,
        "application_name": session.setting("application_name"),
    }  # fmt: skip
    if privileges.acts_for(READ_ALL_STATS) or privileges.acts_for(session.login_oid):
        start = _micros(session.transaction_start)
        row |= {"state": "active", "backend_type": "client backend"}
        row |= {"xact_start": start, "query_start": start}
    else:  # HAS_PGSTAT_PERMISSIONS
        row["query"] = "<insufficient privilege>"
    yield row


def _micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)


def _pg_depend(context: FunctionContext) -> Iterator[Row]:
    """Sequences on the columns that own them, and on their schemas: as far as tools ask."""
    pg_class = builtin.system_relations()["pg_class"].oid
    for relation in _user_relations(context, "S"):
        sequence = get_sequence(context.catalog, relation.oid)
        common = {"classid": pg_class, "objid": relation.oid, "objsubid": 0}
        yield {
            **common, "refclassid": builtin.system_relations()["pg_namespace"].oid,
            "refobjid": relation.schema_oid, "refobjsubid": 0, "deptype": "n",
        }  # fmt: skip
        if sequence is not None and sequence.owner_relid:
            yield {
                **common, "refclassid": pg_class, "refobjid": sequence.owner_relid,
                "refobjsubid": sequence.owner_attnum, "deptype": sequence.ownership,
            }  # fmt: skip


def _pg_rewrite(context: FunctionContext) -> Iterator[Row]:
    for row in _stored_rows(context, "pg_rewrite"):
        yield {**row, "ev_type": "1", "ev_enabled": "O", "is_instead": 1, "ev_qual": "<>"}


_VIEWS: dict[str, Callable[[FunctionContext], Iterator[Row]]] = {
    "pg_class": _pg_class,
    "pg_attribute": _pg_attribute,
    "pg_attrdef": _pg_attrdef,
    "pg_type": _pg_type,
    "pg_proc": _pg_proc,
    "pg_operator": _pg_operator,
    "pg_index": _pg_index,
    "pg_policy": _pg_policy,
    "pg_db_role_setting": _pg_db_role_setting,
    "pg_constraint": _pg_constraint,
    "pg_partitioned_table": _pg_partitioned_table,
    "pg_sequences": _pg_sequences,
    "pg_tables": _pg_tables,
    "pg_roles": _pg_roles,
    "pg_settings": _pg_settings,
    "pg_publication_tables": _pg_publication_tables,
    "pg_subscription": _pg_subscription,
    "pg_subscription_rel": _pg_subscription_rel,
    "pg_stat_subscription": _pg_stat_subscription,
    "pg_stat_subscription_stats": _pg_stat_subscription_stats,
    "pg_stat_subscription_conflicts": _pg_stat_subscription_conflicts,
    "pg_replication_slots": _pg_replication_slots,
    "pg_stat_replication_slots": _pg_stat_replication_slots,
    "pg_replication_origin": _pg_replication_origin,
    "pg_replication_origin_status": _pg_replication_origin_status,
    "pg_stat_replication": _pg_stat_replication,
    "pg_user": _pg_user,
    "pg_group": _pg_group,
    "pg_indexes": _pg_indexes,
    "pg_tablespace": _pg_tablespace,
    "pg_language": _pg_language,
    "pg_am": _pg_am,
    "pg_collation": _pg_collation,
    "pg_cast": _pg_cast,
    "pg_stat_activity": _pg_stat_activity,
    "pg_depend": _pg_depend,
    "pg_rewrite": _pg_rewrite,
}

#: What columns have in PostgreSQL where nothing else is known.
_DEFAULTS: dict[str, Row] = {
    "pg_stat_replication_slots": {
        "spill_txns": 0, "spill_count": 0, "spill_bytes": 0,
        "stream_txns": 0, "stream_count": 0, "stream_bytes": 0,
    },
    "pg_class": {
        "reloftype": 0, "relfilenode": 0, "reltablespace": 0, "relpages": 0, "reltuples": -1,
        "relallvisible": 0, "reltoastrelid": 0, "relhasindex": 0, "relisshared": 0,
        "relpersistence": "p", "relchecks": 0, "relhasrules": 0, "relhastriggers": 0,
        "relhassubclass": 0, "relrowsecurity": 0, "relforcerowsecurity": 0, "relispopulated": 1,
        "relispartition": 0, "relrewrite": 0, "reltype": 0, "relam": 2,
    },
    "pg_attribute": {
        "attnotnull": 0, "atthasdef": 0, "atthasmissing": 0, "attidentity": "", "attgenerated": "",
        "attisdropped": 0, "attislocal": 1, "attinhcount": 0, "attcollation": 0, "attndims": 0,
        "attcacheoff": -1, "attcompression": "",
    },
    "pg_type": {
        "typisdefined": 1, "typdelim": ",", "typrelid": 0, "typnotnull": 0, "typbasetype": 0,
        "typtypmod": -1, "typcollation": 0, "typndims": 0, "typispreferred": 0,
    },
    "pg_proc": {"prosecdef": 0, "proleakproof": 0, "provariadic": 0, "pronargdefaults": 0},
    "pg_operator": {"oprcanmerge": 0, "oprcanhash": 0, "oprcom": 0, "oprnegate": 0},
    "pg_index": {
        "indisexclusion": 0, "indimmediate": 1, "indisclustered": 0, "indisvalid": 1,
        "indcheckxmin": 0, "indisready": 1, "indislive": 1,
    },
    "pg_constraint": {"condeferrable": 0, "condeferred": 0, "contypid": 0},
    "pg_database": {
        "encoding": 6, "datlocprovider": "c", "datistemplate": 0, "datallowconn": 1,
        "dathasloginevt": 0, "datconnlimit": -1, "dattablespace": 1663, "datcollate": "C.UTF-8",
        "datctype": "C.UTF-8",
    },
    "pg_roles": {"rolinherit": 1},
    "pg_partitioned_table": {"partdefid": 0},
}  # fmt: skip
