"""Spark's errors about unreadable tables become errors of replctl."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from replctl.spark.spark_errors import translated


@pytest.mark.parametrize(
    ("condition", "parameters", "message", "sqlstate", "path"),
    [
        (
            "FAILED_READ_FILE.FILE_NOT_EXIST",
            {"path": "file:///t/part-1.parquet"},
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file",
            "58P01",
            "file:///t/part-1.parquet",
        ),
        (
            "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER",
            {},
            'Could not read "file:/t/a%20b/part-1.parquet". Please ensure',
            "XX001",
            "file:/t/a%20b/part-1.parquet",
        ),
        (
            "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH",
            {},
            "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading"
            " file file:/t/part-1.parquet. Data type mismatches when reading Parquet column [t]."
            " Expected Spark type decimal(5,2), actual Parquet type INT64. SQLSTATE: KD001",
            "0A000",
            "file:/t/part-1.parquet",
        ),
        ("DELTA_FILE_NOT_FOUND", {"path": "`s3a://b/t/x`"}, "gone", "58P01", "s3a://b/t/x"),
        ("DELTA_MISSING_PART_FILES", {"version": "3"}, "in file:/t/_delta_log", "XX001",
         "file:/t/_delta_log"),
        ("INTERNAL_ERROR", {}, "Spark fails at (file:/t/part-2.parquet)", "XX000",
         "file:/t/part-2.parquet"),
        ("INTERNAL_ERROR", {}, "There is no file:/t/part-2.parquet. Was it removed?", "XX000",
         "file:/t/part-2.parquet"),
        ("INTERNAL_ERROR", {}, "no file at all", "XX000", None),
    ],
)  # fmt: skip
def test_conditions(
    condition: str, parameters: dict[str, str], message: str, sqlstate: str, path: str | None
) -> None:
    class Error(PySparkException):
        def getCondition(self) -> str:
            return condition

        def getMessageParameters(self) -> dict[str, str]:
            return parameters

        def getSqlState(self) -> str:
            return "KD001"

        def __str__(self) -> str:
            return message

    told = translated(Error(message))
    assert (told.sqlstate, told.path) == (sqlstate, path)
