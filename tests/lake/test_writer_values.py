"""CURRENT_USER and similar expressions in the tables of a subscription."""

from __future__ import annotations

from fix_cluster import relation_of
from golden_script import answer_of

from replctl.catalog.pg_authid import find_role
from replctl.expr import nodes
from replctl.lake.remote_relation import remote_relation
from replctl.lake.replicated_table import ReplicatedTable
from replctl.session import Session


def test_the_writer_is_the_current_user(session: Session) -> None:
    for statement in (
        "create role writer",
        "create role subscribing superuser",
        "create table sent (id int primary key)",
        "create table t (id int primary key, who text default current_user,"
        " run_by text default session_user, path text default current_setting('search_path'),"
        " at timestamptz default now(), check (current_user = 'writer'))",
        "set role subscribing",
    ):
        (answer, *_rest) = answer_of(session, statement)
        assert not answer.startswith("ERROR"), answer
    with session.read() as catalog:
        role = find_role(catalog, "writer")
    assert role is not None
    relation, sent = relation_of(session), relation_of(session, "sent")
    remote = remote_relation(sent, [1], session.cluster.system_identifier)
    table = ReplicatedTable(session, relation, {relation.oid: relation}, remote, role.oid)
    defaults = {column.name: column.default for column in table.target.columns}
    found = {
        name: [node.value for node in nodes.walk(expr) if isinstance(node, nodes.Const)]
        for name, expr in defaults.items()
        if expr is not None
    }
    assert found == {
        "who": ["writer"],
        "run_by": ["subscribing"],
        "path": ['"$user", public'],
        "at": [],  # the time of each statement of Spark
    }
    ((_name, check),) = table.target.checks
    constants = [node.value for node in nodes.walk(check) if isinstance(node, nodes.Const)]
    assert constants.count("writer") == 2
