"""psql's variables: `\\set`, `\\unset`, the values of special variables, and the list of `\\set`.

A special variable always has a valid value.  Code that needs the value reads it here, with its type
(`is_on("ON_ERROR_STOP")`, `choice("ECHO")`), and does not keep a copy.  See the section "Variables"
in psql's documentation.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from replctl.errors import PostgresError


class PsqlError(Exception):
    """Raised for errors in psql's own variables or commands, which have no SQLSTATE.

    The text is the message after `psql: error: `.
    """


_Kind: TypeAlias = Literal["text", "boolean", "integer", "choice", "ignoreeof"]


class _Special(NamedTuple):
    """A special variable: its initial value, and its allowed values.

    Without a value, `\\set` sets a boolean, or a choice that has the value `on`, to `on`.
    `\\unset` deletes a text, turns a boolean off, and gives other variables their initial value.
    """

    kind: _Kind
    initial: str
    choices: tuple[str, ...] = ()


_OFF = _Special("boolean", "off")
_ON = _Special("boolean", "on")

#: The special variables in psql's documentation, and replctl's own AUTOSYNC: sync after every
#: committed change.
_SPECIAL = {
    "AUTOCOMMIT": _ON,
    "AUTOSYNC": _OFF,
    "COMP_KEYWORD_CASE": _Special(
        "choice", "preserve-upper", ("lower", "upper", "preserve-lower", "preserve-upper")
    ),
    "ECHO": _Special("choice", "none", ("none", "errors", "queries", "all")),
    "ECHO_HIDDEN": _Special("choice", "off", ("on", "off", "noexec")),
    "FETCH_COUNT": _Special("integer", "0"),
    "HIDE_TABLEAM": _OFF,
    "HIDE_TOAST_COMPRESSION": _OFF,
    "HISTCONTROL": _Special("choice", "none", ("none", "ignorespace", "ignoredups", "ignoreboth")),
    "HISTSIZE": _Special("integer", "500"),
    "IGNOREEOF": _Special("ignoreeof", "0"),
    "LAST_ERROR_MESSAGE": _Special("text", ""),
    "LAST_ERROR_SQLSTATE": _Special("text", "00000"),
    "ON_ERROR_ROLLBACK": _Special("choice", "off", ("on", "off", "interactive")),
    "ON_ERROR_STOP": _OFF,
    "PROMPT1": _Special("text", "%/%R%x%# "),
    "PROMPT2": _Special("text", "%/%R%x%# "),
    "PROMPT3": _Special("text", ">> "),
    "QUIET": _OFF,
    "SHOW_ALL_RESULTS": _ON,
    "SHOW_CONTEXT": _Special("choice", "errors", ("never", "errors", "always")),
    "SINGLELINE": _OFF,
    "SINGLESTEP": _OFF,
    "VERBOSITY": _Special("choice", "default", ("default", "verbose", "terse", "sqlstate")),
}

_NAME = re.compile(r"[^\x00-/:-@\[-^`{-\x7f]+")  # letters, digits, _, and all beyond ASCII
_C_INTEGER = re.compile(r"\s*([-+]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")
INT_MAX = 2**31 - 1


class Variables:
    """The variables of a session.  At first, the special variables have their initial values."""

    def __init__(self) -> None:
        self._values = {name: special.initial for name, special in _SPECIAL.items()}

    def get(self, name: str) -> str | None:
        """Return the value of a variable; None if it is not set."""
        return self._values.get(name)

    def set(self, name: str, value: str) -> None:
        """Set a variable: `\\set NAME VALUE`, `-v NAME=VALUE`.

        Raises:
            PsqlError: the name is invalid, or the value is invalid for this special variable, which
                keeps its current value.
        """
        if not _NAME.fullmatch(name):
            raise PsqlError(f'invalid variable name: "{name}"')
        special = _SPECIAL.get(name)
        self._values[name] = value if special is None else _checked(name, special, value)

    def unset(self, name: str) -> None:
        """Delete a variable, or give a special variable its default: `\\unset NAME`, `-v NAME`."""
        special = _SPECIAL.get(name)
        if special is None or special.kind == "text":
            self._values.pop(name, None)
        else:
            self._values[name] = "off" if special.kind == "boolean" else special.initial

    def listing(self) -> str:
        """Return the output of `\\set`: a line `NAME = 'value'` for each variable, in C order."""
        return "".join(f"{name} = '{value}'\n" for name, value in sorted(self._values.items()))

    def is_special(self, name: str) -> bool:
        """Return whether a variable is special: psql's behaviour depends on it."""
        return name in _SPECIAL

    def is_on(self, name: str) -> bool:
        """Return the value of a boolean special variable."""
        return parse_bool(self._values[name], name)

    def integer(self, name: str) -> int:
        """Return the value of a numeric special variable."""
        number = _parse_integer(self._values[name])
        assert number is not None, name
        return number

    def choice(self, name: str) -> str:
        """Return the value of a special variable with a list of values, spelled as in the list."""
        word = _chosen(self._values[name], _SPECIAL[name].choices)
        assert word is not None, name
        return word

    def record_success(self, row_count: int) -> None:
        """Set ERROR, SQLSTATE and ROW_COUNT after a statement that succeeded."""
        self._values |= {"ERROR": "false", "SQLSTATE": "00000", "ROW_COUNT": str(row_count)}

    def record_error(self, error: PostgresError) -> None:
        """Set ERROR, SQLSTATE, ROW_COUNT and LAST_ERROR_* after a statement that failed."""
        self._record_failure(error.sqlstate, error.message)

    def record_unused(self) -> None:
        """Set ERROR, SQLSTATE, ROW_COUNT and LAST_ERROR_* after a statement whose result could not
        be used (SetResultVariables in common.c)."""
        self._record_failure("", "")

    def _record_failure(self, sqlstate: str, message: str) -> None:
        self._values |= {
            "ERROR": "true",
            "SQLSTATE": sqlstate,
            "ROW_COUNT": "0",
            "LAST_ERROR_SQLSTATE": sqlstate,
            "LAST_ERROR_MESSAGE": message,
        }

    def record_shell_exit(self, exit_code: int) -> None:
        """Set SHELL_ERROR and SHELL_EXIT_CODE after a command that the shell ran."""
        self._values["SHELL_ERROR"] = "false" if exit_code == 0 else "true"
        self._values["SHELL_EXIT_CODE"] = str(exit_code)


