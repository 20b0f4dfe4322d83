"""Translate Spark's and Delta's exceptions to ours, with SQLSTATEs that say which are worth a
retry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException

from replctl.errors import (
    CardinalityViolation,
    CheckViolation,
    ConnectionFailure,
    DataCorrupted,
    DataError,
    DiskFull,
    DivisionByZero,
    FeatureNotSupported,
    FileAccessDenied,
    InternalError,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    ObjectNotInPrerequisiteState,
    OutOfMemory,
    PostgresError,
    QueryCanceled,
    SerializationFailure,
    SessionEnded,
    UndefinedFile,
    UnreadableColumn,
)
from replctl.object_store import S3_CONNECTOR
from replctl.own_command import own_command
from replctl.spark.attachment import attached_clusters
from replctl.spark.sql_value import raised_error
from replctl.types.numeric import field_overflow

_DECIMAL_TYPE = re.compile(r"cannot be represented as Decimal\((\d+), (\d+)\)")
_OVERFLOW_TYPE = re.compile(r'cannot be cast to "(\w+)"')
_INTEGER_NAMES = {
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "integer",
    "BIGINT": "bigint",
}

#: Matches Py4J's text before Java's exception.
_PY4J_PREFIX = re.compile(r"\AAn error occurred while calling \S+\n: ")
_RPC_DETAILS = re.compile(r'^\s*details = "(.*)"$', re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
#: Matches the condition and the SQLSTATE of a cause.
_CAUSING = re.compile(r"^Caused by: \S+: \[([A-Z0-9_.]+)\] .*SQLSTATE: (\w{5})", re.MULTILINE)
#: Matches the condition and the SQLSTATE at the beginning of an error's text.
_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\] .*?SQLSTATE: (\w{5})", re.DOTALL)

#: Spark's conditions for a missing Delta table -> the parameter with the location.
_NOT_THERE = {
    "PATH_NOT_FOUND": "path",
    "DELTA_PATH_DOES_NOT_EXIST": "path",
    "DELTA_TABLE_NOT_FOUND": "tableName",
    "DELTA_MISSING_DELTA_TABLE": "tableName",
    "DELTA_NO_COMMITS_FOUND": "logPath",
}
#: Matches the message for a missing Delta table in a query of a version.
_NO_LOG = re.compile(r"FileNotFoundException\S* File (?:file:)?(.+)/_delta_log does not exist")

#: Conditions for a missing file of a version, which VACUUM has removed.
_NO_FILE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_FILE_NOT_FOUND")

#: A part of the message for a missing Delta table in a query of a change data feed.
_NO_VERSION = "exceeds the latest table version -1."

#: Conditions for a table if Spark cannot read its log or one of its files.
_UNREADABLE = (
    "FAILED_READ_FILE",
    "DELTA_CHECKPOINT_SNAPSHOT_MISMATCH",
    "DELTA_DELETION_VECTOR_",
    "DELTA_FAILED_READ_FILE_FOOTER",
    "DELTA_FILE_NOT_FOUND",
    "DELTA_FILE_OR_DIR_NOT_FOUND",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_MISSING_PART_FILES",
    "DELTA_NO_RECREATABLE_HISTORY_FOUND",
    "DELTA_STATE_RECOVER_ERROR",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_TXN_LOG_FAILED_INTEGRITY",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
)
#: Matches the message for a column that a file stores with another type.
_STORED_TYPE = re.compile(
    r"Parquet column \[(?P<column>.+?)\]\. Expected Spark type (?P<type>.+?),"
    r" actual Parquet type (?P<stored>\w+)\."
)
_PATH_PARAMETERS = ("path", "currentFile", "logPath", "tableName")
_PATH = re.compile(r"((?:file|s3a?|abfss?|gs|hdfs):/[^\s'\"`,;)\]]+)")

#: Matches exceptions for a host that Spark cannot reach: a table's storage, or an executor.
_UNREACHED = re.compile(
    r"java\.net\.(?:Connect|NoRouteToHost|SocketTimeout|UnknownHost)Exception"
    r"|Unable to execute HTTP request|Connection (?:refused|reset|timed out)"
    r"|AWSServiceThrottledException|\(Service: S3, Status Code: 5\d\d\b"
)
#: Matches Hadoop's messages for a storage whose connector Spark lacks.
_NO_CONNECTOR = re.compile(
    r"""No FileSystem for scheme "?s3[an]?\b|Class \S*\.S3AFileSystem not found"""
)
#: SQLSTATE classes of errors that the statement itself causes, whatever their text contains.
_OWN_FAULTS = ("0A", "22", "42")

