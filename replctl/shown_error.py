"""The part of a subscription's error that a role may see.

Copies and changes run with the privileges of other roles than the one that reads a subscription's
status.  The DETAIL, which may contain rows, is only shown to roles with the owner's privileges.
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
