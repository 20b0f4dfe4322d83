"""A cluster knows its path: replctl refuses a copied or moved directory until the user declares
it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import closing
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable
from fix_lake import Lake
from fix_psql import Psql
from golden_script import answer_of

from replctl.catalog import identify
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster, other_cluster
from replctl.catalog.promotion import promote
from replctl.catalog.standby import create_standby, receive
from replctl.errors import CannotConnectNow, ObjectNotInPrerequisiteState
from replctl.execute import execute
from replctl.lake.backup import back_up
from replctl.lake.commit_mark import CommitMark, signed_text
from replctl.lake.identify_copy import identify_copied
from replctl.lake.publisher import LakePublisher
from replctl.session import Session


def rows(cluster: Cluster, query: str) -> list[tuple[str | None, ...]]:
    (result,) = execute(Session.connect(cluster, "postgres", "postgres"), query)
    return [tuple(row) for row in result.rows]


def location(cluster: Cluster, table: str = "t") -> str:
    ((found,),) = rows(cluster, f"SELECT pg_relation_filepath('{table}')")
    assert found is not None
    return found


def test_a_copy_is_refused_while_the_original_is_there(lake: Lake, tmp_path: Path) -> None:
    home = lake.session.cluster.path
    shutil.copytree(home, tmp_path / "copy")
    with pytest.raises(ObjectNotInPrerequisiteState, match="is a copy of the cluster") as caught:
        open_cluster(tmp_path / "copy")
    assert "replctl cluster identify --copied" in (caught.value.hint or "")
    with pytest.raises(ObjectNotInPrerequisiteState):
        other_cluster(lake.session.cluster, tmp_path / "copy")


def test_another_name_of_a_home_is_no_copy(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(lake.session.cluster.path)
    opened = open_cluster(tmp_path / "link")
    assert opened.system_identifier == lake.session.cluster.system_identifier
    opened.close()


def test_a_home_that_was_moved_works(lake: Lake, tmp_path: Path) -> None:
    lake.session.cluster.close()
    moved = Path(shutil.move(lake.session.cluster.path, tmp_path / "elsewhere"))
    cluster = open_cluster(moved)
    assert Path(location(cluster)).is_relative_to(moved)
    session = Session.connect(cluster, "postgres", "postgres")
    end = LakePublisher(session).slots.current_lsn()
    assert end > 0
    cluster.close()
    shutil.copytree(moved, tmp_path / "copy")  # the new home is recorded
    with pytest.raises(ObjectNotInPrerequisiteState):
        open_cluster(tmp_path / "copy")


def test_a_copy_becomes_a_cluster_of_its_own(lake: Lake, tmp_path: Path) -> None:
    original = lake.session.cluster
    place = str(tmp_path / "x")
    columns = "id int primary key, v varchar(5) not null default 'q'"
    lake.run(f"create table \"Lo\" ({columns}) using delta location '{place}'")
    lake.run('create publication p for table "Lo"')
    lake.run("select pg_create_logical_replication_slot('outside', 'pgoutput')")
    lake.run("select pg_create_logical_replication_slot('own', 'pgoutput')")
    for name, where in (("own", "dbname=postgres"), ("outside", f"host={tmp_path} dbname=x")):
        lake.run(
            f"create subscription {name} connection '{where}' publication p with (connect = false)"
        )
        lake.run(f"alter subscription {name} enable")
    shutil.copytree(original.path, tmp_path / "copy")
    copy = open_cluster(tmp_path / "copy", is_checked=False)
    found = identify_copied(copy)
    assert found.slots == ["outside"]
    assert found.subscriptions == ["outside"]
    assert found.tables == [("Lo", place)]
    copy.close()
    copy = open_cluster(tmp_path / "copy")
    assert copy.system_identifier == found.system_identifier != original.system_identifier
    assert Path(location(copy)).is_relative_to(tmp_path / "copy")
    shown = "SELECT subname, subenabled, subslotname FROM pg_subscription ORDER BY 1"
    assert rows(copy, shown) == [("outside", "f", None), ("own", "t", "own")]
    assert rows(copy, "SELECT slot_name FROM pg_replication_slots") == [("own",)]
    assert rows(original, shown) == [("outside", "t", "outside"), ("own", "t", "own")]
    session = Session.connect(copy, "postgres", "postgres")
    write = 'insert into "Lo" values (1)'
    refused, *more = answer_of(session, write)
    assert "55000" in refused
    (statement,) = re.findall(r"SELECT .+(?=\.$)", more[-1])
    assert answer_of(session, statement)[-1] == "SELECT 1"
    assert answer_of(session, write) == ("INSERT 0 1",)
    assert "duplicate key" in answer_of(session, write)[0]
    assert rows(copy, 'TABLE "Lo"') == [("1", "q")]
    assert rows(copy, "SELECT attnames FROM pg_publication_tables") == [("{id,v}",)]
    again = answer_of(session, "select replctl_adopt_again('\"Lo\"')")
    assert "does not belong to another cluster" in again[0]
    list(execute(session, 'DROP TABLE "Lo"'))
    list(execute(session, "DROP TABLE t"))
    list(execute(session, "VACUUM"))
    assert lake.rows()  # the original still has them
    assert (tmp_path / "x" / "_delta_log").exists()
    copy.close()


def test_only_its_owner_adopts_a_table_again(lake: Lake, tmp_path: Path) -> None:
    lake.run(f"create table u (a int) using delta location '{tmp_path}/x'")
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("UPDATE storage_table SET is_read_only = 1")
    lake.run("create role low")
    lake.run("grant create on schema public to low")
    adopt = "select replctl_adopt_again('u')"
    lake.run("set role low")
    assert "must be owner of table u" in answer_of(lake.session, adopt)[0]
    lake.run("reset role")
    lake.run("alter table u owner to low")
    lake.run("set role low")
    assert "permission denied to adopt a table again" in answer_of(lake.session, adopt)[0]
    lake.run("reset role")
    lake.run("grant pg_write_server_files to low")
    lake.run("set role low")
    lake.run("begin read only")
    assert "in a read-only transaction" in answer_of(lake.session, adopt)[0]
    lake.run("rollback")
    assert "permission denied to adopt a table again" in answer_of(lake.session, adopt)[0]
    lake.run("reset role")
    _refused, *more = answer_of(lake.session, adopt)  # nobody could read the table afterwards
    assert 'The owner "low" of table "u" does not have' in more[0]
    (grant,) = re.findall(r"GRANT .+(?=\.$)", more[-1])
    assert grant == "GRANT pg_read_server_files TO low"
    lake.run(grant)
    lake.run("set role low")
    lake.run(adopt)


def test_the_command_says_what_a_copy_leaves_alone(psql: Psql, tmp_path: Path) -> None:
    home = os.environ["REPLCTL_HOME"]
    assert psql("-Xqc", "CREATE TABLE t (a int)").exit_code == 0
    shutil.copytree(home, tmp_path / "copy")
    refused = psql("--home", str(tmp_path / "copy"), "-Xc", "SELECT 1")
    assert refused.exit_code == 2
    assert "is a copy of the cluster in" in refused.stderr
    for command in ("status", "spark start", "cluster backup b", "standby sync", "standby promote"):
        refused = psql(*command.split(), "--home", str(tmp_path / "copy"))
        assert (refused.exit_code, "is a copy of" in refused.stderr) == (2, True), command
    copied = psql("cluster", "identify", "--copied", "--home", str(tmp_path / "copy"))
    assert (copied.exit_code, copied.stderr) == (0, "")
    assert copied.stdout.startswith("system identifier: ")
    assert psql("--home", str(tmp_path / "copy"), "-XAtc", "SELECT 1").stdout == "1\n"
    shutil.copytree(home, tmp_path / "moved")
    assert psql("cluster", "identify", "--moved", "--home", str(tmp_path / "moved")).exit_code == 0
    assert psql("--home", str(tmp_path / "moved"), "-XAtc", "SELECT 1").stdout == "1\n"
    assert psql("-Xc", "SELECT 1").exit_code == 2  # the original is given up
    both = psql("cluster", "identify", "--moved", "--copied", "--home", str(tmp_path / "moved"))
    assert both.exit_code == 1
    nowhere = psql("cluster", "identify", "--home", str(tmp_path / "nowhere"))
    assert nowhere.exit_code == 2
    assert not (tmp_path / "nowhere").exists()


def test_a_standby_reads_its_primary_s_tables_and_keeps_them(lake: Lake, tmp_path: Path) -> None:
    primary = lake.session.cluster
    create_standby(primary.path, tmp_path / "standby", "standby1")
    standby = open_cluster(tmp_path / "standby")
    receive(standby)
    assert location(standby) == lake.location
    promote(standby)
    assert location(standby) == lake.location
    list(execute(Session.connect(standby, "postgres", "postgres"), "CREATE TABLE new (a int)"))
    assert Path(location(standby, "new")).is_relative_to(tmp_path / "standby")
    standby.close()


def test_a_backup_of_a_primary_that_was_replaced_later(psql: Psql, tmp_path: Path) -> None:
    """A standby replaces the primary in its home, and no copy of it."""
    home, standby = os.environ["REPLCTL_HOME"], str(tmp_path / "standby")
    copies = [str(tmp_path / name) for name in ("before", "after", "moved", "late", "later")]
    assert psql("-Xqc", "CREATE TABLE t (a int)").exit_code == 0
    assert psql("standby", "create", "--primary", home, "--home", standby).exit_code == 0
    assert psql("cluster", "backup", copies[0]).exit_code == 0
    for copy in copies[2:4]:
        shutil.copytree(copies[0], copy)
    assert psql("standby", "promote", "--home", standby).exit_code == 0
    for copy in (copies[1], copies[4]):  # their catalogs say that the standby was promoted
        shutil.copytree(home, copy)

    def is_made_own(copy: str) -> bool:
        found = psql("cluster", "identify", "--copied", "--home", copy)
        assert (found.exit_code, found.stderr) == (0, "")
        assert psql("--home", copy, "-Xqc", "CREATE TABLE u (a int)").stderr == ""
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        return psql("--home", copy, "-XAtc", tables).stdout == "2\n"

    assert all(map(is_made_own, copies[:2]))
    shutil.rmtree(home)
    for copy in copies[3:]:  # without the original, they are no moved homes, either
        refused = psql("--home", copy, "-Xc", "SELECT 1")
        assert refused.exit_code == 2
        assert f'"{copy}" is a copy of the cluster in "{home}"' in refused.stderr
        assert f'The standby "{standby}" was promoted in place of that' in refused.stderr
        assert f'run "replctl cluster identify --copied --home {copy}"' in refused.stderr
        assert is_made_own(copy)
    moved = psql("cluster", "identify", "--moved", "--home", copies[2])
    assert (moved.exit_code, moved.stderr) == (0, "")
    assert "was promoted in its place" in psql("--home", copies[2], "-Xc", "SELECT 1").stderr


def test_the_hint_for_the_moved_home_of_a_replaced_primary(psql: Psql, tmp_path: Path) -> None:
    home, moved, standby = (tmp_path / name for name in ("old home", "moved", "standby"))
    assert psql("--home", str(home), "-Xqc", "CREATE TABLE t (a int)").exit_code == 0
    create_standby(home, standby, "one")
    with closing(open_cluster(standby)) as opened:
        promote(opened)
    home.rename(moved)
    hint = psql("--home", str(moved), "-Xc", "SELECT 1").stderr
    found = re.search(r'home of the old primary, run "replctl (.*)"', hint)
    assert found is not None, hint
    outcome = psql(*found[1].split())
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    replaced = psql("--home", str(moved), "-Xc", "SELECT 1")
    assert replaced.exit_code == 2
    assert f'The standby "{standby}" was promoted in its place.' in replaced.stderr


def test_an_interrupted_identify_keeps_a_copy_replaced(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the copy and the new primary would both accept writes, with one identifier."""

    def die(*_args: object) -> int:
        raise KeyboardInterrupt

    primary = lake.session.cluster
    create_standby(primary.path, tmp_path / "standby", "standby1")
    with closing(open_cluster(tmp_path / "standby")) as standby:
        promote(standby)
    shutil.copytree(primary.path, tmp_path / "copy")
    with closing(open_cluster(tmp_path / "copy", is_checked=False)) as copy:
        before = copy.control()
        with monkeypatch.context() as patch:
            patch.setattr(identify, "_end_transactions", die)
            with pytest.raises(KeyboardInterrupt):
                identify_copied(copy)
        assert copy.control() == before
        assert before.promoted_to == str(tmp_path / "standby")
        identify_copied(copy)
    with closing(open_cluster(tmp_path / "copy")) as copy:
        assert copy.control().promoted_to is None
        rows(copy, "CREATE TABLE u (a int)")


