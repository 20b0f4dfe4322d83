"""Other programs change columns of single partitions.  The HINTs have statements that PostgreSQL
allows for partitions.  The tests need no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fix_cluster import relation_of
from fix_replication import Database
from owners_log import OwnersLog, field

from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    insert_subscription,
    insert_subscription_relation,
)
from replctl.errors import PostgresError
from replctl.lake.column_fault import check_columns, check_decodable, dropped_columns
from replctl.lake.table_read import enter_foreign_versions
from replctl.replication.apply_error import DecodingFailure
from replctl.replication.published_relation import PublicationSet
from replctl.session import Session

_ID, _V = field("id", type_="integer"), field("v")
_LONG = field("v", type_="long")
_VIA_ROOT = " WITH (publish_via_partition_root)"
_DETACH = "ALTER TABLE public.t DETACH PARTITION public.low;"
_ROOT, _LEAF = (f"ALTER SUBSCRIPTION s REFRESH TABLE public.{name};" for name in ("t", "low"))


class Parted:
    """Table t (id, v), whose partitions `low` and `high` other programs own."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session, self.database = session, Database(session)
        self.owners = {name: OwnersLog(folder / name, is_mapped=False) for name in ("low", "high")}
        self.database.run("CREATE TABLE t (id int, v text) PARTITION BY RANGE (id)")
        for number, (name, owner) in enumerate(self.owners.items()):
            owner.commit([_ID, _V])
            self.database.run(
                f"CREATE TABLE {name} USING delta LOCATION '{folder / name}'; ALTER TABLE t ATTACH"
                f" PARTITION {name} FOR VALUES FROM ({number * 10}) TO ({number * 10 + 10})"
            )

    def change(self, columns: Mapping[str, list[dict[str, Any]]]) -> None:
        """Give Delta tables other columns, and rows."""
        for name, fields in columns.items():
            self.owners[name].commit(fields)
            self.owners[name].commit(added=[{}])
        enter_foreign_versions(self.session)

    def hint(self) -> str:
        """Return the HINT for subscription s, whose apply reads the last version of `low`."""
        with self.session.read() as catalog:
            leaf = relation_of(self.session, "low")
            published = PublicationSet.of_names(catalog, ["p"]).changes_of(leaf)
        assert published is not None
        subscription = Subscription(1, 1, "s", 10, "", ("p",), "s")
        with pytest.raises(DecodingFailure) as caught:
            check_decodable(self.session, published, [2])
        return caught.value.reported(subscription).hint or ""

    def follow(self, hint: str) -> None:
        """Run the statements of a HINT for this database."""
        first, _, _rest = hint.removeprefix('In database "postgres", use ').partition(" Then, in")
        self.database.run(first)


