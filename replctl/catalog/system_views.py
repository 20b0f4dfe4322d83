"""The rows of PostgreSQL's catalogs and system views, for queries: pg_publication_tables, pg_class
...

A row is a dict of the columns that are known here; the others have the value that PostgreSQL gives
them in a database without such features, else NULL.  Values are as in catalog.functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import select

from replctl.catalog import schema
from replctl.catalog.functions import FunctionContext
from replctl.catalog.pg_class import get_relation, load_relations, relation_oids
from replctl.catalog.pg_publication import Memberships, list_publications
from replctl.catalog.pg_replication_slots import list_slots
from replctl.catalog.pg_sequence import get_sequence, last_value
from replctl.catalog.pg_subscription import list_subscriptions
from replctl.catalog.pg_type import type_oid
from replctl.catalog.ruleutils import get_expr, partition_bound
from replctl.errors import FeatureNotSupported
from replctl.types import builtin, text

Row = dict[str, Any]


def system_rows(context: FunctionContext, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a catalog or system view, in the order of its columns.

    Raises:
        FeatureNotSupported: it is one that replctl does not have.
    """
    relation = builtin.system_relations()[name]
    rows = _VIEWS.get(name)
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
        yield dict(row._mapping)


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


def _pg_class(context: FunctionContext) -> Iterator[Row]:
    oids = []
    for relation in builtin.system_relations().values():
        yield {
            "oid": relation.oid, "relname": relation.name, "relnamespace": 11, "relowner": 10,
            "relkind": relation.kind, "relnatts": len(relation.columns), "relreplident": "n",
        }  # fmt: skip
    rows = list(_stored_rows(context, "pg_class"))
    oids = [int(row["oid"]) for row in rows]
    relations = load_relations(context.catalog, oids)
    parents = {oid for relation in relations.values() for oid in relation.parents}
    for row in rows:
        relation_ = relations[int(row["oid"])]
        yield {
            **row,
            "relnatts": len(relation_.columns) + len(relation_.dropped_attnums),
            "relhasindex": int(bool(relation_.indexes)),
            "relchecks": len(relation_.checks()),
            "relhassubclass": int(relation_.oid in parents),
            "relam": 403 if relation_.kind in ("i", "I") else 2 if relation_.kind == "r" else 0,
            "relpartbound": None
            if relation_.partition_bound is None
            else _bound_text(context, relation_.oid),
        }


def _bound_text(context: FunctionContext, relid: int) -> str | None:
    relation = get_relation(context.catalog, relid)
    if relation is None or relation.partition_bound is None:
        return None
    parent = get_relation(context.catalog, relation.parents[0])
    if parent is None or parent.partition_key is None:
        return None
    columns = [parent.column_at(attnum) for attnum in parent.partition_key.attnums if attnum]
    types = [(column.type, column.typmod) for column in columns]
    return partition_bound(context.environment, relation.partition_bound, types)


def _pg_attribute(context: FunctionContext) -> Iterator[Row]:
    for relation in builtin.system_relations().values():
        for attnum, (name, type_name) in enumerate(relation.columns, start=1):
            type_ = builtin.types().get(type_name)  # arrays of catalogs' rows are not among them
            yield {
                "attrelid": relation.oid, "attname": name, "attnum": attnum,
                "atttypid": 0 if type_ is None else type_.oid,
                "attlen": -1 if type_ is None else type_.length, "atttypmod": -1,
            }  # fmt: skip
    for row in _stored_rows(context, "pg_attribute"):
        known = context.environment.type_by_oid(int(row["atttypid"]))
        yield {**row, "attlen": -1 if known is None else known.length}


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
    for row in _stored_rows(context, "pg_index"):
        yield {**row, "indnatts": len(row["indkey"].split())}


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
    relations = _user_relations(context, "rp")
    for relation in relations:
        yield {
            "schemaname": relation.schema, "tablename": relation.name,
            "tableowner": context.environment.role_name(relation.owner),
            "hasindexes": int(bool(relation.indexes)), "hasrules": 0, "hastriggers": 0,
            "rowsecurity": 0,
        }  # fmt: skip


