"""Check wal_level: the errors and warnings for each level (slot.c, logical.c,
publicationcmds.c).
"""

from __future__ import annotations

from collections.abc import Callable

from replctl.errors import Notice, ObjectNotInPrerequisiteState

#: A function that returns the value of a setting.
Setting = Callable[[str], str]


def check_for_slots(setting: Setting) -> None:
    """Check that wal_level allows replication slots (CheckSlotRequirements).

    Raises:
        ObjectNotInPrerequisiteState: wal_level is minimal (55000).
    """
    if setting("wal_level") == "minimal":
        raise ObjectNotInPrerequisiteState(
            'replication slots can only be used if "wal_level" >= "replica"'
        )


def check_for_decoding(setting: Setting) -> None:
    """Check that wal_level allows logical decoding (CheckLogicalDecodingRequirements).

    Raises:
        ObjectNotInPrerequisiteState: wal_level is not logical (55000).
    """
    if setting("wal_level") != "logical":
        raise ObjectNotInPrerequisiteState('logical decoding requires "wal_level" >= "logical"')


def publication_warning(setting: Setting) -> Notice | None:
    """Return the WARNING of CREATE PUBLICATION if wal_level does not allow subscriptions; else
    None.
    """
    if setting("wal_level") == "logical":
        return None
    return Notice(
        "WARNING",
        '"wal_level" is insufficient to publish logical changes',
        "55000",
        hint='Set "wal_level" to "logical" before creating subscriptions.',
    )
