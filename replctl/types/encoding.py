"""The names of encodings (encnames.c); all databases have UTF-8."""

from __future__ import annotations

from replctl.errors import FeatureNotSupported

#: Encodings in the order of their numbers, each with the maximum number of bytes per character.
ENCODINGS = {
    "SQL_ASCII": 1, "EUC_JP": 3, "EUC_CN": 2, "EUC_KR": 3, "EUC_TW": 4, "EUC_JIS_2004": 3,
    "UTF8": 4, "MULE_INTERNAL": 4, **{f"LATIN{i}": 1 for i in range(1, 11)}, "WIN1256": 1,
    "WIN1258": 1, "WIN866": 1, "WIN874": 1, "KOI8R": 1, "WIN1251": 1, "WIN1252": 1,
    "ISO_8859_5": 1, "ISO_8859_6": 1, "ISO_8859_7": 1, "ISO_8859_8": 1, "WIN1250": 1,
    "WIN1253": 1, "WIN1254": 1, "WIN1255": 1, "WIN1257": 1, "KOI8U": 1, "SJIS": 2, "BIG5": 2,
    "GBK": 2, "UHC": 2, "GB18030": 4, "JOHAB": 3, "SHIFT_JIS_2004": 2,
}  # fmt: skip
ENCODING_NAMES = tuple(ENCODINGS)
_ALIASES = {
    "abc": "win1258", "tcvn": "win1258", "tcvn5712": "win1258", "vscii": "win1258",
    "alt": "win866", "win": "win1251", "koi8": "koi8r", "mskanji": "sjis", "shiftjis": "sjis",
    "win932": "sjis", "win936": "gbk", "win949": "uhc", "win950": "big5", "unicode": "utf8",
    "iso88591": "latin1", "iso88592": "latin2", "iso88593": "latin3", "iso88594": "latin4",
    "iso88599": "latin5", "iso885910": "latin6", "iso885913": "latin7", "iso885914": "latin8",
    "iso885915": "latin9", "iso885916": "latin10",
}  # fmt: skip
#: Python's names of convertible encodings.  Texts in SQL_ASCII are not converted, and must be
#: UTF-8.
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


def find_encoding(name: str) -> str | None:
    """Return PostgreSQL's name of an encoding: `iso-8859-1` -> `LATIN1`; None if it is unknown
    (pg_char_to_encoding).
    """
    plain = _plain(name).replace("windows", "win")
    plain = _ALIASES.get(plain, plain)
    return next((known for known in ENCODING_NAMES if _plain(known) == plain), None)


def codec(encoding: str) -> str:
    """Return Python's name of one of PostgreSQL's encodings.

    Raises:
        FeatureNotSupported: Python does not have the encoding.
    """
    found = _CODECS.get(encoding)
    if found is None:
        raise FeatureNotSupported(f'encoding "{encoding}" is not supported')
    return found


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isascii() and char.isalnum())
