"""Another program writes rows without a key, or with the key of another row, into a published
table.  The error names the table and the database, and its HINT makes the rows equal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_replication import Database

pytestmark = pytest.mark.spark


def _write(place: Path, rows: Sequence[tuple[int | None, str]]) -> None:
    ids = pa.array([key for key, _text in rows], pa.int32())
    write_deltalake(str(place), pa.table({"id": ids, "v": [v for _key, v in rows]}), mode="append")


def test_the_hint_ends_with_equal_rows(
    publisher: Database, subscriber: Database, tmp_path: Path
) -> None:
    place = tmp_path / "lake"
    _write(place, [(1, "a"), (2, "b"), (3, "c")])
    publisher.run(
        f"CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) USING delta LOCATION '{place}';"
        " CREATE PUBLICATION p FOR TABLE t WHERE (v <> 'out')"
    )
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    for rows, sqlstate, detail in (
        ([(2, "bad")], "23505", "Key (id)=(2) already exists."),
        (
            [(7, "bad"), (7, "seven")],
            "23505",
            "Rows are not unique in (id), so changes of them cannot be distinguished. The table is"
            ' in database "test_pub".',
        ),
        (
            [(None, "bad"), (8, "eight")],
            "23502",
            'There is NULL in (id). The table is in database "test_pub".',
        ),
    ):
        _write(place, rows)
        (failure,) = subscriber.sync()
        error = failure.error
        assert (error.sqlstate, error.detail) == (sqlstate, detail)
        DeltaTable(str(place)).delete("v = 'bad'")
        assert len(subscriber.sync()) == 1  # the change that does not fit still comes first
        told, statement = (error.hint or "").split(", then use ")
        assert told == "Give each row a key of its own at the publisher"
        subscriber.run(statement)
        assert subscriber.sync() == []
        read = "SELECT * FROM t ORDER BY id"
        assert subscriber.rows(read) == publisher.rows(read)
