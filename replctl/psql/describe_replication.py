"""`\\dRp`, `\\dRp+` and `\\dRs`: publications and subscriptions (describe.c)."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog import pg_authid, pg_class, pg_namespace, pg_publication, pg_subscription
from replctl.catalog.aclchk import denied
from replctl.catalog.pg_publication import Publication, PublishedTable
from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.table_map import shown_pair
from replctl.errors import PostgresError
from replctl.lsn import format_lsn
from replctl.psql.described import Described
from replctl.psql.pattern import parse_pattern
from replctl.psql.print_content import Table
from replctl.psql.variables import PsqlError
from replctl.relation_name import RelationName
from replctl.types.array_ import array_out

_PUBLICATION_COLUMNS = [
    "Owner", "All tables", "Inserts", "Updates", "Deletes", "Truncates", "Via root",
]  # fmt: skip


def list_publications(
    target: Described, pattern: str | None, verbose: bool, show_system: bool
) -> bool:
    """Run `\\dRp`: list publications."""
    owners = pg_authid.role_names(target.catalog)
    rows = [
        [publication.name, *_properties(publication, owners)]
        for publication in _publications(target, pattern)
    ]
    target.print(Table(["Name", *_PUBLICATION_COLUMNS], rows, title="List of publications"))
    return True


def describe_publications(
    target: Described, pattern: str | None, verbose: bool, show_system: bool
) -> bool:
    """Run `\\dRp+`: print a table for each publication, with its contents below."""
    publications = _publications(target, pattern)
    if not publications and not target.settings.is_quiet:
        what = "any publications." if pattern is None else f'any publication named "{pattern}".'
        raise PsqlError(f"Did not find {what}")
    owners = pg_authid.role_names(target.catalog)
    for publication in publications:
        footers = [] if publication.all_tables else _contents(target, publication)
        target.print(
            Table(
                _PUBLICATION_COLUMNS,
                [_properties(publication, owners)],
                title=f"Publication {publication.name}",
                footers=footers or None,
            )
        )
    return bool(publications)


def _publications(target: Described, pattern: str | None) -> list[Publication]:
    parsed = parse_pattern(pattern, "", max_parts=1)
    return [
        publication
        for publication in pg_publication.list_publications(target.catalog)
        if parsed.matches("", publication.name)
    ]


def _properties(publication: Publication, owners: dict[int, str]) -> list[str | None]:
    flags = (
        publication.all_tables,
        publication.publish_insert,
        publication.publish_update,
        publication.publish_delete,
        publication.publish_truncate,
        publication.publish_via_partition_root,
    )
    return [owners.get(publication.owner), *("t" if flag else "f" for flag in flags)]


def _contents(target: Described, publication: Publication) -> list[str]:
    """Return the headings `Tables:` and `Tables from schemas:`, and a line for each item."""
    published = pg_publication.published_tables(target.catalog, publication_oid=publication.oid)
    relations = pg_class.load_relations(target.catalog, [item.relid for item in published])
    names = {oid: relation.relation_name for oid, relation in relations.items()}
    lines: list[str] = []
    if published:
        lines.append("Tables:")
        for item in sorted(published, key=lambda item: names[item.relid]):
            relation = relations[item.relid]
            details = membership_details(target, relation, item)
            lines.append(f'    "{relation.schema}.{relation.name}"{details}')
    schemas = pg_namespace.schema_names(target.catalog)
    listed = pg_publication.published_schemas(target.catalog, publication.oid)
    if listed:
        lines.append("Tables from schemas:")
        lines += [f'    "{name}"' for name in sorted(schemas[oid] for oid in listed)]
    return lines


def membership_details(target: Described, relation: pg_class.Relation, item: PublishedTable) -> str:
    """Return the column list and the row filter of a published table: ` (a, c) WHERE (c <> 1)`."""
    text = ""
    if item.columns is not None:
        text += f" ({', '.join(relation.column_at(attnum).name for attnum in item.columns)})"
    if item.row_filter is not None:
        from replctl.catalog.ruleutils import get_expr

        text += f" WHERE {get_expr(target.environment, relation, item.row_filter)}"
    return text


def list_subscriptions(
    target: Described, pattern: str | None, verbose: bool, show_system: bool
) -> bool:
    """Run `\\dRs` and `\\dRs+`: list the subscriptions of this database."""
    parsed = parse_pattern(pattern, "", max_parts=1)
    found = [
        subscription
        for subscription in pg_subscription.list_subscriptions(target.catalog)
        if parsed.matches("", subscription.name)
    ]
    if verbose and not target.environment.privileges.is_superuser:
        raise denied("table", "pg_subscription")  # connection strings may contain passwords
    owners = pg_authid.role_names(target.catalog)
    columns = ["Name", "Owner", "Enabled", "Publication"]
    if verbose:
        columns += [
            "Binary", "Streaming", "Two-phase commit", "Disable on error", "Origin",
            "Password required", "Run as owner?", "Failover", "Synchronous commit", "Conninfo",
            "Skip LSN",
        ]  # fmt: skip
    rows = [
        _subscription_row(subscription, owners, verbose)
        for subscription in sorted(found, key=lambda subscription: subscription.name)
    ]
    notes: list[str] = []
    for item in found if verbose else ():
        notes += own_options(item) + _retention(target, item) + _changed_tables(target, item)
    target.print(Table(columns, rows, title="List of subscriptions", notes=notes))
    return True


def own_options(subscription: Subscription) -> list[str]:
    """Return the lines below `\\dRs+` for replctl's own options that differ from their defaults."""
    resync, limit = subscription.resync, subscription.resync_max_delete
    lines = []
    if (resync, limit) != (pg_subscription.Resync.MANUAL, pg_subscription.RESYNC_MAX_DELETE):
        lines.append(f"    resync = {resync.value}, resync_max_delete = {limit}")
    if subscription.follow_schema:
        lines.append("    follow_schema = true")
    if subscription.table_map.pairs:
        lines.append("    table_map:")
        lines += [f"        {shown_pair(*pair)}" for pair in subscription.table_map.pairs]
    if not lines:
        return []
    return [f'Options of subscription "{subscription.name}" that are replctl\'s own:', *lines]


