"""The settings of a session that affect the input and output of values: TimeZone, DateStyle,
IntervalStyle, bytea_output and extra_float_digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from replctl.record import dataclass
from replctl.types.timezone import NamedZone, zone_named


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """A session's format for the input and output of values; the default is the canonical one.

    Attributes:
        date_style: ISO, SQL, Postgres or German.
        date_order: MDY, DMY or YMD.
        interval_style: postgres, postgres_verbose, sql_standard or iso_8601.
        bytea_output: hex or escape.
        float_digits: extra_float_digits; every value above 0 means the shortest exact digits.
        zone: the name of the time zone.
    """

    date_style: str = "ISO"
    date_order: str = "MDY"
    interval_style: str = "postgres"
    bytea_output: str = "hex"
    float_digits: int = 1
    zone: str = "UTC"

    @property
    def is_utc(self) -> bool:
        """Return whether the zone has the offset 0 at all times."""
        return self.time_zone.fixed_offset == 0

    @property
    def time_zone(self) -> NamedZone:
        return _zone(self.zone)

    def changed(self) -> list[tuple[str, str, str]]:
        """Return the name, value and canonical value of each setting where these values differ."""
        found = zip(self._values(), CANONICAL._values(), strict=True)
        return [(name, value, usual) for (name, value), (_, usual) in found if value != usual]

    def _values(self) -> tuple[tuple[str, str], ...]:
        return (
            ("TimeZone", self.zone),
            ("DateStyle", f"{self.date_style}, {self.date_order}"),
            ("IntervalStyle", self.interval_style),
            ("bytea_output", self.bytea_output),
            ("extra_float_digits", str(self.float_digits)),
        )


CANONICAL = ValueFormat()

#: The format in which input functions currently read values.
_current: ContextVar[ValueFormat] = ContextVar("value_format", default=CANONICAL)


@lru_cache(maxsize=16)
def _zone(name: str) -> NamedZone:
    found = zone_named(name.lower())
    assert found is not None, name  # SET has checked it
    return found


def value_format_of(setting: Callable[[str], str]) -> ValueFormat:
    """Return a session's format for the input and output of values.

    Args:
        setting: returns the value of a setting.
    """
    style, order = setting("datestyle").split(", ")
    return ValueFormat(
        style,
        order,
        setting("intervalstyle"),
        setting("bytea_output"),
        min(int(setting("extra_float_digits")), 1),
        setting("timezone"),
    )


def current_format() -> ValueFormat:
    """Return the format in which input functions currently read values."""
    return _current.get()


@contextmanager
def use_format(value_format: ValueFormat) -> Iterator[None]:
    """Make input functions read values in a session's format inside the `with` block."""
    token = _current.set(value_format)
    try:
        yield
    finally:
        _current.reset(token)
