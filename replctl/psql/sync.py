"""`\\sync`, AUTOSYNC and `replctl sync`: run subscriptions, and report failures."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from replctl.errors import PostgresError
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.reporting import reporting_errors, showing_progress
from replctl.psql.stop_signals import StopSignals
from replctl.psql.variables import PsqlError

if TYPE_CHECKING:
    from replctl.apply_worker import Applied
    from replctl.catalog.pg_subscription import Subscription
    from replctl.launcher import SyncFailure
    from replctl.psql.metrics import Metrics
    from replctl.psql.sync_report import SyncReport
    from replctl.session import Session
    from replctl.watch import Watch


def sync_subscriptions(
    settings: PsqlSettings, names: Sequence[str], report: SyncReport | None = None
) -> bool:
    """Bring subscriptions to the end of their publishers' logs, and return whether all succeeded.

    Args:
        names: subscriptions to run; () for all that are enabled, in all databases of the cluster.
        report: prints the result; without it, only failures are printed.
    """
    from replctl.launcher import sync

    session = settings.session
    assert session is not None
    with reporting_errors(settings, None) as succeeded:
        with showing_progress(settings):
            if report is None:
                failures = sync(session, names)
            else:
                failures = sync(session, names, on_applied=report.applied)
        if report is not None:
            report.show(names, failures)
        report_failures(settings, failures)
        if failures:
            succeeded.clear()
    return bool(succeeded)


def watch_subscriptions(
    settings: PsqlSettings,
    names: Sequence[str],
    interval: float,
    report: SyncReport,
    metrics_at: tuple[str, int] | None = None,
) -> bool:
    """Apply commits of the publishers repeatedly until SIGTERM or SIGINT, and then finish the
    current batch.

    Args:
        names: see `sync_subscriptions`.
        interval: seconds between two rounds.
        report: prints the results of rounds.
        metrics_at: address and port for Prometheus.

    Returns:
        True if it ran until a signal stopped it; False after an error, for example if somebody
        replaced catalog.db.
    """
    session = settings.session
    assert session is not None
    with ExitStack() as stack:
        signals = stack.enter_context(StopSignals())
        try:
            metrics = _metrics(session, names, metrics_at, stack)
        except PsqlError as error:  # such as a port in use
            settings.messages.error(str(error))
            return False
        with reporting_errors(settings, None) as succeeded:
            watch = _watch(session, names, interval, signals, report, metrics)
        if not succeeded:
            return False
        stack.callback(watch.close)
        while not signals.has_come:
            with ExitStack() as timing:
                if metrics is not None:
                    timing.enter_context(metrics.rounds.time())
                with reporting_errors(settings, None) as succeeded:
                    with showing_progress(settings):
                        failures = watch.round()
                    report.show_round(failures)
                    report_failures(settings, failures)
                    if metrics is not None:
                        metrics.failed(failures)
            if not succeeded and watch.must_end:
                return False
            signals.sleep(interval)
    return True


def _watch(
    session: Session,
    names: Sequence[str],
    interval: float,
    signals: StopSignals,
    report: SyncReport,
    metrics: Metrics | None,
) -> Watch:
    from replctl.watch import Watch

    def is_stopping() -> bool:
        return signals.has_come

    def on_applied(subscription: Subscription, applied: Applied) -> None:
        report.applied(subscription, applied)
        if metrics is not None:
            metrics.applied(subscription, applied)

    return Watch(session, names, interval, is_stopping=is_stopping, on_applied=on_applied)


def _metrics(
    session: Session, names: Sequence[str], at: tuple[str, int] | None, stack: ExitStack
) -> Metrics | None:
    """Return the metrics for Prometheus, if requested, and serve them until `stack` is closed."""
    if at is None:
        return None
    from replctl.psql.metrics import Metrics, serving

    metrics = Metrics(session, names)
    stack.enter_context(serving(metrics, *at))
    return metrics


def report_failures(settings: PsqlSettings, failures: Sequence[SyncFailure]) -> None:
    """Print the errors of subscriptions."""
    for failure in failures:
        settings.messages.report(with_subscription(failure.error, failure.subscription))


def with_subscription(error: PostgresError, subscription: str) -> PostgresError:
    """Return the error with a line in its CONTEXT that names the subscription."""
    shown = copy.copy(error)
    line = f'subscription "{subscription}"'
    shown.context = line if error.context is None else f"{error.context}\n{line}"
    return shown