def _user_relations(context: FunctionContext, kinds: str) -> list[Any]:
    table = schema.pg_class
    rows = context.catalog.select(table, table.c.relkind.in_(list(kinds)), order_by=[table.c.oid])
    return list(load_relations(context.catalog, [int(row.oid) for row in rows]).values())


# -- roles, databases, settings


def _pg_roles(context: FunctionContext) -> Iterator[Row]:
    for row in _stored_rows(context, "pg_authid"):
        yield {**row, "rolpassword": "********", "oid": row["oid"]}


def _pg_settings(context: FunctionContext) -> Iterator[Row]:
    for name in sorted(context.settings):
        yield {"name": name, "setting": context.settings[name], "vartype": "string"}


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
                "attnames": _array(names, "_name"),
                "rowfilter": None
                if row_filter is None
                else get_expr(context.environment, relation, row_filter),
            }


def _pg_subscription(context: FunctionContext) -> Iterator[Row]:
    for row in _stored_rows(context, "pg_subscription"):
        yield {**row, "subpublications": _array(json.loads(row["subpublications"]))}


def _own_subscriptions(context: FunctionContext) -> dict[int, str]:
    return {s.oid: s.name for s in list_subscriptions(context.catalog)}


def _pg_subscription_rel(context: FunctionContext) -> Iterator[Row]:
    table = schema.pg_subscription_rel
    own = _own_subscriptions(context)
    for row in context.catalog.connection.execute(select(table)):
        if row.srsubid in own:
            yield dict(row._mapping)


def _pg_stat_subscription(context: FunctionContext) -> Iterator[Row]:
    """No process stands by: a subscription is worked on while a sync runs."""
    for oid, name in _own_subscriptions(context).items():
        yield {"subid": oid, "subname": name}


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
        }


def _pg_replication_slots(context: FunctionContext) -> Iterator[Row]:
    table = schema.pg_database
    names = {int(row.oid): row.datname for row in context.catalog.select(table)}
    for slot in list_slots(context.catalog.connection):
        yield {
            "slot_name": slot.name, "plugin": slot.plugin, "slot_type": "logical",
            "datoid": slot.database_oid, "database": names.get(slot.database_oid),
            "temporary": int(slot.temporary), "active": 0, "restart_lsn": slot.restart_lsn,
            "confirmed_flush_lsn": slot.confirmed_flush_lsn, "wal_status": "reserved",
            "two_phase": int(slot.two_phase), "conflicting": 0,
            "invalidation_reason": slot.invalidation_reason, "failover": int(slot.failover),
            "synced": 0,
        }  # fmt: skip


def _pg_replication_origin(context: FunctionContext) -> Iterator[Row]:
    table = schema.pg_replication_origin
    for row in context.catalog.connection.execute(select(table)):
        yield dict(row._mapping)


def _pg_replication_origin_status(context: FunctionContext) -> Iterator[Row]:
    table = schema.pg_replication_origin
    for row in context.catalog.connection.execute(select(table)):
        yield {
            "local_id": row.roident,
            "external_id": row.roname,
            "remote_lsn": row.remote_lsn,
            "local_lsn": row.local_lsn,
        }


def _nothing(context: FunctionContext) -> Iterator[Row]:
    return iter(())


_VIEWS: dict[str, Callable[[FunctionContext], Iterator[Row]]] = {
    "pg_class": _pg_class,
    "pg_attribute": _pg_attribute,
    "pg_type": _pg_type,
    "pg_proc": _pg_proc,
    "pg_operator": _pg_operator,
    "pg_index": _pg_index,
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
    "pg_replication_slots": _pg_replication_slots,
    "pg_replication_origin": _pg_replication_origin,
    "pg_replication_origin_status": _pg_replication_origin_status,
    "pg_stat_replication": _nothing,
    "pg_views": _nothing,
    "pg_matviews": _nothing,
    "pg_trigger": _nothing,
    "pg_rewrite": _nothing,
    "pg_description": _nothing,
}

#: What columns have in PostgreSQL where nothing else is known.
_DEFAULTS: dict[str, Row] = {
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
        "typtypmod": -1, "typndims": 0, "typispreferred": 0,
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
