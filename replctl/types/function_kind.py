"""Name the letters that pg_proc has for kinds and properties of functions.

Each member is the letter itself, so that it goes into the catalog, and comes from it, unchanged.
"""

from __future__ import annotations

from enum import StrEnum


class FunctionKind(StrEnum):
    """The kind of a function (pg_proc.prokind)."""

    FUNCTION = "f"
    PROCEDURE = "p"
    AGGREGATE = "a"
    WINDOW = "w"


class ArgumentMode(StrEnum):
    """The use that a function makes of an argument (pg_proc.proargmodes)."""

    IN = "i"
    OUT = "o"
    INOUT = "b"
    VARIADIC = "v"
    TABLE = "t"  # a column of the result

    @property
    def is_input(self) -> bool:
        """Return whether a call gives the argument."""
        return self in (ArgumentMode.IN, ArgumentMode.INOUT, ArgumentMode.VARIADIC)

    @property
    def is_output(self) -> bool:
        """Return whether the argument is a column of the result."""
        return self in (ArgumentMode.OUT, ArgumentMode.INOUT, ArgumentMode.TABLE)


class Volatility(StrEnum):
    """The time for which equal arguments give a function the same result (pg_proc.provolatile)."""

    IMMUTABLE = "i"
    STABLE = "s"
    VOLATILE = "v"


class Parallel(StrEnum):
    """The parallel plans in which PostgreSQL may run a function (pg_proc.proparallel)."""

    UNSAFE = "u"
    RESTRICTED = "r"
    SAFE = "s"
