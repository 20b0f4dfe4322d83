"""`replctl schema`: print the statements that a subscription with create_tables = true runs."""

from __future__ import annotations

import sys

from replctl.catalog.pg_subscription import Subscription
from replctl.commands.create_missing import missing_statements
from replctl.commands.subscription_map import given_map
from replctl.conninfo import parse_conninfo
from replctl.errors import UndefinedObject
from replctl.open_node import open_publisher
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.reporting import reporting_errors


def show_schema(
    settings: PsqlSettings,
    conninfo: str,
    publications: tuple[str, ...],
    table_map: str,
    table_options: str,
) -> bool:
    """Print the statements that create those published tables that the session's database lacks.

    Args:
        conninfo: the publisher's connection string, as in CREATE SUBSCRIPTION.
        table_map, table_options: the options of CREATE SUBSCRIPTION; "" for none.

    Returns:
        True if all statements were printed.  False after an error, which was reported.
    """
    session = settings.session
    assert session is not None
    with reporting_errors(settings, None) as succeeded:
        parse_conninfo(conninfo)
        reader = Subscription(
            0, session.database_oid, "", session.role_oid, conninfo, publications, None,
            enabled=False, table_map=given_map(session, table_map, creates=True),
        )  # fmt: skip
        with open_publisher(session, reader) as publisher:
            missing = publisher.tables.missing_publications(publications)
            if missing:
                raise UndefinedObject(f'publication "{missing[0]}" does not exist')
            publisher.slots.current_lsn()  # record the columns that other programs have changed
            definitions = publisher.tables.definitions(publications)
        target = reader.table_map.target
        statements = missing_statements(session, definitions, target, table_options)
        sys.stdout.write("\n".join(f"{statement};\n" for statement in statements))
    return bool(succeeded)
