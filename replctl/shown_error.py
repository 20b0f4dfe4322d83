"""The part that a role is shown of an error that a subscription has run into.

Copies and changes are applied with the rights of other roles than the one that asks how a
subscription is: the DETAIL, which may have rows of tables, is for those who have the privileges of
its owner.
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
    """Return an error as the role of a session may see it."""
    if error.detail is None or may_see_rows(session, subscription):
        return error
    shown = copy.copy(error)
    shown.detail = None
    return shown
