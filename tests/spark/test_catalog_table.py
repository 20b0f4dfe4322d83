"""replctl reads the output of DESCRIBE TABLE EXTENDED about tables of a catalog, without Spark."""

from __future__ import annotations

import pytest

from replctl.spark.catalog_table import CatalogTable, described_table

_COLUMNS = [("id", "int", None), ("Provider", "string", None), ("", "", "")]
_TITLE = ("# Detailed Table Information", "", "")
_PLACE = [("Catalog", "spark_catalog", ""), ("Namespace", "lake", ""), ("Table", "t", "")]
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"


def _facts(**facts: str) -> list[tuple[str, str, str]]:
    return [(name.replace("_", " "), value, "") for name, value in facts.items()]


@pytest.mark.parametrize(
    ("facts", "format_", "location", "is_external"),
    [
        (_facts(Type="EXTERNAL", Provider="delta", Location="file:/a b%20c"),
         "delta", "/a b%20c", True),
        (_facts(Type="MANAGED", Provider="delta", Location="s3a://bucket/t"),
         "delta", "s3a://bucket/t", False),
        (_facts(Type="MANAGED", Provider="DELTA", Location="file:///lake/t"),
         "delta", "/lake/t", False),
        (_facts(Type="EXTERNAL", Provider="parquet", Location="file:/p", Serde_Library=_PARQUET),
         "parquet", "/p", True),
        (_facts(Type="EXTERNAL", Provider="hive", Location="file:/p", Serde_Library=_PARQUET),
         "parquet", "/p", True),
        (_facts(Type="EXTERNAL", Provider="hive", Location="file:/o", Serde_Library="x.OrcSerde"),
         "hive", "/o", True),
        (_facts(Type="MANAGED", Provider="iceberg", Location="file:/i"), "iceberg", "/i", False),
        (_facts(Type="EXTERNAL", Provider="hive", Location="file:/i", Serde_Library=_PARQUET,
                Table_Properties="[a=b,table_type=ICEBERG]"), "iceberg", "/i", True),
        (_facts(Type="EXTERNAL", Provider="delta", Location="file:/u",
                Table_Properties="[metadata_location=x]"), "delta", "/u", True),
        (_facts(Type="MANAGED", Provider="jdbc"), "jdbc", None, False),
        (_facts(Type="VIEW"), "view", None, False),
        (_facts(Type="MATERIALIZED_VIEW", Provider="delta"), "view", None, False),
        (_facts(Type="EXTERNAL"), "unknown", None, True),
    ],
)  # fmt: skip
def test_a_described_table(
    facts: list[tuple[str, str, str]], format_: str, location: str | None, is_external: bool
) -> None:
    found = described_table([*_COLUMNS, _TITLE, *_PLACE, *facts])
    assert found == CatalogTable("spark_catalog", "lake", format_, location, is_external)


def test_a_temporary_view_has_no_facts() -> None:
    assert described_table(_COLUMNS[:1]) == CatalogTable("", "", "view", None, False)
