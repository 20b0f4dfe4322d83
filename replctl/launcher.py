"""Which subscriptions run, and how far: every change committed so far, cascades to the end (launcher.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replctl.errors import PostgresError
from replctl.session import Session


@dataclass(frozen=True, slots=True)
class SyncFailure:
    """A subscription that could not go on, and why."""

    subscription: str
    error: PostgresError


def sync(session: Session, names: Sequence[str] = ()) -> list[SyncFailure]:
    """Apply everything that is committed on the publishers so far to the enabled subscriptions of all
    databases of the cluster, unfinished copies first; those that could not go on.

    Args:
        names: subscriptions to run, () for all.

    Raises:
        UndefinedObject: there is no subscription of that name.
    """
    raise NotImplementedError
