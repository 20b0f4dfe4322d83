"""Spark's exceptions become errors of replctl."""

from __future__ import annotations

from pathlib import Path

import pytest
from grpc import StatusCode
from pyspark.errors import AnalysisException, ParseException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException, UnknownException

from replctl.errors import (
    CheckViolation,
    DataError,
    InternalError,
    QueryCanceled,
    SerializationFailure,
    SessionEnded,
)
from replctl.relation_name import DomainName
from replctl.spark import spark_errors
from replctl.spark.spark_errors import HostNotReached, translated
from replctl.spark.sql_value import raised_text


@pytest.mark.parametrize(
    "error",
    [
        AnalysisException(
            "[PATH_NOT_FOUND] Path does not exist: /lake/t. SQLSTATE: 42K03",
            "PATH_NOT_FOUND",
            {"path": "/lake/t"},
        ),
        AnalysisException(
            "[DELTA_TABLE_NOT_FOUND] Delta table `/lake/t` doesn't exist.",
            "DELTA_TABLE_NOT_FOUND",
            {"tableName": "`/lake/t`"},
        ),
        AnalysisException(
            "[DELTA_MISSING_DELTA_TABLE] `/lake/t` is not a Delta table.",
            "DELTA_MISSING_DELTA_TABLE",
            {"tableName": "`/lake/t`"},
        ),
        AnalysisException(
            "[DELTA_NO_COMMITS_FOUND] No commits found at file:/lake/t/_delta_log",
            "DELTA_NO_COMMITS_FOUND",
            {"logPath": "file:/lake/t/_delta_log"},
        ),
        UnknownException(
            "(java.io.FileNotFoundException) File file:/lake/t/_delta_log does not exist"
        ),
        Exception("java.io.FileNotFoundException: File file:/lake/t/_delta_log does not exist"),
    ],
)
def test_a_table_that_is_not_there(error: Exception) -> None:
    found = translated(error)
    assert (found.sqlstate, found.message) == (
        "58P01",
        'could not find the Delta table "/lake/t"',
    )


def test_a_subquery_has_several_rows() -> None:
    error = Exception(
        "An error occurred while calling o75.collectToPython.\n"
        ": org.apache.spark.SparkException: Job aborted\n"
        "Caused by: org.apache.spark.SparkException: [SCALAR_SUBQUERY_TOO_MANY_ROWS]"
        " More than one row returned by a subquery used as an expression. SQLSTATE: 21000"
    )
    found = translated(error)
    message = "more than one row returned by a subquery used as an expression"
    assert (found.sqlstate, found.message) == ("21000", message)


def test_another_writer_was_first() -> None:
    error = Exception(
        "An error occurred while calling o170.sql.\n"
        ": io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITHOUT_HINT]"
        " Transaction conflict detected. a concurrent UPDATE added data"
    )
    assert type(translated(error)) is SerializationFailure


def test_delta_itself_refuses_a_row() -> None:
    error = Exception(
        "An error occurred while calling o274.save.\n"
        ": org.apache.spark.sql.delta.schema.DeltaInvariantViolationException:"
        " [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint pos ((w > 0)) violated by row"
        " with values:\n - w : null"
    )
    found = translated(error)
    assert (found.sqlstate, found.message, found.detail) == (
        "23514",
        'new row violates check constraint "pos" of the Delta table',
        "Its condition is (w > 0).",
    )


def test_a_library_that_java_may_not_load() -> None:
    error = Exception(
        "An error occurred while calling o1.sql.\n: java.lang.UnsatisfiedLinkError:"
        " /h/tmp/libzstd-jni.so: failed to map segment from shared object\n\tat x"
    )
    found = translated(error)
    assert found.message == "Java could not load a library"
    assert "failed to map segment" in (found.detail or "")
    assert "noexec" in (found.hint or "")


def test_a_job_that_was_cancelled() -> None:
    error = Exception(
        "An error occurred while calling o208.getResult.\n"
        ": org.apache.spark.SparkException: Exception thrown in awaitResult:\n"
        "Caused by: org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 0 cancelled as part"
        " of cancellation of all jobs SQLSTATE: XXKDA"
    )
    assert type(translated(error)) is QueryCanceled


def test_a_plan_that_could_not_be_resolved_raises_nothing() -> None:
    plan = "'Project [raise_error(replctl:23505|several rows with one key||end)]"
    message = f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `w` cannot be resolved.\n{plan}"
    told = translated(AnalysisException(message, "UNRESOLVED_COLUMN.WITH_SUGGESTION", {}))
    assert isinstance(told, InternalError)
    assert "`w`" in told.message


@pytest.mark.parametrize("constraint", [None, "a|b"])
def test_a_raised_error_keeps_the_names_of_a_domain(constraint: str | None) -> None:
    domain = DomainName("s|", "d%", '"s|".d')
    error = CheckViolation("m", detail="d", hint="h", domain=domain, constraint=constraint)
    raised = translated(Exception(f"[USER_RAISED_EXCEPTION] {raised_text(error)} SQLSTATE: P0001"))
    assert vars(raised) == vars(error)


def test_other_files() -> None:
    error = Exception("java.io.FileNotFoundException: File file:/lake/t/part.parquet is not there")
    assert type(translated(error)) is InternalError


