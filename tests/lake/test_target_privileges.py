"""The roles that need privileges on the targets of a subscription (TargetPrivilegesCheck)."""

from __future__ import annotations

import pytest
from golden_script import answer_of

from replctl.catalog.pg_subscription import find_subscription
from replctl.lake.target_relations import TargetRelations
from replctl.relation_name import RelationName
from replctl.session import Session

_TABLES = """
create role alice; create role carol; create role owner superuser;
create table r (a int) partition by list (a);
create table m partition of r for values in (1, 2) partition by list (a);
create table l partition of m for values in (1);
alter table r owner to alice; alter table m owner to alice; alter table l owner to alice;
create subscription s connection 'dbname=nowhere' publication p with (connect = false)
"""


def _denied(session: Session, *statements: str) -> set[str]:
    for statement in (*_TABLES.split(";"), *statements):
        if statement.strip():
            answer = answer_of(session, statement.strip())
            assert not any(line.startswith("ERROR") for line in answer), answer
    with session.read() as catalog:
        subscription = find_subscription(catalog, "s")
    assert subscription is not None
    relations = TargetRelations(session, subscription)
    ((root, tree),) = relations.trees([RelationName("public", "r")]).values()
    found = relations.denied_actions(root, tree)
    return {f"{action.name}: {error.message}" for action, error in found.items()}


@pytest.mark.parametrize("of_others", ["r", "m"])
def test_tables_without_rows_of_their_own_need_no_privilege(
    session: Session, of_others: str
) -> None:
    assert _denied(session, f"revoke all on {of_others} from alice") == set()


def test_each_leaf_partition_needs_the_privileges(session: Session) -> None:
    denied = "permission denied for table l"
    found = _denied(session, "alter table l owner to carol", "grant insert, select on l to alice")
    assert found == {f"UPDATE: {denied}", f"DELETE: {denied}"}
