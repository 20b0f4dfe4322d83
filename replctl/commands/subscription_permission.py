"""Check the permissions to create, change and run a subscription (subscriptioncmds.c)."""

from __future__ import annotations

from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_authid import CREATE_SUBSCRIPTION
from replctl.catalog.pg_subscription import Subscription
from replctl.errors import InsufficientPrivilege
from replctl.open_node import check_password


def check_creation(privileges: Privileges, database: str, subscription: Subscription) -> None:
    """Check that a role may create a subscription.

    Raises:
        InsufficientPrivilege: it may not create subscriptions, not in this database, or not without
            a password.
        PasswordRequired: the connection string has none (2F003).
    """
    if not privileges.acts_for(CREATE_SUBSCRIPTION):
        raise InsufficientPrivilege(
            "permission denied to create subscription",
            detail='Only roles with privileges of the "pg_create_subscription" role may create'
            " subscriptions.",
        )
    privileges.check_database(database, "C")
    check_password_option(privileges, subscription)
    check_password(privileges, subscription)


def check_subscription_owner(privileges: Privileges, subscription: Subscription) -> None:
    """Check that the current role owns the subscription.

    Raises:
        InsufficientPrivilege: the subscription is another's.
    """
    privileges.check_owner(subscription.owner, "subscription", subscription.name)


def check_password_option(privileges: Privileges, subscription: Subscription) -> None:
    """Check that the current role may set password_required.

    Raises:
        InsufficientPrivilege: password_required is false, and that is for superusers to say.
    """
    if not subscription.password_required and not privileges.is_superuser:
        raise InsufficientPrivilege(
            "password_required=false is superuser-only",
            hint="Subscriptions with the password_required option set to false may only be created"
            " or modified by the superuser.",
        )


def check_password_requirement(privileges: Privileges, subscription: Subscription) -> None:
    """Check that the current role may change a subscription without a password.

    Raises:
        InsufficientPrivilege: it is a subscription without a password, which superusers alone may
            change.
    """
    check_password_option(privileges, subscription)
