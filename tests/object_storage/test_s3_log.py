"""replctl itself reads the logs of tables on S3, without Spark."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_proxy import Fault
from fix_s3 import ACCOUNT, S3

from replctl.catalog.pg_wal import BREAK, entries_between
from replctl.errors import DuplicateObject, InvalidObjectDefinition, IoError, PostgresError
from replctl.execute import execute
from replctl.lake.delta_log import latest_version, version_digest, version_state
from replctl.lake.publisher import LakePublisher
from replctl.lake.table_folder import TableFolder
from replctl.object_store import choose_properties
from replctl.relation_name import RelationName
from replctl.session import Session

_COMMIT = "_delta_log/00000000000000000001.json"


def _run(session: Session, statement: str) -> None:
    for _result in execute(session, statement):
        pass


def _write(s3: S3, name: str, values: list[str]) -> None:
    s3.write(name, range(len(values)), values)


def _remove(s3: S3, name: str) -> None:
    s3.files().delete_dir(f"{s3.bucket}/{name}")


def _change_commit(s3: S3, name: str) -> None:
    """Replace the newest commit with another of the same size, within the same second."""
    place = f"{s3.bucket}/{name}/{_COMMIT}"
    with s3.files().open_input_stream(place) as stream:
        content = stream.read()
    changed = content.replace(b'"WRITE"', b'"MERGE"')
    assert changed != content
    with s3.files().open_output_stream(place) as stream:
        stream.write(changed)


def _replace(s3: S3, name: str) -> None:
    _remove(s3, name)
    for number in range(3):
        _write(s3, name, [str(number)])


def test_the_state_of_a_commit_distinguishes_writers_of_one_second(s3: S3) -> None:
    for values in (["a"], ["b"]):
        _write(s3, "t", values)
    location = s3.location("t", "s3a")
    before = version_state(location, 1), version_digest(location, 1)
    assert before == (version_state(location, 1), version_digest(location, 1))
    _change_commit(s3, "t")
    after = version_state(location, 1), version_digest(location, 1)
    assert None not in (before + after)
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert version_state(location, 2) is None


@pytest.mark.parametrize("action", [_change_commit, _replace])
def test_what_does_not_continue_the_log_is_a_break(
    session: Session, s3: S3, action: Callable[[S3, str], None]
) -> None:
    for values in (["a"], ["b"]):
        _write(s3, "t", values)
    _run(session, f"CREATE TABLE t USING delta LOCATION '{s3.location('t')}'")
    _run(session, "CREATE PUBLICATION p FOR TABLE t")
    node = LakePublisher(session)
    node.slots.current_lsn([RelationName("public", "t")])
    action(s3, "t")
    end = node.slots.current_lsn([RelationName("public", "t")])
    with session.read() as catalog:
        actions = [entry.action for entry in entries_between(catalog, 0, end)]
    assert actions.count(BREAK) == 1


def test_one_location_is_one_relation(session: Session, s3: S3) -> None:
    _write(s3, "a/t", ["a"])
    _run(session, f"CREATE TABLE t USING delta LOCATION '{s3.location('a/t')}'")
    for place in (s3.location("a/t", "s3a"), s3.location("/a//t/", "s3a")):
        with pytest.raises(DuplicateObject, match='is relation "t" already'):
            _run(session, f"CREATE TABLE u USING delta LOCATION '{place}'")
    inside = s3.location("a/t/inside", "s3a")
    with pytest.raises(InvalidObjectDefinition, match='inside the directory of table "t"'):
        _run(session, f"CREATE TABLE u (id int) USING delta LOCATION '{inside}'")
    _run(session, f"CREATE TABLE u (id int) USING delta LOCATION '{s3.location('a/u')}'")


def test_a_new_table_needs_an_empty_place(session: Session, s3: S3) -> None:
    with s3.files().open_output_stream(f"{s3.bucket}/full/letter.txt") as stream:
        stream.write(b"x")
    with pytest.raises(PostgresError, match="exists but is not empty"):
        _run(session, f"CREATE TABLE t (id int) USING delta LOCATION '{s3.location('full')}'")


def test_a_bucket_that_is_not_there(session: Session, s3: S3) -> None:
    with pytest.raises(IoError, match="NO_SUCH_BUCKET"):
        _run(session, "CREATE TABLE t USING delta LOCATION 's3://nobody/t'")


def test_a_bucket_with_a_server_and_an_account_of_its_own(
    session: Session, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--conf` for one bucket takes precedence over the environment, which applies to the
    others."""
    _write(s3, "t", ["a"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    start = f"spark.hadoop.fs.s3a.bucket.{s3.bucket}."
    own = {f"{start}endpoint": s3.endpoint, f"{start}access.key": "own", f"{start}secret.key": "x"}
    choose_properties(lambda: own)
    before = len(s3.proxy.requests)
    try:
        _run(session, f"CREATE TABLE t USING delta LOCATION '{s3.location('t')}'")
    finally:
        choose_properties(dict)
    accounts = s3.proxy.accounts[before:]
    assert accounts
    assert all("Credential=own/" in account for account in accounts)


def test_a_profile_that_assumes_a_role(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(s3, "t", ["a"])
    keys, config = tmp_path / "credentials", tmp_path / "config"
    keys.write_text("[base]\naws_access_key_id = k\naws_secret_access_key = s\n", "utf-8")
    role = "arn:aws:iam::123456789012:role/reader"
    config.write_text(f"[profile r]\nrole_arn = {role}\nsource_profile = base\n", "utf-8")
    for name in ACCOUNT:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "r")
    before = len(s3.proxy.requests)
    assert version_state(s3.location("t"), 0) is not None
    assert s3.proxy.requests[before] == "POST /"  # to the service that issues keys for roles
    assert os.environ["AWS_PROFILE"] == "r"


def test_no_file_is_lost_among_odd_names(s3: S3) -> None:
    names = ["a b/c%20d", "p=ä+1/x?y#z", "~/'q'"]
    for name in names:
        with s3.files().open_output_stream(f"{s3.bucket}/t/{name}") as stream:
            stream.write(name.encode())
    folder = TableFolder.of(s3.location("t"))
    assert sorted(path for path, _changed in folder.all_files()) == sorted(names)
    for name in names:
        assert folder.read(name) == name.encode()
        folder.delete(name)
    assert folder.is_empty()


@pytest.mark.parametrize("kind", ["closed", "busy", "lost"])
def test_a_fault_is_survived(session: Session, s3: S3, kind: str) -> None:
    _write(s3, "t", ["a"])
    faults = [Fault(f"{method} ", kind, times=2) for method in ("GET", "HEAD")]
    with s3.proxy.failing(*faults):
        _run(session, f"CREATE TABLE t USING delta LOCATION '{s3.location('t')}'")
    assert [fault.seen for fault in faults] == [2, 2]


def test_a_slow_list_is_waited_for(session: Session, s3: S3) -> None:
    """AWS's own library would wait only three seconds."""
    _write(s3, "t", ["a"])
    fault = Fault("GET /.*list-type", "slow", times=1, seconds=4.0)
    before = len(s3.proxy.requests)
    with s3.proxy.failing(fault):
        assert latest_version(s3.location("t")) == 0
    assert len(s3.proxy.requests) - before == 1


@pytest.mark.parametrize("kind", ["closed", "busy"])
def test_a_fault_that_stays_ends_in_an_error(session: Session, s3: S3, kind: str) -> None:
    _write(s3, "t", ["a"])
    with s3.proxy.failing(Fault("GET ", kind)), pytest.raises(IoError) as caught:
        _run(session, f"CREATE TABLE t USING delta LOCATION '{s3.location('t')}'")
    assert s3.location("t") in caught.value.message
    assert ("SLOW_DOWN" if kind == "busy" else "NETWORK_CONNECTION") in caught.value.message
