"""A database with a table that deltalake writes, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from golden_script import answer_of

from replctl.catalog.pg_class import get_relation
from replctl.catalog.storage import note_storage
from replctl.lake.publisher import LakePublisher
from replctl.lake.table_folder import TableFolder
from replctl.relation_name import RelationName
from replctl.session import Session


def table_location(session: Session, name: str) -> Path:
    """Return the directory of the Delta table of a relation."""
    with session.read() as catalog:
        oid = session.environment(catalog).relation_oid(None, name)
        assert oid is not None
        relation = get_relation(catalog, oid)
    assert relation is not None
    assert relation.storage is not None
    return Path(relation.storage.location)


def log_file(location: Path, version: int, ending: str = "json") -> Path:
    """Return the file of a version in a table's log."""
    return location / "_delta_log" / f"{version:020d}.{ending}"


@contextmanager
def another_first(location: Path, version: int) -> Iterator[list[str]]:
    """Let another program commit a version first, but only once.

    Yield the paths of its commits.
    """
    created, others = TableFolder.create, list[str]()

    def create(folder: TableFolder, path: str, content: bytes, **options: Any) -> bool:
        if path.endswith(f"{version}.json") and not others:
            others.append(path)
            commit = {"commitInfo": {"timestamp": 0, "operation": "OTHER"}}
            (location / path).write_text(json.dumps(commit))
            checksum = json.loads(log_file(location, version - 1, "crc").read_text())
            checksum["txnId"] = None
            log_file(location, version, "crc").write_text(json.dumps(checksum))
        return created(folder, path, content, **options)

    with patch.object(TableFolder, "create", create):
        yield others


class Lake:
    """A database with table t, whose rows deltalake writes."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.run("set replctl.vacuum_retention = 0")
        self.run("create table t (id int primary key, v text)")
        with session.read() as catalog:
            oid = session.environment(catalog).relation_oid(None, "t")
            assert oid is not None
            relation = get_relation(catalog, oid)
        assert relation is not None
        assert relation.storage is not None
        self.oid, self.location = oid, relation.storage.location
        rows = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": ["a", "b", "c"]})
        properties = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(self.location, rows, configuration=properties)
        with session.cluster.begin(write=True) as connection:
            note_storage(connection, oid, [1, 2], 0)
        self.enter()

    def run(self, statement: str) -> tuple[str, ...]:
        """Run a statement, and return its answer.  An error fails the test."""
        answer = answer_of(self.session, statement)
        assert not any(line.startswith("ERROR") for line in answer), answer
        return answer

    def enter(self) -> int:
        """Enter new versions in the commit log, and return its end."""
        return LakePublisher(self.session).slots.current_lsn([RelationName("public", "t")])

    def update(self, count: int = 1) -> int:
        """Change row 1 `count` times, and return the end of the commit log."""
        for number in range(count):
            table = DeltaTable(self.location)
            table.update(updates={"v": f"'{table.version()}-{number}'"}, predicate="id = 1")
        return self.enter()

    def write(
        self,
        columns: Mapping[str, Sequence[object]],
        *,
        mode: Literal["append", "overwrite"] = "append",
        predicate: str | None = None,
        location: str | None = None,
        step: tuple[str, int] | None = None,
    ) -> None:
        """Write rows.  `columns` may lack column v.

        Args:
            step: a transaction identifier, and its version.
        """
        numbers = columns["id"]
        texts = columns.get("v", [f"row {number}" for number in numbers])
        rows = pa.table({"id": pa.array(numbers, pa.int32()), "v": pa.array(texts, pa.string())})
        steps = None if step is None else [Transaction(*step)]
        written = partial(
            write_deltalake,
            location or self.location,
            rows,
            commit_properties=CommitProperties(app_transactions=steps),
        )
        if mode == "append":
            written(mode="append")
        else:
            written(mode="overwrite", predicate=predicate)

    def files(self) -> set[str]:
        """Return all files of the table except checksums."""
        return {
            str(path.relative_to(self.location))
            for path in Path(self.location).rglob("*")
            if path.is_file() and not path.name.endswith(".crc")
        }

    def reads(self, version: int) -> bool:
        """Return whether a version can be read."""
        try:
            DeltaTable(self.location, version=version).to_pyarrow_table()
        except Exception:
            return False
        return True

    def rows(self) -> list[dict[str, object]]:
        return sorted(DeltaTable(self.location).to_pyarrow_table().to_pylist(), key=str)


@pytest.fixture
def lake(session: Session) -> Lake:
    return Lake(session)
