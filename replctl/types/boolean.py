"""bool (PostgreSQL's bool.c)."""

from __future__ import annotations

from replctl.errors import InvalidTextRepresentation
from replctl.types.text_form import BLANKS, text_form

#: All words for true and false, and their unambiguous beginnings.
_WORDS = {
    word[:length]: value
    for word, shortest, value in [
        ("true", 1, True),
        ("yes", 1, True),
        ("on", 2, True),
        ("1", 1, True),
        ("false", 1, False),
        ("no", 1, False),
        ("off", 2, False),
        ("0", 1, False),
    ]
    for length in range(shortest, len(word) + 1)
}


def bool_in(text: str) -> bool:
    """Parse a boolean: `t`, ` YES `, `of` -> True, True, False.

    Raises:
        InvalidTextRepresentation: `text` is not one of the words.
    """
    value = _WORDS.get(text.strip(BLANKS).lower())
    if value is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type boolean: "{text}"')
    return value


def bool_out(value: bool) -> str:
    """Print a boolean: True -> `t`."""
    return "t" if value else "f"


FORMS = {"bool": text_form(bool_in, bool_out)}
