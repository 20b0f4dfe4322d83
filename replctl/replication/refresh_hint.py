"""The statement that brings a table of a subscription back to its publisher's rows, as HINTs name
it."""

from __future__ import annotations

from replctl.types.quote import quote_identifier, quote_qualified_identifier


def refresh_statement(
    subscription: str, schema: str, table: str, option: str = "", *, is_disabled: bool = False
) -> str:
    """Return the statement that reconciles a table.

    s, public, t, replace = true
        ->  ALTER SUBSCRIPTION s REFRESH TABLE public.t WITH (replace = true);

    Args:
        option: of the statement, if it needs one.
        is_disabled: the error disables the subscription, which has to be enabled before.
    """
    name, target = quote_identifier(subscription), quote_qualified_identifier(schema, table)
    options = f" WITH ({option})" if option else ""
    refresh = f"ALTER SUBSCRIPTION {name} REFRESH TABLE {target}{options};"
    return f"ALTER SUBSCRIPTION {name} ENABLE; {refresh}" if is_disabled else refresh
