"""Publications publish a partitioned table and its partitions, with different actions."""

from __future__ import annotations

import pytest
from fix_cluster import relation_of
from fix_replication import Database

from replctl.lake.publisher import LakePublisher
from replctl.replication.published_relation import PublicationSet
from replctl.replication.update_transformation import Action
from replctl.session import Session

_SCHEMA = """
CREATE TABLE r (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (0) TO (100);
CREATE PUBLICATION r_i FOR TABLE r WITH (publish = 'insert', publish_via_partition_root);
CREATE PUBLICATION r_i_big FOR TABLE r WHERE (id > 50)
  WITH (publish = 'insert', publish_via_partition_root);
CREATE PUBLICATION r1_ud FOR TABLE r1 WITH (publish = 'update, delete');
CREATE PUBLICATION r1_ud_big FOR TABLE r1 WHERE (id > 50) WITH (publish = 'update, delete');
CREATE PUBLICATION r1_t FOR TABLE r1 WITH (publish = 'truncate');
"""


@pytest.mark.parametrize(
    ("publications", "name", "sent"),
    [  # as pgoutput of PostgreSQL 17.7 has sent them: for each action, whether a filter applies
        ("r_i", "r", {"I": False}),
        ("r1_ud", "r1", {"U": False, "D": False}),
        ("r1_ud_big", "r1", {"U": True, "D": True}),
        ("r_i r1_ud", "r", {"I": False, "U": False, "D": False}),
        ("r_i r1_ud_big", "r", {"I": False, "U": False, "D": False}),
        ("r_i_big r1_ud", "r", {"I": True, "U": False, "D": False}),
        ("r_i_big r1_ud_big", "r", {"I": True, "U": False, "D": False}),
        ("r_i r_i_big r1_ud_big", "r", {"I": False, "U": False, "D": False}),
        ("r1_t", "r1", {}),
        ("r_i_big r1_t", "r", {"I": True}),
    ],
)
def test_an_action_of_a_lower_level_has_no_filter(
    session: Session, publications: str, name: str, sent: dict[str, bool]
) -> None:
    Database(session).run(_SCHEMA)
    names = publications.split()
    with session.read() as catalog:
        published = PublicationSet.of_names(catalog, names).changes_of(relation_of(session, "r1"))
    assert published is not None
    assert published.published_as.name == name
    assert {action.value: bool(found) for action, found in published.filters.items()} == sent
    assert published.actions - {Action.TRUNCATE} == published.filters.keys()


def test_a_reconcile_knows_the_actions_of_partitions(session: Session) -> None:
    """An action must be published for all partitions."""
    Database(session).run(_SCHEMA)

    def actions(*names: str) -> str:
        (table,) = LakePublisher(session).tables.relations(names)
        return "".join(sorted(table.actions))

    assert actions("r_i") == "I"
    assert actions("r_i", "r1_ud") == "DIU"
    Database(session).run("CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (100) TO (200)")
    assert actions("r_i", "r1_ud") == "I"
    Database(session).run("CREATE PUBLICATION r2_d FOR TABLE r2 WITH (publish = 'delete')")
    assert actions("r_i", "r1_ud", "r2_d") == "DI"
