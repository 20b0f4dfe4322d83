"""The columns that the next write removes from replctl's own table, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fix_cluster import relation_of
from fix_replication import Database

from replctl.lake import schema_rewrite
from replctl.lake.table_read import enter_foreign_versions
from replctl.session import Session


@pytest.mark.parametrize(("path", "removed"), [(["id"], ("s",)), (["s"], None), (["s", "b"], None)])
def test_a_column_that_clusters_the_table_stays(
    session: Session, tmp_path: Path, path: list[str], removed: tuple[str, ...] | None
) -> None:
    """Another program clusters the table by a column, or by a field in it."""
    place = tmp_path / "t"
    database = Database(session)
    database.run(f"CREATE TABLE t (id int, s text, v text) USING delta LOCATION '{place}'")
    log = place / "_delta_log"
    first = map(json.loads, (log / f"{0:020d}.json").read_text().splitlines())
    (protocol,) = (action["protocol"] for action in first if "protocol" in action)
    features = [*protocol["writerFeatures"], "clustering", "domainMetadata"]
    domain = {
        "domain": "delta.clustering",
        "configuration": json.dumps({"clusteringColumns": [path]}),
        "removed": False,
    }
    actions = [{"protocol": protocol | {"writerFeatures": features}}, {"domainMetadata": domain}]
    (log / f"{1:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    enter_foreign_versions(session)
    database.run("ALTER TABLE t DROP COLUMN s")
    rewrite = schema_rewrite._rewrite_of(relation_of(session))
    assert (None if rewrite is None else rewrite.removed) == removed
