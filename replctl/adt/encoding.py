"""Encodings other than UTF-8, which is that of all databases: their names, and to_ascii().
PostgreSQL's encnames.c and ascii.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from replctl.errors import FeatureNotSupported, UndefinedObject

#: By number; the number of bytes that a character may have.
_ENCODINGS = {
    "SQL_ASCII": 1, "EUC_JP": 3, "EUC_CN": 2, "EUC_KR": 3, "EUC_TW": 4, "EUC_JIS_2004": 3,
    "UTF8": 4, "MULE_INTERNAL": 4, **{f"LATIN{i}": 1 for i in range(1, 11)}, "WIN1256": 1,
    "WIN1258": 1, "WIN866": 1, "WIN874": 1, "KOI8R": 1, "WIN1251": 1, "WIN1252": 1,
    "ISO_8859_5": 1, "ISO_8859_6": 1, "ISO_8859_7": 1, "ISO_8859_8": 1, "WIN1250": 1,
    "WIN1253": 1, "WIN1254": 1, "WIN1255": 1, "WIN1257": 1, "KOI8U": 1, "SJIS": 2, "BIG5": 2,
    "GBK": 2, "UHC": 2, "GB18030": 4, "JOHAB": 3, "SHIFT_JIS_2004": 2,
}  # fmt: skip
_NAMES = tuple(_ENCODINGS)
_ALIASES = {
    "abc": "win1258", "tcvn": "win1258", "tcvn5712": "win1258", "vscii": "win1258",
    "alt": "win866", "win": "win1251", "koi8": "koi8r", "mskanji": "sjis", "shiftjis": "sjis",
    "win932": "sjis", "win936": "gbk", "win949": "uhc", "win950": "big5", "unicode": "utf8",
    "iso88591": "latin1", "iso88592": "latin2", "iso88593": "latin3", "iso88594": "latin4",
    "iso88599": "latin5", "iso885910": "latin6", "iso885913": "latin7", "iso885914": "latin8",
    "iso885915": "latin9", "iso885916": "latin10",
}  # fmt: skip
#: Those that are converted, as Python calls them; SQL_ASCII is not converted, and has to be UTF-8.
_CODECS = {
    "SQL_ASCII": "utf-8", "UTF8": "utf-8", "EUC_JP": "euc_jp", "EUC_CN": "gb2312",
    "EUC_KR": "euc_kr", "EUC_JIS_2004": "euc_jis_2004", "SJIS": "cp932", "BIG5": "cp950",
    "GBK": "gbk", "UHC": "cp949", "GB18030": "gb18030", "JOHAB": "johab",
    "SHIFT_JIS_2004": "shift_jis_2004", "WIN866": "cp866", "WIN874": "cp874", "KOI8R": "koi8_r",
    "KOI8U": "koi8_u", **{f"WIN125{i}": f"cp125{i}" for i in range(9)},
    **{f"ISO_8859_{i}": f"iso8859_{i}" for i in range(5, 9)},
    **{
        f"LATIN{i}": f"iso8859_{part}"
        for i, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), start=1)
    },
}  # fmt: skip
#: What the bytes from 128 or 160 on look like without their accents, up to the last one that
#: UTF-8 has.
_LOOKS = {
    "LATIN1": r"""  cL Y  "Ca  -R     'u .,      ???AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo""",  # noqa: E501
    "LATIN2": r""" A L LS "SSTZ-ZZ a,l'ls ,sstz"zz??AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo""",  # noqa: E501
    "LATIN9": r"""  cL YS sCa  -R     Zu .z   EeY???AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo""",  # noqa: E501
    "WIN1250": r"""  ' "    %S<STZZ `'"".--  s>stzz   L A  "CS  -RZ  ,l'u .,as L"lz??AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo""",  # noqa: E501
}


def _to_ascii(text: str, encoding: str) -> str:
    """Return the bytes of a text (in UTF-8) taken as those of another encoding."""
    looks = _LOOKS.get(encoding)
    if looks is None:
        raise FeatureNotSupported(f"encoding conversion from {encoding} to ASCII not supported")
    table = looks if encoding == "WIN1250" else " " * 32 + looks
    return "".join(chr(byte) if byte < 128 else table[byte - 128] for byte in text.encode())


def _number_to_ascii(text: str, number: int) -> str:
    if not 0 <= number < len(_NAMES):
        raise UndefinedObject(f"{number} is not a valid encoding code")
    return _to_ascii(text, _NAMES[number])


def _name_to_ascii(text: str, name: str) -> str:
    known = find_encoding(name)
    if known is None:
        raise UndefinedObject(f"{name} is not a valid encoding name")
    return _to_ascii(text, known)


def find_encoding(name: str) -> str | None:
    """PostgreSQL's own name of an encoding: `iso-8859-1` -> `LATIN1`; None if it has none of that
    name (pg_char_to_encoding)."""
    plain = _plain(name).replace("windows", "win")
    plain = _ALIASES.get(plain, plain)
    return next((known for known in _NAMES if _plain(known) == plain), None)


def codec(encoding: str) -> str:
    """Return what Python calls one of PostgreSQL's encodings.

    Raises:
        FeatureNotSupported: Python has none.
    """
    found = _CODECS.get(encoding)
    if found is None:
        raise FeatureNotSupported(f'encoding "{encoding}" is not supported')
    return found


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isascii() and char.isalnum())


def _max_length(number: int) -> int | None:
    return _ENCODINGS[_NAMES[number]] if 0 <= number < len(_NAMES) else None


#: prosrc -> function
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "to_ascii_default": lambda text: _to_ascii(text, "UTF8"),
    "to_ascii_enc": _number_to_ascii,
    "to_ascii_encname": _name_to_ascii,
    "pg_encoding_max_length_sql": _max_length,
}
