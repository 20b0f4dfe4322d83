"""The context of backslash commands, and their requests to the loop that calls them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TypeAlias

from replctl.psql.conditional import ConditionStack
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.scan_slash import SlashScanner
from replctl.psql.send_query import Delivery
from replctl.psql.statement_scan import StatementScanner
from replctl.psql.variables import PsqlError
from replctl.record import dataclass


class CommandStatus(Enum):
    """The result of a command (backslashResult in command.h)."""

    DONE = auto()
    ERROR = auto()
    TERMINATE = auto()  # leave this script, or psql


@dataclass(frozen=True, slots=True)
class Send:
    """A request to run the query buffer or, if it is empty, the last query again."""

    delivery: Delivery


@dataclass(frozen=True, slots=True)
class Watch:
    """A request to run the query repeatedly.

    Attributes:
        interval: seconds between two runs.
        count: number of runs; 0 for no limit.
        min_rows: stop when the result has fewer rows.
    """

    interval: float
    count: int
    min_rows: int


@dataclass(frozen=True, slots=True)
class NewBuffer:
    """A request to replace the query buffer by `text`, which comes from an editor."""

    text: str


CommandResult: TypeAlias = CommandStatus | Send | Watch | NewBuffer


@dataclass
class CommandContext:
    """The state of the input that contains a command.

    Attributes:
        run_script: runs the file of a name, and returns whether it succeeded.  A flag says whether
            the name is relative to the current script.
        previous_statement: the last statement sent from this input.
    """

    settings: PsqlSettings
    scanner: StatementScanner
    conditions: ConditionStack
    run_script: Callable[[str, bool], bool]
    previous_statement: str = ""

    @property
    def query(self) -> str:
        """Return the query buffer or, if it is empty, the last statement sent."""
        return self.scanner.buffer or self.previous_statement


def missing_argument(slash: SlashScanner) -> PsqlError:
    """Return the error for a command with too few arguments."""
    return PsqlError(f"\\{slash.command}: missing required argument")
