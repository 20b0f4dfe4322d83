"""replctl trusts only those files of a log that are in the table's directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from golden_script import answer_of
from hypothesis import given
from hypothesis import strategies as st

from replctl.lake.table_paths import TablePaths
from replctl.session import Session


@pytest.mark.parametrize(
    ("location", "path", "relative"),
    [
        ("/t", "part-0.parquet", "part-0.parquet"),
        ("/t", "p=a%2520b/x.parquet", "p=a%20b/x.parquet"),
        ("/t", "p=1%3A2/x", "p=1:2/x"),
        ("/t", "/t/a", "a"),
        ("/t", "file:/t/a%20b", "a b"),
        ("/t", "file:///t/a", "a"),
        ("/t", "FILE:/t/a", "a"),
        ("/t/", "/t/a", "a"),
        ("file:///t", "/t/a", "a"),
        ("/t", "/tt/a", None),
        ("/t", "/t", None),
        ("/t", "../t/a", None),
        ("/t", "a/../../b", None),
        ("/t", "%2e%2e/b", None),
        ("/t", "a%2F..%2F..%2Fb", None),
        ("/t", "/t/../etc", None),
        ("/t", "%2Fetc%2Fpasswd", None),
        ("/t", "/etc/passwd", None),
        ("/t", "//host/t/a", None),
        ("/t", "file://host/t/a", None),
        ("/t", "hdfs://host/t/a", None),
        ("/t", "s3://t/a", None),
        ("/t", "http:a", None),
        ("/t", "a%00", None),
        ("/t", "", None),
        ("s3://b/t", "s3a://b/t/a", "a"),
        ("s3a://b/t", "a", "a"),
        ("s3://b/t", "s3://c/t/a", None),
        ("s3://b/t", "/t/a", None),
        ("s3://b/t", "file:/b/t/a", None),
    ],
)
def test_what_is_below_a_table(location: str, path: str, relative: str | None) -> None:
    assert TablePaths(location).relative(path) == relative
    if relative is None:
        assert TablePaths(location).leads_out(path)


@given(st.lists(st.sampled_from([".", "..", "a", "%2e", "%2F", "/", "t", "file:", "//", "%"])))
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    path = "".join(parts)
    found = TablePaths("/tmp/t").relative(path)
    if found is not None:
        assert Path("/tmp/t", found).resolve().is_relative_to("/tmp/t")


def test_links_are_followed(tmp_path: Path) -> None:
    table, other = tmp_path / "t", tmp_path / "other"
    (table / "p=1").mkdir(parents=True)
    other.mkdir()
    (other / "a").write_text("x")
    (table / "out").symlink_to(other / "a")
    (table / "p=2").symlink_to(other)
    (table / "p=1" / "a").write_text("x")
    (table / "in").symlink_to(table / "p=1" / "a")
    (tmp_path / "named").symlink_to(table)
    for location in (table, tmp_path / "named"):
        paths = TablePaths(str(location))
        found = [name for name in ("out", "p=2/a", "p=1/a", "in", "no") if paths.leads_out(name)]
        assert found == ["out", "p=2/a"]
        assert not paths.leads_out(f"{table}/p=1/a")


# ---------------------------------------------------------------------------------------------
# Tables


def make(folder: Path) -> None:
    write_deltalake(
        str(folder),
        pa.table({"id": pa.array([1], pa.int32())}),
        configuration={"delta.enableChangeDataFeed": "true"},
    )


def _log(folder: Path) -> Path:
    return max((folder / "_delta_log").glob("*.json"))


def _add(folder: Path, **changed: object) -> None:
    """Add a file in one more version.  A reader would read it."""
    body = {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1}
    number = int(_log(folder).stem) + 1
    text = json.dumps({"add": body | {"dataChange": True} | changed})
    (folder / "_delta_log" / f"{number:020d}.json").write_text(text)


def _vector(path: str) -> dict[str, object]:
    vector = {"storageType": "p", "pathOrInlineDv": path, "offset": 1, "sizeInBytes": 1}
    return {"deletionVector": vector | {"cardinality": 1}}


def _link(folder: Path) -> None:
    (folder / "x").symlink_to("/etc/passwd")
    _add(folder)


def _checkpoint(folder: Path) -> None:
    """Write a checkpoint that differs from the log."""
    log = _log(folder)
    honest = log.read_text()
    lines = [json.loads(line) for line in honest.splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = "/etc/passwd"
    log.write_text("\n".join(map(json.dumps, lines)))
    DeltaTable(str(folder)).create_checkpoint()
    log.write_text(honest)


_FOREIGN: dict[str, Callable[[Path], None]] = {
    "absolute": lambda folder: _add(folder, path="/etc/passwd"),
    "uri": lambda folder: _add(folder, path="file:///etc/passwd"),
    "parent": lambda folder: _add(folder, path="../x"),
    "encoded": lambda folder: _add(folder, path="%2e%2e%2fx"),
    "scheme": lambda folder: _add(folder, path="hdfs://host/x"),
    "vector": lambda folder: _add(folder, **_vector(f"file:{quote('/etc/passwd')}")),
    "link": _link,
    "checkpoint": _checkpoint,
}


@pytest.mark.parametrize("kind", _FOREIGN)
def test_foreign_files_are_refused(session: Session, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "t"
    make(folder)
    adopt = f"create table t using delta location '{folder}'"
    if kind != "checkpoint":  # at discovery
        assert answer_of(session, adopt) == ("CREATE TABLE",)
    _FOREIGN[kind](folder)
    if kind != "checkpoint":
        answer = answer_of(session, "table t")
        assert answer[0].startswith("ERROR 42501: file "), answer
        assert '"public.t"' in answer[0]
        database, statement = answer[-1].partition(': in database "')[2].split('", use ')
        assert (database, answer_of(session, statement)) == ("postgres", ("ALTER TABLE",))
        assert answer_of(session, "table t") == ("ERROR XX000: this session has no Spark",)
        assert answer_of(session, "drop table t")[-1] == "DROP TABLE"
    answer = answer_of(session, adopt)  # at adoption
    assert answer[0].startswith("ERROR 42501: file ")
    option = answer[-1].partition("adopt it with ")[2].removesuffix(".")
    assert answer_of(session, f"{adopt} {option}") == ("CREATE TABLE",)


def test_the_parameter_is_one_of_adopted_tables(session: Session, tmp_path: Path) -> None:
    make(tmp_path / "t")
    make(tmp_path / "t2")
    place = f"using delta location '{tmp_path / 't'}'"
    assert answer_of(session, f"create table t {place} with (foreign_files)") == ("CREATE TABLE",)
    shown = "select reloptions from pg_class where relname = 't'"
    assert answer_of(session, shown)[0] == "| {foreign_files=true}"
    answer_of(session, "create role low; alter table t owner to low; set role low")
    assert answer_of(session, "alter table t reset (foreign_files)")[0].startswith("ERROR 42501")
    answer_of(session, "reset role; alter table t reset (foreign_files)")
    assert answer_of(session, shown)[0] == "| NULL"
    for statement in (
        "create table u (a int) with (foreign_files = on)",
        f"create table u (a int) using delta with (foreign_files = on) location '{tmp_path / 'u'}'",
    ):
        assert answer_of(session, statement)[0].startswith("ERROR 42809"), statement
    place = place.replace("/t'", "/t2'")
    refused = f"create table u {place} with (foreign_files = maybe)"
    assert answer_of(session, refused)[0].startswith("ERROR 22023")
