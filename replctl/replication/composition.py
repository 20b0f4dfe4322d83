"""Compose the changes of one key, in the order of their commits, to one net effect.

The existing row of a key is not known here.  Each state says what happens if it exists and if not.
As in PostgreSQL's apply worker, an UPDATE or DELETE of a missing row is skipped, and an INSERT of
an existing key is a conflict (documentation, section 31.5, "Conflicts").
"""

from __future__ import annotations

from enum import Enum

from replctl.replication.update_transformation import Action


class NetEffect(Enum):
    """The effect of a run of changes on the row of its key.

    FOUND: the last UPDATE's values, if the row exists.
    INSERTED: a new row, which must be missing at the start.
    DELETED: the row is removed, if it exists.
    REPLACED: a new row that replaces the old one, if there was one.
    VANISHED: inserted and deleted again: no effect, but the row must be missing at the start.
    CONFLICT: an INSERT met a row that the same run had made.
    """

    FOUND = "found"
    INSERTED = "inserted"
    DELETED = "deleted"
    REPLACED = "replaced"
    VANISHED = "vanished"
    CONFLICT = "conflict"


#: (effect so far, next change) -> effect.
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
