"""The jobs that a good engineer would write by hand in PySpark instead of using replctl.

None of them pairs old images with new ones, or looks for conflicts.  If such a job dies between its
commit and the record of its progress, it repeats changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import Window
from pyspark.sql import functions as F

from benchmarks.lake import COLUMN_NAMES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def copy(spark: SparkSession, source: str, target: str, condition: str) -> None:
    """Append the rows that satisfy a condition to an existing table."""
    rows = spark.read.format("delta").load(source).where(condition)
    rows.write.format("delta").mode("append").save(target)


class Job:
    """A job that applies its source's change feed to a target.

    Args:
        condition: the condition for the target's rows.
    """

    def __init__(self, spark: SparkSession, source: str, target: str, condition: str) -> None:
        self._spark, self._source, self._target = spark, source, target
        self._condition = condition
        self._done = self._version()

    def _version(self) -> int:
        newest = DeltaTable.forPath(self._spark, self._source).history(1).first()
        assert newest is not None
        return int(newest["version"])

    def _last_images(self) -> DataFrame | None:
        """Return the last image of each key since the last run; None if there are no commits.
        `is_there` is false if the row leaves the target.
        """
        newest = self._version()
        if newest == self._done:
            return None
        feed = (
            self._spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", self._done + 1)
            .option("endingVersion", newest)
            .load(self._source)
            .where("_change_type <> 'update_preimage'")
        )
        self._done = newest
        is_insert = F.col("_change_type") != "delete"
        last_first = Window.partitionBy("id").orderBy(F.desc("_commit_version"), F.desc(is_insert))
        return (
            feed.withColumn("n", F.row_number().over(last_first))
            .where("n = 1")
            .withColumn("is_there", is_insert & F.expr(self._condition))
            .select(*COLUMN_NAMES, "is_there")
        )

    def merge(self) -> None:
        """Write with MERGE."""
        images = self._last_images()
        if images is None:
            return
        _merge(self._spark, self._target, images)

    def replace(self) -> None:
        """Write with replaceWhere and the keys as literals."""
        images = self._last_images()
        if images is None:
            return
        _replace(self._spark, self._target, images)


def reconcile(spark: SparkSession, source: str, target: str, way: str) -> None:
    """Make a table equal to another one: join both, and write the rows that differ.

    Args:
        way: replace (replaceWhere with the keys as literals) or merge.
    """
    tables = [spark.read.format("delta").load(location) for location in (source, target)]
    found = _differences(*tables)
    if way == "merge":
        _merge(spark, target, found)
    else:
        _replace(spark, target, found)


def merge_version(spark: SparkSession, source: str, target: str) -> None:
    """Copy to the newest version the rows in which a source differs from its previous version."""
    newest = DeltaTable.forPath(spark, source).history(1).first()
    assert newest is not None
    new, old = (
        spark.read.format("delta").option("versionAsOf", version).load(source)
        for version in (newest["version"], newest["version"] - 1)
    )
    _merge(spark, target, _differences(new, old))


def _differences(new: DataFrame, old: DataFrame) -> DataFrame:
    """Return the rows of `new` that `old` lacks or has with other values, and the rows that only
    `old` has.
    """
    differs = " OR ".join(f"NOT (s.{name} <=> t.{name})" for name in COLUMN_NAMES)
    values = [f"s.{name} AS {name}" for name in COLUMN_NAMES if name != "id"]
    return (
        new.alias("s")
        .join(old.alias("t"), on=F.expr("s.id = t.id"), how="full_outer")
        .where(differs)
        .selectExpr("coalesce(s.id, t.id) AS id", "s.id IS NOT NULL AS is_there", *values)
    )


def _merge(spark: SparkSession, target: str, images: DataFrame) -> None:
    """Write the last images of rows.  A row stays only if `is_there` is true."""
    values: dict[str, str | Column] = {name: f"s.{name}" for name in COLUMN_NAMES}
    (
        DeltaTable.forPath(spark, target)
        .alias("t")
        .merge(images.alias("s"), "t.id = s.id")
        .whenMatchedDelete("NOT s.is_there")
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert("s.is_there", values=values)
        .execute()
    )


def _replace(spark: SparkSession, target: str, images: DataFrame) -> None:
    """Write like `_merge`, but with replaceWhere and the keys as literals."""
    rows = images.toArrow()
    keys = ", ".join(map(str, rows.column("id").to_pylist()))
    kept = rows.filter(pc.field("is_there")).drop_columns(["is_there"])
    (
        spark.createDataFrame(kept)
        .coalesce(1)
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", f"id IN ({keys})")
        .save(target)
    )
