"""CREATE SUBSCRIPTION ... WITH (create_tables = true): the tables that it creates, the privileges
that it needs, and failures, after which nothing remains."""

from __future__ import annotations

import pytest
from fix_replication import Database

from replctl.catalog.cluster import Cluster
from replctl.errors import PostgresError
from replctl.execute import execute
from replctl.session import Session

_PUBLISHED = """
CREATE SCHEMA sales;
CREATE TYPE sales.mood AS ENUM ('good', 'bad');
CREATE TABLE sales.orders (id int PRIMARY KEY, m sales.mood, hidden text);
CREATE TABLE t (a int NOT NULL, b int);
CREATE PUBLICATION p FOR TABLE sales.orders (id, m), t;
"""
_SUBSCRIBE = "CREATE SUBSCRIPTION s CONNECTION 'dbname=shop' PUBLICATION p WITH ({})"
_COLUMNS = """
SELECT nspname || '.' || relname, string_agg(attname, ' ' ORDER BY attnum)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_attribute ON attrelid = c.oid
WHERE relkind = 'r' AND attnum > 0 AND c.oid >= 16384 GROUP BY 1 ORDER BY 1
"""
_LEFT = """
SELECT (SELECT count(*) FROM pg_class WHERE relkind = 'r' AND oid >= 16384),
    (SELECT count(*) FROM pg_type WHERE typname = 'mood'),
    (SELECT count(*) FROM pg_namespace WHERE nspname IN ('sales', 'gold')),
    (SELECT count(*) FROM pg_subscription), (SELECT count(*) FROM pg_replication_slots)
"""


def _database(cluster: Cluster, name: str, role: str = "postgres") -> Database:
    return Database(Session.connect(cluster, name, role))


@pytest.fixture
def shop(cluster: Cluster) -> Database:
    _database(cluster, "postgres").run("CREATE DATABASE shop")
    _database(cluster, "postgres").run("CREATE DATABASE branch")
    database = _database(cluster, "shop")
    database.run(_PUBLISHED)
    return database


@pytest.fixture
def branch(shop: Database, cluster: Cluster) -> Database:
    return _database(cluster, "branch")


def _error(database: Database, statement: str) -> PostgresError:
    with pytest.raises(PostgresError) as caught:
        list(execute(database.session, statement))
    return caught.value


def test_missing_tables_are_made(branch: Database) -> None:
    branch.run(_SUBSCRIBE.format("create_tables = true"))
    assert branch.rows(_COLUMNS) == [("public.t", "a b"), ("sales.orders", "id m")]
    assert branch.rows("SELECT srrelid::regclass::text FROM pg_subscription_rel ORDER BY 1") == [
        ("sales.orders",),
        ("t",),
    ]
    assert branch.session.block is None


def test_a_table_that_is_there_stays(branch: Database) -> None:
    branch.run("CREATE TABLE t (b int, own text, a int)")
    branch.run(_SUBSCRIBE.format("create_tables = true"))
    assert branch.rows(_COLUMNS) == [("public.t", "b own a"), ("sales.orders", "id m")]


def test_tables_have_the_names_of_the_map_and_the_options(branch: Database) -> None:
    branch.run(
        _SUBSCRIBE.format(
            "create_tables = true, table_map = 'sales.orders = gold.\"Orders\"',"
            " table_options = 'deletion_vectors = off'"
        )
    )
    assert branch.rows(_COLUMNS) == [("gold.Orders", "id m"), ("public.t", "a b")]
    assert branch.rows(
        "SELECT DISTINCT reloptions::text FROM pg_class WHERE relkind = 'r' AND oid >= 16384"
    ) == [("{deletion_vectors=off}",)]


def test_a_target_without_a_schema_is_made_where_create_table_makes_it(branch: Database) -> None:
    branch.run("CREATE SCHEMA gold; CREATE SCHEMA other; CREATE TABLE other.u (b int, a int)")
    branch.run("SET search_path = missing, gold, other")
    options = "table_map = 't = own, sales.orders = u'"
    error = _error(branch, _SUBSCRIBE.format(options))
    assert (error.sqlstate, error.message) == ("42P01", 'relation "own" does not exist')
    options = "create_tables = true, table_map = 't = own'"
    branch.run(_SUBSCRIBE.format(options))
    assert branch.rows(_COLUMNS) == [
        ("gold.own", "a b"),
        ("other.u", "b a"),
        ("sales.orders", "id m"),
    ]
    branch.run("DROP SUBSCRIPTION s")
    branch.run("SET search_path = missing")
    error = _error(branch, _SUBSCRIBE.format("create_tables = true, table_map = 't = new'"))
    assert (error.sqlstate, error.message) == ("3F000", "no schema has been selected to create in")
    branch.run("SET search_path = other, gold")
    branch.run(_SUBSCRIBE.format(options))
    assert ("gold.own", "a b") in branch.rows(_COLUMNS)


