"""replctl detects whether a table still has the versions that the catalog knows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_lake import Lake
from golden_script import answer_of

from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.pg_wal import BREAK, CHANGE, LogEntry, entries_between
from replctl.errors import FeatureNotSupported
from replctl.lake import delta_log, version_chain
from replctl.lake.publisher import LakePublisher
from replctl.relation_name import RelationName
from replctl.replication.apply_error import DecodingFailure
from replctl.replication.log_range import LogRange


def rows_of(location: str, count: int) -> None:
    """Replace the table with a new one of `count` rows, as a program that drops it does."""
    shutil.rmtree(location)
    numbers = list(range(count))
    rows = pa.table({"id": pa.array(numbers, pa.int32()), "v": [str(n) for n in numbers]})
    write_deltalake(location, rows)


def put_back(lake: Lake) -> None:
    """Restore the table as it was two versions ago."""
    for name in ("2", "3"):
        (Path(lake.location) / "_delta_log" / f"{int(name):020d}.json").unlink()


def put_back_and_continue(lake: Lake) -> None:
    put_back(lake)
    for number in range(4):
        DeltaTable(lake.location).update(updates={"v": f"'{number}'"}, predicate="id = 2")


def replace_by_fewer(lake: Lake) -> None:
    rows_of(lake.location, 2)


def replace_by_more(lake: Lake) -> None:
    rows_of(lake.location, 2)
    for number in range(6):
        DeltaTable(lake.location).update(updates={"v": f"'{number}'"}, predicate="id = 1")


def overwrite_the_last_commit(lake: Lake) -> None:
    path = Path(lake.location) / "_delta_log" / f"{3:020d}.json"
    path.write_text(path.read_text().replace("UPDATE", "MERGE"))


_ACTIONS = [
    put_back, put_back_and_continue, replace_by_fewer, replace_by_more, overwrite_the_last_commit
]  # fmt: skip


def entries(lake: Lake) -> list[LogEntry]:
    """Return the log's entries of the table."""
    end = lake.enter()
    with lake.session.read() as catalog:
        return [entry for entry in entries_between(catalog, 0, end) if entry.relid == lake.oid]


@pytest.mark.parametrize("action", _ACTIONS)
def test_what_does_not_continue_the_log_is_a_break(
    lake: Lake, action: Callable[[Lake], None]
) -> None:
    lake.update(3)
    lake.run("create publication p for table t")
    before = lake.enter()
    action(lake)
    found = entries(lake)
    assert [entry.action for entry in found].count(BREAK) == 1
    assert found[-1].action == BREAK

    # A subscription that has not passed the break cannot continue; one that begins after it can
    publisher = LakePublisher(lake.session)
    starts = {RelationName("public", "t"): before}
    log = LogRange(before, publisher.slots.current_lsn(), ["p"], starts, "any")
    decoded = publisher.decoding.changes(log, lambda _remote: True, 1)
    with pytest.raises(DecodingFailure) as caught, decoded:
        pass
    error = caught.value.reported(Subscription(0, 0, "my sub", 10, "", ("p",), "s"))
    assert error.message == 'table "public.t" was replaced or restored by another program'
    assert error.sqlstate == "55000"
    assert error.hint == 'ALTER SUBSCRIPTION "my sub" REFRESH TABLE public.t;'

    # The chain continues from there without another break
    lake.update()
    found = entries(lake)
    assert [entry.action for entry in found[-2:]] == [BREAK, CHANGE]
    assert found[-1].version == DeltaTable(lake.location).version()
    assert len(entries(lake)) == len(found)


def _commit(lake: Lake, *features: str) -> None:
    """Commit a protocol with reader features."""
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    names = {"readerFeatures": list(features), "writerFeatures": list(features)}
    version = max(delta_log.log_versions(lake.location)) + 1
    path = Path(lake.location) / "_delta_log" / f"{version:020d}.json"
    path.write_text(json.dumps({"protocol": protocol | names}))


def test_an_unsupported_protocol_ends(lake: Lake) -> None:
    """Versions that need it cannot be read, but later versions can."""
    lake.update()
    lake.run("create publication p for table t")
    before = lake.enter()
    _commit(lake, "tomorrow")
    with pytest.raises(FeatureNotSupported):
        lake.enter()
    assert answer_of(lake.session, "select * from t")[0].startswith(
        f'ERROR 0A000: the protocol of the Delta table "{lake.location}" is not supported'
    )
    _commit(lake, "tomorrow", "deletionVectors")
    _commit(lake)
    lake.update()
    found = [(entry.action, entry.version) for entry in entries(lake)]
    assert found[-2:] == [(BREAK, 3), (CHANGE, 5)], found
    assert lake.run("select count(*) from t")[0] == "| 3"

    publisher = LakePublisher(lake.session)
    starts = {RelationName("public", "t"): before}
    log = LogRange(before, publisher.slots.current_lsn(), ["p"], starts, "any")
    decoded = publisher.decoding.changes(log, lambda _remote: True, 1)
    with pytest.raises(DecodingFailure) as caught, decoded:
        pass
    error = caught.value.reported(Subscription(0, 0, "s", 10, "", ("p",), "s"))
    assert error.message == 'changes of table "public.t" cannot be read'
    assert error.detail == (
        f'The Delta table "{lake.location}" had a protocol that replctl does not support after'
        " version 1 and up to version 3, so replctl cannot determine which rows have changed."
    )
    assert error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"


def test_what_only_grows_is_no_break(lake: Lake) -> None:
    lake.update(3)
    table = DeltaTable(lake.location)
    table.restore(1)
    table.optimize.compact()
    table.create_checkpoint()
    (Path(lake.location) / "_delta_log" / f"{3:020d}.json").touch()
    assert BREAK not in [entry.action for entry in entries(lake)]


def test_a_file_that_is_the_same_is_not_read_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.update(2)
    read: list[int] = []

    def version_digest(location: str, version: int) -> str | None:
        read.append(version)
        return delta_log.version_digest(location, version)

    monkeypatch.setattr(version_chain, "version_digest", version_digest)
    lake.enter()
    assert read == []
    (Path(lake.location) / "_delta_log" / f"{2:020d}.json").touch()
    lake.enter()
    assert read == [2]
