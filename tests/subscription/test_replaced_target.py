"""Another program replaces a subscription's table in ways that owner_actions lacks.  The
subscription stops, and the HINT of its error, word for word, makes the rows equal again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fix_replication import Database

from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_SORTED = 'SELECT id, v FROM "My t" ORDER BY id'


class Target:
    """The table, as a program without knowledge of replctl sees it."""

    def __init__(self, engine: Engine, location: Path) -> None:
        self.engine, self.location = engine, location
        self.log = location / "_delta_log"

    @property
    def version(self) -> int:
        return max(int(path.stem) for path in self.log.glob("*.json"))

    def run(self, statement: str) -> None:
        self.engine.run(re.sub(r"\bT\b", f"delta.`{self.location}`", statement))


def write_without_operation(target: Target) -> None:
    target.run("INSERT OVERWRITE T SELECT * FROM T WHERE id < 3")
    path = target.log / f"{target.version:020d}.json"
    lines = [x for x in path.read_text().splitlines() if "commitInfo" not in json.loads(x)]
    path.write_text("\n".join(lines))
    (target.log / f".{path.name}.crc").unlink(missing_ok=True)


def clone_into_emptied(target: Target) -> None:
    other = target.location.with_name("other")
    if not other.exists():
        target.run(f"CREATE TABLE delta.`{other}` USING delta AS SELECT 7 AS id, 'other' AS v")
    target.run("DELETE FROM T")
    target.run(f"CREATE OR REPLACE TABLE T SHALLOW CLONE delta.`{other}`")


_REPLACED = 'rows of target table "public.My t" were replaced by another program'
_REFRESH = 'ALTER SUBSCRIPTION "My s" REFRESH TABLE public."My t"'
_ACTIONS: dict[Callable[[Target], None], str] = {
    write_without_operation: _REPLACED,
    clone_into_emptied: 'is outside the directory of table "public.My t"',
}


def test_the_hint_makes_the_rows_equal_again(
    publisher: Database, subscriber: Database, engine: Engine, tmp_path: Path
) -> None:
    publisher.run(
        'CREATE TABLE "My t" (id int PRIMARY KEY, v text); CREATE TABLE u (id int PRIMARY KEY);'
        " INSERT INTO \"My t\" SELECT g, 'row ' || g FROM generate_series(1, 6) g;"
        ' CREATE PUBLICATION p FOR TABLE "My t", u WITH (publish_via_partition_root)'
    )
    location = tmp_path / "target"
    subscriber.run(
        'CREATE TABLE "My t" (id int PRIMARY KEY, v text) USING delta'
        f" LOCATION '{location}'; CREATE TABLE u (id int PRIMARY KEY)"
    )
    subscriber.run(
        "CREATE SUBSCRIPTION \"My s\" CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (slot_name = 's')"
    )
    assert subscriber.sync() == []
    target = Target(engine, location)
    for number, (action, message) in enumerate(_ACTIONS.items()):
        # DML of others is allowed, as in PostgreSQL
        target.run("DELETE FROM T WHERE id = 6")
        publisher.run(f"UPDATE \"My t\" SET v = 'step {number}' WHERE id = 2")
        assert subscriber.sync() == []

        action(target)
        publisher.run(f"INSERT INTO u VALUES ({number})")
        for _attempt in range(2):
            (failure,) = subscriber.sync()
            error = failure.error
            assert message in error.message, action
            # With replace = true, replctl does not read the target
            option = "" if message == _REPLACED else " WITH (replace = true)"
            assert error.hint == f"{_REFRESH}{option};"
        assert error.hint is not None
        subscriber.run(error.hint)
        assert subscriber.sync() == [], action
        publisher.run(f"UPDATE \"My t\" SET v = 'after {number}' WHERE id = 3")
        assert subscriber.sync() == [], action
        assert subscriber.rows(_SORTED) == publisher.rows(_SORTED), action
        assert subscriber.rows("TABLE u") == publisher.rows("TABLE u")

    target.run("ALTER TABLE T SET TBLPROPERTIES (delta.enableRowTracking = false)")
    publisher.run("UPDATE \"My t\" SET v = 'without row ids' WHERE id = 1")
    assert subscriber.sync() == []
    assert subscriber.rows(_SORTED) == publisher.rows(_SORTED)
