"""Check the permissions to create, change and run a subscription (subscriptioncmds.c)."""

from __future__ import annotations

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_authid import CREATE_SUBSCRIPTION
from replctl.catalog.pg_subscription import Subscription
from replctl.errors import InsufficientPrivilege


def check_creation(privileges: Privileges, database: str, subscription: Subscription) -> None:
    """Check that a role may create a subscription, before its connection string is read.

    Raises:
        InsufficientPrivilege: the role may not create subscriptions, may not create objects in the
            database, or may not set password_required to false.
    """
    if not privileges.acts_for(CREATE_SUBSCRIPTION):
        raise InsufficientPrivilege(
            "permission denied to create subscription",
            detail='Only roles with privileges of the "pg_create_subscription" role may create'
            " subscriptions.",
        )
    privileges.check_database(database, Privilege.CREATE)
    check_password_option(privileges, subscription)


def check_subscription_owner(privileges: Privileges, subscription: Subscription) -> None:
    """Check that the current role owns the subscription.

    Raises:
        InsufficientPrivilege: another role owns the subscription.
    """
    privileges.check_owner(subscription.owner, "subscription", subscription.name)


def check_password_option(privileges: Privileges, subscription: Subscription) -> None:
    """Check that the current role may set a subscription's value of password_required.

    Raises:
        InsufficientPrivilege: the value is false, which only superusers may choose.
    """
    if not subscription.password_required and not privileges.is_superuser:
        raise InsufficientPrivilege(
            "password_required=false is superuser-only",
            hint="Subscriptions with the password_required option set to false may only be created"
            " or modified by the superuser.",
        )


def check_password_requirement(privileges: Privileges, subscription: Subscription) -> None:
    """Check that password_required does not forbid the current role to change a subscription.

    Raises:
        InsufficientPrivilege: password_required is false, and the role is not a superuser.
    """
    check_password_option(privileges, subscription)
