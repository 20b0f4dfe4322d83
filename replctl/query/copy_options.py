"""The options of COPY (ProcessCopyOptions in copy.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from replctl.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    PostgresError,
    SqlSyntaxError,
)
from replctl.parser import ast
from replctl.record import dataclass
from replctl.types.encoding import find_encoding

Header: TypeAlias = Literal["no", "yes", "match"]
#: The value of FORCE_QUOTE and similar options: `*`, or names.
Columns: TypeAlias = Literal["*"] | tuple[str, ...]

#: Characters that cannot be delimiters of the text format, because they have a meaning after a
#: backslash.
_NO_DELIMITERS = "\\.abcdefghijklmnopqrstuvwxyz0123456789"
_BOOLEANS = {"true": True, "on": True, "false": False, "off": False}


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """The format of rows in a file.

    Attributes:
        default: the text that requests a column's default; None if there is no such text.
        force_quote, force_not_null, force_null: the columns of these options.
        encoding: PostgreSQL's name of the file's encoding.
        skips_errors: ON_ERROR ignore.
        tells_skipped: LOG_VERBOSITY verbose.
    """

    is_csv: bool
    delimiter: str
    null: str
    default: str | None
    header: Header
    quote: str
    escape: str
    force_quote: Columns
    force_not_null: Columns
    force_null: Columns
    encoding: str
    skips_errors: bool
    tells_skipped: bool


def copy_format(options: tuple[ast.CopyOption, ...], *, is_from: bool) -> CopyFormat:
    """Return the format that the options describe.

    Raises:
        SqlSyntaxError, InvalidParameterValue, FeatureNotSupported: an option is wrong, the format
            is binary, or FREEZE is on.
    """
    given: dict[str, Any] = {}
    for option in options:
        read = _READERS.get(option.name)
        if read is None:
            raise SqlSyntaxError(f'option "{option.name}" not recognized', position=option.pos)
        if option.name in given:
            raise SqlSyntaxError("conflicting or redundant options", position=option.pos)
        given[option.name] = read(option, is_from)
    kind = given.get("format", "text")
    is_csv, is_binary = kind == "csv", kind == "binary"
    for name in ("delimiter", "null", "default"):
        if is_binary and name in given:
            raise SqlSyntaxError(f"cannot specify {name.upper()} in BINARY mode")
    quote = given.get("quote", '"')
    format_ = CopyFormat(
        is_csv=is_csv,
        delimiter=given.get("delimiter", "," if is_csv else "\t"),
        null=given.get("null", "" if is_csv else "\\N"),
        default=given.get("default"),
        header=given.get("header", "no"),
        quote=quote,
        escape=given.get("escape", quote),
        force_quote=given.get("force_quote", ()),
        force_not_null=given.get("force_not_null", ()),
        force_null=given.get("force_null", ()),
        encoding=given.get("encoding", "UTF8"),
        skips_errors=given.get("on_error") == "ignore",
        tells_skipped=given.get("log_verbosity") == "verbose",
    )
    _check_characters(format_)
    if is_binary and format_.header != "no":
        raise FeatureNotSupported("cannot specify HEADER in BINARY mode")
    _check_csv(format_, given, is_from)
    _check_markers(format_, given, is_from)
    if is_binary and format_.skips_errors:
        raise SqlSyntaxError("only ON_ERROR STOP is allowed in BINARY mode")
    if is_binary:
        raise FeatureNotSupported('COPY format "binary" is not supported')
    if given.get("freeze"):
        raise FeatureNotSupported("COPY FREEZE is not supported")
    return format_


# ---------------------------------------------------------------------------------------------
# One option


def _text(option: ast.CopyOption, is_from: bool = True) -> str:
    """Return an option's value as a string (defGetString)."""
    if option.is_star:
        return "*"
    if option.columns is not None:
        return ".".join(option.columns)
    if option.value is None:
        raise SqlSyntaxError(f"{option.name} requires a parameter")
    return option.value


def _boolean(option: ast.CopyOption, is_from: bool = True) -> bool:
    """Return an option's value as a Boolean; a missing value means true (defGetBoolean)."""
    value = _boolean_or_none(option)
    if value is None:
        raise SqlSyntaxError(f"{option.name} requires a Boolean value")
    return value


def _boolean_or_none(option: ast.CopyOption) -> bool | None:
    if option.is_integer:
        return {"0": False, "1": True}.get(option.value or "")
    if option.value is None and option.columns is None and not option.is_star:
        return True
    return _BOOLEANS.get(_text(option).lower())


def _header(option: ast.CopyOption, is_from: bool) -> Header:
    value = _boolean_or_none(option)
    if value is not None:
        return "yes" if value else "no"
    if option.is_integer or _text(option).lower() != "match":
        raise SqlSyntaxError(f'{option.name} requires a Boolean value or "match"')
    if not is_from:
        raise FeatureNotSupported(f'cannot use "{_text(option)}" with HEADER in COPY TO')
    return "match"


