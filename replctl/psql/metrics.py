"""The metrics of `replctl sync --watch --metrics-port N` for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Summary, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from replctl.chosen_subscriptions import ChosenSubscriptions
from replctl.errors import PostgresError
from replctl.psql.variables import PsqlError
from replctl.session import Session
from replctl.status import SubscriptionStatus, status_of

if TYPE_CHECKING:
    from replctl.apply_worker import Applied
    from replctl.catalog.pg_subscription import Subscription
    from replctl.launcher import SyncFailure

_LABELS = ("database", "subscription")


class Metrics:
    """Counts the changes and failures of rounds.  Computes the lag of subscriptions at each
    request.
    """

    def __init__(self, session: Session, names: Sequence[str]) -> None:
        self._cluster = session.cluster
        self.registry = CollectorRegistry()
        self._transactions = Counter(
            "replctl_applied_transactions", "Transactions applied.", _LABELS, registry=self.registry
        )
        self._changes = Counter(
            "replctl_applied_changes",
            "Changes applied. All changes of one transaction to one table count as one.",
            _LABELS,
            registry=self.registry,
        )
        self._errors = Counter(
            "replctl_errors", "Attempts that failed.", _LABELS, registry=self.registry
        )
        self.rounds = Summary(
            "replctl_round_seconds", "Time that rounds take.", registry=self.registry
        )
        cluster, name = session.cluster, session.database_name
        own = Session.connect(cluster, name, session.login_name, is_worker=True)
        self.registry.register(_LagCollector(own, names))

    def applied(self, subscription: Subscription, applied: Applied) -> None:
        """Count the changes of a finished run."""
        labels = (self._cluster.database_name(subscription.database_oid), subscription.name)
        self._transactions.labels(*labels).inc(applied.transactions)
        self._changes.labels(*labels).inc(applied.changes)
        self._errors.labels(*labels).inc(0)

    def failed(self, failures: Sequence[SyncFailure]) -> None:
        """Count failed subscriptions."""
        for failure in failures:
            self._errors.labels(failure.database, failure.subscription).inc()


class _LagCollector(Collector):
    def __init__(self, session: Session, names: Sequence[str]) -> None:
        self._session = session
        self._chosen = ChosenSubscriptions(session, names)

    def describe(self) -> Iterable[Metric]:
        """Return no metrics, so that the registration does not compute them."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of `replctl status`.  Leave them out if the catalog cannot be read."""
        up = GaugeMetricFamily("replctl_up", "Whether the catalog could be read.")
        try:
            found = status_of(self._session, self._chosen.current())
        except PostgresError:  # the rounds report it; the counters need no catalog
            up.add_metric((), 0.0)
            yield up
            return
        up.add_metric((), 1.0)
        yield up
        yield from self._gauges(found)

    @staticmethod
    def _gauges(found: Sequence[SubscriptionStatus]) -> Iterable[Metric]:
        gauges = {
            name: GaugeMetricFamily(f"replctl_{name}", text, labels=_LABELS)
            for name, text in (
                ("lag_bytes", "Bytes of the publisher's log that are not applied."),
                ("lag_transactions", "Transactions that are not applied."),
                ("lag_rows", "Rows that these change, before row filters."),
                ("lag_seconds", "Age of the oldest commit that is not applied."),
                ("subscription_enabled", "Whether the subscription is enabled."),
                ("subscription_broken", "Whether its last attempt has failed."),
            )
        }
        for status in found:
            labels = (status.database, status.name)
            lag = status.lag
            for name, value in (
                ("lag_bytes", lag.size),
                ("lag_transactions", lag.transactions),
                ("lag_rows", lag.rows),
                ("lag_seconds", lag.seconds),
                ("subscription_enabled", status.enabled),
                ("subscription_broken", status.state == "broken"),
            ):
                if value is not None:
                    gauges[name].add_metric(labels, float(value))
        return gauges.values()


@contextmanager
def serving(metrics: Metrics, address: str, port: int) -> Iterator[int]:
    """Serve the metrics to Prometheus while the `with` block runs, and yield the port.

    Args:
        port: the port; 0 for any free port.

    Raises:
        PsqlError: the address cannot be used.
    """
    try:
        server, thread = start_http_server(port, address, metrics.registry)
    except OSError as error:
        reason = error.strerror or str(error)
        raise PsqlError(f"could not listen at {address}:{port}: {reason}") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
