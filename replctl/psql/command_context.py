"""The arguments of backslash commands, and their requests to the loop that calls them."""

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
    """How a command ended (backslashResult in command.h)."""

    DONE = auto()
    ERROR = auto()
    TERMINATE = auto()  # leave this script, or psql


@dataclass(frozen=True, slots=True)
class Send:
    """Run the query buffer, or the last query again."""

    delivery: Delivery


@dataclass(frozen=True, slots=True)
class Watch:
    """Run the query again and again.

    Attributes:
        interval: seconds between two runs.
        count: number of runs; 0 for no limit.
        min_rows: stop when there are fewer.
    """

    interval: float
    count: int
    min_rows: int


@dataclass(frozen=True, slots=True)
class NewBuffer:
    """Read `text` in place of the query buffer: it comes from an editor."""

    text: str


CommandResult: TypeAlias = CommandStatus | Send | Watch | NewBuffer


@dataclass
class CommandContext:
    """The input that contains a command.

    Attributes:
        run_script: runs a file (relative to the current script, if the flag says so), and returns
            whether it succeeded.
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
