"""Look up tables by their names in the catalogs of a Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from replctl.errors import PostgresError, UndefinedFile
from replctl.record import dataclass
from replctl.spark.data_type import quote, quote_name, table_name

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: Spark's conditions for a name that leads to nothing.
_NOT_FOUND = (
    "CATALOG_NOT_FOUND",
    "MISSING_CATALOG_ABILITY",
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "SCHEMA_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
)
#: Properties by which other engines mark tables of Iceberg in a Hive metastore.
_ICEBERG = ("metadata_location=", "table_type=ICEBERG")
#: The row of DESCRIBE TABLE EXTENDED after which the facts about the table follow.
_DETAILS = "# Detailed Table Information"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table of a catalog of Spark.

    Attributes:
        catalog, namespace: where its name is.
        format: delta, parquet, iceberg, or another one in lower case; "view" for a view.
        location: the path or URI of its directory; None if it has none.
        is_external: Spark keeps the files when the name is dropped.
    """

    catalog: str
    namespace: str
    format: str
    location: str | None
    is_external: bool


def find_table(engine: Engine, name: Sequence[str]) -> CatalogTable | None:
    """Return the table to which a name in parts leads; None if it leads to nothing, or if the
    directory of its Delta table is gone.
    """
    try:
        rows = engine.run(f"DESCRIBE TABLE EXTENDED {spark_name(name)}")
    except UndefinedFile:
        return None
    except PostgresError as error:
        if _is_missing(error):
            return None
        raise
    return described_table(rows)


def spark_name(name: Sequence[str]) -> str:
    """Return a name in parts as Spark's SQL.

    ["lake", "my t"]  ->  "`lake`.`my t`"
    """
    return ".".join(map(quote_name, name))


def has_namespace(engine: Engine, name: Sequence[str]) -> bool:
    """Return whether the catalogs of Spark have a schema with a name in parts."""
    try:
        engine.run(f"DESCRIBE NAMESPACE {spark_name(name)}")
    except PostgresError as error:
        if _is_missing(error):
            return False
        raise
    return True


def _is_missing(error: PostgresError) -> bool:
    """Return whether Spark says that a name leads to nothing."""
    from replctl.spark.spark_errors import condition_of  # here, because it loads pyspark

    return condition_of(error).startswith(_NOT_FOUND)


def register_table(engine: Engine, name: Sequence[str], location: str) -> None:
    """Give the Delta table at a location a name, unless the name is taken.  This does not change
    the Delta table.
    """
    engine.provide_for(table_name(location))
    engine.run(
        f"CREATE TABLE IF NOT EXISTS {spark_name(name)} USING delta LOCATION {quote(location)}"
    )


def unregister_table(engine: Engine, name: Sequence[str]) -> None:
    """Take the name of an external table out of its catalog.  The files stay."""
    engine.run(f"DROP TABLE IF EXISTS {spark_name(name)}")


def described_table(rows: Iterable[Sequence[Any]]) -> CatalogTable:
    """Return the table that the rows of DESCRIBE TABLE EXTENDED describe.  Temporary views have no
    facts.
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
    """Return a location of Spark, where special characters are not escaped.

    "file:/lake/a b"  ->  "/lake/a b"
    """
    path = location.removeprefix("file:")
    return path if path == location else f"/{path.lstrip('/')}"
