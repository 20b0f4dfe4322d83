"""Transform an UPDATE if only its old or only its new row passes the row filter.

PostgreSQL's documentation, section 31.3.3, "UPDATE Transformations".
"""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """The kind of change that is sent."""

    INSERT = "I"
    UPDATE = "U"
    DELETE = "D"
    TRUNCATE = "T"

    @property
    def publish_option(self) -> str:
        """Return the action's name in a publication's parameter `publish`."""
        return self.name.lower()


#: The actions that concern single rows.
ROW_ACTIONS = (Action.INSERT, Action.UPDATE, Action.DELETE)

#: (old row matches, new row matches) -> the replicated action.  Documentation, table 31.1.
UPDATE_TRANSFORMATION: dict[tuple[bool, bool], Action | None] = {
    (False, False): None,
    (False, True): Action.INSERT,
    (True, False): Action.DELETE,
    (True, True): Action.UPDATE,
}