#: The system's messages for a full disk; Java passes them on as text.
_FULL = ("No space left on device", "Disk quota exceeded")

#: Matches the system's or Hadoop's message for a file without permission, and its path if given.
_DENIED = re.compile(
    r"(?:Mkdirs failed to create|AccessDeniedException:) (?:file:)?(?P<made>/[^\s(]+)"
    r"|(?:file:)?(?P<path>/[^\n]*?) \((?P<reason>Permission denied|Operation not permitted"
    r"|Read-only file system)\)"
    r"|(?P<alone>Permission denied|Operation not permitted|Read-only file system)"
)

#: Delta's conditions for a conflict with another writer's commit.  A retry of the statement helps.
_CONCURRENT = (
    "DELTA_CONCURRENT_APPEND",
    "DELTA_CONCURRENT_DELETE_DELETE",
    "DELTA_CONCURRENT_DELETE_READ",
    "DELTA_CONCURRENT_TRANSACTION",
    "DELTA_CONCURRENT_WRITE",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
)
#: Matches the violation of a CHECK that uses columns which the relation leaves out.  replctl itself
#: checks all others before it writes.
_CHECK = re.compile(
    r"\[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES\] CHECK constraint (\S+) \((.*)\) violated by row"
)
#: Matches Java's exceptions for the conditions in _CONCURRENT.
_CONCURRENT_EXCEPTION = re.compile(
    r"io\.delta\.exceptions\.(?:Concurrent\w+|MetadataChanged|ProtocolChanged)Exception:"
)


class HostNotReached(ConnectionFailure):
    """The error for a host that Spark needs but cannot reach.  Spark itself runs."""


class PlanningError(Exception):
    """An error that Spark returned as rows of EXPLAIN; the text is that of Spark's exception."""


def _unreachable_hint(clusters: Sequence[Path]) -> str:
    """Return the hint for a server that does not answer.

    Args:
        clusters: the clusters whose servers this process uses; () for a server from --remote.
    """
    if not clusters:
        return (
            "Start the server, or leave --remote and SPARK_REMOTE out: replctl then runs Spark"
            " itself."
        )
    stop = own_command("spark", "stop", home=clusters[0])
    return f'Run "{stop}", which also ends a server that does not answer; then try again.'


#: Errors that may concern a file.
_ABOUT_FILES = (
    InternalError,
    UndefinedFile,
    DataCorrupted,
    DiskFull,
    HostNotReached,
    UnreadableColumn,
)


