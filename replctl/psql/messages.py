"""Print messages on stderr: errors and notices of statements, and psql's own errors.

An error of a statement, and an error of a command in line 3 of a script:

    replctl:s.sql:2: ERROR:  relation "t" does not exist
    LINE 1: SELECT * FROM t;
                          ^
    replctl:s.sql:3: error: invalid command \\foo

The format is that of libpq's fe-protocol3.c and the frontends' logging.c.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from replctl.errors import Notice, PostgresError
from replctl.psql.display import character_width
from replctl.psql.variables import Variables
from replctl.standard_streams import write_stderr

if TYPE_CHECKING:
    from replctl.catalog.cluster import Cluster

PROGRAM = "replctl"

#: Maximum width of an extract of a statement, and the columns kept after the error (libpq).
_DISPLAY_SIZE = 60
_MIN_RIGHT_CUT = 10


class InputPlace(NamedTuple):
    """The script that is being read, and the current line."""

    file: str
    line: int


class Messages:
    """Writes to stderr, after flushing stdout.

    Args:
        variables: the variables, with VERBOSITY and SHOW_CONTEXT.

    Attributes:
        place: the position in a script; None if the input is not a file.
        is_terse: omit the program's name and `error: `, as psql does if its input is not a file.
    """

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self.place: InputPlace | None = None
        self.is_terse = False

    def error(self, text: str, hint: str | None = None) -> None:
        """Print an error of one of psql's own commands."""
        self._write(f"{self._prefix('error: ')}{text}")
        if hint is not None:
            self._write(f"{self._prefix('hint: ')}{hint}")

    def warning(self, text: str) -> None:
        """Print a warning about a command, which continues."""
        self._write(f"{self._prefix('warning: ')}{text}")

    def complain(self, severity: str, text: str) -> None:
        """Print an error or a warning for the scanners, which pass the severity."""
        if severity == "error":
            self.error(text)
        else:
            self.warning(text)

    def report(self, report: PostgresError | Notice, statement: str | None = None) -> None:
        """Print an error or notice of a statement, according to VERBOSITY and SHOW_CONTEXT."""
        verbosity = self._variables.choice("VERBOSITY")
        self.write_report(
            report_text(report, statement, verbosity, self._variables.choice("SHOW_CONTEXT"))
        )

    def write_report(self, text: str) -> None:
        """Print an error or notice that is already formatted."""
        self._write(f"{self._prefix('') if self.place else ''}{text}")

    def _prefix(self, level: str) -> str:
        if self.place is not None:
            return f"{PROGRAM}:{self.place.file}:{self.place.line}: {level}"
        return "" if self.is_terse else f"{PROGRAM}: {level}"

    def _write(self, text: str) -> None:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError:  # the next flush reports it
            pass
        write_stderr(text)


def report_text(
    report: PostgresError | Notice,
    statement: str | None,
    verbosity: str = "default",
    show_context: str = "errors",
) -> str:
    """Format an error or notice, with one line for each field (pqBuildErrorMessage3).

    Args:
        statement: the text to which the position refers; None omits the extract.
        verbosity: terse, default, verbose or sqlstate.
        show_context: never, errors or always.
    """
    head = f"{report.severity}:  "
    if verbosity == "sqlstate":
        return head + report.sqlstate
    if verbosity == "verbose":
        head += f"{report.sqlstate}: "
    lines = [head + report.message]
    has_position = statement is not None and report.position >= 0
    if verbosity == "terse":
        return lines[0] + (f" at character {report.position + 1}" if has_position else "")
    if statement is not None and has_position:
        lines += _extract(statement, report.position)
    lines += _fields(report, show_context)
    if verbosity == "verbose" and isinstance(report, PostgresError):
        lines += _names(report)
    return "\n".join(lines)


def _fields(report: PostgresError | Notice, show_context: str) -> list[str]:
    lines = []
    if report.detail is not None:
        lines.append(f"DETAIL:  {report.detail}")
    if report.hint is not None:
        lines.append(f"HINT:  {report.hint}")
    shows_context = ("errors", "always") if isinstance(report, PostgresError) else ("always",)
    if report.context is not None and show_context in shows_context:
        lines.append(f"CONTEXT:  {report.context}")
    return lines


def _names(error: PostgresError) -> list[str]:
    """Return the lines with the names of the objects that an error concerns."""
    table, domain = error.table, error.domain
    schema = domain.schema if table is None and domain is not None else table and table.schema
    names = (
        ("SCHEMA NAME", schema),
        ("TABLE NAME", table and table.name),
        ("COLUMN NAME", error.column),
        ("DATATYPE NAME", domain and domain.name),
        ("CONSTRAINT NAME", error.constraint),
    )
    return [f"{title}:  {name}" for title, name in names if name is not None]


def _extract(statement: str, position: int) -> list[str]:
    """Return `LINE 1: SELECT * FROM t;` and a caret under the position (reportErrorPosition).

    Long lines are shortened.  A tab counts as one column, a wide character as two.
    """
    if position > len(statement):
        return []
    line_number, begin, end = _line_at(statement, position)
    columns = [0]
    for character in statement[:end]:
        columns.append(columns[-1] + max(character_width(character), 1))
    is_cut_left = is_cut_right = False
    if columns[end] - columns[begin] > _DISPLAY_SIZE:
        if columns[begin] + _DISPLAY_SIZE >= columns[position] + _MIN_RIGHT_CUT:
            while columns[end] - columns[begin] > _DISPLAY_SIZE:
                end -= 1
            is_cut_right = True
        else:
            while columns[position] + _MIN_RIGHT_CUT < columns[end]:
                end -= 1
                is_cut_right = True
            while columns[end] - columns[begin] > _DISPLAY_SIZE:
                begin += 1
                is_cut_left = True
    prefix = f"LINE {line_number}: {'...' if is_cut_left else ''}"
    text = statement[begin:end].replace("\t", " ") + ("..." if is_cut_right else "")
    return [prefix + text, " " * (len(prefix) + columns[position] - columns[begin]) + "^"]


def _line_at(text: str, position: int) -> tuple[int, int, int]:
    """Return number, start and end of the line that contains `position`.  Lines end with \\n, \\r
    or \\r\\n.
    """
    number, begin = 1, 0
    for offset, character in enumerate(text):
        if character not in "\r\n":
            continue
        if offset >= position:
            return number, begin, offset
        if character == "\r" or text[offset - 1 : offset] != "\r":
            number += 1
        begin = offset + 1
    return number, begin, len(text)


def report_new(cluster: Cluster, named: str | None, messages: Messages) -> None:
    """Report that a cluster's directory was created if the user named it, because the name may be a
    typing error.  Also report that a catalog was upgraded.
    """
    if cluster.upgraded_from is not None:
        messages.report(
            Notice(
                "NOTICE",
                f'upgraded the catalog of cluster "{cluster.path}" from revision'
                f" {cluster.upgraded_from}",
                detail=f'The previous catalog is "catalog.db.{cluster.upgraded_from}" there.',
            )
        )
    if cluster.is_new and (named or os.environ.get("REPLCTL_HOME")):
        messages.report(Notice("NOTICE", f'created cluster "{cluster.path}"'))
