"""Read the lengths that Spark's types CHAR(n) and VARCHAR(n) give to columns of Delta tables.

Delta stores such columns as strings, and Spark checks the lengths when it writes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from replctl.record import dataclass
from replctl.types.character import TYPMOD_HEADER
from replctl.types.type_modifier import MAX_LENGTH

#: Key in the metadata of a field: its type in Spark's SQL.
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
_FORM = re.compile(r"(array<)?(char|varchar)\((\d{1,10})\)>?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextLength:
    """The length of the texts in a column, or in the arrays of a column.

    Attributes:
        length: the number of characters: the maximum of VARCHAR(n), the exact number of CHAR(n).
        is_exact: the type is CHAR(n).
    """

    length: int
    is_exact: bool = False
    is_array: bool = False

    @property
    def shown(self) -> str:
        """Return the type in Spark's SQL: `varchar(5)`."""
        name = f"{'char' if self.is_exact else 'varchar'}({self.length})"
        return f"array<{name}>" if self.is_array else name

    @property
    def type(self) -> tuple[str, int]:
        """Return the type of PostgreSQL for the column, and its modifier.  CHAR(n) is text, because
        the texts have blanks at their ends, which PostgreSQL's char(n) ignores.
        """
        prefix = "_" if self.is_array else ""
        if self.is_exact or not 0 < self.length <= MAX_LENGTH:
            return f"{prefix}text", -1
        return f"{prefix}varchar", self.length + TYPMOD_HEADER


def text_length(field: Mapping[str, Any]) -> TextLength | None:
    """Return the length that the texts of a column of a Delta schema have; None if it has none."""
    details = field.get("metadata")
    declared = details.get(_DECLARED) if isinstance(details, dict) else None
    found = _FORM.fullmatch(declared) if isinstance(declared, str) else None
    if found is None:
        return None
    return TextLength(int(found[3]), found[2].lower() == "char", found[1] is not None)
