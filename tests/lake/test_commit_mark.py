"""replctl recognises its own commits by signed marks and by nonces in the catalog, and detects
forged marks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fix_lake import Lake
from golden_script import answer_of
from hypothesis import given
from hypothesis import strategies as st

from replctl.catalog.commit_nonce import make_nonces
from replctl.catalog.intent import Intent, insert_intent
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_wal import entries_between, move_to_new_transaction, take_back
from replctl.catalog.read_only_cluster import ReadOnlyCluster
from replctl.catalog.transaction import (
    Catalog,
    abort_transaction,
    begin_transaction,
    commit_transaction,
)
from replctl.errors import DataCorrupted, FileAccessDenied, ObjectNotInPrerequisiteState
from replctl.lake import commit_log
from replctl.lake.commit_mark import CommitMark, mark_of, signed_text
from replctl.lake.delta_log import latest_version
from replctl.lake.promotion_without_primary import FoundInStorage, accept_restored_catalog
from replctl.lake.table_read import relation_leaves
from replctl.session import Session

_KEY = b"k" * 32
_MARK = CommitMark("n", 2, 7, silent=True, undoes=(3, 4), origin="o", origin_at=(5, 6))


def test_a_mark_is_read_as_it_was_signed() -> None:
    text = signed_text(_MARK, 1, _KEY, 16384)
    assert mark_of(text, _KEY, 16384) == _MARK
    assert mark_of(text, b"x" * 32, 16384) is None
    assert mark_of(text, _KEY, 16385) is None


_SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
_JSON = _SCALAR | st.lists(_SCALAR, max_size=3) | st.dictionaries(st.text(max_size=3), _SCALAR)


@given(_JSON, st.sampled_from([*json.loads(signed_text(_MARK, 1, _KEY, 1))["replctl"], "more"]))
def test_a_mark_that_is_changed_is_none(value: object, name: str) -> None:
    body = json.loads(signed_text(_MARK, 1, _KEY, 1))["replctl"]
    changed = {"replctl": body | {name: value}}
    if json.dumps(changed["replctl"]) != json.dumps(body):
        assert mark_of(json.dumps(changed, separators=(",", ":")), _KEY, 1) is None


@pytest.mark.parametrize(
    "text",
    [
        None, 7, [], {}, "", '{"replctl":', '{"replctl":{}}', '{"replctl":[]}', '{"replctl":null}',
        '{"replctl":{"signature":7}}', '{"replctl":{"signature":"é"}}', '{"replctl":' + "[" * 90000,
        '{"replctl":{"signature":"","xid":1e999,"undoes":"x"}}', '{"replctl":' + "9" * 9000 + "}",
        '{"replctl":{"signature":"' + "a" * 200_000 + '"}}', '{"replctl":{"x":"\\ud800"}}',
    ],
)  # fmt: skip
def test_what_others_write_is_no_mark(text: object) -> None:
    assert mark_of(text, _KEY, 1) is None


# ---------------------------------------------------------------------------------------------
# In a table's log


@contextmanager
def reading(lake: Lake) -> Iterator[tuple[Catalog, Relation]]:
    """Yield the catalog in a transaction that may write, and the relation of the table."""
    session = lake.session
    with session.cluster.write(session.database_oid) as catalog:
        relation = get_relation(catalog, lake.oid)
        assert relation is not None
        yield catalog, relation


def nonce_of(lake: Lake, xid: int, relid: int | None = None) -> str:
    """Add a nonce for the table, or for another one, to the catalog, and return it."""
    oid = lake.oid if relid is None else relid
    with reading(lake) as (catalog, _relation):
        return make_nonces(catalog.connection, xid, [oid])[oid]


def sign(lake: Lake, mark: CommitMark, relid: int | None = None) -> str:
    """Return the text of a mark with the signature of this cluster."""
    return commit_log.marked_text(lake.session.cluster, mark, lake.oid if relid is None else relid)


def write(lake: Lake, user_metadata: object, txn: dict[str, object] | None = None) -> int:
    """Write one more version of the table, which adds no readable row, and return its number."""
    newest = latest_version(lake.location)
    assert newest is not None
    actions: list[dict[str, object]] = [
        {"commitInfo": {"timestamp": 1, "operation": "WRITE", "userMetadata": user_metadata}},
        {"add": {"path": f"part-{newest}.parquet", "size": 1, "dataChange": True,
                 "partitionValues": {}, "modificationTime": 1}},
    ]  # fmt: skip
    if txn is not None:
        actions.append({"txn": txn})
    path = Path(lake.location) / "_delta_log" / f"{newest + 1:020d}.json"
    path.write_text("\n".join(map(json.dumps, actions)))
    return newest + 1


def own_versions(lake: Lake) -> set[int]:
    """Return the versions that are replctl's own."""
    with reading(lake) as (catalog, relation):
        commits = commit_log.commits_since(catalog, lake.session.cluster, relation, 0)
    return {commit.version for commit in commits if commit.mark is not None}


