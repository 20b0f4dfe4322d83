"""Adopt tables by their names in the catalogs of Spark.  replctl resolves a name to a location once
and then uses the location.  Before Spark reads or writes the table, replctl checks that the name
still leads to this location.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping

from replctl import spark
from replctl.catalog import schema
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.storage import CATALOG_TABLE
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    DuplicateTable,
    FeatureNotSupported,
    InvalidName,
    ObjectNotInPrerequisiteState,
    UndefinedTable,
)
from replctl.lake.table_folder import TableFolder
from replctl.session import Session
from replctl.spark import CatalogTable
from replctl.types.delta_type import quoted_name
from replctl.types.quote import quote_literal

#: Seconds for which a session trusts a name.  Asking Spark takes about 30 ms.
_TRUSTED = 60.0
_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.\s]+)")


def name_parts(name: str) -> list[str]:
    """Return the parts of a name in Spark.

    "spark_catalog.lake.t"  ->  ["spark_catalog", "lake", "t"]
    "lake.`my t`"  ->  ["lake", "my t"]

    Raises:
        InvalidName: the text is not a name (42602).
    """
    parts, position = [], 0
    while (found := _PART.match(name, position)) is not None:
        quoted, plain = found.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        position = found.end()
        if position == len(name):
            return parts
        if name[position] != ".":
            break
        position += 1
    raise InvalidName(f'invalid name of a table of Spark: "{name}"')


def shown_name(parts: list[str]) -> str:
    """Return a name in Spark, with backquotes where they are needed.

    ["lake", "my t"]  ->  "lake.`my t`"
    """
    return ".".join(map(quoted_name, parts))


def resolved_table(session: Session, name: str) -> tuple[str, str]:
    """Return the full name and the location of a Delta table of a catalog of Spark.

    Raises:
        InvalidName: the text is not a name (42602).
        UndefinedTable: no table has this name.
        FeatureNotSupported: the table is not a Delta table.
    """
    parts = name_parts(name)
    if len(parts) > 1 and parts[-2].lower() == "delta" and "/" in parts[-1]:
        raise InvalidName(f'"{name}" is a path, not a name', hint="Write USING delta LOCATION.")
    found = spark.jobs.find_table(session.engine(), parts)
    if found is None:
        raise UndefinedTable(
            f'table "{name}" does not exist in the catalogs of Spark',
            hint="Start Spark with the catalog that has the table, such as --conf"
            " spark.sql.catalogImplementation=hive for a Hive metastore.",
        )
    shown = full_name(parts, found)
    if found.format != "delta" or found.location is None:
        raise _refused(shown, found.format)
    return shown, found.location


def full_name(parts: list[str], found: CatalogTable) -> str:
    """Return a name in Spark, completed with the catalog and schema in which Spark has found the
    table.
    """
    if len(parts) == 1 and found.namespace:
        parts = [*name_parts(found.namespace), *parts]
    if found.catalog and (len(parts) < 3 or parts[0].lower() != found.catalog.lower()):
        parts = [found.catalog, *parts]
    return shown_name(parts)


def leads_to(found: CatalogTable, location: str) -> bool:
    """Return whether a table in the catalogs of Spark is the Delta table at a location."""
    if found.format != "delta" or found.location is None:
        return False
    return TableFolder.of(found.location).canonical() == TableFolder.of(location).canonical()


def _refused(name: str, format_: str) -> FeatureNotSupported:
    """Return the error of a table that is not a Delta table."""
    match format_:
        case "view":
            return FeatureNotSupported(
                "adopting a view of Spark is not supported", detail=f'"{name}" is a view.'
            )
        case "parquet":
            return FeatureNotSupported(
                "adopting a Parquet table is not supported",
                detail=f'"{name}" is a Parquet table.',
                hint=f"Its owner can make it a Delta table in Spark: CONVERT TO DELTA {name}.",
            )
        case "iceberg":
            return FeatureNotSupported(
                "adopting an Iceberg table is not supported",
                detail=f'"{name}" is an Iceberg table.',
                hint="Its owner can write a Delta table that Iceberg's readers can also read"
                " (UniForm): CREATE TABLE ... USING delta TBLPROPERTIES"
                " ('delta.enableIcebergCompatV2' = 'true',"
                " 'delta.universalFormat.enabledFormats' = 'iceberg').",
            )
        case other:
            return FeatureNotSupported(
                f'adopting a table of format "{other}" is not supported',
                detail=f'"{name}" is not a Delta table.',
            )


def check_names(session: Session, relids: Collection[int]) -> None:
    """Call `check_name` for each of these tables that was adopted by name.

    Raises:
        ObjectNotInPrerequisiteState: see `check_name`.
    """
    if not relids:
        return
    with session.read() as catalog:
        named = named_tables(catalog, relids)
        relations = load_relations(catalog, named) if named else {}
    for relation in relations.values():
        check_name(session, relation)


def named_tables(catalog: Catalog, relids: Collection[int]) -> list[int]:
    """Return the OIDs of the tables that have a name in the catalogs of Spark."""
    table = schema.pg_class
    is_named = table.c.reloptions.contains(f'"{CATALOG_TABLE}"')
    return [int(row.oid) for row in catalog.select(table, table.c.oid.in_(relids), is_named)]


def check_own_name(catalog: Catalog, relation: Relation, options: Mapping[str, str]) -> None:
    """Check that no other table of the database has the name that a table gets in the catalogs of
    Spark.  Otherwise the first write of one of them would fail.

    Args:
        options: the storage parameters that the table gets.

    Raises:
        DuplicateTable: another table has the name (42P07).
    """
    name = options.get(CATALOG_TABLE)
    if name is None or name == relation.options.get(CATALOG_TABLE):
        return
    wanted = [part.lower() for part in name_parts(name)]
    table = schema.pg_class
    is_named = table.c.reloptions.contains(f'"{CATALOG_TABLE}"')
    oids = [int(row.oid) for row in catalog.select(table, is_named, table.c.oid != relation.oid)]
    for other in load_relations(catalog, oids).values():
        if [part.lower() for part in name_parts(other.options[CATALOG_TABLE])] == wanted:
            raise DuplicateTable(
                f'the name "{name}" in the catalogs of Spark belongs to table "{other.name}"',
                hint="Give each table a name of its own, after it is made: ALTER TABLE"
                f" {relation.quoted_name} SET ({CATALOG_TABLE} = 'SCHEMA.NAME').",
                table=relation.relation_name,
            )


def check_name(session: Session, relation: Relation) -> None:
    """Check that the name of a table that was adopted by name still leads to its location.  A
    session asks Spark at most once a minute for each table.

    Raises:
        ObjectNotInPrerequisiteState: the name leads to another table, or to nothing (55000).
    """
    name, storage = relation.options.get(CATALOG_TABLE), relation.storage
    if name is None or storage is None or not storage.is_adopted:
        return
    now = time.monotonic()
    if now < session.trusted_names.get((name, storage.location), now):
        return
    found = spark.jobs.find_table(session.engine(), name_parts(name))
    if found is not None and leads_to(found, storage.location):
        session.trusted_names[name, storage.location] = now + _TRUSTED
        return
    if found is None:
        other = "nothing in the catalogs of this Spark"
    elif found.format == "delta":
        other = f'the Delta table at "{found.location}"'
    else:
        other = "a view" if found.format == "view" else f"a table of format {found.format}"
    table = relation.quoted_name
    raise ObjectNotInPrerequisiteState(
        f'the name "{name}" no longer leads to the Delta table of table "{relation.name}"',
        detail=f'The Delta table is "{storage.location}". The name leads to {other}.',
        hint=f"To keep this Delta table and forget the name, use ALTER TABLE {table} RESET"
        f" ({CATALOG_TABLE}). To adopt the table that has the name now, use"
        f" DROP TABLE {table}, then CREATE TABLE {table} USING delta TABLE {quote_literal(name)}.",
        table=relation.relation_name,
    )
