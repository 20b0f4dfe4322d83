"""An error shows the parts of a row that the role may read (execMain.c, genam.c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from fix_cluster import relation_of
from golden_script import answer_of

from replctl import spark
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_authid import find_role
from replctl.catalog.pg_class import get_relation
from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.relation_kind import ConstraintKind
from replctl.lake import replicated_table
from replctl.lake.conflict_message import duplicated, orphan, still_referenced, violation
from replctl.lake.row_description import RowReader
from replctl.lake.target import local_target
from replctl.lake.target_relations import TargetRelations
from replctl.replication.apply_error import ReplicationConflict
from replctl.replication.node import RemoteColumn, RemoteRelation
from replctl.session import Session
from replctl.spark.outcome import Problem

if TYPE_CHECKING:
    from replctl.spark.outcome import Outcome

SETUP = """
create role reader; create role part; create role nobody; create role bypassing bypassrls;
create role owner; create role member; grant owner to member;
grant create on schema public to owner;
set role owner;
create table t (id int primary key, a int check (a > 0), b text not null, "C" text, unique (a, b));
create table p (id int, k int) partition by list (k);
create table f (id int, x int references t);
create table secured (id int primary key, a int);
alter table secured enable row level security;
create table forced (id int primary key, a int);
alter table forced enable row level security;
alter table forced force row level security;
grant select on t, p, f, secured, forced to reader, bypassing;
grant select (id, a) on t to part;
grant select (k) on p to part;
grant select (x) on f to part;
reset role
"""


@pytest.fixture
def secrets(session: Session) -> Session:
    for statement in SETUP.split(";"):
        (answer,) = answer_of(session, statement)
        assert not answer.startswith("ERROR"), answer
    return session


def _detail(session: Session, role: str, table: str, kind: str, supplied: str = "") -> str | None:
    """Return the DETAIL of a violation of a kind."""
    relation = relation_of(session, table)
    tree = {relation.oid: relation}
    values: list[str | None] = ["1", "-2", None, "x" * 65]
    row = dict(zip([c.attnum for c in relation.columns], values, strict=False))
    with session.read() as catalog:
        found = find_role(catalog, role)
        assert found is not None
        reader = RowReader(Privileges(catalog, found.oid), frozenset(supplied.split()))
        if kind == "index":
            index = next(i for i in relation.indexes if len(i.key) == 2)
            return duplicated(relation, index, ["1", None], reader).detail
        if kind in ("orphan", "referenced"):
            (constraint,) = [
                c for c in relation.constraints if c.kind == ConstraintKind.FOREIGN_KEY
            ]
            other = get_relation(catalog, constraint.ref_relid)
            assert other is not None
            if kind == "orphan":
                return orphan(relation, other, constraint, ["9"], reader).detail
            return still_referenced(other, relation, constraint, ["1"], reader).detail
        leaf = None if kind == "partition" else 0
        number = 0 if kind != "not null" else 3 if table == "t" else 1
        problem = Problem(1, kind, number, leaf, row)  # type: ignore[arg-type]
        return violation(relation, tree, local_target(relation, tree), problem, reader).detail


LONG = "x" * 64 + "..."

CASES = [
    # a row
    ("postgres", "t", "check", "", f"Failing row contains (1, -2, null, {LONG})."),
    ("owner", "t", "check", "", f"Failing row contains (1, -2, null, {LONG})."),
    ("member", "t", "check", "", f"Failing row contains (1, -2, null, {LONG})."),
    ("reader", "t", "not null", "", f"Failing row contains (1, -2, null, {LONG})."),
    ("part", "t", "check", "", "Failing row contains (id, a) = (1, -2)."),
    ("part", "t", "not null", "a b", "Failing row contains (id, a, b) = (1, -2, null)."),
    ("nobody", "t", "check", "C", f"Failing row contains (C) = ({LONG})."),
    ("nobody", "t", "check", "", None),
    # a key
    ("reader", "t", "key", "", "Key (id)=(1) already exists."),
    ("part", "t", "key", "", "Key (id)=(1) already exists."),
    ("part", "t", "unique", "", "Key (id)=(1) already exists."),
    ("nobody", "t", "key", "id", None),
    ("reader", "t", "index", "", "Key (a, b)=(1, null) is duplicated."),
    ("part", "t", "index", "a b", "Duplicate keys exist."),
    ("reader", "p", "partition", "", "Partition key of the failing row contains (k) = (-2)."),
    ("part", "p", "partition", "", "Partition key of the failing row contains (k) = (-2)."),
    ("nobody", "p", "partition", "k", None),
    ("reader", "f", "orphan", "", 'Key (x)=(9) is not present in table "t".'),
    ("part", "f", "orphan", "", 'Key (x)=(9) is not present in table "t".'),
    ("nobody", "f", "orphan", "x", 'Key is not present in table "t".'),
    ("part", "f", "referenced", "", 'Key (id)=(1) is still referenced from table "f".'),
    ("nobody", "f", "referenced", "", 'Key is still referenced from table "f".'),
    # row security
    ("reader", "secured", "key", "", None),
    ("reader", "secured", "not null", "id a", None),
    ("owner", "secured", "key", "", "Key (id)=(1) already exists."),
    ("member", "secured", "key", "", "Key (id)=(1) already exists."),
    ("bypassing", "secured", "key", "", "Key (id)=(1) already exists."),
    ("owner", "forced", "key", "", None),
    ("postgres", "forced", "key", "", "Key (id)=(1) already exists."),
]


def test_errors_show_what_the_role_may_read(secrets: Session) -> None:
    for role, table, kind, supplied, expected in CASES:
        number = (role, table, kind, supplied)
        assert (number, _detail(secrets, *number)) == (number, expected)


def test_row_of_a_child_is_shown_as_one_of_the_table_that_is_named(secrets: Session) -> None:
    for statement in ("create table child (own text) inherits (t)", "grant select on t to nobody"):
        answer_of(secrets, statement)
    parent, child = relation_of(secrets, "t"), relation_of(secrets, "child")
    row = dict(zip([c.attnum for c in child.columns], ["1", "2", "b", "c", "own"], strict=True))
    with secrets.read() as catalog:
        nobody = find_role(catalog, "nobody")
        assert nobody is not None
        privileges = Privileges(catalog, nobody.oid)
        assert RowReader(privileges, named=parent).row(child, row) == "(1, 2, b, c)"
        assert RowReader(privileges).row(child, row) is None
        assert RowReader(privileges, named=parent).key(child, ["id"], ["1"]) is None


def test_apply_tells_what_the_writing_role_may_read(
    secrets: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for statement in (
        "create table sent (id int primary key, a int not null, own text default 'own')",
        "alter table sent owner to owner",
        "set role owner",
        "revoke select on sent from owner",
        "reset role",
    ):
        answer_of(secrets, statement)
    columns = (RemoteColumn("id", "int4", -1), RemoteColumn("a", "int4", -1))
    remote = RemoteRelation("public", "sent", columns, ("id",))

    def detail(action: str, *, run_as_owner: bool) -> str | None:
        problem = Problem(1, "not null", 2, 0, {1: "1", 2: None, 3: "own"}, action)
        monkeypatch.setattr(secrets, "engine", lambda: None)
        monkeypatch.setattr(replicated_table, "left_out_error", lambda outcome, tree: None)
        monkeypatch.setattr(spark.jobs, "first_problem", lambda engine, outcome, keys: problem)
        subscription = Subscription(1, 5, "s", 10, "", ("p",), None, run_as_owner=run_as_owner)
        table = TargetRelations(secrets, subscription).table(remote)
        with pytest.raises(ReplicationConflict) as raised:
            table._check(cast("Outcome", None), ())
        return raised.value.error.detail

    assert detail("I", run_as_owner=True) == "Failing row contains (1, null, own)."
    assert detail("I", run_as_owner=False) is None
    assert detail("U", run_as_owner=False) == "Failing row contains (id, a) = (1, null)."