def decoded_versions(lake: Lake) -> list[int | None]:
    """Return the versions after the first that are entered as changes."""
    end = lake.enter()
    with reading(lake) as (catalog, _relation):
        entries = entries_between(catalog, 0, end)
    return [entry.version for entry in entries if entry.relid == lake.oid and entry.version]


def test_the_first_commit_with_a_known_nonce_is_own(lake: Lake) -> None:
    first = sign(lake, CommitMark(nonce_of(lake, 900), 1, 900, silent=True))
    other = sign(lake, CommitMark(nonce_of(lake, 901, relid=1), 1, 901, silent=True), relid=1)
    own = write(lake, first)
    repeated = write(lake, first)
    of_another_table = write(lake, other)
    assert own_versions(lake) == {own}
    assert decoded_versions(lake) == [repeated, of_another_table]
    again = write(lake, first)  # after the first one was entered
    assert own_versions(lake) == {own}
    assert decoded_versions(lake) == [repeated, of_another_table, again]


@pytest.mark.parametrize(
    "forged",
    [
        {"silent": True},
        {"silent": True, "signature": "0" * 64},
        {"truncates": True},
        {"xid": "x"},
        {"undoes": [1, 2, 3]},
        {"undoes": 7},
        {"timeline": 99},
        {"origin": "pg_1"},
    ],
)
def test_a_forged_mark_hides_nothing(lake: Lake, forged: dict[str, object]) -> None:
    identifier = lake.session.cluster.system_identifier
    body = {"system_identifier": identifier, "xid": 3, "nonce": nonce_of(lake, 3), "number": 1}
    version = write(lake, json.dumps({"replctl": body | forged}, separators=(",", ":")))
    assert decoded_versions(lake) == [version]


def test_an_entered_version_that_was_overwritten_is_foreign(lake: Lake) -> None:
    own = write(lake, sign(lake, CommitMark(nonce_of(lake, 900), 1, 900)))
    lake.enter()
    assert own_versions(lake) == {own}
    path = Path(lake.location) / "_delta_log" / f"{own:020d}.json"
    path.write_text(path.read_text() + "\n")
    assert own_versions(lake) == set()


def test_a_mark_of_an_unknown_nonce_stops_its_table(lake: Lake) -> None:
    end = lake.enter()
    unknown = sign(lake, CommitMark("unknown", 1, 900, whole=True))
    write(lake, unknown)
    with pytest.raises(ObjectNotInPrerequisiteState) as caught, reading(lake) as (catalog, table):
        commit_log.enter_versions(catalog, lake.session.cluster, table)
    assert 'table "public.t" has commits of this cluster' in caught.value.message
    assert "SELECT replctl_accept_commits('public.t')" in (caught.value.hint or "")
    lake.run("select replctl_accept_commits('public.t')")
    assert lake.enter() > end
    assert own_versions(lake) == set()
    write(lake, sign(lake, CommitMark("another", 1, 901)))  # it was accepted only once
    with pytest.raises(ObjectNotInPrerequisiteState), reading(lake) as (catalog, table):
        commit_log.enter_versions(catalog, lake.session.cluster, table)


@pytest.mark.parametrize(
    "statement",
    [
        "table t",
        "select count(*) from t",
        "copy t to stdout",
        "insert into u select id from t",
        "insert into u values (1)",
    ],
)
def test_rows_of_an_unknown_nonce_are_not_read(lake: Lake, statement: str) -> None:
    lake.run("create table u (id int references t)")
    write(lake, sign(lake, CommitMark("unknown", 1, 900)))
    answer = answer_of(lake.session, statement)
    assert 'table "public.t" has commits of this cluster that its catalog lacks' in answer[0]


