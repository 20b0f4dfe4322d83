"""The SQL of README.md, the first page, the guides and the reference runs in the databases that the
pages describe.

The tests have no Spark.  A statement that needs Spark passes if it asks for Spark.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fix_s3 import S3

from replctl.catalog.cluster import Cluster
from replctl.errors import InternalError
from replctl.execute import execute
from replctl.session import Session

_DOCS = Path(__file__).parent.parent / "docs"
_README = _DOCS.parent / "README.md"
_SQL = re.compile(r"^( *)```sql\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
#: The SQL of README.md; a session with prompts has a test of its own.
_INDENTED = re.compile(r"^((?:    CREATE .*\n|    \\.*\n)+)", re.MULTILINE)
#: Statements for the publisher.  The others are for the subscriber.
_AT_PUBLISHER = re.compile(
    r"(CREATE|ALTER) PUBLICATION|SELECT (data|pg_replication|pg_create)|SELECT slot_name"
)
_CREATED = re.compile(r"^CREATE (TABLE|PUBLICATION|SUBSCRIPTION) (\w+)", re.MULTILINE)
#: Without Spark, nobody checks that a key is unique.
_UNCHECKED = "(PRIMARY KEY (id) NOT ENFORCED)"

_ORDERS = """
CREATE TYPE address AS (street text, city text);
CREATE TABLE orders (
    id bigint, region text, amount numeric(10,2), lines jsonb, PRIMARY KEY (id, region));
CREATE TABLE customers (id int PRIMARY KEY);
"""
_PUBLISHER = f"""{_ORDERS}
CREATE PUBLICATION north FOR TABLE orders, customers;
CREATE PUBLICATION south FOR TABLE orders;
CREATE PUBLICATION p FOR TABLE orders;
"""
_SUBSCRIBER = f"""{_ORDERS}
CREATE TABLE t (id int PRIMARY KEY);
CREATE TABLE u (id int PRIMARY KEY);
CREATE SCHEMA gold;
CREATE TABLE gold.orders_north (LIKE orders INCLUDING ALL);
CREATE TABLE gold.orders_south (LIKE orders INCLUDING ALL);
CREATE TABLE gold.orders_n (LIKE orders INCLUDING ALL);
CREATE TABLE gold.items (id int PRIMARY KEY);
CREATE SUBSCRIPTION s CONNECTION 'dbname=shop' PUBLICATION north;
CREATE SUBSCRIPTION north CONNECTION 'dbname=shop' PUBLICATION south
    WITH (table_map = 'public.orders = gold.orders_north');
"""


def _blocks() -> list[object]:
    guides = sorted((_DOCS / "guides").glob("*.md"))
    pages = [_README, _DOCS / "index.md", *guides, _DOCS / "reference" / "statements.md"]
    return [
        pytest.param(textwrap.dedent(block[block.lastindex or 0]), id=f"{page.stem}-{number}")
        for page in pages
        for number, block in enumerate(
            (_INDENTED if page is _README else _SQL).finditer(page.read_text("utf-8")), start=1
        )
    ]


def _run(session: Session, sql: str) -> None:
    """Run statements one by one, without comments and lines of psql; leave out what needs Spark."""
    for statement in filter(str.strip, re.sub(r"--.*|^\\.*", "", sql, flags=re.M).split(";")):
        try:
            list(execute(session, statement))
        except InternalError as failure:
            assert failure.message == "this session has no Spark", statement  # noqa: PT017


def _connect(cluster: Cluster, database: str) -> Session:
    return Session.connect(cluster, database, "postgres")


def _database(block: str) -> str:
    """Return the database that the statements of a page are for."""
    if block.startswith("CREATE TABLE orders"):
        return "copies"  # the other databases have such a table
    return "shop" if _AT_PUBLISHER.match(block) else "branch"


@pytest.fixture
def cluster_of_the_guides(cluster: Cluster, tmp_path: Path) -> Cluster:
    """Return a cluster with the databases of the guides, a subscription, and a Delta table of
    somebody else."""
    events = pa.table({"id": pa.array([1, 2], pa.int64()), "note": ["a", "b"]})
    write_deltalake(tmp_path / "lake" / "events", events)
    _run(_connect(cluster, "postgres"), "CREATE DATABASE shop; CREATE DATABASE branch")
    _run(_connect(cluster, "postgres"), "CREATE DATABASE copies")
    _run(_connect(cluster, "shop"), _PUBLISHER)
    _run(_connect(cluster, "branch"), _SUBSCRIBER)
    adopt = f"CREATE TABLE events {_UNCHECKED} USING delta LOCATION '{tmp_path}/lake/events'"
    _run(_connect(cluster, "branch"), adopt)
    return cluster


@pytest.mark.parametrize("block", _blocks())
def test_statements_of_a_guide_run(
    cluster_of_the_guides: Cluster, tmp_path: Path, block: str, request: pytest.FixtureRequest
) -> None:
    if "'s3://" in block:
        bucket: S3 = request.getfixturevalue("s3")
        bucket.write("north/orders", [1], ["a"])
        block = re.sub(r"'s3://\w+/", f"'{bucket.location('')}", block)
    home = str(cluster_of_the_guides.path)
    places = {"/lake/": f"{tmp_path}/lake/", "/clusters/a": home, "/clusters/b": home}
    names = {"dbname=d": "dbname=shop", "'0/1500268'": "pg_current_wal_lsn()"}
    keys = {"(PRIMARY KEY (id)) USING delta LOC": f"{_UNCHECKED} USING delta LOC"}
    for text, actual in {**places, **names, **keys}.items():
        block = block.replace(text, actual)
    for part in re.split("^(?=CREATE SUBSCRIPTION)", block, flags=re.MULTILINE):
        session = _connect(cluster_of_the_guides, _database(part))
        for kind, name in _CREATED.findall(part):
            _run(session, f"DROP {kind} IF EXISTS {name}")
        _run(session, part)
