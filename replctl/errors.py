"""Errors and notices as PostgreSQL reports them: one class for each SQLSTATE that replctl raises.

The code that finds the fault also writes the message.  ``psql`` formats it for the user
(``ERROR:  ...``, ``LINE 1: ...``).  SQLSTATEs are those of the appendix "PostgreSQL Error Codes".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from replctl.record import dataclass
from replctl.relation_name import DomainName, RelationName


class PostgresError(Exception):
    """A failed statement.

    Args:
        message: the primary message, without a severity.
        detail, hint, context: optional fields of an error report.
        position: 0-based offset of the fault in the statement, or -1.
        statement: the text to which ``position`` refers, if it is not the statement itself.
        constraint, table, column, domain: names of the affected objects, if any.

    Attributes:
        is_hard: the condition of a domain's CHECK failed. COPY with ON_ERROR ignore does not skip
            such a row.
        path: the file or directory that Spark's error names, if any.
        reconciles: schema and name of the subscriber's tables whose reconcile resolves the error;
            empty if a reconcile does not help.
    """

    sqlstate: ClassVar[str] = "XX000"
    severity: ClassVar[str] = "ERROR"

    def __init_subclass__(cls, sqlstate: str | None = None, severity: str | None = None) -> None:
        super().__init_subclass__()
        if sqlstate is not None:
            cls.sqlstate = sqlstate
        if severity is not None:
            cls.severity = severity

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        context: str | None = None,
        position: int = -1,
        constraint: str | None = None,
        table: RelationName | None = None,
        column: str | None = None,
        domain: DomainName | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.context = context
        self.position = position
        self.constraint = constraint
        self.table = table
        self.column = column
        self.domain = domain
        self.is_hard = False
        self.path: str | None = None
        self.reconciles: tuple[RelationName, ...] = ()


# Class 08: connection
class ConnectionFailure(PostgresError, sqlstate="08006"): ...


class SessionEnded(ConnectionFailure):
    """Raised if a Spark Connect server has ended a session, but still runs."""


class ProtocolViolation(PostgresError, sqlstate="08P01"): ...


# Class 0A: not supported, by PostgreSQL or (yet) by replctl
class FeatureNotSupported(PostgresError, sqlstate="0A000"): ...


class UnreadableColumn(FeatureNotSupported):
    """Raised if a file stores a column with a type that Spark cannot read as the type in the
    table's schema.
    """


# Class 21, 22: values


class CardinalityViolation(PostgresError, sqlstate="21000"): ...


class DataError(PostgresError, sqlstate="22000"): ...


class StringDataRightTruncation(DataError, sqlstate="22001"): ...


class NumericValueOutOfRange(DataError, sqlstate="22003"): ...


class NullValueNotAllowed(DataError, sqlstate="22004"): ...


class InvalidDatetimeFormat(DataError, sqlstate="22007"): ...


class DatetimeFieldOverflow(DataError, sqlstate="22008"): ...


class InvalidTimeZoneDisplacementValue(DataError, sqlstate="22009"): ...


class InvalidUseOfEscapeCharacter(DataError, sqlstate="2200C"): ...


class SubstringError(DataError, sqlstate="22011"): ...


class DivisionByZero(DataError, sqlstate="22012"): ...


class InvalidPrecedingOrFollowingSize(DataError, sqlstate="22013"): ...


class IntervalFieldOverflow(DataError, sqlstate="22015"): ...


class InvalidEscapeCharacter(DataError, sqlstate="22019"): ...


class InvalidEscapeSequence(DataError, sqlstate="22025"): ...


class InvalidRegularExpression(DataError, sqlstate="2201B"): ...


class InvalidArgumentForLogarithm(DataError, sqlstate="2201E"): ...


class InvalidArgumentForPowerFunction(DataError, sqlstate="2201F"): ...


class InvalidArgumentForWidthBucketFunction(DataError, sqlstate="2201G"): ...


class InvalidArgumentForNtile(DataError, sqlstate="22014"): ...


class InvalidArgumentForNthValue(DataError, sqlstate="22016"): ...


class InvalidRowCountInLimitClause(DataError, sqlstate="2201W"): ...


class InvalidRowCountInResultOffsetClause(DataError, sqlstate="2201X"): ...


class SequenceGeneratorLimitExceeded(DataError, sqlstate="2200H"): ...


class InvalidXmlContent(DataError, sqlstate="2200N"): ...


class CharacterNotInRepertoire(DataError, sqlstate="22021"): ...


class InvalidParameterValue(DataError, sqlstate="22023"): ...


class StringDataLengthMismatch(DataError, sqlstate="22026"): ...


class ArraySubscriptError(DataError, sqlstate="2202E"): ...


class InvalidTextRepresentation(DataError, sqlstate="22P02"): ...


class BadCopyFileFormat(DataError, sqlstate="22P04"): ...


class InvalidJsonDatetimeArgument(DataError, sqlstate="22031"): ...


class InvalidJsonSubscript(DataError, sqlstate="22033"): ...


class NonNumericJsonItem(DataError, sqlstate="22036"): ...


class SingletonJsonItemRequired(DataError, sqlstate="22038"): ...


class JsonArrayNotFound(DataError, sqlstate="22039"): ...


class JsonMemberNotFound(DataError, sqlstate="2203A"): ...


class JsonNumberNotFound(DataError, sqlstate="2203B"): ...


class JsonObjectNotFound(DataError, sqlstate="2203C"): ...


class InvalidBinaryRepresentation(DataError, sqlstate="22P03"): ...


class NonstandardUseOfEscapeCharacter(DataError, sqlstate="22P06"): ...


class UntranslatableCharacter(DataError, sqlstate="22P05"): ...


# Class 23: constraints
class IntegrityError(PostgresError, sqlstate="23000"): ...


class NotNullViolation(IntegrityError, sqlstate="23502"): ...


class ForeignKeyViolation(IntegrityError, sqlstate="23503"): ...


class UniqueViolation(IntegrityError, sqlstate="23505"): ...


class CheckViolation(IntegrityError, sqlstate="23514"): ...


# Class 25, 28, 2B, 3D, 3F, 40: transactions, roles, databases
class ActiveSqlTransaction(PostgresError, sqlstate="25001"): ...


class InFailedSqlTransaction(PostgresError, sqlstate="25P02"): ...


class ReadOnlySqlTransaction(PostgresError, sqlstate="25006"): ...


class InvalidSavepointSpecification(PostgresError, sqlstate="3B001"): ...


class NoActiveSqlTransaction(PostgresError, sqlstate="25P01"): ...


class InvalidAuthorizationSpecification(PostgresError, sqlstate="28000", severity="FATAL"): ...


class InvalidPassword(PostgresError, sqlstate="28P01", severity="FATAL"): ...


class ConnectNotPermitted(PostgresError, sqlstate="42501", severity="FATAL"): ...


class PasswordRequired(PostgresError, sqlstate="2F003"): ...


class InvalidGrantor(PostgresError, sqlstate="0L000"): ...


class InvalidGrantOperation(PostgresError, sqlstate="0LP01"): ...


class DependentObjectsStillExist(PostgresError, sqlstate="2BP01"): ...


class InvalidCatalogName(PostgresError, sqlstate="3D000"): ...


class InvalidSchemaName(PostgresError, sqlstate="3F000"): ...


class SerializationFailure(PostgresError, sqlstate="40001"): ...


class DeadlockDetected(PostgresError, sqlstate="40P01"): ...


# Class 42: syntax, names, types
class SqlSyntaxError(PostgresError, sqlstate="42601"): ...


class InsufficientPrivilege(PostgresError, sqlstate="42501"): ...


class CannotCoerce(PostgresError, sqlstate="42846"): ...


class GroupingError(PostgresError, sqlstate="42803"): ...


class WindowingError(PostgresError, sqlstate="42P20"): ...


class InvalidRecursion(PostgresError, sqlstate="42P19"): ...


class InvalidForeignKey(PostgresError, sqlstate="42830"): ...


class InvalidName(PostgresError, sqlstate="42602"): ...


class NameTooLong(PostgresError, sqlstate="42622"): ...


class ReservedName(PostgresError, sqlstate="42939"): ...


class DatatypeMismatch(PostgresError, sqlstate="42804"): ...


class IndeterminateDatatype(PostgresError, sqlstate="42P18"): ...


class CollationMismatch(PostgresError, sqlstate="42P21"): ...


class WrongObjectType(PostgresError, sqlstate="42809"): ...


class GeneratedAlways(PostgresError, sqlstate="428C9"): ...


class UndefinedColumn(PostgresError, sqlstate="42703"): ...


class UndefinedFunction(PostgresError, sqlstate="42883"): ...


class UndefinedTable(PostgresError, sqlstate="42P01"): ...


class UndefinedParameter(PostgresError, sqlstate="42P02"): ...


class UndefinedObject(PostgresError, sqlstate="42704"): ...


class DuplicateColumn(PostgresError, sqlstate="42701"): ...


class DuplicateDatabase(PostgresError, sqlstate="42P04"): ...


class DuplicateFunction(PostgresError, sqlstate="42723"): ...


class DuplicateSchema(PostgresError, sqlstate="42P06"): ...


class DuplicateTable(PostgresError, sqlstate="42P07"): ...


class DuplicateAlias(PostgresError, sqlstate="42712"): ...


class DuplicateObject(PostgresError, sqlstate="42710"): ...


class AmbiguousColumn(PostgresError, sqlstate="42702"): ...


class AmbiguousAlias(PostgresError, sqlstate="42P09"): ...


class AmbiguousFunction(PostgresError, sqlstate="42725"): ...


class InvalidColumnReference(PostgresError, sqlstate="42P10"): ...


class InvalidColumnDefinition(PostgresError, sqlstate="42611"): ...


class InvalidFunctionDefinition(PostgresError, sqlstate="42P13"): ...


class InvalidSchemaDefinition(PostgresError, sqlstate="42P15"): ...


class InvalidObjectDefinition(PostgresError, sqlstate="42P17"): ...


class InvalidTableDefinition(PostgresError, sqlstate="42P16"): ...


# Class 53 to 58: resources, state, the system
class DiskFull(PostgresError, sqlstate="53100"): ...


class OutOfMemory(PostgresError, sqlstate="53200"): ...


class TooManyConnections(PostgresError, sqlstate="53300", severity="FATAL"): ...


class ConfigurationLimitExceeded(PostgresError, sqlstate="53400"): ...


class ProgramLimitExceeded(PostgresError, sqlstate="54000"): ...


class StatementTooComplex(PostgresError, sqlstate="54001"): ...


class TooManyColumns(PostgresError, sqlstate="54011"): ...


class TooManyArguments(PostgresError, sqlstate="54023"): ...


class ObjectNotInPrerequisiteState(PostgresError, sqlstate="55000"): ...


class UnsafeNewEnumValueUsage(PostgresError, sqlstate="55P04"): ...


class ObjectInUse(PostgresError, sqlstate="55006"): ...


class CantChangeRuntimeParam(PostgresError, sqlstate="55P02"): ...


class LockNotAvailable(PostgresError, sqlstate="55P03"): ...


class TransactionInProgress(LockNotAvailable):
    """Raised if a statement needs a lock that other transactions hold.  The statement can be
    repeated when these transactions have ended.

    Attributes:
        xids: the numbers of these transactions.
    """

    def __init__(self, xids: Collection[int]) -> None:
        super().__init__("could not obtain lock: another transaction is in progress")
        self.xids = frozenset(xids)


class LockWait(LockNotAvailable):
    """Raised if the worker of a subscription stops waiting for other processes.  This is not an
    error of the subscription: `replctl sync --watch` retries the work later.

    Attributes:
        xids: the numbers of the open transactions for which it has waited; empty if it has waited
            for a single statement.
    """

    #: The beginning of the message.
    PREFIX: ClassVar = "waiting for process"

    def __init__(self, processes: Collection[int], xids: Collection[int]) -> None:
        several = "es" if len(processes) > 1 else ""
        shown = ", ".join(map(str, sorted(processes)))
        super().__init__(
            f"{self.PREFIX}{several} {shown}",
            detail="An open transaction or a running statement has locked what the subscription"
            " writes.",
        )
        self.xids = frozenset(xids)


class UnfinishedBatch(ObjectInUse):
    """Raised if tables that a statement writes have partly written batches or copies of
    subscriptions.  The statement can be repeated when these are finished or undone.

    Attributes:
        subscriptions: OIDs of the subscriptions.
        relids: OIDs of the tables.
    """

    def __init__(self, subscriptions: Collection[int], relids: Collection[int]) -> None:
        super().__init__("a subscription has not finished writing the table")
        self.subscriptions = frozenset(subscriptions)
        self.relids = frozenset(relids)


class QueryCanceled(PostgresError, sqlstate="57014"): ...


class CannotConnectNow(PostgresError, sqlstate="57P03", severity="FATAL"): ...


class DatabaseNotAcceptingConnections(PostgresError, sqlstate="55000", severity="FATAL"): ...


class DatabaseDoesNotExist(PostgresError, sqlstate="3D000", severity="FATAL"): ...


class IoError(PostgresError, sqlstate="58030"): ...


class FileAccessDenied(IoError, sqlstate="42501"): ...


class UndefinedFile(IoError, sqlstate="58P01"): ...


# Class XX: internal errors of replctl or Spark
class InternalError(PostgresError, sqlstate="XX000"): ...


class DataCorrupted(PostgresError, sqlstate="XX001"): ...


@dataclass(frozen=True, slots=True)
class Notice:
    """A report that does not stop the statement: severity is NOTICE, WARNING, INFO or LOG."""

    severity: str
    message: str
    sqlstate: str = "00000"
    detail: str | None = None
    hint: str | None = None
    position: int = -1
    context: str | None = None


def error_class(sqlstate: str) -> type[PostgresError]:
    """Return the class for a SQLSTATE; `PostgresError` if there is no such class."""
    pending = list(PostgresError.__subclasses__())
    while pending:
        candidate = pending.pop()
        if candidate.sqlstate == sqlstate and "sqlstate" in vars(candidate):
            return candidate
        pending.extend(candidate.__subclasses__())
    return PostgresError