@contextmanager
def translating() -> Iterator[None]:
    """Translate the exceptions that Spark raises inside the `with` block."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except Exception as error:
        raise translated(error) from error


def translated(error: Exception) -> PostgresError:
    """Return the error for the user for an exception of Spark.  The caller must use `raise ... from
    error`, so that `condition_of` works.
    """
    if isinstance(error, PostgresError):
        return error
    found = _recognized(error)
    if isinstance(found, _ABOUT_FILES):
        found.path = _path(error)
    return found


def _recognized(error: Exception) -> PostgresError:
    message = str(error)
    condition, sqlstate = _condition(error)
    if "NON_DETERMINISTIC" in condition or "NONDETERMINISTIC" in condition:
        return FeatureNotSupported("volatile functions are not supported here")
    # If Spark cannot resolve a statement, nothing in it has raised an error.  The message quotes
    # the plan, which contains the errors that the statement could raise.
    raised = None if condition.startswith("UNRESOLVED_") else raised_error(message)
    if raised is not None:
        return raised
    if _NO_CONNECTOR.search(message):
        return _no_connector(message)
    location = _missing_location(error, condition)
    if location is not None:
        return UndefinedFile(f'could not find the Delta table "{location}"')
    if condition.startswith(_NO_FILE) or any(f"[{name}" in message for name in _NO_FILE):
        return UndefinedFile("could not find a file of a Delta table", detail=_first_line(message))
    if _NO_VERSION in message:
        return UndefinedFile("could not find a Delta table")
    if condition.startswith(_CONCURRENT) or _CONCURRENT_EXCEPTION.search(message):
        return SerializationFailure(
            "could not serialize access due to concurrent update", detail=_first_line(message)
        )
    if (violated := _CHECK.search(message)) is not None:
        return CheckViolation(
            f'new row violates check constraint "{violated[1]}" of the Delta table',
            detail=f"Its condition is {violated[2]}.",
        )
    match condition.split(".")[0]:
        case "DIVIDE_BY_ZERO" | "REMAINDER_BY_ZERO":
            return DivisionByZero("division by zero")
        case "ARITHMETIC_OVERFLOW":
            return NumericValueOutOfRange("bigint out of range")
        case "CAST_OVERFLOW" | "CAST_OVERFLOW_IN_TABLE_INSERT":
            target = _OVERFLOW_TYPE.search(message)
            name = _INTEGER_NAMES.get(target[1] if target else "", "value")
            return NumericValueOutOfRange(f"{name} out of range")
        case "NUMERIC_VALUE_OUT_OF_RANGE":
            found = _DECIMAL_TYPE.search(message)
            if found is not None:
                return field_overflow(int(found[1]), int(found[2]))
            return NumericValueOutOfRange("numeric field overflow")
        case "CAST_INVALID_INPUT":
            return InvalidTextRepresentation("invalid input syntax", detail=_first_line(message))
        case "SCALAR_SUBQUERY_TOO_MANY_ROWS":
            return CardinalityViolation(
                "more than one row returned by a subquery used as an expression"
            )
        case "OPERATION_CANCELED" | "OPERATION_CANCELLED":
            return QueryCanceled("canceling statement due to user request")
    if "[SPARK_JOB_CANCELLED]" in message:  # by another thread or in Spark's user interface
        return QueryCanceled("canceling statement due to user request")
    if type(error).__name__ == "Py4JNetworkError" or isinstance(error, ConnectionError):
        return ConnectionFailure(
            "the Java process that runs Spark has ended",
            detail=_first_line(message),
            hint="Try again: replctl starts another one, and completes or undoes unfinished work.",
        )
    if _grpc_status(error) == "UNAVAILABLE":
        return ConnectionFailure(
            "could not connect to the Spark Connect server",
            detail=_first_line(message),
            hint=_unreachable_hint(attached_clusters()),
        )
    if "[INVALID_HANDLE.SESSION_" in message:  # idle for an hour, or the server is a new one
        return SessionEnded(
            "the Spark Connect server has ended the session",
            detail=_first_line(message),
            hint="Try again: the next statement has a new session.",
        )
    if "StatusCode.UNAUTHENTICATED" in message:
        return ConnectionFailure(
            "the Spark Connect server refuses this user",
            detail=_first_line(message),
            hint="Add the server's token to its address: sc://HOST:PORT/;token=...",
        )
    if any(reason in message for reason in _FULL):
        return DiskFull(
            "could not write a file: No space left on device",
            detail=_first_line(message),
            hint="Check free disk space.",
        )
    if not condition.startswith(_UNREADABLE) and (found := _DENIED.search(message)):
        return _denied(found, message)
    if "java.lang.OutOfMemoryError" in message:
        return OutOfMemory(
            "out of memory",
            detail=_first_line(message),
            hint="Give Spark more memory: --conf spark.driver.memory=4g.",
        )
    if "java.lang.UnsatisfiedLinkError" in message:
        return ObjectNotInPrerequisiteState(
            "Java could not load a library",
            detail=_first_line(message),
            hint="Put the cluster's directory on a file system that is not mounted noexec, or name"
            " another directory for temporary files: --conf"
            " spark.driver.extraJavaOptions=-Djava.io.tmpdir=DIRECTORY.",
        )
    if not sqlstate.startswith(_OWN_FAULTS) and _UNREACHED.search(message):
        return HostNotReached(
            "Spark could not reach a host",
            detail=_first_line(message),
            hint="Try again when the host answers. Spark's properties name the storage"
            " and its settings: --conf spark.hadoop.NAME=VALUE.",
        )
    if (column := _STORED_TYPE.search(message)) is not None:
        return UnreadableColumn(
            "Spark could not read a table",
            detail=f'Column "{column["column"]}" is stored as {column["stored"]}. Spark cannot read'
            f" it as {column['type']}.",
        )
    if condition.startswith(_UNREADABLE):
        return DataCorrupted("Spark could not read a table", detail=_first_line(message))
    if sqlstate.startswith("0A") or condition == "UNION_NOT_SUPPORTED_IN_RECURSIVE_CTE":
        return FeatureNotSupported("Spark cannot do this", detail=_first_line(message))
    if sqlstate.startswith("22"):
        return DataError(_first_line(message))
    return InternalError(f"Spark failed: {_first_line(message) or type(error).__name__}")


def _no_connector(message: str) -> ObjectNotInPrerequisiteState:
    """Return the error of a Connect server that was started without the connector for S3."""
    return ObjectNotInPrerequisiteState(
        "the Spark server has no connector for S3",
        detail=_first_line(message),
        hint=_connector_hint(attached_clusters()),
    )


def _connector_hint(clusters: Sequence[Path]) -> str:
    """Return the hint for a server without the connector for S3.

    Args:
        clusters: see `_unreachable_hint`.
    """
    if not clusters:
        return (
            "Start the server with --packages org.apache.hadoop:hadoop-aws:3.5.0, and with"
            f" spark.hadoop.fs.s3.impl={S3_CONNECTOR}."
        )
    prepare = own_command("spark", "prepare", "--no-archive", "--s3", home=clusters[0])
    stop = own_command("spark", "stop", home=clusters[0])
    return f'Run "{prepare}", then "{stop}": its next start has the connector.'


def _denied(found: re.Match[str], message: str) -> FileAccessDenied:
    """Return the error for a file that Spark may not open, in PostgreSQL's words."""
    path = found["made"] or found["path"]
    reason = found["reason"] or found["alone"] or "Permission denied"
    shown = "a file" if path is None else f'file "{path}"'
    denied = FileAccessDenied(f"could not open {shown}: {reason}", detail=_first_line(message))
    denied.path = path
    return denied


