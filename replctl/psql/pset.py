"""Set the format of results: `\\pset` and `\\a \\C \\f \\H \\t \\T \\x` (do_pset in command.c)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

from replctl.psql.command_context import CommandContext, CommandResult, CommandStatus
from replctl.psql.print_content import Format, PrintOptions
from replctl.psql.scan_slash import Argument, SlashScanner
from replctl.psql.variables import INT_MAX, PsqlError, as_integer, parse_bool
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class _Option:
    """An option of `\\pset`, with functions that parse, report and list its value."""

    set: Callable[[PrintOptions, str | None], PrintOptions]
    say: Callable[[PrintOptions], str]
    show: Callable[[PrintOptions], str]


def set_option(options: PrintOptions, name: str, value: str | None) -> tuple[PrintOptions, str]:
    """Set an option.

    Returns:
        The new options, and the message of `\\pset`; "" for no message.

    Raises:
        PsqlError: there is no such option, or the value is invalid for it.
    """
    option = _OPTIONS.get(_SYNONYMS.get(name, name))
    if option is None:
        raise PsqlError(f"\\pset: unknown option: {name}")
    new = option.set(options, value)
    # psql prints no message if one of these switches is set with a value.
    is_silent = value is not None and name in ("footer", "numericlocale", "t", "tuples_only")
    return new, "" if is_silent else option.say(new)


def pset(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\pset [NAME [VALUE]]`."""
    name, value = slash.argument(), slash.argument()
    if name is None:
        for known in sorted(_OPTIONS):
            shown = _OPTIONS[known].show(context.settings.print_options)
            print(f"{known:<24} {shown}")
        print(flush=True)
        return CommandStatus.DONE
    return _set(context, name, value)


