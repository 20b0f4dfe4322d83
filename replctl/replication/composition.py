"""Compose the changes of one key, in the order of their commits, to one net effect.

This module does not know whether the key's row exists.  Each net effect defines the result for
both cases.  As in PostgreSQL's apply worker, an UPDATE or DELETE of a missing row is
skipped.  An INSERT of an existing key is a conflict (documentation, section 31.5, "Conflicts").
"""

from __future__ import annotations

from enum import Enum

from replctl.replication.update_transformation import Action


class NetEffect(Enum):
    """The net effect of consecutive changes of one key on the key's row.

    FOUND: if the row exists, it gets the last UPDATE's values.
    INSERTED: there is a new row.  Before, the key must not have a row.
    DELETED: if the row exists, it is removed.
    REPLACED: there is a new row, which replaces the old row if there was one.
    VANISHED: the row is inserted and deleted again.  Before, the key must not have a row.
    CONFLICT: an INSERT finds a row that an earlier one of these changes has made.
    """

    FOUND = "found"
    INSERTED = "inserted"
    DELETED = "deleted"
    REPLACED = "replaced"
    VANISHED = "vanished"
    CONFLICT = "conflict"


#: (effect so far, next change) -> new effect.
COMPOSITION: dict[tuple[NetEffect, Action], NetEffect] = {
    (NetEffect.FOUND, Action.INSERT): NetEffect.INSERTED,
    (NetEffect.FOUND, Action.UPDATE): NetEffect.FOUND,
    (NetEffect.FOUND, Action.DELETE): NetEffect.DELETED,
    (NetEffect.INSERTED, Action.INSERT): NetEffect.CONFLICT,
    (NetEffect.INSERTED, Action.UPDATE): NetEffect.INSERTED,
    (NetEffect.INSERTED, Action.DELETE): NetEffect.VANISHED,
    (NetEffect.DELETED, Action.INSERT): NetEffect.REPLACED,
    (NetEffect.DELETED, Action.UPDATE): NetEffect.DELETED,
    (NetEffect.DELETED, Action.DELETE): NetEffect.DELETED,
    (NetEffect.REPLACED, Action.INSERT): NetEffect.CONFLICT,
    (NetEffect.REPLACED, Action.UPDATE): NetEffect.REPLACED,
    (NetEffect.REPLACED, Action.DELETE): NetEffect.DELETED,
    (NetEffect.VANISHED, Action.INSERT): NetEffect.INSERTED,
    (NetEffect.VANISHED, Action.UPDATE): NetEffect.VANISHED,
    (NetEffect.VANISHED, Action.DELETE): NetEffect.VANISHED,
    (NetEffect.CONFLICT, Action.INSERT): NetEffect.CONFLICT,
    (NetEffect.CONFLICT, Action.UPDATE): NetEffect.CONFLICT,
    (NetEffect.CONFLICT, Action.DELETE): NetEffect.CONFLICT,
}
