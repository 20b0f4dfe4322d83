"""The state of the command: connection, variables, output (PsqlSettings in settings.h)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from enum import Enum
from typing import TextIO

from replctl.errors import Notice, PostgresError
from replctl.memory_limit import SETTING as MEMORY
from replctl.memory_limit import memory_limit
from replctl.psql.messages import Messages
from replctl.psql.output import Output, writing
from replctl.psql.print_content import PrintOptions, Table
from replctl.psql.print_table import print_table
from replctl.psql.terminal import takes_colors
from replctl.psql.variables import Variables
from replctl.record import dataclass
from replctl.session import Session


class TransactionStatus(Enum):
    """The state of the transaction block.  The values are the texts of `%x` in a prompt."""

    IDLE = ""
    IN_BLOCK = "*"
    FAILED = "!"


@dataclass
class PsqlSettings:
    """The state that commands read and change.

    Attributes:
        connect: opens a session, given database, role, directory of the cluster (or None), and the
            parameters of a connection string.
        session: the connection; None if a script has lost it.
        print_options: the options of `\\pset`.
        output: the target of results: stdout, or that of `\\o`.
        has_terminal: stdin and stdout are a terminal, and plain output was not requested.
        is_interactive: the commands being run are typed at a prompt.
        shows_timing: print the time of each statement (`\\timing`).
        read_data_line: returns the next line of the input of commands, with its newline, as data
            for COPY; None at the end.
        last_error: the last error and its statement, for `\\errverbose`.
        log_file: a file for a copy of all queries and results (`-L`).
        restrict_key: the key that ends the restricted mode of `\\restrict`; None outside it.
    """

    variables: Variables
    messages: Messages
    connect: Callable[[str, str, str | None, Mapping[str, str]], Session]
    output: Output = field(default_factory=Output)
    session: Session | None = None
    print_options: PrintOptions = field(default_factory=PrintOptions)
    has_terminal: bool = False
    is_interactive: bool = False
    shows_timing: bool = False
    read_data_line: Callable[[], str | None] = lambda: sys.stdin.readline() or None
    last_error: tuple[PostgresError, str] | None = None
    log_file: TextIO | None = None
    restrict_key: str | None = None

    def _leave_session(self) -> None:
        """Roll back any open transaction, then close the session.  Report an error: the session has
        ended anyway, and other processes complete the rest.
        """
        session = self.session
        if session is None:
            return
        try:
            try:
                if session.block is not None:
                    from replctl.lake import block

                    block.rollback(session)
            finally:
                session.close()
        except PostgresError as error:
            self.messages.report(error)

    @property
    def transaction_status(self) -> TransactionStatus:
        """Return whether a block is open."""
        block = None if self.session is None else self.session.block
        if block is None:
            return TransactionStatus.IDLE
        return TransactionStatus.FAILED if block.has_failed else TransactionStatus.IN_BLOCK

    @property
    def is_quiet(self) -> bool:
        """Return whether QUIET is set: print results, but no messages."""
        return self.variables.is_on("QUIET")

    @property
    def is_styled(self) -> bool:
        """Return whether results are written to a terminal with colours."""
        return self.has_terminal and self.output.is_stdout and takes_colors()

    def say(self, text: str) -> None:
        """Print the message of a command, unless QUIET is set."""
        if not self.is_quiet:
            print(text, flush=True)

    def notice(self, notice: Notice) -> None:
        """Print a notice of the session immediately."""
        self.messages.report(notice)

    def print(self, table: Table, options: PrintOptions | None = None) -> None:
        """Write a table to the output of results.

        Raises:
            PsqlError: the output cannot be written.
        """
        chosen = options if options is not None else self.print_options
        if self.is_styled and chosen.columns == 0:
            chosen = replace(chosen, columns=os.get_terminal_size().columns)
        with self._bounded(), writing("could not print result table"):
            print_table(self.output.stream, table, chosen, styled=self.is_styled)
            self.output.stream.flush()
            if self.log_file is not None:
                print_table(self.log_file, table, chosen)
                self.log_file.flush()

    def _bounded(self) -> AbstractContextManager[None]:
        """Limit the memory for the rows of a statement."""
        if self.session is None:
            return nullcontext()
        return memory_limit(int(self.session.setting(MEMORY)), continues=True)

    def bind_session(self, session: Session) -> None:
        """Use a session that was just opened, and set the variables that describe it."""
        self._leave_session()
        self.session = session
        session.on_notice = self.notice
        for name, value in (
            ("DBNAME", session.database_name),
            ("USER", session.login_name),
            ("HOST", str(session.cluster.path)),
            ("ENCODING", "UTF8"),
            ("SERVER_VERSION_NAME", session.setting("server_version")),
            ("SERVER_VERSION_NUM", "170000"),
        ):
            self.variables.set(name, value)

    def release_session(self) -> None:
        """Close the session, and unset the variables that describe the connection."""
        self._leave_session()
        self.session = None
        for name in ("DBNAME", "USER", "HOST", "ENCODING", "SERVER_VERSION_NAME"):
            self.variables.unset(name)
