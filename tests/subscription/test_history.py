"""Random histories: at each sync the subscriber has the publisher's rows that pass the filter."""

from __future__ import annotations

from itertools import count

import pytest
from fix_replication import Database, connect
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from replctl.catalog.cluster import Cluster
from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_FILTER = "region = 'north' AND id > 3"
_ids = st.integers(1, 9)
_regions = st.sampled_from(["north", "south"])
_numbers = count(1)


def _insert(ids: list[int], region: str) -> str:
    rows = ", ".join(f"({id_}, '{region}', 'new')" for id_ in ids)
    return (
        f"INSERT INTO t SELECT * FROM (VALUES {rows}) v (id, region, note)"
        " WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.id = v.id AND t.region = v.region)"
    )


_statements = st.one_of(
    st.builds(_insert, st.lists(_ids, min_size=1, max_size=4, unique=True), _regions),
    st.builds("UPDATE t SET note = note || '{}' WHERE id >= {}".format, _ids, _ids),
    st.builds("UPDATE t SET id = id + 20 WHERE id = {}".format, _ids),
    st.builds(
        "UPDATE t SET region = 'west' WHERE id < {} AND region = '{}'".format, _ids, _regions
    ),
    st.builds(
        "UPDATE t SET region = 'north', id = id + 40 WHERE id < {} AND region = 'west'".format, _ids
    ),
    st.builds("DELETE FROM t WHERE id % 4 = {}".format, st.integers(0, 3)),
    st.just("TRUNCATE t"),
    st.just("sync"),
)


@pytest.fixture(scope="module")
def nodes(shared_cluster: Cluster, engine: Engine) -> tuple[Database, Database]:
    """Return the databases that all histories share.  Each history has its own table in its own
    schema."""
    return connect(shared_cluster, "test_pub", engine), connect(shared_cluster, "test_sub", engine)


@given(history=st.lists(_statements, min_size=4, max_size=9))
@settings(
    max_examples=6,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_subscriber_has_what_the_filter_lets_pass(
    nodes: tuple[Database, Database], history: list[str]
) -> None:
    publisher, subscriber = nodes
    name = f"history{next(_numbers)}"
    table = (
        f"CREATE SCHEMA {name}; CREATE TABLE {name}.t"
        " (id int, region text, note text, PRIMARY KEY (id, region))"
    )
    for node in nodes:
        node.run(table)
        node.run(f"SET search_path = {name}")
    publisher.run(f"CREATE PUBLICATION {name} FOR TABLE t WHERE ({_FILTER})")
    subscriber.run(
        f"CREATE SUBSCRIPTION {name} CONNECTION 'host=localhost dbname=test_pub' PUBLICATION {name}"
    )
    for statement in [*history, "sync"]:
        if statement != "sync":
            publisher.run(statement)
            continue
        assert subscriber.sync() == []
        expected = publisher.rows(f"SELECT * FROM t WHERE {_FILTER} ORDER BY id, region")
        assert subscriber.rows("SELECT * FROM t ORDER BY id, region") == expected
    subscriber.run(f"DROP SUBSCRIPTION {name}")
