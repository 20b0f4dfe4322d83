"""The transformation of an UPDATE when a row filter lets only one of its images through.

PostgreSQL's documentation, section 31.3.3, "UPDATE Transformations".
"""

from __future__ import annotations

from enum import Enum


class Action(Enum):
    """The kind of change that is sent."""

    INSERT = "I"
    UPDATE = "U"
    DELETE = "D"
    TRUNCATE = "T"

    @property
    def publish_option(self) -> str:
        """Return the name in a publication's parameter `publish`."""
        return self.name.lower()


#: (old row matches, new row matches) -> what is replicated.  Documentation, table 31.1.
UPDATE_TRANSFORMATION: dict[tuple[bool, bool], Action | None] = {
    (False, False): None,
    (False, True): Action.INSERT,
    (True, False): Action.DELETE,
    (True, True): Action.UPDATE,
}
