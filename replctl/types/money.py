"""money in the output format of lc_monetary = C (PostgreSQL's cash.c).

A value is its canonical text, such as `$1,234.50`.
"""

from __future__ import annotations

import re

from replctl.errors import InvalidTextRepresentation, NumericValueOutOfRange
from replctl.types.integer import decimal_int
from replctl.types.text_form import text_form

_MONEY = re.compile(
    r"\s*\$?\s*(?P<sign>[-(+]?)\s*\$?\s*"
    r"(?P<whole>[0-9,]*)(?:\.(?P<fraction>,*[0-9]?,*[0-9]?,*))?(?P<rest>[0-9]*)(?P<end>[\s)+$-]*)",
    re.ASCII,
)
_LIMIT = 1 << 63


def cash_in(text: str) -> str:
    """Return the canonical text: `(1234.555)` -> `-$1,234.56`.

    Raises:
        InvalidTextRepresentation: `text` is not an amount.
        NumericValueOutOfRange: the number of cents does not fit into an int8.
    """
    match = _MONEY.match(text)
    assert match is not None  # the pattern matches an empty amount
    digits = match["whole"].replace(",", "")
    cents = (match["fraction"] or "").replace(",", "")
    amount = decimal_int(digits) * 100 + int(cents.ljust(2, "0"))
    amount += match["rest"][:1] >= "5"
    is_negative = match["sign"] in ("-", "(") if match["sign"] else False
    is_negative = is_negative or "-" in match["end"]
    if amount > _LIMIT:
        raise NumericValueOutOfRange(f'value "{text}" is out of range for type money')
    if match.end() < len(text):
        raise InvalidTextRepresentation(f'invalid input syntax for type money: "{text}"')
    if amount == _LIMIT and not is_negative:
        raise NumericValueOutOfRange(f'value "{text}" is out of range for type money')
    sign = "-" if is_negative and amount else ""
    return f"{sign}${amount // 100:,}.{amount % 100:02}"


FORMS = {"money": text_form(cash_in, str)}
