"""The roles that see rows in the errors of subscriptions."""

from __future__ import annotations

import pytest

from replctl.catalog.pg_subscription import Subscription, find_subscription
from replctl.catalog.subscription_error import SubscriptionError, put_subscription_error
from replctl.errors import UniqueViolation
from replctl.execute import execute
from replctl.session import Session
from replctl.shown_error import shown_error
from replctl.status import subscription_status

_SETUP = """
CREATE ROLE owner SUPERUSER;
CREATE ROLE friend LOGIN IN ROLE owner;
CREATE ROLE low LOGIN;
CREATE SUBSCRIPTION s CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false);
ALTER SUBSCRIPTION s OWNER TO owner;
"""
_ERROR = UniqueViolation(
    'duplicate key value violates unique constraint "t_pkey"',
    detail="Key (a)=(secret) already exists.",
    context="processing remote data",
)


@pytest.fixture
def subscription(session: Session) -> Subscription:
    list(execute(session, _SETUP))
    with session.write() as catalog:
        found = find_subscription(catalog, "s")
        assert found is not None
        put_subscription_error(catalog.connection, found.oid, _ERROR)
    return found


@pytest.mark.parametrize(
    ("role", "sees"), [("postgres", True), ("friend", True), ("owner", True), ("low", False)]
)
def test_rows_are_for_who_acts_for_the_owner(
    session: Session, subscription: Subscription, role: str, *, sees: bool
) -> None:
    list(execute(session, f"SET SESSION AUTHORIZATION {role}"))
    shown = shown_error(session, subscription, _ERROR)
    assert (shown.message, shown.sqlstate) == (_ERROR.message, "23505")
    assert shown.detail == (_ERROR.detail if sees else None)
    assert _ERROR.detail is not None
    (status,) = subscription_status(session, ["s"])
    assert isinstance(status.error, SubscriptionError)
    assert status.error.message.startswith(_ERROR.message)
    assert ("secret" in status.error.message) == sees
