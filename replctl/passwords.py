"""Find and remove passwords and keys in statements, commands and connection strings."""

from __future__ import annotations

import re

_SECRETS = (
    re.compile(r"(\b(?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)", re.IGNORECASE),
    re.compile(r"(\bpassword\s+)(?:E|U&)?'(?:[^'\\]|''|\\.)*'?", re.IGNORECASE),
    re.compile(r"(://[^/\s:@]*:)([^/\s@]+)(?=@)"),
    re.compile(r"(;token=)[^\s;'\"]+", re.IGNORECASE),
)
#: Names of secrets, in any context; `\password` prompts for one.
_NAMES = re.compile(
    r"(?<!\\)\b\w*passw(?:or)?d\b|://[^/\s:@]*:[^/\s@]+@|;token=|secret[._-]?(?:access[._-]?)?key",
    re.IGNORECASE,
)


def without_passwords(text: str) -> str:
    """Return a connection string or a statement without its secrets."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1***", text)
    return text


def may_hold_password(text: str) -> bool:
    """Return whether statements or commands may contain a password or another secret; when in
    doubt, True.
    """
    return _NAMES.search(text) is not None
