"""Dump publications and subscriptions."""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog.pg_class import load_relations
from replctl.catalog.pg_publication import (
    Publication,
    list_publications,
    published_schemas,
    published_tables,
)
from replctl.catalog.pg_subscription import (
    RESYNC_MAX_DELETE,
    Resync,
    Streaming,
    Subscription,
    TwoPhaseState,
    list_subscriptions,
)
from replctl.catalog.ruleutils import column_names, get_expr
from replctl.dump.dialect import both_dialects
from replctl.dump.entry import Entry
from replctl.dump.source import Source
from replctl.types.quote import quote_identifier, quote_string

_ACTIONS = ("insert", "update", "delete", "truncate")


def publications(source: Source) -> Iterator[Entry]:
    """Yield publications and their contents (dumpPublication)."""
    for publication in list_publications(source.catalog):
        name = quote_identifier(publication.name)
        scope = " FOR ALL TABLES" if publication.all_tables else ""
        actions = ", ".join(action for action in _ACTIONS if publication.publishes(action))
        options = f"publish = '{actions}'"
        if publication.publish_via_partition_root:
            options += ", publish_via_partition_root = true"
        entry = Entry(
            "PUBLICATION",
            publication.name,
            f"CREATE PUBLICATION {name}{scope} WITH ({options});\n",
            owner=source.role_name(publication.owner),
            owned=f"PUBLICATION {name}",
        )
        yield source.commented(entry, "pg_publication", publication.oid, "PUBLICATION", name)
        yield from _tables(source, publication)
        yield from _schemas(source, publication)


def _tables(source: Source, publication: Publication) -> Iterator[Entry]:
    members = published_tables(source.catalog, publication_oid=publication.oid)
    relations = load_relations(source.catalog, [member.relid for member in members])
    for member in members:
        relation = relations[member.relid]
        text = f"ALTER PUBLICATION {quote_identifier(publication.name)}"
        text += f" ADD TABLE ONLY {relation.quoted_name}"
        if member.columns is not None:
            text += f" ({column_names(relation, member.columns)})"
        if member.row_filter is not None:
            condition = get_expr(source.environment, relation, member.row_filter)
            text += f" WHERE ({condition})"
        yield Entry(
            "PUBLICATION TABLE",
            f"{publication.name} {relation.name}",
            f"{text};\n",
            relation.schema,
            source.role_name(publication.owner),
            order=(publication.name, relation.name),
        )


def _schemas(source: Source, publication: Publication) -> Iterator[Entry]:
    for oid in published_schemas(source.catalog, publication.oid):
        name = source.schema_name(oid)
        yield Entry(
            "PUBLICATION TABLES IN SCHEMA",
            f"{publication.name} {name}",
            f"ALTER PUBLICATION {quote_identifier(publication.name)}"
            f" ADD TABLES IN SCHEMA {quote_identifier(name)};\n",
            name,
            source.role_name(publication.owner),
            order=(publication.name, name),
        )


def subscriptions(source: Source) -> Iterator[Entry]:
    """Yield subscriptions.  They do not connect when the dump is restored (dumpSubscription)."""
    for subscription in list_subscriptions(source.catalog):
        name = quote_identifier(subscription.name)
        names = ", ".join(map(quote_identifier, subscription.publications))
        head = (
            f"CREATE SUBSCRIPTION {name} CONNECTION {quote_string(subscription.conninfo)}"
            f" PUBLICATION {names} WITH ({_options(subscription)}"
        )
        entry = Entry(
            "SUBSCRIPTION",
            subscription.name,
            both_dialects(
                f"{head}{_own_options(subscription)});\n",
                f"{_lost_map(subscription)}{head});\n",
            ),
            owner=source.role_name(subscription.owner),
            owned=f"SUBSCRIPTION {name}",
        )
        yield source.commented(entry, "pg_subscription", subscription.oid, "SUBSCRIPTION", name)


def _lost_map(subscription: Subscription) -> str:
    """Return a comment about a table map, which PostgreSQL does not have; "" without a map.  A
    subscription in PostgreSQL would have other targets.
    """
    if not subscription.table_map.pairs:
        return ""
    shown = " ".join(str(subscription.table_map).split("\n"))
    return f"-- PostgreSQL has no table_map: do not enable the subscription. It is {shown}\n"


def _own_options(subscription: Subscription) -> str:
    """Return the subscription's options that PostgreSQL does not have, except default values."""
    text = ""
    if subscription.resync is not Resync.MANUAL:
        text += f", resync = {subscription.resync.value}"
    if subscription.resync_max_delete != RESYNC_MAX_DELETE:
        text += f", resync_max_delete = {subscription.resync_max_delete}"
    if subscription.table_map.pairs:
        text += f", table_map = {quote_string(str(subscription.table_map))}"
    if subscription.follow_schema:
        text += ", follow_schema = true"
    return text


def _options(subscription: Subscription) -> str:
    """Return the subscription's options in pg_dump's order, except default values."""
    slot = "NONE" if subscription.slot_name is None else quote_string(subscription.slot_name)
    text = f"connect = false, slot_name = {slot}"
    if subscription.binary:
        text += ", binary = true"
    if subscription.streaming != Streaming.OFF:
        text += f", streaming = {subscription.streaming.name.lower()}"
    if subscription.two_phase_state != TwoPhaseState.DISABLED:
        text += ", two_phase = on"
    if subscription.disable_on_error:
        text += ", disable_on_error = true"
    if not subscription.password_required:
        text += ", password_required = false"
    if subscription.run_as_owner:
        text += ", run_as_owner = true"
    if subscription.failover:
        text += ", failover = true"
    if subscription.synchronous_commit != "off":
        text += f", synchronous_commit = {quote_identifier(subscription.synchronous_commit)}"
    if subscription.origin != "any":
        text += f", origin = {subscription.origin}"
    return text