@pytest.fixture
def parted(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parted:
    monkeypatch.setattr("replctl.commands.attach.require_partition_rows", lambda *_args: None)
    return Parted(session, tmp_path)


@pytest.mark.parametrize(
    ("publication", "columns", "statements", "then"),
    [
        (f"TABLE t{_VIA_ROOT}", {"low": [_ID]}, _DETACH, _ROOT),
        (f"TABLE t{_VIA_ROOT}", {"low": [_ID, _LONG]}, _DETACH, _ROOT),
        (f"TABLE t{_VIA_ROOT}", {"low": [_ID], "high": [_ID, _LONG]}, _DETACH, _ROOT),
        (
            f"TABLE t{_VIA_ROOT}",
            {"low": [_ID], "high": [_ID]},
            "ALTER TABLE public.t DROP COLUMN v;",
            _ROOT,
        ),
        (
            f"TABLE t{_VIA_ROOT}",
            {"low": [_ID, _LONG], "high": [_ID, _LONG]},
            "ALTER TABLE public.t ALTER COLUMN v TYPE bigint USING v::bigint;",
            _ROOT,
        ),
        # A partition key cannot be changed
        (
            f"TABLE t{_VIA_ROOT}",
            {"low": [field("id", type_="long"), _V], "high": [field("id", type_="long"), _V]},
            _DETACH,
            _ROOT,
        ),
        ("TABLE t", {"low": [_ID]}, _DETACH, "ALTER SUBSCRIPTION s REFRESH PUBLICATION;"),
        (
            "TABLE t, low",
            {"low": [_ID]},
            f"ALTER PUBLICATION p DROP TABLE public.low; {_DETACH}",
            "ALTER SUBSCRIPTION s REFRESH PUBLICATION;",
        ),
        (
            "TABLE low (id, v)",
            {"low": [_ID]},
            f"{_DETACH} ALTER PUBLICATION p DROP TABLE public.low; ALTER TABLE public.low DROP"
            " COLUMN v; ALTER PUBLICATION p ADD TABLE public.low (id);",
            _LEAF,
        ),
        ("ALL TABLES", {"low": [_ID]}, f"{_DETACH} ALTER TABLE public.low DROP COLUMN v;", _LEAF),
    ],
)
def test_hints_of_published_partitions(
    parted: Parted,
    publication: str,
    columns: Mapping[str, list[dict[str, Any]]],
    statements: str,
    then: str,
) -> None:
    parted.database.run(f"CREATE PUBLICATION p FOR {publication}")
    parted.change(columns)
    hint = parted.hint()
    assert hint == (
        f'In database "postgres", use {statements} Then, in the database of the subscription, use'
        f" {then}"
    )
    parted.follow(hint)


def test_a_detached_partition_needs_no_statement(parted: Parted) -> None:
    parted.database.run(f"CREATE PUBLICATION p FOR TABLE t{_VIA_ROOT}")
    parted.change({"low": [_ID]})
    with parted.session.read() as catalog:
        leaf = relation_of(parted.session, "low")
        before = PublicationSet.of_names(catalog, ["p"]).changes_of(leaf)
    assert before is not None
    parted.follow(parted.hint())
    with pytest.raises(DecodingFailure) as caught:
        check_decodable(parted.session, before, [2])
    subscription = Subscription(1, 1, "s", 10, "", ("p",), "s")
    assert caught.value.reported(subscription).hint == _ROOT


def test_hints_of_queries(parted: Parted) -> None:
    parted.change({"low": [_ID]})
    with parted.session.read() as catalog:
        (error,) = dropped_columns(catalog, relation_of(parted.session, "low")).values()
    assert error.hint == f"Use {_DETACH}"
    parted.database.run(_DETACH)
    with parted.session.read() as catalog:
        (error,) = dropped_columns(catalog, relation_of(parted.session, "low")).values()
    assert error.hint == "Use ALTER TABLE public.low DROP COLUMN v;"


@pytest.mark.parametrize("member", ["t", "low"])
@pytest.mark.parametrize("is_adopted", [False, True])
def test_hints_of_targets(
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    member: str,
    *,
    is_adopted: bool,
) -> None:
    """The columns of replctl's own partitions are restored with their values."""
    monkeypatch.setattr("replctl.commands.attach.require_partition_rows", lambda *_args: None)
    database = Database(session)
    database.run("CREATE TABLE t (id int, v text) PARTITION BY RANGE (id)")
    for number, name in enumerate(("low", "high")):
        columns = "(id int, v text)"
        if is_adopted:
            OwnersLog(tmp_path / name, is_mapped=False).commit([_ID, _V])
            columns = ""
        database.run(
            f"CREATE TABLE {name} {columns} USING delta LOCATION '{tmp_path / name}';"
            f" ALTER TABLE t ATTACH PARTITION {name} FOR VALUES FROM ({number}0) TO ({number}9)"
        )
    with session.write() as catalog:
        subscription = Subscription(catalog.new_oid(), catalog.database_oid, "s", 10, "", (), "s")
        insert_subscription(catalog, subscription)
        relid = relation_of(session, member).oid
        known = SubscriptionRelation(subscription.oid, relid, RelState.READY)
        insert_subscription_relation(catalog, known)
    OwnersLog(tmp_path / "low", is_mapped=False).commit([_ID])
    enter_foreign_versions(session)
    with pytest.raises(PostgresError) as caught:
        check_columns(session, relation_of(session, "low"))
    hint = caught.value.hint or ""
    restoring = (
        "Use ALTER TABLE public.t DROP COLUMN v; ALTER TABLE public.t ADD COLUMN v text;"
        f" ALTER SUBSCRIPTION s REFRESH TABLE public.{member};"
    )
    assert hint == (f"Use {_DETACH}" if is_adopted else restoring)
    database.run(hint.removeprefix("Use ").split("ALTER SUBSCRIPTION")[0])
    if not is_adopted:
        check_columns(session, relation_of(session, "low"))
