"""Storage parameters: WITH (...) of tables and views, ALTER TABLE ... SET and RESET (reloptions.c).

replctl checks and stores them.  Most have no effect on Delta tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from replctl.catalog.delta_type_option import DELTA_TYPE
from replctl.catalog.file_layout import CLUSTER_BY, PARTITION_BY
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.storage import (
    CATALOG_TABLE,
    DELETION_VECTORS,
    FOREIGN_FILES,
    PARTITION_TIMEZONE,
    SCHEMA_CHANGES,
    wants_metadata_changes,
)
from replctl.commands.ddl import Ddl
from replctl.commands.define import get_boolean
from replctl.commands.delta_property import (
    is_delta_property,
    own_property_name,
    own_property_value,
)
from replctl.errors import (
    FeatureNotSupported,
    InvalidName,
    InvalidParameterValue,
    SqlSyntaxError,
    WrongObjectType,
)
from replctl.lake.catalog_name import name_parts
from replctl.parser import ast
from replctl.record import dataclass
from replctl.types.guc import plain_number
from replctl.types.timezone import RegionZone, zone_named

_MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Number:
    """A number within a range."""

    minimum: float
    maximum: float
    is_integer: bool = True


_FRACTION = _Number(0, 100, is_integer=False)
_AGE = _Number(0, 2_000_000_000)


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of several words.

    Attributes:
        others: more words with the same meanings, which errors do not list.
    """

    words: tuple[str, ...]
    others: tuple[str, ...] = ()


class _TimeZone:
    """A region of the time zone database."""


class _CatalogTable:
    """The name of a table in Spark's catalogs, with its schema."""


class _Text:
    """A text that other code checks."""


#: Parameters by name, each with the domain of its values; None stands for booleans.
_Known = Mapping[str, _Number | _Choice | _TimeZone | _CatalogTable | _Text | None]
_BOOLEANS = ("true", "false", "yes", "no", "1", "0")
_VACUUM: _Known = {
    "autovacuum_enabled": None,
    "autovacuum_vacuum_threshold": _Number(0, _MAX_INT),
    "autovacuum_vacuum_insert_threshold": _Number(-1, _MAX_INT),
    "autovacuum_vacuum_cost_limit": _Number(1, 10_000),
    "autovacuum_vacuum_cost_delay": _FRACTION,
    "autovacuum_vacuum_scale_factor": _FRACTION,
    "autovacuum_vacuum_insert_scale_factor": _FRACTION,
    "autovacuum_freeze_min_age": _Number(0, 1_000_000_000),
    "autovacuum_freeze_max_age": _Number(100_000, 2_000_000_000),
    "autovacuum_freeze_table_age": _AGE,
    "autovacuum_multixact_freeze_min_age": _Number(0, 1_000_000_000),
    "autovacuum_multixact_freeze_max_age": _Number(10_000, 2_000_000_000),
    "autovacuum_multixact_freeze_table_age": _AGE,
    "log_autovacuum_min_duration": _Number(-1, _MAX_INT),
    "vacuum_index_cleanup": _Choice(("on", "off", "auto"), _BOOLEANS),
    "vacuum_truncate": None,
}
_TABLE: _Known = {
    **_VACUUM,
    "fillfactor": _Number(10, 100),
    "autovacuum_analyze_threshold": _Number(0, _MAX_INT),
    "autovacuum_analyze_scale_factor": _FRACTION,
    "toast_tuple_target": _Number(128, 8160),
    "parallel_workers": _Number(0, 1024),
    "user_catalog_table": None,
    DELETION_VECTORS: None,
    FOREIGN_FILES: None,
    PARTITION_TIMEZONE: _TimeZone(),
    CATALOG_TABLE: _CatalogTable(),
    SCHEMA_CHANGES: _Choice(("rewrite", "metadata")),
    PARTITION_BY: _Text(),
    CLUSTER_BY: _Text(),
}
#: Parameters that only adopted tables can have, with the reason.
_ADOPTED = {
    FOREIGN_FILES: "All files of a table that replctl has made lie in its directory.",
    PARTITION_TIMEZONE: "replctl does not partition the files of tables that it makes.",
}
_BY_OWNER = "Its owner decides on the files of the Delta table."
#: Parameters that adopted tables cannot have, with the HINT.
_NOT_ADOPTED = {
    CATALOG_TABLE: "Adopt the table by its name: CREATE TABLE ... USING delta TABLE 'SCHEMA.NAME'.",
    SCHEMA_CHANGES: "Change the columns in the Delta table: replctl follows its owner.",
    PARTITION_BY: _BY_OWNER,
    CLUSTER_BY: _BY_OWNER,
}
_COLUMN: _Known = {
    "n_distinct": _Number(-1, sys.float_info.max, is_integer=False),
    "n_distinct_inherited": _Number(-1, sys.float_info.max, is_integer=False),
    DELTA_TYPE: _Text(),
}
_INDEX: dict[str, _Known] = {
    "btree": {"fillfactor": _Number(10, 100), "deduplicate_items": None},
    "hash": {"fillfactor": _Number(10, 100)},
}
_VIEW: _Known = {"security_barrier": None, "security_invoker": None}
#: Checks the options of WITH, and returns them as a mapping for pg_class.reloptions.
OptionReader = Callable[[Sequence[ast.DefElem]], dict[str, str]]