def parse_bool(value: str, name: str) -> bool:
    """Parse a boolean as psql does: on, off, 1, 0, or a prefix of true, false, yes, no, in upper or
    lower case.

    Args:
        name: the source of the value, for the message: a variable, `\\if expression`, and so on.

    Raises:
        PsqlError: `value` is none of these.
    """
    truth = _truth(value)
    if truth is None:
        raise PsqlError(f'unrecognized value "{value}" for "{name}": Boolean expected')
    return truth


def _truth(value: str) -> bool | None:
    word = value.lower()
    if not word:
        return None
    if "true".startswith(word) or "yes".startswith(word) or word in ("on", "1"):
        return True
    # A single "o" could mean on or off.
    if "false".startswith(word) or "no".startswith(word) or word in ("of", "off", "0"):
        return False
    return None


def _parse_integer(value: str) -> int | None:
    """Parse a C int in one of C's notations (12, -1, 0x1f, 017); None for other texts."""
    match = _C_INTEGER.fullmatch(value)
    if match is None:
        return None
    sign, hexadecimal, octal, decimal = match.groups()
    digits = hexadecimal or octal or decimal
    number = as_integer(f"{sign}{digits}", 16 if hexadecimal else 8 if octal else 10)
    return number if number is not None and number >= -INT_MAX - 1 else None


def as_integer(digits: str, base: int = 10) -> int | None:
    """Return the number that digits stand for; None if it is greater than a C int.  Python converts
    no more than 4,300 digits.
    """
    try:
        number = int(digits, base)
    except ValueError:
        return None
    return number if number <= INT_MAX else None


def _chosen(value: str, choices: tuple[str, ...]) -> str | None:
    word = value.lower()
    if word in choices:
        return word
    if "on" in choices and (truth := _truth(value)) is not None:
        return "on" if truth else "off"
    return None


def _checked(name: str, special: _Special, value: str) -> str:
    """Return the value of the special variable `name` after a user sets it to `value`."""
    match special.kind:
        case "boolean":
            value = value or "on"
            parse_bool(value, name)
        case "integer":
            if _parse_integer(value) is None:
                raise PsqlError(f'invalid value "{value}" for "{name}": integer expected')
        case "ignoreeof":  # as in readline, a text that is not a number means 10
            return "10" if _parse_integer(value) is None else value
        case "choice":
            if not value and "on" in special.choices:
                return "on"
            if _chosen(value, special.choices) is None:
                raise PsqlError(
                    f'unrecognized value "{value}" for "{name}"\n'
                    f"Available values are: {', '.join(special.choices)}."
                )
        case "text":
            pass
    return value
