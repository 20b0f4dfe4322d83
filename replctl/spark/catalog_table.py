"""Look up tables by their names in Spark's catalogs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from replctl.errors import PostgresError, UndefinedFile
from replctl.record import dataclass
from replctl.spark.data_type import quote, quote_name
from replctl.spark.delta_table import define

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: Spark's error conditions for a name that does not exist.
_NOT_FOUND = (
    "CATALOG_NOT_FOUND",
    "MISSING_CATALOG_ABILITY",
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "SCHEMA_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
)
#: Table properties by which other engines mark Iceberg tables in a Hive metastore.
_ICEBERG = ("metadata_location=", "table_type=ICEBERG")
#: The row of DESCRIBE TABLE EXTENDED before the properties of the table.
_DETAILS = "# Detailed Table Information"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table in one of Spark's catalogs.

    Attributes:
        catalog, namespace: the catalog and the schema of the table.
        format: delta, parquet, iceberg, or another format in lower case; "view" for a view.
        location: the path or URI of the table's directory; None without a directory.
        is_external: DROP TABLE keeps the files.
    """

    catalog: str
    namespace: str
    format: str
    location: str | None
    is_external: bool


def find_table(engine: Engine, name: Sequence[str]) -> CatalogTable | None:
    """Return the table with a name, given in parts. Return None if there is no such table, or if
    the directory of its Delta table no longer exists.
    """
    try:
        rows = engine.run(f"DESCRIBE TABLE EXTENDED {spark_name(name)}")
    except UndefinedFile:  # only the catalog's entry is left
        return None
    except PostgresError as error:
        if _is_missing(error):
            return None
        raise
    return described_table(rows)


def spark_name(name: Sequence[str]) -> str:
    """Return the SQL of a name that is given in parts.

    ["lake", "my t"]  ->  "`lake`.`my t`"
    """
    return ".".join(map(quote_name, name))


def has_namespace(engine: Engine, name: Sequence[str]) -> bool:
    """Return whether Spark's catalogs have a schema with a name, given in parts."""
    try:
        engine.run(f"DESCRIBE NAMESPACE {spark_name(name)}")
    except PostgresError as error:
        if _is_missing(error):
            return False
        raise
    return True


def _is_missing(error: PostgresError) -> bool:
    """Return whether Spark's error means that a name does not exist."""
    from replctl.spark.spark_errors import condition_of  # here, because it loads pyspark

    return condition_of(error).startswith(_NOT_FOUND)


def register_table(engine: Engine, name: Sequence[str], location: str) -> None:
    """Add a name for the Delta table at a location to a catalog, unless the name exists.  This does
    not change the Delta table.
    """
    define(
        engine,
        location,
        f"CREATE TABLE IF NOT EXISTS {spark_name(name)} USING delta LOCATION {quote(location)}",
    )


def unregister_table(engine: Engine, name: Sequence[str]) -> None:
    """Remove the name of an external table from its catalog.  The files stay."""
    engine.run(f"DROP TABLE IF EXISTS {spark_name(name)}")


def described_table(rows: Iterable[Sequence[Any]]) -> CatalogTable:
    """Return the table that the rows of DESCRIBE TABLE EXTENDED describe.  For a temporary view,
    these rows have no properties.
    """
    facts: dict[str, str] = {}
    is_fact = False
    for title, value, *_comment in rows:
        if is_fact:
            facts.setdefault(str(title), str(value))
        is_fact = is_fact or title == _DETAILS
    return CatalogTable(
        facts.get("Catalog", ""),
        facts.get("Namespace", facts.get("Database", "")),
        _format(facts),
        None if "Location" not in facts else _path(facts["Location"]),
        facts.get("Type") == "EXTERNAL",
    )


def _format(facts: Mapping[str, str]) -> str:
    if facts.get("Type", "VIEW").endswith("VIEW"):
        return "view"
    provider = facts.get("Provider", "unknown").lower()
    if provider == "hive" and any(mark in facts.get("Table Properties", "") for mark in _ICEBERG):
        return "iceberg"
    if provider == "hive" and "parquet" in facts.get("Serde Library", "").lower():
        return "parquet"
    return provider


def _path(location: str) -> str:
    """Convert a location that Spark shows to a path or URI. Spark does not escape characters there.

    "file:/lake/a b"  ->  "/lake/a b"
    """
    path = location.removeprefix("file:")
    return path if path == location else f"/{path.lstrip('/')}"
