"""pg_lsn: a position in the log, as an int (PostgreSQL's pg_lsn.c)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from replctl.errors import FeatureNotSupported, InvalidParameterValue


def _difference(a: int, b: int) -> Decimal:
    return Decimal(a - b)


def _plus(lsn: int, offset: Decimal) -> int:
    if offset.is_nan():
        raise FeatureNotSupported("cannot add NaN to pg_lsn")
    return _of_numeric(Decimal(lsn) + offset)


def _minus(lsn: int, offset: Decimal) -> int:
    if offset.is_nan():
        raise FeatureNotSupported("cannot subtract NaN from pg_lsn")
    return _of_numeric(Decimal(lsn) - offset)


def _of_numeric(value: Decimal) -> int:
    """Round a number to an LSN (numeric_pg_lsn): Decimal("17.5") -> 18.  This is the LSN 0/12."""
    if not value.is_finite():
        what = "NaN" if value.is_nan() else "infinity"
        raise FeatureNotSupported(f"cannot convert {what} to pg_lsn")
    lsn = int(value.to_integral_value(ROUND_HALF_UP))
    if not 0 <= lsn < 2**64:
        raise InvalidParameterValue("pg_lsn out of range")
    return lsn


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_lsn_mi": _difference,
    "pg_wal_lsn_diff": _difference,
    "pg_lsn_pli": _plus,
    "pg_lsn_mii": _minus,
    "numeric_pg_lsn": _of_numeric,
    "pg_lsn_larger": max,
    "pg_lsn_smaller": min,
    "numeric_pl_pg_lsn(numeric,pg_lsn)": lambda offset, lsn: _plus(lsn, offset),
}
