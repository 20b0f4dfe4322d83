"""The subscription option table_map, which is replctl's own, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fix_psql import Psql
from golden_script import answer_of

from replctl.catalog.pg_class import relation_names
from replctl.catalog.pg_subscription import (
    RelState,
    SubscriptionRelation,
    find_subscription,
    subscription_relations,
    update_subscription_relation,
)
from replctl.catalog.transaction import Catalog
from replctl.dump.dumped_database import DumpOptions, dump_database
from replctl.execute import execute
from replctl.psql.describe_replication import own_options
from replctl.session import Session

_UNCONNECTED = "create subscription {} connection 'dbname=x' publication p with (connect = false{})"
_TABLES = """
    CREATE SCHEMA gold;
    CREATE TABLE gold.north (id int PRIMARY KEY);
    CREATE TABLE gold.south (id int PRIMARY KEY);
    CREATE VIEW gold.view AS SELECT 1 AS id;
"""


def _answer(session: Session, statement: str) -> list[str]:
    """Return the answer of a statement: notices, an error, rows, a tag."""
    return list(answer_of(session, statement))


def _run(session: Session, statement: str) -> tuple[str, ...]:
    answer = tuple(answer_of(session, statement))
    assert not any(line.startswith("ERROR") for line in answer), answer
    return answer


def _map(session: Session, name: str) -> str:
    with session.read() as catalog:
        found = find_subscription(catalog, name)
    assert found is not None
    return str(found.table_map)


@pytest.fixture
def pair(session: Session) -> tuple[Session, Session]:
    """Return a publisher and a subscriber.

    The publisher has tables orders, items and late, and publishes the first two.
    """
    for name in ("test_pub", "test_sub"):
        list(execute(session, f"CREATE DATABASE {name}"))
    publisher, subscriber = (
        Session.connect(session.cluster, name, "postgres") for name in ("test_pub", "test_sub")
    )
    list(execute(publisher, "CREATE TABLE orders (id int PRIMARY KEY)"))
    list(execute(publisher, "CREATE TABLE items (id int PRIMARY KEY)"))
    list(execute(publisher, "CREATE TABLE late (id int PRIMARY KEY)"))
    list(execute(publisher, "CREATE PUBLICATION p FOR TABLE orders, items"))
    list(execute(subscriber, _TABLES))
    list(execute(subscriber, "CREATE TABLE items (id int PRIMARY KEY)"))
    return publisher, subscriber


_CREATE = "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"


def _relations(catalog: Catalog) -> list[SubscriptionRelation]:
    """Return the tables of the subscription s."""
    found = find_subscription(catalog, "s")
    assert found is not None
    return subscription_relations(catalog, found.oid)


def _put_states(session: Session, state: RelState) -> None:
    with session.write() as catalog:
        for member in _relations(catalog):
            update_subscription_relation(catalog, replace(member, state=state))


def _members(session: Session) -> dict[str, str]:
    """Return the tables of the subscription s, and their states."""
    with session.read() as catalog:
        members = _relations(catalog)
        names = relation_names(catalog, [member.relid for member in members])
    return {".".join(names[member.relid]): member.state.value for member in members}


def test_the_option_is_kept(session: Session) -> None:
    _run(session, _UNCONNECTED.format("a", ""))
    assert _map(session, "a") == ""
    _run(session, _UNCONNECTED.format("b", ", table_map = 'orders = gold.\"N 1\"'"))
    assert _map(session, "b") == 'public.orders = gold."N 1"'
    _run(session, "alter subscription b set (table_map = '')")
    assert _map(session, "b") == ""


def test_a_target_without_a_schema_is_looked_up(session: Session) -> None:
    _run(session, _TABLES)
    _run(session, "SET search_path = gold, public")
    _run(session, _UNCONNECTED.format("a", ", table_map = 'orders = north'"))
    assert _map(session, "a") == "public.orders = gold.north"
    assert _answer(session, "alter subscription a set (table_map = 'orders = missing')") == [
        'ERROR 42P01: relation "missing" does not exist'
    ]


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ("table_map", ["ERROR 42601: table_map requires a parameter"]),
        ("table_map = 'a'",
         ['ERROR 22023: invalid value for parameter "table_map": "a"',
          "DETAIL: syntax error at end of input"]),
        ("table_map = 'a = x.b, a = x.c'",
         ['ERROR 42710: published table "public.a" used more than once in table_map']),
    ],
)  # fmt: skip
def test_values_that_are_refused(session: Session, options: str, answer: list[str]) -> None:
    _run(session, _UNCONNECTED.format("a", ""))
    assert _answer(session, f"alter subscription a set ({options})") == answer


@pytest.mark.parametrize(
    ("map_", "message"),
    [
        ("orders = gold.missing", 'ERROR 42P01: relation "gold.missing" does not exist'),
        ("orders = nowhere.t", 'ERROR 3F000: schema "nowhere" does not exist'),
        ("orders = gold.view",
         'ERROR 42809: cannot use relation "gold.view" as logical replication target'),
        ("orders = public.items",
         'ERROR 22023: published tables "public.items" and "public.orders" have the same target'
         ' "public.items"'),
        ("items = gold.north", 'ERROR 42P01: relation "public.orders" does not exist'),
    ],
)  # fmt: skip
def test_targets_that_are_refused(pair: tuple[Session, Session], map_: str, message: str) -> None:
    _publisher, subscriber = pair
    answer = _answer(subscriber, f"{_CREATE} WITH (table_map = '{map_}')")
    assert answer[0] == message


def test_a_temporary_table_is_no_target(pair: tuple[Session, Session]) -> None:
    _publisher, subscriber = pair
    _run(subscriber, "CREATE TEMP TABLE own (id int PRIMARY KEY)")
    answer = _answer(subscriber, f"{_CREATE} WITH (table_map = 'orders = own')")
    assert answer[0].endswith('.own" as logical replication target')
    assert answer[1] == "DETAIL: This operation is not supported for temporary tables."


def test_tables_enter_under_their_targets(pair: tuple[Session, Session]) -> None:
    publisher, subscriber = pair
    answer = _run(
        subscriber,
        f"{_CREATE} WITH (table_map = 'orders = gold.north, late = gold.south, typo = gold.view')",
    )
    assert 'WARNING 42704: table "public.late" of table_map is not published' in answer
    assert 'WARNING 42704: table "public.typo" of table_map is not published' in answer
    assert _members(subscriber) == {"gold.north": "i", "public.items": "i"}
    _run(publisher, "ALTER PUBLICATION p ADD TABLE late")
    _run(subscriber, "ALTER SUBSCRIPTION s REFRESH PUBLICATION")
    assert _members(subscriber) == {"gold.north": "i", "public.items": "i", "gold.south": "i"}
    _run(publisher, "ALTER PUBLICATION p DROP TABLE orders")
    _run(subscriber, "ALTER SUBSCRIPTION s REFRESH PUBLICATION")
    assert _members(subscriber) == {"public.items": "i", "gold.south": "i"}


def test_the_map_changes_for_tables_that_are_not_synchronized(
    pair: tuple[Session, Session],
) -> None:
    _publisher, subscriber = pair
    _run(subscriber, f"{_CREATE} WITH (table_map = 'orders = gold.north')")
    _run(subscriber, "ALTER SUBSCRIPTION s SET (table_map = 'orders = gold.south')")
    assert _members(subscriber) == {"gold.south": "i", "public.items": "i"}
    _run(
        subscriber,
        "ALTER SUBSCRIPTION s SET (table_map = 'orders = public.items, items = gold.south')",
    )
    assert _members(subscriber) == {"gold.south": "i", "public.items": "i"}
    answer = _answer(subscriber, "ALTER SUBSCRIPTION s SET (table_map = 'items = gold.south')")
    assert answer == ['ERROR 42P01: relation "public.orders" does not exist']
    assert _map(subscriber, "s") == "public.orders = public.items, public.items = gold.south"


def test_the_map_stays_for_tables_that_are_synchronized(pair: tuple[Session, Session]) -> None:
    _publisher, subscriber = pair
    _run(subscriber, f"{_CREATE} WITH (copy_data = false, table_map = 'orders = gold.north')")
    refused = [
        'ERROR 55000: cannot change the target of published table "public.orders"',
        'DETAIL: Subscription "s" has synchronized it: public.orders = gold.north.',
        "HINT: Use DROP/CREATE SUBSCRIPTION.",
    ]
    for map_, state in (
        ("", RelState.READY),
        ("orders = gold.south", RelState.READY),
        ("late = gold.north, orders = gold.south", RelState.READY),
        ("orders = gold.south", RelState.SYNCDONE),
    ):
        _put_states(subscriber, state)
        answer = _answer(subscriber, f"ALTER SUBSCRIPTION s SET (table_map = '{map_}')")
        assert answer == refused
    _put_states(subscriber, RelState.READY)
    answer = _answer(
        subscriber,
        "ALTER SUBSCRIPTION s SET (table_map = 'orders = gold.north, late = public.items')",
    )
    assert answer[0] == 'ERROR 55000: cannot change the target of published table "public.items"'
    _run(
        subscriber,
        "ALTER SUBSCRIPTION s SET (table_map = 'late = gold.south, orders = gold.north')",
    )
    assert _members(subscriber) == {"gold.north": "r", "public.items": "r"}


def test_a_block_cannot_change_the_map(session: Session) -> None:
    _run(session, _UNCONNECTED.format("a", ""))
    _run(session, "BEGIN")
    assert _answer(session, "ALTER SUBSCRIPTION a SET (table_map = '')") == [
        "ERROR 25001: ALTER SUBSCRIPTION ... SET (table_map) cannot run inside a transaction block"
    ]


def test_a_dump_has_the_map_for_replctl_alone(session: Session) -> None:
    _run(session, _UNCONNECTED.format("a", ", table_map = 'a = gold.\"it''s\", b = gold.c'"))
    script = "".join(dump_database(session, DumpOptions(subscriptions=True)))
    statement = (
        "CREATE SUBSCRIPTION a CONNECTION 'dbname=x' PUBLICATION p"
        " WITH (connect = false, slot_name = 'a'"
    )
    value = 'public.a = gold."it\'s", public.b = gold.c'
    quoted = value.replace("'", "''")
    assert (
        f"\\if :is_replctl\n{statement}, table_map = '{quoted}');\n"
        "\\else\n-- PostgreSQL has no table_map: do not enable the subscription. It is"
        f" {value}\n{statement});\n\\endif\n"
    ) in script


def test_dRs_lists_the_pairs(session: Session) -> None:
    _run(session, _UNCONNECTED.format("a", ", resync = auto, table_map = 'x = gold.y, z = gold.w'"))
    with session.read() as catalog:
        found = find_subscription(catalog, "a")
    assert found is not None
    assert own_options(found) == [
        'Options of subscription "a" that are replctl\'s own:',
        "    resync = auto, resync_max_delete = 10",
        "    table_map:",
        "        public.x = gold.y",
        "        public.z = gold.w",
    ]


def test_status_and_verify_have_both_names(psql: Psql) -> None:
    made = psql(
        "-X",
        "-q",
        script="""