def _format(option: ast.CopyOption, is_from: bool) -> str:
    kind = _text(option)
    if kind not in ("text", "csv", "binary"):
        raise InvalidParameterValue(f'COPY format "{kind}" not recognized', position=option.pos)
    return kind


def _columns(option: ast.CopyOption, is_from: bool) -> Columns:
    if option.is_star:
        return "*"
    if option.columns is None:
        raise InvalidParameterValue(
            f'argument to option "{option.name}" must be a list of column names',
            position=option.pos,
        )
    return option.columns


def _encoding(option: ast.CopyOption, is_from: bool) -> str:
    found = find_encoding(_text(option))
    if found is None:
        raise InvalidParameterValue(
            f'argument to option "{option.name}" must be a valid encoding name',
            position=option.pos,
        )
    return found


def _choice(*choices: str) -> Callable[[ast.CopyOption, bool], str]:
    def read(option: ast.CopyOption, is_from: bool) -> str:
        if option.name == "on_error" and not is_from:
            raise InvalidParameterValue(
                "COPY ON_ERROR cannot be used with COPY TO", position=option.pos
            )
        value = _text(option)
        if value.lower() not in choices:
            raise InvalidParameterValue(
                f'COPY {option.name.upper()} "{value}" not recognized', position=option.pos
            )
        return value.lower()

    return read


_READERS: dict[str, Callable[[ast.CopyOption, bool], object]] = {
    "format": _format,
    "freeze": _boolean,
    "delimiter": _text,
    "null": _text,
    "default": _text,
    "header": _header,
    "quote": _text,
    "escape": _text,
    "force_quote": _columns,
    "force_not_null": _columns,
    "force_null": _columns,
    "encoding": _encoding,
    "on_error": _choice("stop", "ignore"),
    "log_verbosity": _choice("default", "verbose"),
}


# ---------------------------------------------------------------------------------------------
# Combinations


def _check_characters(format_: CopyFormat) -> None:
    delimiter = format_.delimiter
    if len(delimiter.encode()) != 1:
        raise FeatureNotSupported("COPY delimiter must be a single one-byte character")
    if delimiter in "\r\n":
        raise InvalidParameterValue("COPY delimiter cannot be newline or carriage return")
    for what, text in (("null", format_.null), ("default", format_.default or "")):
        if "\r" in text or "\n" in text:
            raise InvalidParameterValue(
                f"COPY {what} representation cannot use newline or carriage return"
            )
    if not format_.is_csv and delimiter in _NO_DELIMITERS:
        raise InvalidParameterValue(f'COPY delimiter cannot be "{delimiter}"')


def _check_csv(format_: CopyFormat, given: dict[str, Any], is_from: bool) -> None:
    """Check the options that work only for CSV, or only for COPY FROM or COPY TO."""

    def check_mode(name: str) -> None:
        if name in given and not format_.is_csv:
            raise FeatureNotSupported(f"COPY {name.upper()} requires CSV mode")

    check_mode("quote")
    if format_.is_csv and len(format_.quote.encode()) != 1:
        raise FeatureNotSupported("COPY quote must be a single one-byte character")
    if format_.is_csv and format_.delimiter == format_.quote:
        raise InvalidParameterValue("COPY delimiter and quote must be different")
    check_mode("escape")
    if format_.is_csv and len(format_.escape.encode()) != 1:
        raise FeatureNotSupported("COPY escape must be a single one-byte character")
    for name, goes_from in (("force_quote", False), ("force_not_null", True), ("force_null", True)):
        check_mode(name)
        if name in given and goes_from != is_from:
            error: type[PostgresError] = FeatureNotSupported if is_from else InvalidParameterValue
            direction = "FROM" if is_from else "TO"
            raise error(f"COPY {name.upper()} cannot be used with COPY {direction}")


def _check_markers(format_: CopyFormat, given: dict[str, Any], is_from: bool) -> None:
    """Check that the markers for NULL and for a default cannot be confused with other data."""
    if format_.delimiter in format_.null:
        raise InvalidParameterValue(
            "COPY delimiter character must not appear in the NULL specification"
        )
    if format_.is_csv and format_.quote in format_.null:
        raise InvalidParameterValue("CSV quote character must not appear in the NULL specification")
    if given.get("freeze") and not is_from:
        raise InvalidParameterValue("COPY FREEZE cannot be used with COPY TO")
    if format_.default is None:
        return
    if not is_from:
        raise FeatureNotSupported("COPY DEFAULT cannot be used with COPY TO")
    if format_.delimiter in format_.default:
        raise FeatureNotSupported(
            "COPY delimiter character must not appear in the DEFAULT specification"
        )
    if format_.is_csv and format_.quote in format_.default:
        raise FeatureNotSupported(
            "CSV quote character must not appear in the DEFAULT specification"
        )
    if format_.null == format_.default:
        raise FeatureNotSupported("NULL specification and DEFAULT specification cannot be the same")