def test_a_read_only_home_shows_the_rows_before_an_unknown_nonce(lake: Lake) -> None:
    """Its catalog may be a copy, which does not follow the writers on other machines."""
    write(lake, sign(lake, CommitMark("unknown", 1, 900)))
    cluster = ReadOnlyCluster(lake.session.cluster.path, FileAccessDenied("read-only"))
    session = Session.connect(cluster, "postgres", "postgres")
    with session.read() as catalog:
        relation = get_relation(catalog, lake.oid)
        assert relation is not None
        ((_oid, source),) = relation_leaves(catalog, relation, cluster=cluster)
    assert source.version == 0
    cluster.close()


def test_only_its_owner_accepts_commits(lake: Lake) -> None:
    lake.run("create role low")
    lake.run("set role low")
    with pytest.raises(AssertionError, match="42501"):
        lake.run("select replctl_accept_commits('public.t')")


def test_a_restored_catalog_takes_whole_commits_and_undoes_others(lake: Lake) -> None:
    lake.enter()
    whole = write(lake, sign(lake, CommitMark("one", 1, 5_000, whole=True)))
    assert accept_restored_catalog(lake.session.cluster) == FoundInStorage(entered=1, undone=0)
    assert decoded_versions(lake) == [whole]
    half = write(lake, sign(lake, CommitMark("two", 1, 6_000_000)))
    assert accept_restored_catalog(lake.session.cluster) == FoundInStorage(entered=0, undone=1)
    assert own_versions(lake) == {whole, half}
    assert decoded_versions(lake) == [whole]  # the next user of the table undoes half


def test_a_late_commit_of_an_ended_transaction_is_known(lake: Lake) -> None:
    """Spark may finish a write after its client was killed and replctl has undone the statement."""
    with reading(lake) as (catalog, _relation):
        insert_intent(catalog.connection, 900, Intent(lake.oid, 0, is_whole=False))
    late = write(lake, sign(lake, CommitMark(nonce_of(lake, 900), 1, 900)))
    assert own_versions(lake) == {late}


def test_a_write_that_delta_did_not_carry_out_is_an_error(lake: Lake) -> None:
    mark = CommitMark("n", 1, 900)
    with reading(lake) as (_catalog, relation):
        pass
    cluster, before = lake.session.cluster, latest_version(lake.location)
    write(lake, None, {"appId": "replctl-forged", "version": 2**63 - 1})
    with pytest.raises(DataCorrupted, match="was not carried out"):
        commit_log.check_written(cluster, relation, mark, before)
    write(lake, sign(lake, mark))
    commit_log.check_written(cluster, relation, mark, before)


@pytest.mark.parametrize("is_undone", [False, True])
def test_others_commits_within_a_transaction_are_decoded_where_they_are(
    lake: Lake, *, is_undone: bool
) -> None:
    lake.enter()
    with reading(lake) as (catalog, _relation):
        xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
    nonce = nonce_of(lake, xid)
    before = write(lake, None)
    first = write(lake, sign(lake, CommitMark(nonce, 1, xid)))
    within = write(lake, None)
    assert decoded_versions(lake) == [before]  # nothing after the open transaction
    with reading(lake) as (catalog, table):
        commit_log.enter_versions(catalog, lake.session.cluster, table, own_xid=xid)
    last = write(lake, sign(lake, CommitMark(nonce, 2, xid)))
    after = write(lake, None)
    with reading(lake) as (catalog, table):
        if is_undone:
            take_back(catalog, xid)
            move_to_new_transaction(catalog, xid)
            commit_log.enter_versions(catalog, lake.session.cluster, table, undone_xid=xid)
            abort_transaction(catalog.connection, xid)
        else:
            commit_log.enter_versions(catalog, lake.session.cluster, table, own_xid=xid, ends=True)
            commit_transaction(catalog.connection, xid, changes_catalog=False)
    decoded = [before, within, after] if is_undone else [before, first, within, last, after]
    assert decoded_versions(lake) == decoded