def table_options(
    options: Sequence[ast.DefElem], kind: RelKind = RelKind.TABLE, *, is_adopted: bool = False
) -> dict[str, str]:
    """Return the options of WITH for a table as a mapping for pg_class.reloptions.

    Args:
        is_adopted: the table is an adopted Delta table.

    Raises:
        InvalidParameterValue: a name is unknown or given twice, or a value is wrong (22023).
        WrongObjectType: the table is partitioned, a parameter is only for adopted tables, or a
            parameter is not for adopted tables (42809).
        FeatureNotSupported: OIDS is true.
    """
    own, properties = [], []
    for option in options:
        if is_delta_property(option) and not is_adopted:
            properties.append(replace(option, name=own_property_name(option.name)))
            continue
        namespace, separator, name = option.name.rpartition(".")
        if separator and namespace != "toast":
            raise InvalidParameterValue(f'unrecognized parameter namespace "{namespace}"')
        if separator:
            _check(name, option, _VACUUM)  # there is no TOAST table
        elif name == "oids":
            if get_boolean(option):
                raise FeatureNotSupported("tables declared WITH OIDS are not supported")
        else:
            own.append(option)
    if (own or properties) and kind == RelKind.PARTITIONED_TABLE:
        raise WrongObjectType(
            "cannot specify storage parameters for a partitioned table",
            hint="Specify storage parameters for its leaf partitions instead.",
        )
    found = _read(own, _TABLE)
    _check_adoption(found, is_adopted=is_adopted)
    _check_once(properties)
    return found | {option.name: own_property_value(option) for option in properties}


def _check_adoption(options: Mapping[str, str], *, is_adopted: bool) -> None:
    """Check that an adopted table, or a table that is not adopted, may have the parameters."""
    for name in options:
        if name in _ADOPTED and not is_adopted:
            raise WrongObjectType(
                f'storage parameter "{name}" is only for adopted tables', detail=_ADOPTED[name]
            )
        if name in _NOT_ADOPTED and is_adopted:
            raise WrongObjectType(
                f'storage parameter "{name}" is not for adopted tables', hint=_NOT_ADOPTED[name]
            )


