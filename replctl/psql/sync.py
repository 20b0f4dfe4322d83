"""`\\sync`, AUTOSYNC and `replctl sync`: run subscriptions, and say which of them failed."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from replctl.errors import PostgresError
from replctl.psql.send_query import reporting_errors, showing_progress
from replctl.psql.settings import PsqlSettings


def sync_subscriptions(settings: PsqlSettings, names: Sequence[str]) -> bool:
    """Apply all that is committed on the publishers; whether every subscription got that far.

    Args:
        names: subscriptions to run, () for all that are enabled, in all databases of the cluster.
    """
    from replctl.launcher import sync

    session = settings.session
    assert session is not None
    with reporting_errors(settings, None) as succeeded, showing_progress(settings):
        failures = sync(session, names)
        for failure in failures:
            settings.messages.report(_with_subscription(failure.error, failure.subscription))
            succeeded.clear()
    return bool(succeeded)


def _with_subscription(error: PostgresError, subscription: str) -> PostgresError:
    """The error with a line of context that says whose it is."""
    shown = copy.copy(error)
    line = f'subscription "{subscription}"'
    shown.context = line if error.context is None else f"{error.context}\n{line}"
    return shown
