"""Write the paths of Delta's log in one form, so that equal texts name the same file.

Delta makes an absolute path without a scheme a URI (DeltaLog.CanonicalPathFunction), and compares
paths as URIs (java.net.URI, InMemoryLogReplay).  So `/t/x`, `file:/t/x` and `file:///t//x` are one
file.  A path relative to the table and an absolute path are two files for Delta, even if they lead
to one place.  The same applies to `s3://` and `s3a://`, and to a character and its escape.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

#: Matches every path that may have another form in `canonical_path`.  PyArrow also uses it (RE2).
UNUSUAL_PATH = "|".join(
    (
        "^/",  # an absolute path without a scheme
        "//",  # an empty part, or a URI with an authority
        "^[A-Za-z0-9+.-]*[A-Z][A-Za-z0-9+.-]*:",  # a scheme with capital letters
        r"(^|/)\.\.?(/|$)",
        "%[0-9A-Fa-f]?[a-f]",  # an escape with small letters
    )
)
_UNUSUAL = re.compile(UNUSUAL_PATH)
_URI = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
#: The characters that Java escapes in a path.
_ESCAPED = re.compile(r"[\s\x00-\x20\x7f-\x9f\"#%<>?\[\\\]^`{|}]")


def canonical_path(path: str) -> str:
    """Return the one form of a path in Delta's log.

    `/t/a%20b.parquet`, `file:///t/./a%20b.parquet`  ->  `file:/t/a%20b.parquet`
    """
    if not _UNUSUAL.search(path):
        return path
    found = _URI.fullmatch(path)
    assert found is not None  # all parts are optional
    scheme, authority, rest = found[1], found[2], found[3]
    if scheme is None and authority is None and rest.startswith("/"):
        scheme, rest = "file", _ESCAPED.sub(lambda match: quote(match[0]), unquote(rest))
    rest = _ESCAPE.sub(lambda match: match[0].upper(), _without_dots(rest))
    start = f"{scheme.lower()}:" if scheme else ""
    return f"{start}//{authority}{rest}" if authority else f"{start}{rest}" or path


def _without_dots(path: str) -> str:
    """Return a path without empty parts, `.` and `..`, as far as this is possible."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/" * path.startswith("/") + "/".join(parts)
