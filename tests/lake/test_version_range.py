"""The successive versions that replctl compares together, and their files, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from fix_lake import Lake

from replctl.catalog.pg_class import get_relation
from replctl.lake.compared_files import compared_files
from replctl.lake.delta_files import files_at
from replctl.lake.version_range import is_sent_whole, joined_versions
from replctl.replication.published_relation import PublicationSet
from replctl.spark import FeedVersion

_ADD = {"partitionValues": {}, "size": 7, "modificationTime": 1, "dataChange": True}


def _add(name: str, vector: str = "", *, data_change: bool = True) -> dict[str, Any]:
    body = _ADD | {"path": name, "dataChange": data_change}
    return {"add": body | _vector(vector)}


def _remove(name: str, vector: str = "") -> dict[str, Any]:
    return {"remove": {"path": name, "dataChange": True} | _vector(vector)}


def _vector(name: str, offset: int | None = None) -> dict[str, Any]:
    described = {"storageType": "i", "pathOrInlineDv": name, "sizeInBytes": 1, "cardinality": 1}
    if offset is not None:
        described |= {"storageType": "u", "offset": offset}
    return {"deletionVector": described} if name else {}


def _write(lake: Lake, *versions: tuple[dict[str, Any], ...]) -> range:
    """Write versions, and return their numbers."""
    first = DeltaTable(lake.location).version() + 1
    for number, actions in enumerate(versions, start=first):
        path = Path(lake.location) / "_delta_log" / f"{number:020d}.json"
        path.write_text("\n".join(map(json.dumps, actions)))
    return range(first, first + len(versions))


def _files(log: str | None) -> list[str]:
    """Return the files of a log, with their deletion vectors."""
    adds = [json.loads(line).get("add") for line in (log or "").splitlines()]
    return sorted(
        f"{add['path'].rpartition('/')[2]}{add.get('deletionVector', {}).get('pathOrInlineDv', '')}"
        for add in adds
        if add is not None
    )


@pytest.mark.parametrize(
    ("versions", "before", "after"),
    [
        # each file appears once, in its state before and after all versions
        ([(_add("a"),), (_add("b"),)], [], ["a", "b"]),
        ([(_remove("o"),), (_remove("p"),)], ["o", "p"], []),
        ([(_remove("o"), _add("o", "1")), (_remove("o", "1"), _add("o", "2"))], ["o"], ["o2"]),
        # a file that is added and removed does not appear
        ([(_add("a"),), (_remove("a"),)], [], []),
        ([(_add("a"),), (_remove("a"), _add("a", "1")), (_remove("a", "1"),)], [], []),
        # nor does a file that is removed and added again, as by RESTORE
        ([(_remove("o"),), (_add("o"),)], [], []),
        ([(_remove("o"), _add("a")), (_remove("a"), _add("o")), (_add("b"),)], [], ["b"]),
        # no version removes an unknown file, or adds an existing one
        ([(_remove("x"),), (_add("x"),)], [], ["x"]),
        ([(_add("o"),), (_remove("p"),)], ["p"], []),
        # overwrites of all rows: the one in the middle does not matter
        (
            [
                (_remove("o"), _remove("p"), _add("a")),
                (_remove("a"), _add("b")),
                (_remove("b"), _add("c")),
            ],
            ["o", "p"],
            ["c"],
        ),
    ],
)
def test_files_of_the_two_ends(
    lake: Lake, versions: list[tuple[dict[str, Any], ...]], before: list[str], after: list[str]
) -> None:
    _write(lake, (_add("o"), _add("p")))
    numbers = _write(lake, *versions)
    found = compared_files(lake.location, numbers[-1], numbers[0])
    assert (_files(found.before), _files(found.after)) == (before, after)
    assert sorted({uri.rpartition("/")[2] for uri in found.files}) == sorted(
        {name.rstrip("12") for name in [*before, *after]}
    )


def _compared(*numbers: int, by_feed: tuple[int, ...] = ()) -> list[FeedVersion]:
    return [FeedVersion(n, n * 10, is_compared=n not in by_feed) for n in numbers]


def test_successive_versions_are_joined(lake: Lake) -> None:
    log = Path(lake.location) / "_delta_log" / f"{0:020d}.json"
    first = [json.loads(line) for line in log.read_text().splitlines()]
    (metadata,) = [action for action in first if "metaData" in action]
    numbers = _write(
        lake,
        (_add("a"),),
        (_add("b"),),
        (_add("c"),),
        (metadata, _add("d")),  # perhaps with another schema
        (_add("e"),),
        (_add("f"),),
        (_add("g"), _add("h", data_change=False)),  # the writer says that the rows of h are old
        (_add("i"),),
        (_add("j"),),
    )
    a, b, c, d, e, f, g, i, j = numbers

    def joined(versions: list[FeedVersion]) -> list[tuple[int, int, int]]:
        found = joined_versions(lake.location, versions)
        return [(v.before + 1, v.version, v.position) for v in found]

    def alone(*chosen: int) -> list[tuple[int, int, int]]:
        return [(n, n, n * 10) for n in chosen]

    everything = _compared(*numbers)
    assert joined(everything) == [
        (a, c, c * 10),
        *alone(d),
        (e, f, f * 10),
        *alone(g),
        (i, j, j * 10),
    ]
    # in between, any program may have written a version that replctl does not decode
    assert joined(_compared(a, c)) == alone(a, c)
    # replctl reads a version with a feed from the feed
    assert joined(_compared(a, b, c, by_feed=(b,))) == alone(a, b, c)
    assert joined(_compared(a, b, c, by_feed=(a,))) == [*alone(a), (b, c, c * 10)]


@pytest.mark.parametrize(
    ("publication", "is_whole"),
    [
        ("", True),
        (" (id)", True),  # unpublished columns do not matter
        (" WHERE (id > 0)", False),
        (" WITH (publish = 'insert, update, delete')", False),
        (" WITH (publish = 'insert, update, truncate')", False),
    ],
)
def test_what_is_sent_whole(lake: Lake, publication: str, is_whole: bool) -> None:
    lake.run(f"create publication p for table t{publication}")
    with lake.session.read() as catalog:
        relation = get_relation(catalog, lake.oid)
        assert relation is not None
        published = PublicationSet.of_names(catalog, ["p"]).changes_of(relation)
    assert published is not None
    assert is_sent_whole(published) == is_whole


def test_keys_that_one_of_them_changes_are_changed(lake: Lake) -> None:
    first, second = _write(lake, (_add("a"),), (_add("b"),))
    versions = [
        FeedVersion(first, 1, changes_keys=True, is_compared=True),
        FeedVersion(second, 2, is_compared=True),
    ]
    (found,) = joined_versions(lake.location, versions)
    assert (found.changes_keys, found.position) == (True, 2)


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_deletion_vectors_in_one_file_are_several(lake: Lake, has_checkpoint: bool) -> None:
    def placed(kind: str, offset: int) -> dict[str, Any]:
        return {kind: _ADD | {"path": "o"} | _vector("0" * 20, offset)}

    _write(lake, (_add("o"),), (_remove("o"), placed("add", 1)))
    if has_checkpoint:
        DeltaTable(lake.location).create_checkpoint()
    (version,) = _write(lake, (placed("remove", 1), placed("add", 41)))
    found = compared_files(lake.location, version, version)
    logs = [json.loads(log.splitlines()[-1]) for log in (found.before, found.after) if log]
    assert [log["add"]["deletionVector"]["offset"] for log in logs] == [1, 41]
    assert "o" in [add["path"] for add in files_at(lake.location, version)]
