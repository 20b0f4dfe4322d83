"""Texts that break a program that does not quote, escape, fold or cut them as PostgreSQL does."""

from __future__ import annotations

#: Each has a name that tells which test case fails.
HOSTILE: dict[str, str] = {
    "plain": "plain",
    "upper case": "MiXed",
    "accents": "ÀÉÎ ñ ß İı",
    "greek": "ΣΑΣ",
    "keyword": "select",
    "variable": "${x}",
    "environment": "${env:HOME}",
    "spark setting": "${spark.master}",
    "backtick": "a`b``c",
    "quote": "it's ''q''",
    "double quote": 'say "x" ""',
    "backslash": "a\\b\\\\c\\",
    "escapes": "\\n\\t\\x41\\101\\u0041",
    "escaped nul": "\\u0000",
    "comment": "--",
    "comment with more": "a -- b",
    "open comment": "/*",
    "comments": "*/ /* x */",
    "braces": "{{",
    "template": "{{ x }} {% y %}",
    "format": "{} {0} {x!r}",
    "percent": "%",
    "percent s": "%s %d %(x)s %%",
    "psql variable": ":x",
    "quoted psql variable": ":'x' :\"x\" :{?x}",
    "parameter": "$1",
    "question mark": "? ?1 @x #x",
    "dollar quote": "$$ $a$ $replctl$",
    "semicolon": "a; DROP TABLE t;",
    "newline": "a\nb",
    "only a newline": "\n",
    "carriage return": "a\rb",
    "both": "a\r\nb\r\n",
    "tab": "a\tb",
    "other controls": "\x01\x07\x08\x0b\x0c\x1b[31m\x7f",
    "next line": "a\x85b",
    "line separator": "a\u2028b\u2029c",
    "right to left": "\u202eabc\u202c \u200f\u061c",
    "hebrew": "שלום",
    "zero width": "a\u200bb\u200d",
    "byte order mark": "\ufeffa",
    "emoji": "👩‍👩‍👧 😀",
    "combining": "e\u0301 = \u00e9, \u1e9b\u0323",
    "last characters": "\uffff\U0010ffff\ue000",
    "no-break space": "\u00a0a\u00a0\u3000",
    "markup": "[bold]x[/bold] [/] [red",
    "glob": "*?[a-z]{x,y}",
    "regular expression": "^(a|b).*+$",
    "like": "a_b%c",
    "leading blanks": "  a",
    "trailing blanks": "a  ",
    "blank": " ",
    "null": "NULL",
    "null of copy": "\\N",
    "end of copy": "\\.",
    "line of end of copy": "x\n\\.\ny",
    "csv": 'a,"b",c',
    "array": '{a,"b",NULL}',
    "row": '(1,"a",)',
    "json": '{"a": "\\u0000"}',
    "path": "../a/./b//c",
    "dots": "..",
    "url": "a=1/b%20c%2Fd?e#f&g",
    "number": "1",
    "other digits": "١٢٣",
    "digits of two kinds": "1١",
    "letters that fold to ASCII": "K ſ ı İ ﬁ",
    "nan": "NaN",
    "boolean": "t",
    "equals": "a=b c='d'",
    "mark": "replctl:1",
    "partition of hive": "__HIVE_DEFAULT_PARTITION__",
    "file names": "_delta_log",
}

#: Texts that have a meaning only alone, so that they must not be joined.
_ALONE = (
    "upper case", "keyword", "only a newline", "null", "null of copy", "end of copy", "dots",
    "number", "other digits", "nan", "boolean", "blank", "parameter", "glob", "trailing blanks",
)  # fmt: skip
_NAME_BYTES = 63


def _joined() -> dict[str, str]:
    """Return all texts in a few names, for tests that are slow for each name."""
    names = {label: HOSTILE[label] for label in _ALONE}
    joined = ""
    for label, text in HOSTILE.items():
        if label not in _ALONE:
            if len((joined + text).encode()) > _NAME_BYTES:
                names[f"joined {len(names)}"], joined = joined, ""
            joined += text
    return {**names, "rest": joined}


NAMES = _joined()

#: Invalid names: too long, or empty.
EMPTY = ""
LONG = "ab'\"`\\${x}é\n" * (65536 // 13)

#: Names at the edge of 63 bytes, with characters of one to four bytes.
LONG_NAMES: dict[str, str] = {
    "63 bytes": "a" * 63,
    "64 bytes": "a" * 64,
    "two bytes": "a" + "é" * 40,
    "two bytes cut": "é" * 40,
    "three bytes": "aa" + "€" * 30,
    "four bytes": "😀" * 20,
    "four bytes cut": "a" + "😀" * 20,
    "combining at the end": "a" * 62 + "e\u0301",
    "long blanks": "a" * 62 + "   b",
    "long upper case": "ÀB" * 30,
    "64 KB": LONG,
}
