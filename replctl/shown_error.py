"""Restrict a subscription's error to the part that a role may see.

A role that reads the status of a subscription may have fewer privileges than the subscription's
owner.  The DETAIL may contain rows, so only roles with the owner's privileges see it.
"""

from __future__ import annotations

import copy

from replctl.catalog.pg_subscription import Subscription
from replctl.errors import PostgresError
from replctl.session import Session


def may_see_rows(session: Session, subscription: Subscription) -> bool:
    """Return whether the role of a session may see rows in the errors of a subscription."""
    with session.read() as catalog:
        return session.privileges(catalog).acts_for(subscription.owner)


def shown_error(
    session: Session, subscription: Subscription, error: PostgresError
) -> PostgresError:
    """Return the part of an error that a session's role may see."""
    if error.detail is None or may_see_rows(session, subscription):
        return error
    shown = copy.copy(error)
    shown.detail = None
    return shown