def _path(error: Exception) -> str | None:
    """Return the path of a file or directory from an exception of Spark: from its parameters, else
    the first path in its message; None if there is none.
    """
    parameters = (error.getMessageParameters() or {}) if isinstance(error, PySparkException) else {}
    for name in _PATH_PARAMETERS:
        if parameters.get(name):
            return parameters[name].strip("`").rstrip(".")
    found = _PATH.search(str(error))
    return None if found is None else found[1].rstrip(".:")  # the end of the sentence


def _missing_location(error: Exception, condition: str) -> str | None:
    """Return the location of the Delta table that Spark has not found; None for other
    exceptions."""
    if condition not in _NOT_THERE:
        found = _NO_LOG.search(str(error))
        return None if found is None else found[1]
    parameters = (error.getMessageParameters() or {}) if isinstance(error, PySparkException) else {}
    location = parameters.get(_NOT_THERE[condition], "").strip("`")
    return location.removeprefix("file:").removesuffix("/_delta_log")


def _condition(error: Exception) -> tuple[str, str]:
    """Return the condition and the SQLSTATE of an exception.  The exception of a task that writes
    files, for example, has none itself: then return its first cause's.
    """
    if isinstance(error, PySparkException):
        return error.getCondition() or "", error.getSqlState() or ""
    if isinstance(error, PlanningError):
        found = _CONDITION.match(str(error))
        return ("", "") if found is None else (found[1], found[2])
    causes = _CAUSING.findall(str(error))
    return causes[-1] if causes else ("", "")


def condition_of(error: PostgresError) -> str:
    """Return the condition of the Spark exception from which an error was translated, such as
    TABLE_OR_VIEW_NOT_FOUND; "" if there is none.
    """
    return _condition(error.__cause__)[0] if isinstance(error.__cause__, Exception) else ""


def _grpc_status(error: Exception) -> str | None:
    """Return the gRPC status of a failed call to a Connect server.  None for other errors, even for
    those that the server itself reports.
    """
    code = getattr(error, "getGrpcStatusCode", None)  # its class is only loaded with a server
    return None if code is None else str(code().name)


def _first_line(message: str) -> str:
    """Return the first informative line of a message, followed by the original cause."""
    message = _PY4J_PREFIX.sub("", message).lstrip()
    details = _RPC_DETAILS.search(message)
    first = message.split("\n", 1)[0] if details is None else details[1]
    causes = _CAUSE.findall(message)
    return (f"{first} (caused by {causes[-1]})" if causes else first)[:1000]
