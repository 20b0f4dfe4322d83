"""An apply worker computes defaults and CHECK constraints by the settings of its database and of
the subscription's owner.  The publisher has the settings of its own database.
"""

from __future__ import annotations

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark  # large tables are written with Spark

_TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, at timestamptz,"
    " day date DEFAULT to_timestamp(1719777600)::date,"
    " CHECK (id = 3 OR at::date = '2024-07-01'))"
)
_SUBSCRIBE = "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p"


@pytest.mark.parametrize("of_owner", [True, False])
def test_the_zone_of_defaults_and_checks(
    source: Database, target: Database, of_owner: bool
) -> None:
    source.run(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz);"
        " INSERT INTO t VALUES (1, '2024-06-30 20:00+00'); CREATE PUBLICATION p FOR TABLE t"
    )
    whose = "ROLE owner" if of_owner else "DATABASE target"
    for statement in (
        "CREATE ROLE owner SUPERUSER",
        _TABLE,
        f"ALTER {whose} SET timezone = 'Australia/Sydney'",
        _SUBSCRIBE,
        "ALTER SUBSCRIPTION s OWNER TO owner",
    ):
        target.run(statement)
    assert target.sync() == []
    source.run("INSERT INTO t VALUES (2, '2024-07-01 13:59+00')")
    assert target.sync() == []
    assert target.rows("SELECT id, day FROM t ORDER BY id") == [
        ("1", "2024-07-01"),
        ("2", "2024-07-01"),
    ]
    source.run("INSERT INTO t VALUES (4, '2024-07-01 14:00+00')")
    (failure,) = target.sync()
    assert failure.error.sqlstate == "23514"


def test_the_zone_of_the_publisher(source: Database, target: Database) -> None:
    """It affects only values that become another type, which PostgreSQL converts through text."""
    source.run(
        "ALTER DATABASE source SET timezone = 'Asia/Tokyo';"
        " ALTER DATABASE source SET datestyle = 'SQL, DMY'"
    )
    source.run(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz, d date);"
        " INSERT INTO t VALUES (1, '2024-07-01 00:00+00', '2024-02-01');"
        " CREATE PUBLICATION p FOR TABLE t WHERE (d = '2024-02-01')"
    )
    target.run("CREATE TABLE t (id int PRIMARY KEY, at timestamptz, d text)")
    target.run(_SUBSCRIBE)
    assert target.sync() == []
    target.run("ALTER TABLE t ALTER at TYPE timestamp")
    source.run("INSERT INTO t VALUES (2, '2024-07-02 00:00+00', '2024-02-01')")
    (failure,) = target.sync()
    assert (failure.error.sqlstate, failure.error.message) == (
        "0A000",
        "conversion of type timestamptz to type timestamp is not supported with TimeZone"
        ' "Asia/Tokyo" of the publisher',
    )
    assert failure.error.hint == (
        "Add options=-ctimezone=UTC to the connection string of the subscription."
    )
    target.run("ALTER SUBSCRIPTION s CONNECTION 'dbname=source options=-ctimezone=UTC'")
    assert target.sync() == []
    assert target.rows("SELECT * FROM t ORDER BY id") == [
        ("1", "2024-07-01 00:00:00", "2024-02-01"),
        ("2", "2024-07-02 00:00:00", "2024-02-01"),
    ]
