"""Follow subscriptions that were chosen by name: a long-running process continues with them after a
rename.
"""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.pg_subscription import Subscription, list_subscriptions
from replctl.session import Session


class ChosenSubscriptions:
    """The subscriptions of a cluster that have certain names now, also after they are renamed.

    Args:
        names: the names; () for all subscriptions.
    """

    def __init__(self, session: Session, names: Sequence[str]) -> None:
        self._session = session
        self._oids: dict[str, set[int]] = {name: set() for name in names}
        self.current()

    def current(self) -> list[Subscription]:
        """Return the chosen subscriptions of all databases that exist now.  If all subscriptions of
        a name were dropped, it may refer to new ones.
        """
        with self._session.read() as catalog:
            found = list_subscriptions(catalog, all_databases=True)
        if not self._oids:
            return found
        existing = {subscription.oid for subscription in found}
        for name, oids in self._oids.items():
            self._oids[name] = oids & existing or {s.oid for s in found if s.name == name}
        chosen = set().union(*self._oids.values())
        return [subscription for subscription in found if subscription.oid in chosen]

    @property
    def missing(self) -> list[str]:
        """Return the names without a subscription at the last call of `current`."""
        return [name for name, oids in self._oids.items() if not oids]

    @property
    def is_gone(self) -> bool:
        """Return whether subscriptions were named, and none of them exists."""
        return bool(self._oids) and not any(self._oids.values())
