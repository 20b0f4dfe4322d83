"""Hostile rows, keys, defaults, labels, filters, names and folders are replicated through Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database
from hostile_texts import HOSTILE, LONG, NAMES

from replctl.catalog.open_cluster import open_cluster
from replctl.session import Session
from replctl.types.quote import quote_identifier, quote_string

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

TEXTS = [*HOSTILE.values(), "", LONG]
#: All valid texts for the name of a folder, in a few names.
FOLDERS = [name for name in NAMES.values() if "/" not in name and name != ".."]
_LONG_NAMES = [name for name in NAMES.values() if len(name) > 20]
KEYED, UNKEYED, WIDE = map(quote_identifier, _LONG_NAMES[:3])
LABELS = list(NAMES.values())


def listed(texts: Sequence[str]) -> str:
    return ", ".join(map(quote_string, texts))


def values(texts: Sequence[str], first: int = 1) -> str:
    """Return rows of VALUES: a number, a text as key, the same text as value, and a label."""
    rows = enumerate(texts, start=first)
    return ", ".join(f"({i}, {listed([text, text, LABELS[i % len(LABELS)]])})" for i, text in rows)


@pytest.fixture
def databases(tmp_path: Path, engine: Engine) -> tuple[Database, Database]:
    """Return two databases with hostile names.

    The folder of their cluster also has a hostile name.
    """
    folder = tmp_path / FOLDERS[-1]
    folder.mkdir()
    cluster = open_cluster(folder / FOLDERS[-2])
    session = Session.connect(cluster, "postgres", "postgres")
    opened = []
    for name in _LONG_NAMES[3:5]:
        Database(session).run(f"CREATE DATABASE {quote_identifier(name)}")
        opened.append(Database(Session.connect(cluster, name, "postgres", engine=lambda: engine)))
    return opened[0], opened[1]


def failures(subscriber: Database) -> list[tuple[str, str | None]]:
    """Bring the subscription up to date, and return the failures."""
    return [(found.error.message, found.error.detail) for found in subscriber.sync()]


def same(publisher: Database, subscriber: Database, *tables: str) -> None:
    """Check that the targets equal their sources."""
    for table in tables:
        query = f"SELECT * FROM {table} ORDER BY id, k"
        assert subscriber.rows(query) == publisher.rows(query), table


@pytest.mark.spark
@pytest.mark.slow(2.5)
def test_hostile_texts_arrive(databases: tuple[Database, Database], tmp_path: Path) -> None:
    publisher, subscriber = databases
    default = "".join(HOSTILE.values())
    columns = ", ".join(f"{quote_identifier(name)} text" for name in NAMES.values())
    enum = quote_identifier("e ${x}`")
    for database, folder in zip(databases, ("publisher", "subscriber"), strict=True):
        location = quote_string(str(tmp_path.joinpath(folder, *FOLDERS)))
        database.run(
            f"CREATE TYPE {enum} AS ENUM ({listed(LABELS)});"
            f"CREATE TABLE {KEYED} (id int, k text PRIMARY KEY, v text, m {enum},"
            f" d text DEFAULT {quote_string(default)});"
            f"CREATE TABLE {UNKEYED} (id int, k text, v text, m {enum});"
            f"ALTER TABLE {UNKEYED} REPLICA IDENTITY FULL;"
            f"CREATE TABLE {WIDE} (id int PRIMARY KEY, k int, {columns})"
            f" USING delta LOCATION {location}"
        )
    publisher.run(f"INSERT INTO {KEYED} (id, k, v, m) VALUES {values(TEXTS)}")
    publisher.run(f"INSERT INTO {UNKEYED} VALUES {values(TEXTS)}")
    publisher.run(f"INSERT INTO {WIDE} VALUES (1, 1, {listed(list(NAMES.values()))})")
    found = publisher.rows(f"SELECT k, v, d FROM {KEYED} WHERE v IN ({listed(TEXTS)}) ORDER BY id")
    assert found == [(text, text, default) for text in TEXTS]

    # Every row except the first passes a filter.  The publication omits column `d`
    publication = quote_identifier(_LONG_NAMES[5])
    filtered = " OR ".join(f"k = {quote_string(text)}" for text in TEXTS[1:])
    publisher.run(
        f"CREATE PUBLICATION {publication} FOR TABLE {KEYED} (id, k, v, m)"
        f" WHERE ({filtered} OR k LIKE 'new %' OR k LIKE 'moved %'), {UNKEYED}, {WIDE}"
    )
    escaped = publisher.session.database_name.replace("\\", "\\\\").replace("'", "\\'")
    conninfo = quote_string(f"dbname='{escaped}'")
    subscriber.run(
        f"CREATE SUBSCRIPTION {publication} CONNECTION {conninfo} PUBLICATION {publication}"
        " WITH (slot_name = hostile)"
    )
    assert failures(subscriber) == []

    publisher.run(f"UPDATE {KEYED} SET v = v || k WHERE id % 3 = 0")
    publisher.run(f"UPDATE {KEYED} SET k = 'moved ' || k WHERE id % 7 = 0")
    publisher.run(
        f"BEGIN; UPDATE {UNKEYED} SET v = v || k, k = 'moved ' || k WHERE id % 3 = 0;"
        f"DELETE FROM {UNKEYED} WHERE k IN ({listed(TEXTS[::5])});"
        f"DELETE FROM {KEYED} WHERE k IN ({listed(TEXTS[::5])});"
        f"INSERT INTO {KEYED} (id, k, v, m) SELECT id + 1000, 'new ' || k, v, m FROM {UNKEYED};"
        f"UPDATE {WIDE} SET k = 2; COMMIT"
    )
    assert failures(subscriber) == []
    same(publisher, subscriber, KEYED, UNKEYED, WIDE)

    publisher.run("SELECT pg_create_logical_replication_slot('decoded', 'test_decoding')")
    publisher.run(f"TRUNCATE {KEYED}; INSERT INTO {KEYED} (id, k, v, m) VALUES {values(TEXTS[1:])}")
    assert failures(subscriber) == []
    same(publisher, subscriber, KEYED)
    lines = publisher.rows("SELECT data FROM pg_logical_slot_get_changes('decoded', NULL, NULL)")
    shown = [line for (line,) in lines if line is not None and ": INSERT: " in line]
    for folder in ("publisher", "subscriber"):
        assert (tmp_path.joinpath(folder, *FOLDERS) / "_delta_log").is_dir()
    assert shown == [
        f"table public.{KEYED}: INSERT: id[integer]:{i} k[text]:{quoted} v[text]:{quoted}"
        f" m[{enum}]:{quote_string(LABELS[i % len(LABELS)])} d[text]:{quote_string(default)}"
        for i, quoted in enumerate(map(quote_string, TEXTS[1:]), start=1)
    ]
