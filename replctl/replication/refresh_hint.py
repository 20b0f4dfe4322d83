"""Write HINTs with the statement that makes the rows of a subscription's table equal to the
publisher's again.

Table names are those at the subscriber, because the statement uses them.
"""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.pg_subscription import Subscription
from replctl.errors import PostgresError
from replctl.relation_name import RelationName
from replctl.types.quote import quote_identifier, quote_qualified_identifier


def refresh_statement(
    subscription: str, table: RelationName, option: str = "", *, is_off: bool = False
) -> str:
    """Return the statement that reconciles a table.

    s, public.t, replace = true
        becomes  ALTER SUBSCRIPTION s REFRESH TABLE public.t WITH (replace = true);

    Args:
        option: an option of the statement, if it needs one.
        is_off: the subscription is disabled, or the error disables it.  Then the statement also
            enables it.
    """
    return _statement(subscription, [table], option, is_off=is_off)


def refresh_hint(subscription: Subscription, table: RelationName, option: str = "") -> str:
    """Return `refresh_statement` for an error that stops a subscription."""
    is_off = _is_off(subscription)
    return refresh_statement(subscription.name, table, option, is_off=is_off)


def refresh_all_hint(subscription: Subscription, tables: Sequence[RelationName]) -> str:
    """Return `refresh_hint` for several tables."""
    return _statement(subscription.name, tables, is_off=_is_off(subscription))


def publication_refresh(subscription: Subscription, option: str = "") -> str:
    """Return the statements with which a stopped subscription reads the list of published tables
    again.

    Args:
        option: an option of the last statement, if it needs one.
    """
    alter = f"ALTER SUBSCRIPTION {quote_identifier(subscription.name)}"
    enable = f"{alter} ENABLE; " if _is_off(subscription) else ""
    return f"{enable}{alter} REFRESH PUBLICATION{f' WITH ({option})' if option else ''};"


def unique_key_hint(subscription: Subscription, published: RelationName) -> str:
    """Return the HINT for a published table with duplicate or missing keys."""
    refresh = refresh_hint(subscription, subscription.table_map.target(published))
    return f"Give each row a key of its own at the publisher, then use {refresh}"


def value_hint(subscription: Subscription, published: RelationName) -> str:
    """Return the HINT for a published table with a value that its type does not allow."""
    refresh = refresh_hint(subscription, subscription.table_map.target(published))
    return f"Correct the value at the publisher, then use {refresh}"


def identity_hint(
    subscription: Subscription, published: RelationName, unpublished: Sequence[str]
) -> str:
    """Return the HINT for changes of other programs that lack the values that identify rows.

    Args:
        unpublished: the columns of the target's key that no publication sends.
    """
    refresh = refresh_hint(subscription, subscription.table_map.target(published))
    if unpublished:
        names = ", ".join(map(quote_identifier, unpublished))
        return (
            f"Publish ({names}), or give the target a primary key of published columns, then use"
            f" {refresh}"
        )
    table = quote_qualified_identifier(*published)
    return f"At the publisher, use ALTER TABLE {table} REPLICA IDENTITY FULL; then use {refresh}"


def widening_hint(subscription: Subscription, target: RelationName, column: str, type_: str) -> str:
    """Return the HINT for a published value that a column of a target is too narrow for.

    Args:
        type_: the SQL name of the published type.
    """
    table, name = quote_qualified_identifier(*target), quote_identifier(column)
    widen = f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {type_};"
    enable = f" ALTER SUBSCRIPTION {quote_identifier(subscription.name)} ENABLE;"
    return f"Use {widen}{enable if _is_off(subscription) else ''}"


def _statement(
    subscription: str, tables: Sequence[RelationName], option: str = "", *, is_off: bool
) -> str:
    name = quote_identifier(subscription)
    targets = ", ".join(quote_qualified_identifier(*table) for table in tables)
    options = ", ".join(filter(None, [option, "enabled = true" if is_off else ""]))
    shown = f" WITH ({options})" if options else ""
    return f"ALTER SUBSCRIPTION {name} REFRESH TABLE {targets}{shown};"


def _is_off(subscription: Subscription) -> bool:
    return subscription.disable_on_error or not subscription.enabled


def offer_reconcile(error: PostgresError, subscription: Subscription, table: RelationName) -> None:
    """Add the HINT that reconciles a table to an error, and allow an automatic reconcile of the
    table.
    """
    error.hint = refresh_hint(subscription, table)
    error.reconciles = (table,)
