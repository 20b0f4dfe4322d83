"""Sync one table with a plain PySpark script: read the feed since a version, and run MERGE.

plain_script.py SOURCE TARGET FROM_VERSION MASTER
"""

import sys

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import Column, SparkSession, Window
from pyspark.sql import functions as F


def main(source: str, target: str, version: int, master: str) -> None:
    """Bring the target up to date."""
    builder = (
        SparkSession.builder.master(master)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    )
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    last_first = Window.partitionBy("id").orderBy(F.desc("_commit_version"))
    changes = (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", version)
        .load(source)
        .where("_change_type <> 'update_preimage'")
        .withColumn("n", F.row_number().over(last_first))
        .where("n = 1")
    )
    table = DeltaTable.forPath(spark, target)
    values: dict[str, str | Column] = {name: f"s.{name}" for name in table.toDF().columns}
    (
        table.alias("t")
        .merge(changes.alias("s"), "t.id = s.id")
        .whenMatchedDelete("s._change_type = 'delete'")
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert("s._change_type <> 'delete'", values=values)
        .execute()
    )
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