_INDEXES = """
SELECT nspname || '.' || relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'i' AND c.oid >= 16384 ORDER BY 1
"""


def test_copies_of_one_table_have_index_names_of_their_own(
    shop: Database, branch: Database
) -> None:
    shop.run(
        "CREATE SCHEMA eu; CREATE TABLE eu.t (id int CONSTRAINT t_key PRIMARY KEY);"
        "CREATE SCHEMA us; CREATE TABLE us.t2 (id int CONSTRAINT t_key PRIMARY KEY);"
        "CREATE TABLE u (a int PRIMARY KEY, b int NOT NULL);"
        "CREATE UNIQUE INDEX u_b ON u (b); ALTER TABLE u REPLICA IDENTITY USING INDEX u_b;"
        "CREATE PUBLICATION p1 FOR TABLE sales.orders (id), u WHERE (b > 0), eu.t, us.t2"
    )
    subscribe = (
        "CREATE SUBSCRIPTION {0} CONNECTION 'dbname=shop' PUBLICATION p1 WITH (create_tables ="
        " true, table_map = 'sales.orders = gold.orders_{0}, public.u = gold.u_{0},"
        " eu.t = gold_{0}.t, us.t2 = gold_{0}.t2')"
    )
    branch.run(subscribe.format("north"))
    branch.run(subscribe.format("south"))
    assert [name for (name,) in branch.rows(_INDEXES)] == [
        "gold.orders_north_pkey",
        "gold.orders_south_pkey",
        "gold.u_north_b_idx",
        "gold.u_north_pkey",
        "gold.u_south_b_idx",
        "gold.u_south_pkey",
        "gold_north.t2_pkey",
        "gold_north.t_key",
        "gold_south.t2_pkey",
        "gold_south.t_key",
    ]


def test_index_names_that_are_taken_are_not_used(shop: Database, branch: Database) -> None:
    branch.run("CREATE TABLE unrelated (id int CONSTRAINT v_pkey PRIMARY KEY)")
    shop.run("CREATE TABLE v (id int PRIMARY KEY); ALTER PUBLICATION p ADD TABLE v")
    branch.run(_SUBSCRIBE.format("create_tables = true"))
    assert branch.rows(_INDEXES) == [
        ("public.v_pkey",),
        ("public.v_pkey1",),
        ("sales.orders_pkey",),
    ]


def test_refresh_makes_the_tables_of_later(shop: Database, branch: Database) -> None:
    branch.run(_SUBSCRIBE.format("create_tables = true"))
    shop.run("CREATE TABLE later (id int PRIMARY KEY); ALTER PUBLICATION p ADD TABLE later")
    refresh = "ALTER SUBSCRIPTION s REFRESH PUBLICATION"
    assert _error(branch, refresh).message == 'relation "public.later" does not exist'
    branch.run(f"{refresh} WITH (create_tables = true)")
    shop.run("CREATE TABLE more (id int PRIMARY KEY); CREATE PUBLICATION q FOR TABLE more")
    branch.run("ALTER SUBSCRIPTION s ADD PUBLICATION q WITH (create_tables = true)")
    assert [name for name, _columns in branch.rows(_COLUMNS)] == [
        "public.later",
        "public.more",
        "public.t",
        "sales.orders",
    ]


