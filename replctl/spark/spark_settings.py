"""The settings of Spark and Delta on which values depend, in one table.

A session of replctl's own JVM is started with them; a session of a Connect server is given them,
and a server that does not take one is refused.  Nothing else reaches a JVM of replctl's own: it
does not read the configuration of another installation (`replctl.spark.java`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from replctl.errors import ObjectNotInPrerequisiteState

EXTENSIONS = "spark.sql.extensions"
CATALOG = "spark.sql.catalog.spark_catalog"
#: Without these Spark does not know Delta tables; they are given where Spark starts.
DELTA = {
    EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
    CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

#: What the statements of replctl mean.
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
    "spark.sql.parser.escapedStringLiterals": "false",  # how literals are quoted (data_type.quote)
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.runSQLOnFiles": "true",  # delta.`path` is a table
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.variable.substitute": "false",  # ${x} in a statement is text, and shows no variable
}
#: What expressions return.
_EXPRESSIONS = {
    # CASE and AND guard what is behind them
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    "spark.sql.session.timeZone": "UTC",  # functions of TIMESTAMP_NTZ go through the session's zone
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Change feeds pass values, -infinity too, through Java's types
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.charAsVarchar": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
}
#: How files are read and written: of a Parquet file, and of one of Avro.
_FILES = {
    # INT96, which is Spark's own, other readers take for nanoseconds of the years 1677 to 2262
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # LEGACY moves dates before 1582 between the calendars
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
    "spark.sql.files.ignoreCorruptFiles": "false",  # rows would be missing, without a word
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
}
#: What Delta makes of a table.
_DELTA_TABLES = {
    # Changes wait for their subscribers as long as slots hold them, not for a week
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    "spark.databricks.delta.schema.typeCheck.enabled": "true",
    # A commit whose answer was lost is no conflict with itself
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
    "spark.databricks.delta.stalenessLimit": "0",  # what is read is the newest version
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "true",
    "spark.databricks.delta.convertEmptyToNullForStringPartitionCol": "true",
    "spark.databricks.delta.write.utcTimestampPartitionValues": "true",
}

#: Settings without which Spark's results differ from PostgreSQL's, or what exists cannot be read.
FORCED_SETTINGS = {**_STATEMENTS, **_EXPRESSIONS, **_FILES, **_DELTA_TABLES}

#: Where Spark's own value is another one, or depends on the machine; of the others a session that
#: has none has the right one.
_UNLIKE_SPARK = frozenset(
    [
        "spark.sql.ansi.enabled",
        "spark.sql.variable.substitute",
        "spark.sql.subexpressionElimination.skipForShortcutExpr",
        "spark.sql.session.timeZone",
        "spark.sql.datetime.java8API.enabled",
        "spark.sql.parquet.outputTimestampType",
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration",
        "spark.databricks.delta.commit.idempotencyCheck.enabled",
    ]
)

#: Settings of these names bring results of former versions back; none may be set.  Spark sets the
#: exception where it starts.
_LEGACY = "spark.sql.legacy."
_HARMLESS = frozenset(["spark.sql.legacy.sessionInitWithConfigDefaults"])
#: Properties that count only where Spark starts.  A session that has them would claim what is not
#: so, and accounts would be sent to a server that does not use them.
_AT_START = ("spark.delta.logStore.", "spark.hadoop.")
#: Properties of every new table, of which `appendOnly` stops its changes.  --conf may give them.
_TABLE_DEFAULTS = "spark.databricks.delta.properties.defaults."


def for_session(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a session of a Connect server is given, of those of the user."""
    return {n: v for n, v in without_legacy(properties).items() if not n.startswith(_AT_START)}


def without_legacy(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties without those that bring results of former versions of Spark back."""
    return {name: value for name, value in properties.items() if not _is_legacy(name)}


def unwanted(found: Mapping[str, str | None], chosen: Collection[str]) -> list[str]:
    """Return the settings of a session that must be unset.

    Args:
        found: the settings that the session has.
        chosen: the settings that the user has chosen for replctl.
    """
    return [
        name
        for name in found
        if _is_legacy(name) or (name.startswith(_TABLE_DEFAULTS) and name not in chosen)
    ]


def has_value(found: Mapping[str, str | None], name: str, value: str) -> bool:
    """Return whether a session has a value: it is set, in capitals or not, or it is Spark's own."""
    own = found.get(name)
    if own is None:
        return FORCED_SETTINGS.get(name) == value and name not in _UNLIKE_SPARK
    return own == value or (name in FORCED_SETTINGS and own.lower() == value.lower())


def check_delta(found: Mapping[str, str | None]) -> None:
    """Refuse a server that was started without Delta.

    Args:
        found: the settings that a session of it has.

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
        hint=f"Start it with {' and '.join(settings)}.",
    )


def check_forced_settings(found: Mapping[str, str | None], chosen: Collection[str] = ()) -> None:
    """Refuse a session that did not take a setting.

    Args:
        found: the settings that the session has.
        chosen: see `unwanted`.

    Raises:
        ObjectNotInPrerequisiteState: one of FORCED_SETTINGS has another value, or none; or one is
            set that must not be.
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