CREATE DATABASE test_pub;
CREATE DATABASE test_sub;
\\c test_pub
CREATE TABLE orders (id int PRIMARY KEY);
CREATE TABLE items (id int PRIMARY KEY);
CREATE PUBLICATION p FOR TABLE orders, items;
\\c test_sub
CREATE SCHEMA gold;
CREATE TABLE gold."North" (id int PRIMARY KEY);
CREATE TABLE items (id int PRIMARY KEY);
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p
  WITH (table_map = 'orders = gold."North"');
""",
    )
    assert "ERROR" not in made.stderr
    status = psql("status")
    assert ' | public.orders = gold."North" | ' in status.stdout
    assert " | public.items " in status.stdout
    (found,) = json.loads(psql("status", "--json").stdout)
    orders, items = sorted(found["tables"], key=lambda table: table["schema"])
    assert (orders["schema"], orders["name"]) == ("gold", "North")
    assert orders["published"] == {"schema": "public", "name": "orders"}
    assert items["published"] == {"schema": "public", "name": "items"}
    for name in ("orders", 'gold."North"', "public.orders"):
        (found,) = json.loads(psql("verify", "s", name, "--json").stdout)
        (table,) = found["tables"]
        assert (table["schema"], table["name"]) == ("gold", "North")
        assert table["published"] == {"schema": "public", "name": "orders"}
        assert table["error"]["message"] == 'table "gold.North" is not synchronized yet'
    unknown = psql("verify", "s", "nothing")
    assert 'DETAIL:  Its tables are "public.items", "gold.North".' in unknown.stderr


def test_the_hint_of_two_tables_with_one_target(pair: tuple[Session, Session]) -> None:
    _publisher, subscriber = pair
    create = f"{_CREATE} WITH (table_map = '{{}}')"
    answer = _answer(subscriber, create.format("orders = public.items"))
    assert answer[-1] == "HINT: Give each of them a target of its own in table_map."
    _run(subscriber, create.format("orders = public.items, items = gold.north"))
    assert _members(subscriber) == {"public.items": "i", "gold.north": "i"}


def test_the_hint_of_a_synchronized_table(pair: tuple[Session, Session]) -> None:
    _publisher, subscriber = pair
    create = f"{_CREATE} WITH (copy_data = false, table_map = '{{}}')"
    _run(subscriber, create.format("orders = gold.north"))
    answer = _answer(subscriber, "ALTER SUBSCRIPTION s SET (table_map = 'orders = gold.south')")
    assert answer[-1] == "HINT: Use DROP/CREATE SUBSCRIPTION."
    _run(subscriber, "DROP SUBSCRIPTION s")
    _run(subscriber, create.format("orders = gold.south"))
    assert _members(subscriber) == {"gold.south": "r", "public.items": "r"}
