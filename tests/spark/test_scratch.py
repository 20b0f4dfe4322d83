"""Temporary rows of Spark: no other user can read them, and they are removed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from patience import wait_until

from replctl.errors import IoError
from replctl.spark.scratch import make_scratch

_MAKE = (
    "import sys, time; from pathlib import Path; from replctl.spark.scratch import make_scratch;"
    " print(make_scratch(Path(sys.argv[1])).folder, flush=True); time.sleep(600)"
)


@contextmanager
def _process(place: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Yield a process with a scratch directory, and this directory."""
    command = [sys.executable, "-c", _MAKE, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    with _process(place) as (_living, kept), _process(place) as (killed, left):
        (left / "blockmgr").mkdir()
        (left / "blockmgr" / "rows").write_text("secret")
        (tmp_path / "theirs").write_text("x")
        (left / "link").symlink_to(tmp_path)
        foreign = place / "replctl-spark-notes"
        foreign.mkdir()
        made = make_scratch(place)
        assert left.is_dir()
        killed.kill()
        killed.wait()
        again = make_scratch(place)
        names = {path.name for path in place.iterdir() if path.is_dir()}
        assert names == {path.name for path in (kept, made.folder, again.folder, foreign)}
        assert not left.with_suffix(".lock").exists()
        assert (tmp_path / "theirs").exists()


def test_a_child_keeps_the_directory(tmp_path: Path) -> None:
    """The JVM lives a little longer than the process that started it."""
    scratch = make_scratch(tmp_path)
    with subprocess.Popen(["sleep", "60"], pass_fds=scratch.locks) as child:
        for lock in scratch.locks:
            os.close(lock)
        make_scratch(tmp_path)
        assert scratch.folder.exists()
        child.kill()
        child.wait()
        make_scratch(tmp_path)
        assert not scratch.folder.exists()


def test_only_the_owner_may_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "other").mkdir()
    old = os.umask(0)
    try:
        monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
        plain = make_scratch(tmp_path / "tmp")
        chosen = make_scratch(tmp_path / "tmp", f"{tmp_path}/big, {tmp_path}/other")
        monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "big"))
        by_environment = make_scratch(tmp_path / "tmp")
        comma = make_scratch(tmp_path / "a,b", None)
    finally:
        os.umask(old)
    assert plain.local == (plain.folder,)
    assert [path.parent.name for path in chosen.local] == ["big", "other"]
    assert [path.parent.name for path in by_environment.local] == ["big"]
    made = [plain, chosen, by_environment, comma]
    for path in (tmp_path / "tmp", *(p for one in made for p in (one.folder, *one.local))):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert "," not in comma.properties()["spark.local.dir"]


def test_directories_for_shuffles_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/new/one,{tmp_path}/file")
    with pytest.raises(IoError) as failed:
        make_scratch(tmp_path / "tmp")
    assert str(failed.value) == (
        f'could not use directory "{tmp_path}/file" for temporary files of Spark: File exists'
    )
    assert failed.value.hint == (
        "Set SPARK_LOCAL_DIRS or spark.local.dir to a directory that this user can write."
    )
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/new/two")
    (local,) = make_scratch(tmp_path / "tmp").local
    assert local.parent == tmp_path / "new" / "two"


@pytest.mark.spark
def test_spark_writes_into_the_home_alone(tmp_path: Path) -> None:
    """This also applies to a path with a space, and to Python workers, which add numerics."""
    home, system = tmp_path / "a home", tmp_path / "system"
    system.mkdir()
    rows = "select i, (i::text || '.5')::numeric + 1 from generate_series(1, 3000) i"
    command = [
        *(sys.executable, "-m", "replctl", "-X", "-q", "--home", str(home), "--master", "local[1]"),
        *("-c", "create table t (a int primary key, v numeric)", "-c", f"insert into t {rows}"),
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"},
        "TMPDIR": str(system),
        "REPLCTL_INJECTION_POINT": "write.before-log:stop",
    }
    with subprocess.Popen(command, env=environment, cwd=system) as process:
        try:
            _wait_until_stopped(process.pid)
            (scratch,) = [path for path in (home / "tmp").iterdir() if path.is_dir()]
            assert [stat.S_IMODE(p.stat().st_mode) for p in (home / "tmp", scratch)] == [0o700] * 2
            names = {path.name.partition("-")[0] for path in scratch.iterdir()}
            assert {"blockmgr", "spark"} <= names
            assert list(system.iterdir()) == []
        finally:
            process.kill()


def _wait_until_stopped(pid: int) -> None:
    def is_stopped() -> bool:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        assert state != "Z"
        return state == "T"

    wait_until(is_stopped)
