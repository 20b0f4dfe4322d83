"""Report the results of `replctl sync`: a line for each subscription, or JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, field
from threading import Lock
from typing import TYPE_CHECKING

from replctl.catalog.pg_subscription import list_subscriptions
from replctl.errors import PostgresError
from replctl.lsn import format_lsn
from replctl.record import dataclass
from replctl.replication.node import RowCounts
from replctl.types.quote import quote_identifier

if TYPE_CHECKING:
    from replctl.apply_worker import Applied
    from replctl.catalog.pg_subscription import Subscription
    from replctl.launcher import SyncFailure
    from replctl.psql.psql_settings import PsqlSettings
    from replctl.session import Session


@dataclass(slots=True)
class _Outcome:
    """The result for a subscription.

    Attributes:
        lsn: the subscription's position in the publisher's log; None if unknown.
        is_something: there was work to do.
    """

    name: str
    database: str
    is_enabled: bool
    transactions: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    lsn: int | None = None
    is_something: bool = False
    error: PostgresError | None = None

    @property
    def status(self) -> str:
        """Return a status of one to three words."""
        if self.error is not None:
            return "failed"
        if self.is_something:
            return "applied"
        return "up to date" if self.is_enabled else "disabled"

    def line(self, *, is_qualified: bool) -> str:
        """Return the line to print.

        Args:
            is_qualified: another database also has a subscription of that name.
        """
        names = (self.database, self.name) if is_qualified else (self.name,)
        shown = ".".join(map(quote_identifier, names))
        if not self.is_something:
            return f"{shown}: {self.status}"
        parts = [
            _counted(self.transactions, "transaction"),
            f"{_counted(self.rows.inserted, 'row')} inserted",
            f"{self.rows.updated} updated",
            f"{self.rows.deleted} deleted",
        ]
        if self.lsn is not None:
            parts.append(f"reached {format_lsn(self.lsn)}")
        failed = "" if self.error is None else "failed after "
        return f"{shown}: {failed}{', '.join(parts)}"

    def fields(self) -> dict[str, object]:
        """Return the result as JSON fields."""
        error = self.error
        return {
            "subscription": self.name,
            "database": self.database,
            "status": self.status,
            "transactions": self.transactions,
            **asdict(self.rows),
            "lsn": None if self.lsn is None else format_lsn(self.lsn),
            "error": None
            if error is None
            else {"sqlstate": error.sqlstate, "message": error.message},
        }


class SyncReport:
    """Sums up the changes that subscriptions have written, and prints them.

    Args:
        as_json: print one JSON document instead of lines.
    """

    def __init__(self, settings: PsqlSettings, *, as_json: bool) -> None:
        assert settings.session is not None
        self._settings = settings
        self._session: Session = settings.session
        self._as_json = as_json
        self._runs: dict[int, list[Applied]] = {}
        self._adding = Lock()  # subscriptions run in threads

    def applied(self, subscription: Subscription, applied: Applied) -> None:
        """Count a finished run of a subscription (launcher.Launcher)."""
        with self._adding:
            self._runs.setdefault(subscription.oid, []).append(applied)

    def show(self, names: Sequence[str], failures: Sequence[SyncFailure]) -> None:
        """Print the result of every subscription.

        Args:
            names: the chosen subscriptions; () for all.
        """
        if self._settings.is_quiet:
            return
        found = self._outcomes(failures)
        shown = [outcome for outcome in found if not names or outcome.name in names]
        if self._as_json:
            fields = [outcome.fields() for outcome in shown]
            self._settings.say(json.dumps(fields, indent=2, ensure_ascii=False))
        else:
            self._show_lines(found, shown)

    def show_round(self, failures: Sequence[SyncFailure]) -> None:
        """Print the results of subscriptions that failed, or had work since the last call.  JSON is
        printed on one line.
        """
        if any(run.is_something for runs in self._runs.values() for run in runs) or failures:
            found = self._outcomes(failures)
            shown = [item for item in found if item.is_something or item.error is not None]
            if self._as_json:
                fields = [outcome.fields() for outcome in shown]
                self._settings.say(json.dumps(fields, ensure_ascii=False))
            else:
                self._show_lines(found, shown)
        self._runs.clear()

    def _show_lines(self, known: Sequence[_Outcome], shown: Sequence[_Outcome]) -> None:
        count = Counter(outcome.name for outcome in known)
        for outcome in shown:
            self._settings.say(outcome.line(is_qualified=count[outcome.name] > 1))

    def _outcomes(self, failures: Sequence[SyncFailure]) -> list[_Outcome]:
        """Return the results for all subscriptions of the cluster, by database and name.  On a
        standby there are none, because it runs no subscriptions.
        """
        cluster = self._session.cluster
        if cluster.is_in_recovery:
            return []
        with self._session.read() as catalog:
            subscriptions = list_subscriptions(catalog, all_databases=True)
        errors = {failure.oid: failure.error for failure in failures}
        outcomes = []
        for subscription in subscriptions:
            database = cluster.database_name(subscription.database_oid)
            outcome = _Outcome(subscription.name, database, subscription.enabled)
            outcome.error = errors.get(subscription.oid)
            for run in self._runs.get(subscription.oid, ()):
                outcome.transactions += run.transactions
                outcome.rows += run.rows
                outcome.is_something |= run.is_something
                outcome.lsn = run.lsn if run.lsn is not None else outcome.lsn
            outcomes.append(outcome)
        return sorted(outcomes, key=lambda outcome: (outcome.database, outcome.name))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