def note_features(ddl: Ddl, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Report the features of Delta that a table's new storage parameters use, and the readers that
    do not have them.

    Args:
        name: the table's name.
        before, after: the storage parameters before and after the statement.
    """
    if not wants_metadata_changes(after) or wants_metadata_changes(before):
        return
    ddl.notice(
        f'later changes of columns turn on the features columnMapping and typeWidening of "{name}"',
        detail="DROP COLUMN and RENAME COLUMN turn on columnMapping, which polars and pyarrow"
        " cannot read. ALTER COLUMN ... TYPE turns on typeWidening, which polars, pyarrow and"
        " deltalake cannot read.",
    )


def index_options(options: Sequence[ast.DefElem], access_method: str) -> dict[str, str]:
    """Return the options of WITH for an index.

    Raises:
        InvalidParameterValue: see `table_options`.
    """
    return _read(options, _INDEX[access_method])


def view_options(options: Sequence[ast.DefElem]) -> dict[str, str]:
    """Return the options of WITH for a view.

    Raises:
        InvalidParameterValue: see `table_options`.
        FeatureNotSupported: the view has a check option.
    """
    if any(option.name == "check_option" for option in options):
        raise FeatureNotSupported("WITH CHECK OPTION is not supported")
    return _read(options, _VIEW)


def changed_options(
    before: Mapping[str, str],
    options: Sequence[ast.DefElem],
    read: OptionReader,
    *,
    resets: bool,
) -> dict[str, str]:
    """Return the options of a relation after ALTER TABLE ... SET or RESET.

    Args:
        read: returns the options that SET has, as WITH has them.

    Raises:
        SqlSyntaxError: RESET has a value.
        PostgresError: an option is wrong.
    """
    if resets and any(option.value is not None for option in options):
        raise SqlSyntaxError("RESET must not include values for parameters")
    names = {
        own_property_name(option.name) if is_delta_property(option) else option.name
        for option in options
    }
    kept = {name: value for name, value in before.items() if name not in names}
    return kept if resets else kept | read(options)


def changed_column_options(
    before: Mapping[str, str], options: Sequence[ast.DefElem], *, resets: bool
) -> dict[str, str]:
    """Return a column's options after ALTER COLUMN ... SET or RESET.

    Raises:
        SqlSyntaxError: RESET has a value.
        InvalidParameterValue: an option is unknown or has a wrong value.
    """
    if resets and any(option.value is not None for option in options):
        raise SqlSyntaxError("RESET must not include values for parameters")
    names = {option.name for option in options}
    kept = {name: value for name, value in before.items() if name not in names}
    return kept if resets else kept | _read(options, _COLUMN)


def _read(options: Sequence[ast.DefElem], known: _Known) -> dict[str, str]:
    _check_once(options)
    for option in options:
        _check(option.name, option, known)
    return {option.name: _value(option) for option in options}


def _check_once(options: Sequence[ast.DefElem]) -> None:
    names = [option.name for option in options]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidParameterValue(f'parameter "{name}" specified more than once')


def _value(option: ast.DefElem) -> str:
    return "true" if option.value is None else option.value


def _check(name: str, option: ast.DefElem, known: _Known) -> None:
    if name not in known:
        raise InvalidParameterValue(f'unrecognized parameter "{name}"')
    domain, value = known[name], _value(option)
    if domain is None:
        _check_boolean(name, option, value)
    elif isinstance(domain, _TimeZone):
        if not isinstance(zone_named(value.lower()), RegionZone):
            raise InvalidParameterValue(f'invalid value for parameter "{name}": "{value}"')
    elif isinstance(domain, _CatalogTable):
        _check_catalog_table(name, value)
    elif isinstance(domain, _Choice):
        if value.lower() not in (*domain.words, *domain.others):
            raise InvalidParameterValue(
                f'invalid value for enum option "{name}": {value}',
                detail=f"Valid values are {_listed(domain.words)}.",
            )
    elif not isinstance(domain, _Text):
        _check_number(name, value, domain)


def _listed(words: Sequence[str]) -> str:
    *first, last = [f'"{word}"' for word in words]
    return f"{', '.join(first)}{',' if len(first) > 1 else ''} and {last}"


def _check_catalog_table(name: str, value: str) -> None:
    try:
        parts = name_parts(value)
    except InvalidName:  # the message below says what a name is
        parts = []
    if len(parts) < 2:
        raise InvalidParameterValue(
            f'invalid value for parameter "{name}": "{value}"',
            detail="It must be the name of a table of Spark with its schema, such as lake.events.",
        )


def _check_boolean(name: str, option: ast.DefElem, value: str) -> None:
    try:
        get_boolean(option)
    except SqlSyntaxError:
        raise InvalidParameterValue(f'invalid value for boolean option "{name}": {value}') from None


def _check_number(name: str, value: str, domain: _Number) -> None:
    number = plain_number(value)
    if number is None:
        kind = "integer" if domain.is_integer else "floating point"
        raise InvalidParameterValue(f'invalid value for {kind} option "{name}": {value}')
    if domain.is_integer:
        number = round(number)
    if not domain.minimum <= number <= domain.maximum:
        bounds = (domain.minimum, domain.maximum)
        low, high = (str(b) if domain.is_integer else f"{b:f}" for b in bounds)
        raise InvalidParameterValue(
            f'value {value} out of bounds for option "{name}"',
            detail=f'Valid values are between "{low}" and "{high}".',
        )
