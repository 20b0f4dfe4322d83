"""The statement that brings a table of a subscription back to its publisher's rows, as HINTs name
it."""

from __future__ import annotations

from replctl.types.quote import quote_identifier, quote_qualified_identifier


def refresh_statement(
    subscription: str, schema: str, table: str, *, is_disabled: bool = False
) -> str:
    """Return the statement that synchronizes a table again.

    s, public, t  ->  ALTER SUBSCRIPTION s REFRESH TABLE public.t;

    Args:
        is_disabled: the error disables the subscription, which has to be enabled before.
    """
    name = quote_identifier(subscription)
    refresh = (
        f"ALTER SUBSCRIPTION {name} REFRESH TABLE {quote_qualified_identifier(schema, table)};"
    )
    return f"ALTER SUBSCRIPTION {name} ENABLE; {refresh}" if is_disabled else refresh
