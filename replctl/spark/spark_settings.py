"""The settings of Spark and Delta that affect values, in one table.

A JVM of replctl starts with these settings.  replctl also sets them in each session of a Connect
server, and refuses a server that rejects one of them.  No other configuration affects a JVM of
replctl: it does not read the configuration of another installation
(`replctl.spark.java_environment`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from replctl.errors import ObjectNotInPrerequisiteState

EXTENSIONS = "spark.sql.extensions"
CATALOG = "spark.sql.catalog.spark_catalog"
#: Settings without which Spark does not know Delta tables.  Only the start of Spark can set them.
DELTA = {
    EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
    CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

#: Settings that affect the meaning of replctl's statements.
_STATEMENTS = {
    "spark.sql.ansi.enabled": "true",  # overflow, division by zero and bad casts are errors
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parser.escapedStringLiterals": "false",  # see data_type.quote
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.runSQLOnFiles": "true",  # delta.`path` is a table
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.variable.substitute": "false",  # ${x} in a statement is text, not a variable
}
#: Settings that affect the results of expressions.
_EXPRESSIONS = {
    # Spark does not compute operands early that CASE and AND guard.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    "spark.sql.session.timeZone": "UTC",  # functions of TIMESTAMP_NTZ use it
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Change data feeds convert values through Java's types, also -infinity.
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.charAsVarchar": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
}
#: Settings that affect how Spark reads and writes Parquet and Avro files.
_FILES = {
    # In Spark's default, INT96, other readers find only nanoseconds of the years 1677 to 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # LEGACY would convert dates before 1582 between two calendars.
    **{
        f"spark.sql.{form}RebaseModeIn{way}": "CORRECTED"
        for form in ("parquet.datetime", "parquet.int96", "avro.datetime")
        for way in ("Read", "Write")
    },
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    # A dictionary that has 0 does not have -0, so Spark would skip the file.
    "parquet.filter.dictionary.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",  # rows would be missing silently
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
}
#: Settings that affect how Delta reads and writes tables.
_DELTA_TABLES = {
    # replctl keeps changes as long as slots need them, not for a week.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    "spark.databricks.delta.schema.typeCheck.enabled": "true",
    # If the answer to a commit is lost, its repetition does not conflict with the commit itself.
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
    "spark.databricks.delta.stalenessLimit": "0",  # always read the newest version
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "true",
    "spark.databricks.delta.convertEmptyToNullForStringPartitionCol": "true",
    "spark.databricks.delta.write.utcTimestampPartitionValues": "true",
}

#: Settings without which Spark's results differ from PostgreSQL's, or Spark cannot read tables.
FORCED_SETTINGS = {**_STATEMENTS, **_EXPRESSIONS, **_FILES, **_DELTA_TABLES}

#: Forced settings for which Spark's default is another value, or depends on the machine.  For all
#: others, a session without a value has the right one.
_UNLIKE_SPARK = frozenset(
    [
        "spark.sql.ansi.enabled",
        "spark.sql.variable.substitute",
        "spark.sql.subexpressionElimination.skipForShortcutExpr",
        "spark.sql.session.timeZone",
        "spark.sql.datetime.java8API.enabled",
        "spark.sql.parquet.outputTimestampType",
        "parquet.filter.dictionary.enabled",
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration",
        "spark.databricks.delta.commit.idempotencyCheck.enabled",
    ]
)

#: Prefix of settings that restore the results of former versions: none of them may be set.  Spark
#: itself sets the exception when it starts.
_LEGACY = "spark.sql.legacy."
_HARMLESS = frozenset(["spark.sql.legacy.sessionInitWithConfigDefaults"])
#: Prefixes of properties that have an effect only when Spark starts.  A session must not show them
#: without effect, and replctl must not send accounts to a server that does not use them.
_AT_START = ("spark.delta.logStore.", "spark.hadoop.")
#: Prefix of properties for all new tables; one of them, `appendOnly`, prevents changes.  Only
#: --conf may set them.
_TABLE_DEFAULTS = "spark.databricks.delta.properties.defaults."


def for_session(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the user that replctl sets in a session of a Connect server."""
    return {n: v for n, v in without_legacy(properties).items() if not n.startswith(_AT_START)}


def without_legacy(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties without those that restore results of former versions of Spark."""
    return {name: value for name, value in properties.items() if not _is_legacy(name)}


def unwanted(found: Mapping[str, str | None], chosen: Collection[str]) -> list[str]:
    """Return the names of a session's settings that must not be set.

    Args:
        found: the settings of the session.
        chosen: the settings that the user has chosen for replctl.
    """
    return [
        name
        for name in found
        if _is_legacy(name) or (name.startswith(_TABLE_DEFAULTS) and name not in chosen)
    ]


def has_value(found: Mapping[str, str | None], name: str, value: str) -> bool:
    """Return whether a setting has a value in a session: the session has set this value, or it is
    Spark's default.  Upper and lower case count as equal."""
    own = found.get(name)
    if own is None:
        return FORCED_SETTINGS.get(name) == value and name not in _UNLIKE_SPARK
    return own == value or (name in FORCED_SETTINGS and own.lower() == value.lower())


def check_delta(found: Mapping[str, str | None]) -> None:
    """Refuse a server that was started without Delta.

    Args:
        found: the settings of a session of the server.

    Raises:
        ObjectNotInPrerequisiteState: Delta's extension or its catalog is missing.
    """
    extensions = found.get(EXTENSIONS) or ""
    if "DeltaSparkSessionExtension" not in extensions:
        missing = EXTENSIONS
    elif not found.get(CATALOG):
        missing = CATALOG
    else:
        return
    settings = [f"{name}={value}" for name, value in DELTA.items()]
    raise ObjectNotInPrerequisiteState(
        "the Spark server does not have Delta Lake",
        detail=f'Its {missing} is "{found.get(missing) or ""}".',
        hint=f"Start the server with {' and '.join(settings)}.",
    )


def check_forced_settings(found: Mapping[str, str | None], chosen: Collection[str] = ()) -> None:
    """Refuse a session that has rejected a setting.

    Args:
        found: the settings of the session.
        chosen: see `unwanted`.

    Raises:
        ObjectNotInPrerequisiteState: one of FORCED_SETTINGS has a wrong value or no value, or the
            session has a setting that must not be set.
    """
    for name, value in FORCED_SETTINGS.items():
        if not has_value(found, name, value):
            raise _wrong(name, found.get(name), hint=f"Start the server with {name}={value}.")
    for name in unwanted(found, chosen):
        raise _wrong(name, found[name], hint=f"Start the server without {name}.")


def _is_legacy(name: str) -> bool:
    return name.startswith(_LEGACY) and name not in _HARMLESS


def _wrong(name: str, value: str | None, *, hint: str) -> ObjectNotInPrerequisiteState:
    return ObjectNotInPrerequisiteState(
        "the Spark server has a setting with which replctl would read or write wrong rows",
        detail=f'Its "{name}" is "{value or ""}", and sessions cannot change it.',
        hint=hint,
    )