def test_with_create_slot_false_it_may_stand_in_a_block(branch: Database) -> None:
    options = "create_tables = true, create_slot = false, enabled = false"
    branch.run("BEGIN")
    branch.run(_SUBSCRIBE.format(options))
    assert len(branch.rows(_COLUMNS)) == 2
    branch.run("ROLLBACK")
    assert branch.rows(_LEFT) == [("0", "0", "0", "0", "0")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("table_options = 'nothing = 1'", 'unrecognized parameter "nothing"'),
        ("table_options = 'fillfactor = 10) INHERITS (t'", 'syntax error at or near "INHERITS"'),
        ("table_options = 'fillfactor = 10); DROP TABLE t; --'",
         "exactly one statement was expected"),
        ("slot_name = taken", 'could not create replication slot "taken": ERROR:  replication slot'
         ' "taken" already exists'),
    ],
)  # fmt: skip
def test_a_failure_leaves_nothing(branch: Database, options: str, message: str) -> None:
    branch.run("SELECT pg_create_logical_replication_slot('taken', 'pgoutput')")
    error = _error(branch, _SUBSCRIBE.format(f"create_tables = true, {options}"))
    assert error.message == message
    assert error.position == -1
    assert branch.session.block is None
    assert branch.rows(_LEFT) == [("0", "0", "0", "0", "1")]


def test_the_rights_are_those_of_the_session(cluster: Cluster, branch: Database) -> None:
    branch.run(
        "CREATE ROLE clerk LOGIN PASSWORD 'x' REPLICATION; GRANT pg_create_subscription TO clerk;"
        " GRANT CREATE ON DATABASE branch TO clerk"
    )
    clerk = _database(cluster, "branch", "clerk")
    text = _SUBSCRIBE.replace("dbname=shop", "dbname=shop user=clerk password=x")
    error = _error(clerk, text.format("create_tables = true"))
    assert (error.sqlstate, error.message) == ("42501", "permission denied for schema public")
    assert branch.rows(_LEFT) == [("0", "0", "0", "0", "0")]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (_SUBSCRIBE.format("connect = false, create_tables = true"),
         "connect = false and create_tables = true are mutually exclusive options"),
        (_SUBSCRIBE.format("table_options = 'fillfactor = 10'"),
         "table_options is only allowed with create_tables = true"),
        ("ALTER SUBSCRIPTION s SET PUBLICATION p WITH (refresh = false, create_tables = true)",
         "refresh = false and create_tables = true are mutually exclusive options"),
        ("ALTER SUBSCRIPTION s SET (create_tables = true)",
         'unrecognized subscription parameter: "create_tables"'),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(branch: Database, statement: str, message: str) -> None:
    if statement.startswith("ALTER"):
        branch.run(_SUBSCRIBE.format("create_tables = true"))
    assert _error(branch, statement).message == message


def test_the_hint_of_table_options(branch: Database) -> None:
    error = _error(branch, _SUBSCRIBE.format("table_options = 'deletion_vectors = off'"))
    assert error.hint == "Add create_tables = true to the options."
    branch.run(_SUBSCRIBE.format("table_options = 'deletion_vectors = off', create_tables = true"))
    assert len(branch.rows(_COLUMNS)) == 2


def test_one_name_in_spark_for_several_tables_is_refused(branch: Database) -> None:
    options = "create_tables = true, table_options = 'catalog_table = ''lake.x'''"
    error = _error(branch, _SUBSCRIBE.format(options))
    assert error.sqlstate == "42P07"
    assert error.message.startswith('the name "lake.x" in the catalogs of Spark belongs to table')
    assert branch.rows(_LEFT) == [("0", "0", "0", "0", "0")]
    branch.run(_SUBSCRIBE.format("create_tables = true"))
    statement = (error.hint or "").rsplit("made: ")[-1].removesuffix(".")
    branch.run(statement.replace("SCHEMA.NAME", "lake.x"))
    branch.run("CREATE TABLE other (id int)")
    for refused in (
        "ALTER TABLE other SET (catalog_table = 'lake.`X`')",
        "CREATE TABLE more (id int) WITH (catalog_table = 'lake.x')",
    ):
        assert _error(branch, refused).sqlstate == "42P07"
    branch.run("ALTER TABLE other SET (catalog_table = 'lake.y')")
    branch.run("ALTER TABLE other SET (catalog_table = 'lake.y', fillfactor = 50)")


def test_a_commit_that_fails_leaves_no_slot(
    branch: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLCTL_INJECTION_POINT", "block.before-commit:error")
    error = _error(branch, _SUBSCRIBE.format("create_tables = true"))
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    assert error.sqlstate == "XX000"
    assert branch.rows(_LEFT) == [("0", "0", "0", "0", "0")]
