"""The subscription option follow_schema, which is replctl's own, without Spark."""

from __future__ import annotations

from golden_script import answer_of

from replctl.catalog.pg_subscription import find_subscription
from replctl.dump.dumped_database import DumpOptions, dump_database
from replctl.psql.describe_replication import own_options
from replctl.session import Session

_CREATE = (
    "CREATE SUBSCRIPTION s CONNECTION 'dbname=x' PUBLICATION p"
    " WITH (connect = false, follow_schema = {})"
)


def _follows(session: Session) -> bool:
    with session.read() as catalog:
        found = find_subscription(catalog, "s")
    assert found is not None
    shown = "    follow_schema = true" in own_options(found)
    dumped = ", follow_schema = true" in "".join(dump_database(session, DumpOptions()))
    assert shown == dumped == found.follow_schema
    return found.follow_schema


def test_the_option_is_kept_changed_shown_and_dumped(session: Session) -> None:
    answer_of(session, _CREATE.format("on"))
    assert _follows(session)
    answer_of(session, "ALTER SUBSCRIPTION s SET (follow_schema = false)")
    assert not _follows(session)
    answer_of(session, "ALTER SUBSCRIPTION s SET (follow_schema)")
    assert _follows(session)
    assert answer_of(session, "ALTER SUBSCRIPTION s SET (follow_schema = 7)") == (
        "ERROR 42601: follow_schema requires a Boolean value",
    )
