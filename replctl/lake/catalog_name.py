"""Adopt tables by their names in the catalogs of Spark: a name is resolved to a location, which
replctl uses from then on.
"""

from __future__ import annotations

import re

from replctl import spark
from replctl.errors import FeatureNotSupported, InvalidName, UndefinedTable
from replctl.session import Session

_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.\s]+)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def name_parts(name: str) -> list[str]:
    """Return the parts of a name in Spark.

    "spark_catalog.lake.t"  ->  ["spark_catalog", "lake", "t"]
    "lake.`my t`"  ->  ["lake", "my t"]

    Raises:
        InvalidName: it is not a name (42602).
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
    return ".".join(
        part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in parts
    )


def resolved_table(session: Session, name: str) -> tuple[str, str]:
    """Return the full name and the location of a Delta table of a catalog of Spark.

    Raises:
        InvalidName: it is not a name (42602).
        UndefinedTable: the name leads to nothing.
        FeatureNotSupported: it leads to something else than a Delta table.
    """
    parts = name_parts(name)
    if len(parts) > 1 and parts[-2].lower() == "delta" and "/" in parts[-1]:
        raise InvalidName(f'"{name}" is a path, not a name', hint="Use USING delta LOCATION.")
    found = spark.jobs.find_table(session.engine(), parts)
    if found is None:
        raise UndefinedTable(
            f'table "{name}" does not exist in the catalogs of Spark',
            hint="Start Spark with the catalog that has the table, such as --conf"
            " spark.sql.catalogImplementation=hive for a Hive metastore.",
        )
    if len(parts) == 1 and found.namespace:
        parts = [*name_parts(found.namespace), *parts]
    if found.catalog and (len(parts) < 3 or parts[0].lower() != found.catalog.lower()):
        parts = [found.catalog, *parts]
    shown = shown_name(parts)
    if found.format != "delta" or found.location is None:
        raise _refused(shown, found.format)
    return shown, found.location


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
                hint="Its owner can write a Delta table that readers of Iceberg read, too"
                " (UniForm): CREATE TABLE ... USING delta TBLPROPERTIES"
                " ('delta.enableIcebergCompatV2' = 'true',"
                " 'delta.universalFormat.enabledFormats' = 'iceberg').",
            )
        case other:
            return FeatureNotSupported(
                f'adopting a table of format "{other}" is not supported',
                detail=f'"{name}" is not a Delta table.',
            )