def test_the_cause_is_told() -> None:
    """Py4J's text of a Java exception begins with a line without information."""
    text = (
        "An error occurred while calling o208.getResult.\n"
        ": org.apache.spark.SparkException: Exception thrown in awaitResult:\n"
        "\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:54)\n"
        "Caused by: java.util.concurrent.TimeoutException: Futures timed out\n"
        "\tat scala.concurrent.Await$.result(package.scala:99)\n"
    )
    found = translated(Exception(text))
    assert found.message == (
        "Spark failed: org.apache.spark.SparkException: Exception thrown in awaitResult: (caused by"
        " java.util.concurrent.TimeoutException: Futures timed out)"
    )
    full = translated(
        Exception(text.replace("java.util.concurrent.Timeout", "java.lang.OutOfMemoryError"))
    )
    assert (full.sqlstate, full.message) == ("53200", "out of memory")


def test_a_session_that_its_server_has_ended() -> None:
    message = "[INVALID_HANDLE.SESSION_CLOSED] The handle 1b is invalid. Session was closed."
    told = translated(Exception(message))
    assert (type(told), told.detail) == (SessionEnded, message)
    assert told.sqlstate == "08006"
    assert told.hint == "Try again: the next statement has a new session."


def test_a_server_that_is_not_there() -> None:
    error = SparkConnectGrpcException(
        "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n"
        '\tdetails = "failed to connect to all addresses; last error: Connection refused"\n',
        grpc_status_code=StatusCode.UNAVAILABLE,
    )
    told = translated(error)
    assert told.message == "could not connect to the Spark Connect server"
    assert type(told) is not HostNotReached


_REFUSED = (
    "s3a://lake/t/_delta_log: getFileStatus on s3a://lake/t/_delta_log:"
    " software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request:"
    " Connect to 127.0.0.1:9000 failed: Connection refused"
)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(
            f"An error occurred while calling o1.sql.\n: java.net.ConnectException: {_REFUSED}"
        ),
        UnknownException(
            f"(java.net.ConnectException) {_REFUSED}", grpc_status_code=StatusCode.INTERNAL
        ),
        RuntimeError(f"Job aborted.\nCaused by: java.net.UnknownHostException: {_REFUSED}"),
        AnalysisException(f"[FAILED_READ_FILE] {_REFUSED}", "FAILED_READ_FILE", {}),
    ],
)
def test_storage_that_is_not_there(error: Exception) -> None:
    """Spark runs, but the storage does not answer."""
    told = translated(error)
    assert (type(told), told.sqlstate, told.path) == (
        HostNotReached,
        "08006",
        "s3a://lake/t/_delta_log",
    )
    assert told.message == "Spark could not reach a host"
    assert "s3a://lake/t" in (told.detail or "")
    assert "--conf spark.hadoop." in (told.hint or "")


@pytest.mark.parametrize(
    "message",
    [
        '(org.apache.hadoop.fs.UnsupportedFileSystemException) No FileSystem for scheme "s3"',
        "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class"
        " org.apache.hadoop.fs.s3a.S3AFileSystem not found",
    ],
)
def test_a_server_without_the_connector_for_s3(
    message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_errors, "attached_clusters", lambda: ())
    error = SparkConnectGrpcException(message, grpc_status_code=StatusCode.INTERNAL)
    told = translated(error)
    assert (told.sqlstate, told.message) == ("55000", "the Spark server has no connector for S3")
    assert (told.hint or "").startswith(
        "Start the server with --packages org.apache.hadoop:hadoop-aws:"
    )
    monkeypatch.setattr(spark_errors, "attached_clusters", lambda: (Path("/c"),))
    assert translated(error).hint == (
        'Run "replctl spark prepare --no-archive --s3 --home /c", then "replctl spark stop --home'
        ' /c": its next start has the connector.'
    )


def test_a_value_that_looks_like_an_error() -> None:
    error = SparkConnectGrpcException(
        "[X] 'Connection refused' is no number",
        sql_state="22018",
        grpc_status_code=StatusCode.INTERNAL,
    )
    assert type(translated(error)) is DataError


def test_an_error_has_a_text() -> None:
    error = ParseException(
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. (line 1)\n\n== SQL =="
    )
    assert translated(error).message == (
        "Spark failed: [PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. (line 1)"
    )
    assert translated(NotImplementedError()).message == "Spark failed: NotImplementedError"


_PLACE = "/home/base/5/16384/part-1.parquet"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (f"FileNotFoundException: {_PLACE} (Permission denied)", "Permission denied"),
        (f"FileNotFoundException: file:{_PLACE} (Operation not permitted)",
         "Operation not permitted"),
        (f"FileNotFoundException: {_PLACE} (Read-only file system)", "Read-only file system"),
        (f"Mkdirs failed to create file:{_PLACE} (exists=false)", "Permission denied"),
        (f"java.nio.file.AccessDeniedException: {_PLACE}", "Permission denied"),
    ],
)  # fmt: skip
def test_a_file_that_may_not_be_written(message: str, reason: str) -> None:
    told = translated(RuntimeError(f"Job aborted.\nCaused by: java.io.{message}\n\tat x"))
    assert told.sqlstate == "42501"
    assert told.message == f'could not open file "{_PLACE}": {reason}'
    assert told.path == _PLACE


def test_a_place_that_may_not_be_written() -> None:
    told = translated(RuntimeError("Generic error: Permission denied (os error 13)"))
    assert (told.sqlstate, told.path) == ("42501", None)
    assert told.message == "could not open a file: Permission denied"
