"""Disable a subscription after an error if its option disable_on_error is set.

Source: DisableSubscriptionAndExit() in worker.c.
"""

from __future__ import annotations

from replctl.catalog.pg_subscription import Subscription
from replctl.errors import Notice
from replctl.lake.subscriber import LakeSubscriber


def note_error(subscriber: LakeSubscriber, subscription: Subscription, kind: str) -> bool:
    """Count an error of a subscription, and disable the subscription if disable_on_error is set.

    Args:
        kind: sync or apply.

    Returns:
        True if it was disabled.
    """
    subscriber.state.note_error(kind, disable=subscription.disable_on_error)
    if subscription.disable_on_error:
        message = f'subscription "{subscription.name}" has been disabled because of an error'
        subscriber.state.report(Notice("LOG", message))
    return subscription.disable_on_error
