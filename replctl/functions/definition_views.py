"""The rows of catalogs with definitions: relations, columns, indexes, constraints, types, functions
and operators, including PostgreSQL's built-in ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from replctl.catalog import schema
from replctl.catalog.acl import Privilege
from replctl.catalog.initdb import INFORMATION_SCHEMA, PG_CATALOG_NAMESPACE
from replctl.catalog.pg_class import (
    KeyDetail,
    Relation,
    load_relations,
    relation_oids,
)
from replctl.catalog.pg_collation import list_collations
from replctl.catalog.pg_index import is_valid_index
from replctl.catalog.pg_sequence import get_sequence, last_value
from replctl.catalog.pg_type import get_type, type_name, type_oid
from replctl.catalog.relation_kind import (
    TABLE_KINDS,
    VIEW_KINDS,
    WITH_ROWS,
    ConstraintKind,
    DependencyType,
    RelKind,
    ReplicaIdentity,
)
from replctl.catalog.ruleutils import index_definition, key_collation
from replctl.expr import nodes, pg_node_tree
from replctl.functions.function_context import FunctionContext
from replctl.functions.view_rows import Row, RowsOf, array_text, stored_rows
from replctl.types import builtin
from replctl.types.builtin import Type
from replctl.types.type_kind import TypeStorage

#: The OIDs of the languages in pg_language.
_LANGUAGES = {"internal": 12, "c": 13, "sql": 14, "plpgsql": 13488}


def _pg_sequences(context: FunctionContext) -> Iterator[Row]:
    privileges = context.environment.privileges
    for relation in user_relations(context, [RelKind.SEQUENCE]):
        sequence = get_sequence(context.catalog, relation.oid)
        assert sequence is not None
        # As in system_views.sql: the other columns are for everybody
        is_readable = any(
            privileges.has_on_relation(relation, privilege)
            for privilege in (Privilege.SELECT, Privilege.USAGE)
        )
        yield {
            "schemaname": relation.schema, "sequencename": relation.name,
            "sequenceowner": context.environment.role_name(relation.owner),
            "data_type": type_oid(sequence.type), "start_value": sequence.start,
            "min_value": sequence.minimum, "max_value": sequence.maximum,
            "increment_by": sequence.increment, "cycle": int(sequence.cycles),
            "cache_size": sequence.cache,
            "last_value": last_value(context.catalog, relation.oid) if is_readable else None,
        }  # fmt: skip


#: The OIDs of access methods in pg_am.
_ACCESS_METHODS = {"heap": 2, "btree": 403, "hash": 405}
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
            "relkind": relation.kind, "relnatts": len(relation.columns),
            "relreplident": ReplicaIdentity.NOTHING,
        }  # fmt: skip
    rows = list(stored_rows(context, "pg_class"))
    oids = [int(row["oid"]) for row in rows]
    relations = load_relations(context.catalog, oids)
    parents = {oid for relation in relations.values() for oid in relation.parents}
    triggered = _with_triggers(context)
    indexes = {row["indexrelid"]: row for row in stored_rows(context, "pg_index")}
    for row in rows:
        relation_ = relations[int(row["oid"])]
        index = indexes.get(relation_.oid)
        yield {
            **row,
            "relnatts": len(relation_.columns) + len(relation_.dropped_attnums)
            if index is None
            else len(str(index["indkey"]).split()),
            "reloptions": array_text([f"{k}={v}" for k, v in relation_.options.items()])
            if relation_.options
            else None,
            "relhasrules": int(relation_.kind in VIEW_KINDS),
            "relhastriggers": int(relation_.oid in triggered),
            "relhasindex": int(bool(relation_.indexes)),
            "relchecks": len(relation_.checks()),
            "relhassubclass": int(relation_.oid in parents),
            "relam": _ACCESS_METHODS["heap" if index is None else index["indam"]]
            if relation_.kind in (RelKind.INDEX, RelKind.PARTITIONED_INDEX, RelKind.TABLE)
            else 0,
        }


def _pg_attribute(context: FunctionContext) -> Iterator[Row]:
    not_null = builtin.not_null_system_columns()
    for relation in builtin.system_relations_by_oid().values():
        for attnum, (name, kind) in enumerate(relation.columns, start=1):
            type_ = builtin.types().get(kind)  # arrays of catalogs' row types do not exist
            yield {
                "attrelid": relation.oid, "attname": name, "attnum": attnum,
                "atttypid": 0 if type_ is None else type_.oid, "atttypmod": -1,
                "attnotnull": int((relation.oid, name) in not_null),
                **_stored_form(type_, TypeStorage.EXTENDED),
            }  # fmt: skip
        if relation.kind == RelKind.TABLE:
            yield from _system_columns(relation.oid)
    for oid in relation_oids(context.catalog, (*WITH_ROWS, RelKind.SEQUENCE)):
        yield from _system_columns(oid)
    columns: dict[tuple[int, int], Row] = {}
    for stored in stored_rows(context, "pg_attribute"):
        known = context.environment.type_by_oid(int(stored["atttypid"]))
        form = _stored_form(known, TypeStorage.PLAIN)
        has_default = stored["atthasdef"] and not stored["attidentity"]
        options = json.loads(stored["attoptions"] or "{}")
        row = {
            **stored, **form, "atthasdef": has_default,
            "attstorage": stored["attstorage"] or form["attstorage"],
            "attoptions": array_text([f"{k}={v}" for k, v in options.items()]) if options else None,
        }  # fmt: skip
        columns[int(row["attrelid"]), int(row["attnum"])] = row
        yield row
    for index in stored_rows(context, "pg_index"):
        exprs = iter(_expression_columns(context, index))
        details = json.loads(index["indkeydetails"] or "[]")
        for attnum, key in enumerate(map(int, str(index["indkey"]).split()), start=1):
            column = columns.get((int(index["indrelid"]), key)) if key else next(exprs)
            if column is not None:
                called = details[attnum - 1][0] if attnum <= len(details) else ""
                yield {
                    **column, "attname": called or column["attname"],
                    **(_HASHED if index["indam"] == "hash" else {}),
                    "attrelid": index["indexrelid"], "attnum": attnum,
                    "attnotnull": 0, "atthasdef": 0, "attidentity": "", "attgenerated": "",
                    "attislocal": 1, "attinhcount": 0, "attacl": None,
                    "attstattarget": None, "attoptions": None,
                }  # fmt: skip


def _system_columns(relid: int) -> Iterator[Row]:
    """Yield the rows of the columns that every table has, such as ctid."""
    for name, (attnum, type_name_) in builtin.system_columns().items():
        type_ = builtin.types()[type_name_]
        yield {
            "attrelid": relid, "attname": name, "attnum": attnum, "atttypid": type_.oid,
            "atttypmod": -1, "attnotnull": 1, **_stored_form(type_, TypeStorage.PLAIN),
        }  # fmt: skip


def _stored_form(type_: Type | None, storage: TypeStorage) -> Row:
    """Return the columns of pg_attribute that repeat those of the type.

    Args:
        storage: the value of attstorage if there is no type.
    """
    if type_ is None:
        return {"attlen": -1, "attbyval": 0, "attalign": "i", "attstorage": storage}
    return {
        "attlen": type_.length, "attbyval": int(type_.is_by_value), "attalign": type_.align,
        "attstorage": type_.storage,
    }  # fmt: skip


#: The column of an index of hashes: an int4.
_HASHED = {
    "atttypid": 23, "atttypmod": -1, "attlen": 4, "attbyval": 1, "attalign": "i",
    "attstorage": TypeStorage.PLAIN,
}  # fmt: skip


def _expression_columns(context: FunctionContext, index: Row) -> Iterator[Row]:
    """Yield the rows of pg_attribute for the expressions in an index."""
    for stored in json.loads(index["indexprs"] or "[]"):
        expr = pg_node_tree.loads(stored)
        type_ = context.environment.type(expr.type)
        yield {
            "attname": "", "atttypid": type_oid(expr.type), "atttypmod": nodes.typmod(expr),
            **_stored_form(type_, TypeStorage.PLAIN),
            "attcollation": builtin.collations().get(nodes.collation(expr) or "", 0),
        }  # fmt: skip


def _pg_attrdef(context: FunctionContext) -> Iterator[Row]:
    """Yield the defaults, except those of identity columns, which only replctl has."""
    identities = {
        (row["attrelid"], row["attnum"])
        for row in stored_rows(context, "pg_attribute")
        if row["attidentity"]
    }
    for row in stored_rows(context, "pg_attrdef"):
        if (row["adrelid"], row["adnum"]) not in identities:
            yield row


def _pg_type(context: FunctionContext) -> Iterator[Row]:
    types = builtin.types()
    elements = {row["typname"]: row["typelem"] for row in builtin.builtin_rows("pg_type")}
    for type_ in types.values():
        element = elements[type_.name]  # also of point and name, which are not arrays
        yield {
            "oid": type_.oid, "typname": type_.name, "typnamespace": 11, "typowner": 10,
            "typlen": type_.length, "typbyval": int(type_.is_by_value), "typtype": type_.kind,
            "typcategory": type_.category, "typispreferred": int(type_.is_preferred),
            "typdelim": type_.delimiter, "typalign": type_.align, "typstorage": type_.storage,
            "typelem": types[element].oid if element else 0,
            "typarray": types[type_.array].oid if type_.array else 0,
            "typcollation": builtin.collations()[type_.collation] if type_.collation else 0,
        }  # fmt: skip
    for row in stored_rows(context, "pg_type"):
        made = get_type(context.catalog, type_name(int(row["oid"])))
        yield {
            "typlen": made.length, "typbyval": int(made.is_by_value), "typalign": made.align,
            "typstorage": made.storage, "typdelim": made.delimiter, **row,
        }  # fmt: skip


def _pg_proc(context: FunctionContext) -> Iterator[Row]:
    types = builtin.types()
    for function in builtin.function_by_oid().values():
        yield {
            "oid": function.oid, "proname": function.name, "pronamespace": 11, "proowner": 10,
            "prokind": function.kind, "proisstrict": int(function.is_strict),
            "proretset": int(function.returns_set), "provolatile": function.volatility,
            "procost": function.cost, "prorows": function.rows,
            "proleakproof": int(function.is_leakproof), "proparallel": function.parallel,
            "pronargs": len(function.argument_types), "prorettype": types[function.result].oid,
            "proargtypes": " ".join(str(types[name].oid) for name in function.argument_types),
            "prosrc": function.source,
            # the source of an internal function is the name of a function in C
            "prolang": _LANGUAGES["internal" if function.source.isidentifier() else "sql"],
            "provariadic": types[function.variadic].oid if function.variadic else 0,
            "pronargdefaults": len(function.defaults),
        }  # fmt: skip
    for row in stored_rows(context, "pg_proc"):
        yield {
            **row, "pronargs": len(row["proargtypes"].split()),
            "prolang": _LANGUAGES[row["prolang"]],
        }  # fmt: skip


def _pg_operator(context: FunctionContext) -> Iterator[Row]:
    types = builtin.types()
    oids: dict[tuple[str, str | None, str | None], int] = {
        (operator.name, operator.left, operator.right): operator.oid
        for group in builtin.operators().values()
        for operator in group
    }
    for group in builtin.operators().values():
        for operator in group:
            left, right = operator.left, operator.right
            yield {
                "oid": operator.oid, "oprname": operator.name, "oprnamespace": 11, "oprowner": 10,
                "oprkind": "b" if left else "l",
                "oprleft": types[left].oid if left else 0,
                "oprright": types[right].oid, "oprresult": types[operator.result].oid,
                "oprcode": operator.function_oid,
                "oprcom": oids[operator.commutator, right, left] if operator.commutator else 0,
                "oprnegate": oids[operator.negator, left, right] if operator.negator else 0,
                "oprcanmerge": int(operator.can_merge), "oprcanhash": int(operator.can_hash),
            }  # fmt: skip
    for row in stored_rows(context, "pg_operator"):
        yield {**row, "oprkind": "b" if row["oprleft"] else "l"}


def _pg_index(context: FunctionContext) -> Iterator[Row]:
    relations = load_relations(context.catalog, relation_oids(context.catalog, WITH_ROWS))
    found = {index.oid: (table, index) for table in relations.values() for index in table.indexes}
    for row in stored_rows(context, "pg_index"):
        table, index = found[row["indexrelid"]]
        details = index.details or (KeyDetail(),) * len(index.key)
        collations = (
            builtin.collations().get(detail.collation or key_collation(table, index, number) or "")
            for number, detail in enumerate(details)
        )
        yield {
            **row, "indnatts": len(index.key) + len(index.including),
            "indisvalid": int(is_valid_index(relations, table, index)),
            "indoption": " ".join(str(detail.option) for detail in details),
            "indcollation": " ".join(str(oid or 0) for oid in collations),
        }  # fmt: skip


def _pg_policy(context: FunctionContext) -> Iterator[Row]:
    for row in stored_rows(context, "pg_policy"):
        yield {**row, "polroles": array_text(json.loads(row["polroles"]), "_oid")}


def _pg_constraint(context: FunctionContext) -> Iterator[Row]:
    for row in stored_rows(context, "pg_constraint"):
        arrays = {
            name: None if row[name] is None else "{" + row[name].replace(" ", ",") + "}"
            for name in ("conkey", "confkey", "confdelsetcols")
        }
        yield {**row, **arrays}


def _pg_partitioned_table(context: FunctionContext) -> Iterator[Row]:
    oids = relation_oids(context.catalog, (RelKind.PARTITIONED_TABLE,))
    relations = load_relations(context.catalog, oids)
    for row in stored_rows(context, "pg_partitioned_table"):
        attnums = row["partattrs"].split()
        columns = [relations[row["partrelid"]].column_at(int(attnum)) for attnum in attnums]
        collations = (builtin.collations().get(column.collation or "", 0) for column in columns)
        yield {
            **row, "partnatts": len(attnums),
            "partcollation": " ".join(map(str, collations)),
        }  # fmt: skip


def _pg_tables(context: FunctionContext) -> Iterator[Row]:
    triggered = _with_triggers(context)
    for relation in user_relations(context, TABLE_KINDS):
        yield {
            "schemaname": relation.schema, "tablename": relation.name,
            "tableowner": context.environment.role_name(relation.owner),
            "hasindexes": int(bool(relation.indexes)), "hasrules": 0,
            "hastriggers": int(relation.oid in triggered),
            "rowsecurity": int(relation.has_row_security),
        }  # fmt: skip


def _with_triggers(context: FunctionContext) -> set[int]:
    """Return the tables to which PostgreSQL gives triggers: those at both ends of foreign keys, and
    those with deferrable keys.
    """
    table = schema.pg_constraint
    is_foreign = table.c.contype == ConstraintKind.FOREIGN_KEY
    rows = context.catalog.select(table, is_foreign | table.c.condeferrable)
    return {int(oid) for row in rows for oid in (row.conrelid, row.confrelid) if oid}


def user_relations(context: FunctionContext, kinds: Collection[RelKind]) -> list[Relation]:
    return list(load_relations(context.catalog, relation_oids(context.catalog, kinds)).values())


def _pg_indexes(context: FunctionContext) -> Iterator[Row]:
    for table in user_relations(context, WITH_ROWS):
        for index in table.indexes:
            yield {
                "schemaname": table.schema, "tablename": table.name, "indexname": index.name,
                "indexdef": index_definition(context.environment, table, index),
            }  # fmt: skip


def _pg_tablespace(context: FunctionContext) -> Iterator[Row]:
    for oid, name in ((1663, "pg_default"), (1664, "pg_global")):
        yield {"oid": oid, "spcname": name, "spcowner": 10}


def _pg_language(context: FunctionContext) -> Iterator[Row]:
    """Yield the languages in which functions can be written."""
    for name, oid in _LANGUAGES.items():
        yield {
            "oid": oid, "lanname": name, "lanowner": 10, "lanispl": int(name == "plpgsql"),
            "lanpltrusted": int(name in ("sql", "plpgsql")), "lanplcallfoid": 0, "laninline": 0,
            "lanvalidator": 0,
        }  # fmt: skip


def _pg_am(context: FunctionContext) -> Iterator[Row]:
    for oid, name, handler, kind in (
        (2, "heap", 3, "t"), (403, "btree", 330, "i"), (405, "hash", 331, "i"),
        (783, "gist", 332, "i"), (2742, "gin", 333, "i"), (3580, "brin", 335, "i"),
        (4000, "spgist", 334, "i"),
    ):  # fmt: skip
        yield {"oid": oid, "amname": name, "amhandler": handler, "amtype": kind}


#: The columns of pg_collation, except for collations of the C library for all encodings.
_COLLATION_LOCALES: dict[str, Row] = {
    "default": {"collprovider": "d", "collencoding": -1},
    "ucs_basic": {"collprovider": "b", "collencoding": 6, "colllocale": "C"},
    "pg_c_utf8": {"collprovider": "b", "collencoding": 6, "colllocale": "C.UTF-8"},
    "C.utf8": {
        "collprovider": "c", "collencoding": 6, "collcollate": "C.utf8", "collctype": "C.utf8",
    },
}  # fmt: skip


def _of_libc(name: str) -> Row:
    return {"collprovider": "c", "collencoding": -1, "collcollate": name, "collctype": name}


def _pg_collation(context: FunctionContext) -> Iterator[Row]:
    rows: dict[str, Row] = {
        name: {
            "oid": oid, "collname": name, "collnamespace": PG_CATALOG_NAMESPACE, "collowner": 10,
            "collisdeterministic": 1, **_COLLATION_LOCALES.get(name, _of_libc(name)),
        }
        for name, oid in builtin.collations().items()
    }  # fmt: skip
    yield from rows.values()
    for made in list_collations(context.catalog):
        yield {
            **rows[made.source], "oid": made.oid, "collname": made.name,
            "collnamespace": made.schema_oid, "collowner": made.owner,
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


def _pg_depend(context: FunctionContext) -> Iterator[Row]:
    """Yield the dependencies that tools read: sequences on their schemas and owning columns."""
    pg_class = builtin.system_relations()["pg_class"].oid
    for relation in user_relations(context, [RelKind.SEQUENCE]):
        sequence = get_sequence(context.catalog, relation.oid)
        common = {"classid": pg_class, "objid": relation.oid, "objsubid": 0}
        yield {
            **common, "refclassid": builtin.system_relations()["pg_namespace"].oid,
            "refobjid": relation.schema_oid, "refobjsubid": 0, "deptype": DependencyType.NORMAL,
        }  # fmt: skip
        if sequence is not None and sequence.owner_relid:
            yield {
                **common, "refclassid": pg_class, "refobjid": sequence.owner_relid,
                "refobjsubid": sequence.owner_attnum, "deptype": sequence.ownership,
            }  # fmt: skip


def _pg_rewrite(context: FunctionContext) -> Iterator[Row]:
    for row in stored_rows(context, "pg_rewrite"):
        yield {**row, "ev_type": "1", "ev_enabled": "O", "is_instead": 1, "ev_qual": "<>"}


#: The functions that yield the rows of each catalog.
DEFINITION_VIEWS: dict[str, RowsOf] = {
    "pg_class": _pg_class,
    "pg_attribute": _pg_attribute,
    "pg_attrdef": _pg_attrdef,
    "pg_type": _pg_type,
    "pg_proc": _pg_proc,
    "pg_operator": _pg_operator,
    "pg_index": _pg_index,
    "pg_policy": _pg_policy,
    "pg_constraint": _pg_constraint,
    "pg_partitioned_table": _pg_partitioned_table,
    "pg_sequences": _pg_sequences,
    "pg_tables": _pg_tables,
    "pg_indexes": _pg_indexes,
    "pg_tablespace": _pg_tablespace,
    "pg_language": _pg_language,
    "pg_am": _pg_am,
    "pg_collation": _pg_collation,
    "pg_cast": _pg_cast,
    "pg_depend": _pg_depend,
    "pg_rewrite": _pg_rewrite,
}
