"""`\\if`, `\\elif`, `\\else`, `\\endif`: decide which parts of a script run (conditional.c)."""

from __future__ import annotations

from enum import Enum, auto

from replctl.psql.scan_slash import SlashScanner
from replctl.psql.statement_scan import SavedBuffer, StatementScanner
from replctl.psql.variables import PsqlError, parse_bool
from replctl.record import dataclass

BRANCHING_COMMANDS = frozenset({"if", "elif", "else", "endif"})


class _Branch(Enum):
    TRUE = auto()  # this branch runs
    FALSE = auto()  # no branch has run yet
    IGNORED = (
        auto()
    )  # an earlier branch has run, or the whole block is in a branch that does not run
    ELSE_TRUE = auto()
    ELSE_FALSE = auto()


@dataclass
class _Block:
    branch: _Branch
    saved: SavedBuffer


class ConditionStack:
    """The open `\\if` blocks of one input, innermost last."""

    def __init__(self, scanner: StatementScanner) -> None:
        self._scanner = scanner
        self._blocks: list[_Block] = []

    @property
    def is_open(self) -> bool:
        """Return whether an `\\if` lacks its `\\endif`."""
        return bool(self._blocks)

    @property
    def is_active(self) -> bool:
        """Return whether commands at this point run."""
        return not self._blocks or self._blocks[-1].branch in (_Branch.TRUE, _Branch.ELSE_TRUE)

    def close_innermost(self) -> None:
        """Leave the innermost block, as Ctrl-C does."""
        self._blocks.pop()
        self._scanner.is_active = self.is_active

    def run(self, slash: SlashScanner) -> None:
        """Run one of `BRANCHING_COMMANDS`.

        Raises:
            PsqlError: the command is misplaced, or lacks a Boolean.  Without a Boolean, the branch
                does not run.
        """
        match slash.command:
            case "if":
                self._if(slash)
            case "elif":
                self._elif(slash)
            case "else":
                self._else()
            case _:
                self._endif()

    def _if(self, slash: SlashScanner) -> None:
        is_active = self.is_active
        self._blocks.append(
            _Block(_Branch.TRUE if is_active else _Branch.IGNORED, self._scanner.save())
        )
        self._evaluate(slash, "\\if expression")

    def _elif(self, slash: SlashScanner) -> None:
        block = self._innermost("elif")
        match block.branch:
            case _Branch.TRUE:
                self._enter(block, _Branch.IGNORED, keep=True)
            case _Branch.FALSE:
                self._enter(block, _Branch.TRUE, keep=False)
            case _:
                self._enter(block, _Branch.IGNORED, keep=False)
        self._evaluate(slash, "\\elif expression")

    def _else(self) -> None:
        block = self._innermost("else")
        match block.branch:
            case _Branch.TRUE:
                self._enter(block, _Branch.ELSE_FALSE, keep=True)
            case _Branch.FALSE:
                self._enter(block, _Branch.ELSE_TRUE, keep=False)
            case _:
                self._enter(block, _Branch.ELSE_FALSE, keep=False)

    def _endif(self) -> None:
        if not self._blocks:
            raise PsqlError("\\endif: no matching \\if")
        if not self.is_active:
            self._scanner.restore(self._blocks[-1].saved)
        self.close_innermost()

    def _innermost(self, command: str) -> _Block:
        if not self._blocks:
            raise PsqlError(f"\\{command}: no matching \\if")
        block = self._blocks[-1]
        if block.branch in (_Branch.ELSE_TRUE, _Branch.ELSE_FALSE):
            raise PsqlError(f"\\{command}: cannot occur after \\else")
        return block

    def _enter(self, block: _Block, branch: _Branch, *, keep: bool) -> None:
        """Enter the next branch.  Keep the query text of the previous branch only if that branch
        ran.
        """
        if keep:
            block.saved = self._scanner.save()
        else:
            self._scanner.restore(block.saved)
        block.branch = branch
        self._scanner.is_active = self.is_active

    def _evaluate(self, slash: SlashScanner, name: str) -> None:
        """Read an expression.  If it matters, set whether the branch runs."""
        block = self._blocks[-1]
        self._scanner.is_active = self.is_active
        words = []
        while (word := slash.argument()) is not None:
            words.append(word)
        if block.branch is not _Branch.TRUE:
            return
        try:
            is_taken = parse_bool(" ".join(words), name)
        except PsqlError:
            block.branch = _Branch.FALSE
            self._scanner.is_active = False
            raise
        if not is_taken:
            block.branch = _Branch.FALSE
        self._scanner.is_active = self.is_active
