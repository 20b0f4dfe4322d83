"""How the changes of one key, in the order of their commits, become one.

What a key's row is at the start is not known here; each state says what becomes of it in either
case. A missing row at UPDATE or DELETE is skipped, an INSERT of a key that exists is a conflict, as
PostgreSQL's apply worker has it (documentation, section 31.5, "Conflicts").
"""

from __future__ import annotations

from enum import Enum

from replctl.replication.update_transformation import Action


class NetEffect(Enum):
    """The effect of a run of changes on the row of its key.

    FOUND: the last UPDATE's values, if the row exists.
    INSERTED: a new row; it has to be missing at the start.
    DELETED: the row is removed, if it exists.
    REPLACED: a new row in the place of the old one, if there was one.
    VANISHED: inserted and deleted again: nothing, but the row has to be missing at the start.
    CONFLICT: an INSERT met a row that this very run had made.
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
