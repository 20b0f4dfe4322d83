"""A Hive metastore as the catalog of Spark, in a process of its own: a JVM has one catalog."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from golden_script import answer_of

from replctl.session import Session

pytestmark = pytest.mark.spark

_SCRIPT = """
import json, sys
from pathlib import Path
from golden_script import answer_of
from replctl.catalog.open_cluster import open_cluster
from replctl.session import Session
from replctl.spark import SparkConf, open_engine

folder, statements = Path(sys.argv[1]), json.loads(sys.argv[2])
properties = {
    "spark.sql.catalogImplementation": "hive",
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Dderby.system.home={folder}/derby",
    "spark.hadoop.javax.jdo.option.ConnectionURL":
        f"jdbc:derby:;databaseName={folder}/metastore;create=true",
}
engine = open_engine(SparkConf(master="local[2]", properties=tuple(properties.items())))
session = Session.connect(
    open_cluster(folder / "cluster"), "postgres", "postgres", engine=lambda: engine
)
answers = []
for by, statement in statements:
    if by == "owner":
        engine.run(statement)
    else:
        answers.append(answer_of(session, statement))
print(json.dumps(answers))
"""


def test_tables_of_a_hive_metastore(spark_session: Session, tmp_path: Path) -> None:
    adopt = "create table t (primary key (id)) using delta table 'lake.t'"
    refused = answer_of(spark_session, adopt)
    assert refused[0] == ('ERROR 42P01: table "lake.t" does not exist in the catalogs of Spark')
    assert "--conf spark.sql.catalogImplementation=hive" in refused[1]
    made = f"CREATE TABLE lake.t (id INT, v STRING) USING delta LOCATION '{tmp_path}/t'"
    parquet = "CREATE TABLE lake.p (id INT) STORED AS PARQUET"
    steps = [
        ("owner", f"CREATE SCHEMA lake LOCATION '{tmp_path}/warehouse'"),
        ("owner", made),
        ("owner", "INSERT INTO lake.t VALUES (1, 'a')"),
        ("owner", parquet),
        (
            "owner",
            f"{parquet.replace('lake.p', 'lake.i')} TBLPROPERTIES ('metadata_location' = 'x')",
        ),
        ("user", adopt),
        ("user", "SELECT * FROM t"),
        ("user", "create table p using delta table 'lake.p'"),
        ("user", "create table p using delta table 'lake.i'"),
        ("user", "create table own (id int) with (catalog_table = 'lake.own')"),
        ("user", "insert into own values (7)"),
        ("owner", "INSERT INTO lake.own SELECT id + 1 FROM lake.own"),
        ("user", "SELECT * FROM own ORDER BY id"),
        ("user", "drop table own"),
        ("owner", "CREATE TABLE lake.own (id INT) USING csv"),
    ]
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path), json.dumps(steps)],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.returncode == 0, ran.stderr
    answers = json.loads(ran.stdout.splitlines()[-1])
    assert answers[:2] == [["CREATE TABLE"], ["| 1 | a", "SELECT 1"]]
    assert answers[2][0] == "ERROR 0A000: adopting a Parquet table is not supported"
    assert answers[3][:2] == [
        "ERROR 0A000: adopting an Iceberg table is not supported",
        'DETAIL: "spark_catalog.lake.i" is an Iceberg table.',
    ]
    assert answers[4:] == [
        ["CREATE TABLE"],
        ["INSERT 0 1"],
        ["| 7", "| 8", "SELECT 2"],
        ["DROP TABLE"],
    ]