def toggle(name: str, context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\t [on|off]` or `\\x [on|off|auto]`."""
    return _set(context, name, slash.argument(strip_semicolons=True))


def toggle_format(name: str, context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\a` or `\\H`: switch between the format aligned and unaligned or html."""
    current = context.settings.print_options.format
    if name == "unaligned":
        return _set(context, "format", "unaligned" if current == "aligned" else "aligned")
    return _set(context, "format", "aligned" if current == name else name)


def set_title(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\C [TITLE]`."""
    return _set(context, "title", slash.argument(strip_semicolons=True))


def set_table_attributes(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\T [ATTRIBUTES]`."""
    return _set(context, "tableattr", slash.argument(Argument.NORMAL))


def set_field_separator(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\f [SEPARATOR]`."""
    return _set(context, "fieldsep", slash.argument())


def _set(context: CommandContext, name: str, value: str | None) -> CommandResult:
    settings = context.settings
    settings.print_options, message = set_option(settings.print_options, name, value)
    if message:
        settings.say(message)
    return CommandStatus.DONE


# -- reading values


def _boolean(name: str, attribute: str) -> Callable[[PrintOptions, str | None], PrintOptions]:
    def set_value(options: PrintOptions, value: str | None) -> PrintOptions:
        new = not getattr(options, attribute) if value is None else parse_bool(value, name)
        changes: dict[str, Any] = {attribute: new}
        return replace(options, **changes)

    return set_value


def _text(attribute: str, empty: str | None) -> Callable[[PrintOptions, str | None], PrintOptions]:
    """Return a function that sets an option to a text.  Without a text, the function unsets the
    option if `empty` is None, and keeps it if `empty` is a text.
    """

    def set_value(options: PrintOptions, value: str | None) -> PrintOptions:
        if value is None and empty is not None:
            return options
        changes: dict[str, Any] = {attribute: value}
        return replace(options, **changes)

    return set_value


def _format(options: PrintOptions, value: str | None) -> PrintOptions:
    if value is None:
        return options
    formats: tuple[Format, ...] = get_args(Format)
    word = value.lower()
    # A prefix of latex does not mean latex-longtable.
    found = [name for name in sorted(formats) if name.startswith(word) and "longtable" not in name]
    if not found and "latex-longtable".startswith(word):
        found = ["latex-longtable"]
    # As in psql, an abbreviation of both aligned and asciidoc is ambiguous.
    if len(found) > 1:
        raise PsqlError(
            f'\\pset: ambiguous abbreviation "{value}" matches both "{found[0]}" and "{found[1]}"'
        )
    if not found:
        raise PsqlError(f"\\pset: allowed formats are {', '.join(sorted(formats))}")
    return replace(options, format=found[0])


def _line_style(options: PrintOptions, value: str | None) -> PrintOptions:
    if not value:
        return options
    word = value.lower()
    if "ascii".startswith(word):
        return replace(options, linestyle="ascii")
    if "unicode".startswith(word):
        return replace(options, linestyle="unicode")
    raise PsqlError("\\pset: allowed line styles are ascii, unicode")


def _unicode_lines(place: str) -> _Option:
    """Return the option for the lines of a place: border, column or header."""
    attribute = f"unicode_{place}_linestyle"

    def set_value(options: PrintOptions, value: str | None) -> PrintOptions:
        if value is None:
            return options
        for style in ("single", "double"):
            if style.startswith(value.lower()):
                changes: dict[str, Any] = {attribute: style}
                return replace(options, **changes)
        raise PsqlError(f"\\pset: allowed Unicode {place} line styles are single, double")

    def show(options: PrintOptions) -> str:
        style: str = getattr(options, attribute)
        return style

    return _Option(set_value, lambda o: f'Unicode {place} line style is "{show(o)}".', show)


def _expanded(options: PrintOptions, value: str | None) -> PrintOptions:
    if value is None:
        return replace(options, expanded="on" if options.expanded == "off" else "off")
    if value.lower() == "auto":
        return replace(options, expanded="auto")
    try:
        is_on = parse_bool(value, "expanded")
    except PsqlError as error:
        raise PsqlError(
            f'unrecognized value "{value}" for "expanded"\nAvailable values are: on, off, auto.'
        ) from error
    return replace(options, expanded="on" if is_on else "off")


def _number(attribute: str) -> Callable[[PrintOptions, str | None], PrintOptions]:
    def set_value(options: PrintOptions, value: str | None) -> PrintOptions:
        if value is None:
            return options
        digits = value.strip()
        number = as_integer(digits) if digits.isdecimal() else 0
        changes: dict[str, Any] = {attribute: INT_MAX if number is None else number}
        return replace(options, **changes)

    return set_value


def _csv_separator(options: PrintOptions, value: str | None) -> PrintOptions:
    if value is None:
        return options
    if len(value.encode()) != 1:
        raise PsqlError("\\pset: csv_fieldsep must be a single one-byte character")
    if value in '"\n\r':
        raise PsqlError(
            "\\pset: csv_fieldsep cannot be a double quote, a newline, or a carriage return"
        )
    return replace(options, csv_field_separator=value)


def _ignored(options: PrintOptions, value: str | None) -> PrintOptions:
    return options


# -- showing them


def _on(value: bool) -> str:
    return "on" if value else "off"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def _say_expanded(options: PrintOptions) -> str:
    if options.expanded == "auto":
        return "Expanded display is used automatically."
    return f"Expanded display is {options.expanded}."


def _say_separator(what: str, separator: str) -> str:
    if separator == "\0":
        return f"{what} separator is zero byte."
    shown = "<newline>" if separator == "\n" and what == "Record" else f'"{separator}"'
    return f"{what} separator is {shown}."


def _say_optional(what: str, value: str | None) -> str:
    return f"{what} is unset." if value is None else f'{what} is "{value}".'


_OPTIONS: dict[str, _Option] = {
    "border": _Option(
        _number("border"), lambda o: f"Border style is {o.border}.", lambda o: str(o.border)
    ),
    "columns": _Option(
        _number("columns"),
        lambda o: f"Target width is {o.columns}." if o.columns else "Target width is unset.",
        lambda o: str(o.columns),
    ),
    "csv_fieldsep": _Option(
        _csv_separator,
        lambda o: f'Field separator for CSV is "{o.csv_field_separator}".',
        lambda o: _quoted(o.csv_field_separator),
    ),
    "expanded": _Option(_expanded, _say_expanded, lambda o: o.expanded),
    "fieldsep": _Option(
        _text("field_separator", ""),
        lambda o: _say_separator("Field", o.field_separator),
        lambda o: _quoted(o.field_separator) if o.field_separator != "\0" else "''",
    ),
    "fieldsep_zero": _Option(
        lambda o, value: replace(o, field_separator="\0"),
        lambda o: _say_separator("Field", o.field_separator),
        lambda o: _on(o.field_separator == "\0"),
    ),
    "footer": _Option(
        _boolean("footer", "footer"),
        lambda o: f"Default footer is {_on(o.footer)}.",
        lambda o: _on(o.footer),
    ),
    "format": _Option(_format, lambda o: f"Output format is {o.format}.", lambda o: o.format),
    "linestyle": _Option(
        _line_style, lambda o: f"Line style is {o.linestyle}.", lambda o: o.linestyle
    ),
    "null": _Option(
        _text("null", ""), lambda o: f'Null display is "{o.null}".', lambda o: _quoted(o.null)
    ),
    "numericlocale": _Option(
        _boolean("numericlocale", "numeric_locale"),
        lambda o: f"Locale-adjusted numeric output is {_on(o.numeric_locale)}.",
        lambda o: _on(o.numeric_locale),
    ),
    # replctl has no pager, but accepts the option: scripts turn psql's pager off.
    "pager": _Option(_ignored, lambda o: "Pager usage is off.", lambda o: "0"),
    "pager_min_lines": _Option(
        _ignored, lambda o: "Pager won't be used for less than 0 lines.", lambda o: "0"
    ),
    "recordsep": _Option(
        _text("record_separator", ""),
        lambda o: _say_separator("Record", o.record_separator),
        lambda o: _quoted(o.record_separator) if o.record_separator != "\0" else "''",
    ),
    "recordsep_zero": _Option(
        lambda o, value: replace(o, record_separator="\0"),
        lambda o: _say_separator("Record", o.record_separator),
        lambda o: _on(o.record_separator == "\0"),
    ),
    "tableattr": _Option(
        _text("table_attributes", None),
        lambda o: (
            "Table attributes unset."
            if o.table_attributes is None
            else f'Table attributes are "{o.table_attributes}".'
        ),
        lambda o: "" if o.table_attributes is None else _quoted(o.table_attributes),
    ),
    "title": _Option(
        _text("title", None),
        lambda o: _say_optional("Title", o.title),
        lambda o: "" if o.title is None else _quoted(o.title),
    ),
    "tuples_only": _Option(
        _boolean("tuples_only", "tuples_only"),
        lambda o: f"Tuples only is {_on(o.tuples_only)}.",
        lambda o: _on(o.tuples_only),
    ),
    **{f"unicode_{p}_linestyle": _unicode_lines(p) for p in ("border", "column", "header")},
}
#: Other names of options, which the list of options does not show.
_SYNONYMS = {"x": "expanded", "vertical": "expanded", "t": "tuples_only"}

#: Names that `\\pset` accepts.
OPTION_NAMES = tuple(_OPTIONS)