def test_the_tables_of_a_new_primary_are_not_changed(lake: Lake, tmp_path: Path) -> None:
    """They are still in the home of the old primary."""
    primary = lake.session.cluster
    create_standby(primary.path, tmp_path / "standby", "standby1")
    with closing(open_cluster(tmp_path / "standby")) as standby:
        promote(standby)
        mark = CommitMark("nonce", 1, 900, timeline=2, silent=True)
        text = signed_text(mark, standby.system_identifier, standby.signing_key, lake.oid)
    DeltaTable(lake.location).delete(
        "id = 1", commit_properties=CommitProperties({"userMetadata": text})
    )
    files = lake.files()
    with pytest.raises(CannotConnectNow, match="not accepting connections"):
        identify_copied(primary)
    assert lake.files() == files


# ---------------------------------------------------------------------------------------------
# Backups


def test_a_backup_replaces_a_lost_home(lake: Lake, tmp_path: Path) -> None:
    lake.update(3)
    before = lake.rows()
    found = back_up(lake.session.cluster, tmp_path / "backup")
    assert found.tables == 1
    lake.update(2)
    with pytest.raises(ObjectNotInPrerequisiteState, match="is a copy"):
        open_cluster(tmp_path / "backup")
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o700
    lake.session.cluster.close()
    shutil.rmtree(lake.session.cluster.path)
    cluster = open_cluster(tmp_path / "backup")
    lake.session = Session.connect(cluster, "postgres", "postgres")
    lake.location = location(cluster)
    assert lake.rows() == before
    end = lake.enter()
    assert lake.update(1) > end
    assert lake.rows() != before
    cluster.close()


def test_a_backup_leaves_out_what_comes_after_its_catalog(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from replctl.lake import backup

    def commit_meanwhile(name: str) -> None:
        if name == "backup.after-catalog":
            DeltaTable(lake.location).update(updates={"v": "'later'"})
            DeltaTable(lake.location).create_checkpoint()

    before = lake.rows()
    monkeypatch.setattr(backup, "injection_point", commit_meanwhile)
    back_up(lake.session.cluster, tmp_path / "backup")
    copy = open_cluster(tmp_path / "backup", is_checked=False)
    identify_copied(copy)
    assert lake.rows() != before
    lake.location = location(copy)
    assert lake.rows() == before
    copy.close()


def test_a_backup_needs_an_empty_directory(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ObjectNotInPrerequisiteState, match="exists but is not empty"):
        back_up(lake.session.cluster, tmp_path)
