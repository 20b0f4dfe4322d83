"""The stages of a batch whose targets share leaf partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from replctl.lake.batch_stage import Stage, stages_of
from replctl.relation_name import RelationName
from replctl.replication.node import RelationChanges, RemoteRelation, Rows, Truncation

#: t has the leaf partitions 1 and 2.  The latter is also the target of t_hi.
_LEAVES = {"t": (1, 2), "t_hi": (2,), "u": (3,)}


def _name(table: str) -> RelationName:
    return RelationName("public", table)


def _changes(table: str, positions: tuple[int, ...]) -> RelationChanges:
    remote = cast("RemoteRelation", SimpleNamespace(relation_name=_name(table)))
    return RelationChanges(remote, cast("Rows", None), positions)


def _shown(stage: Stage) -> str:
    emptied = [f"truncate {t.relations[0].name}" for t in stage.truncations]
    runs = [
        f"{run.item.relation.relation_name.name} {run.first}-{run.last}"
        + "".join(f" without {leaf}" for leaf in sorted(run.emptied))
        for run in stage.runs
    ]
    return ", ".join(emptied + runs)


@pytest.mark.parametrize(
    ("events", "stages"),
    [
        ([], [""]),
        (["t", "u", "t"], ["t 1-3, u 2-2"]),
        (["t", "t_hi", "u", "t"], ["t 1-1, u 3-3", "t_hi 2-2", "t 4-4"]),
        (["t_hi", "u", "t_hi", "t"], ["t_hi 1-3, u 2-2", "t 4-4"]),
        (["truncate t", "t", "u"], ["truncate t, t 2-2 without 1 without 2, u 3-3"]),
        (["truncate t_hi", "t"], ["truncate t_hi, t 2-2 without 2"]),
        (
            ["t_hi", "truncate t", "t", "t_hi"],
            ["t_hi 1-1", "truncate t, t 3-3 without 1 without 2", "t_hi 4-4"],
        ),
        (["t", "truncate t_hi", "t_hi"], ["t 1-1", "truncate t_hi, t_hi 3-3 without 2"]),
    ],
)
def test_a_stage_writes_a_leaf_partition_once(events: list[str], stages: list[str]) -> None:
    changes = [
        (_changes(table, tuple(n for n, event in enumerate(events, 1) if event == table)), 1)
        for table in _LEAVES
    ]
    truncations = [
        Truncation(n, (_name(event.removeprefix("truncate ")),), False, False)
        for n, event in enumerate(events, 1)
        if event.startswith("truncate")
    ]
    leaves = {_name(table): oids for table, oids in _LEAVES.items()}
    assert [_shown(s) for s in stages_of(changes, truncations, len(events), leaves)] == stages