def _changed_tables(target: Described, subscription: Subscription) -> list[str]:
    """Return the lines below `\\dRs+` for tables whose row filter or column list has changed.  This
    contacts the publisher only if a table may have changed since its copy.
    """
    members = pg_subscription.subscription_relations(target.catalog, subscription.oid)
    if not any(member.definition is not None for member in members):
        return []
    from replctl.status import changed_tables

    return changed_lines(subscription.name, changed_tables(target.session, subscription))


def changed_lines(name: str, tables: Sequence[RelationName]) -> list[str]:
    """Return lines that list tables of a subscription.  Their row filter or column list has changed
    since they were copied.

    Args:
        tables: schema and name of each table.
    """
    if not tables:
        return []
    title = f'Tables of subscription "{name}" with a changed row filter or column list:'
    return [title, *(f'    "{schema}.{table}"' for schema, table in tables)]


def _retention(target: Described, subscription: Subscription) -> list[str]:
    """Return lines about required changes that the retention of published tables may remove; none
    if the publisher is unreachable.  PostgreSQL's psql has no such lines.
    """
    if subscription.slot_name is None:
        return []
    from replctl.open_node import open_publisher
    from replctl.psql.retention_lines import retention_lines

    try:
        with open_publisher(target.session, subscription, is_leaving=True) as publisher:
            tables = publisher.slots.retention(subscription.slot_name)
    except PostgresError:  # a list must not fail because a publisher is away
        return []
    target_of = subscription.table_map.target
    found = [(target_of(table.relation_name), table) for table in tables]
    return retention_lines(subscription.name, found, is_enabled=subscription.enabled)


def _subscription_row(
    subscription: Subscription, owners: dict[int, str], verbose: bool
) -> list[str | None]:
    row = [
        subscription.name,
        owners.get(subscription.owner),
        _flag(subscription.enabled),
        array_out(list(subscription.publications), ",", str),
    ]
    if verbose:
        row += [
            _flag(subscription.binary),
            subscription.streaming.name.lower(),
            subscription.two_phase_state,
            _flag(subscription.disable_on_error),
            subscription.origin,
            _flag(subscription.password_required),
            _flag(subscription.run_as_owner),
            _flag(subscription.failover),
            subscription.synchronous_commit,
            subscription.conninfo,
            format_lsn(subscription.skip_lsn),
        ]
    return row


def _flag(value: bool) -> str:
    return "t" if value else "f"
