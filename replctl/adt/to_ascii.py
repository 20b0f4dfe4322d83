"""Convert texts in several encodings to ASCII (PostgreSQL's ascii.c); look up encodings by
number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from replctl.errors import FeatureNotSupported, UndefinedObject
from replctl.types.encoding import ENCODING_NAMES, ENCODINGS, find_encoding

#: ASCII look-alikes of the bytes from 160 (WIN1250: 128), up to the last byte that UTF-8 uses.
_LOOKS = {
    "LATIN1": r"""  cL Y  "Ca  -R     'u .,      ???AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo""",  # noqa: E501
    "LATIN2": r""" A L LS "SSTZ-ZZ a,l'ls ,sstz"zz??AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo""",  # noqa: E501
    "LATIN9": r"""  cL YS sCa  -R     Zu .z   EeY???AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo""",  # noqa: E501
    "WIN1250": r"""  ' "    %S<STZZ `'"".--  s>stzz   L A  "CS  -RZ  ,l'u .,as L"lz??AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo""",  # noqa: E501
}


def _to_ascii(text: str, encoding: str) -> str:
    """Convert a text to ASCII; read its UTF-8 bytes as bytes of `encoding`."""
    looks = _LOOKS.get(encoding)
    if looks is None:
        raise FeatureNotSupported(f"encoding conversion from {encoding} to ASCII not supported")
    table = looks if encoding == "WIN1250" else " " * 32 + looks
    return "".join(chr(byte) if byte < 128 else table[byte - 128] for byte in text.encode())


def _number_to_ascii(text: str, number: int) -> str:
    if not 0 <= number < len(ENCODING_NAMES):
        raise UndefinedObject(f"{number} is not a valid encoding code")
    return _to_ascii(text, ENCODING_NAMES[number])


def _name_to_ascii(text: str, name: str) -> str:
    known = find_encoding(name)
    if known is None:
        raise UndefinedObject(f"{name} is not a valid encoding name")
    return _to_ascii(text, known)


def _max_length(number: int) -> int | None:
    return ENCODINGS[ENCODING_NAMES[number]] if 0 <= number < len(ENCODING_NAMES) else None


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "to_ascii_default": lambda text: _to_ascii(text, "UTF8"),
    "to_ascii_enc": _number_to_ascii,
    "to_ascii_encname": _name_to_ascii,
    "pg_encoding_max_length_sql": _max_length,
}
