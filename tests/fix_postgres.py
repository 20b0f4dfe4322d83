"""A PostgreSQL server for tests: REPLCTL_TEST_POSTGRES names it, or the fixture starts one."""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.file_lock import locked
from replctl.spark import maven
from replctl.spark.java import find_java

_MAJOR = "17"  # the version whose behaviour replctl has
_RELEASE = "17.7.0"
_ORGANISATION = "io.zonky.test.postgres"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64v8"}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Yield the connection string of a server on which tests may create databases."""
    with postgres() as conninfo:
        yield conninfo


@contextmanager
def postgres() -> Iterator[str]:
    """Yield the connection string of the server in REPLCTL_TEST_POSTGRES, or of a new server."""
    given = os.environ.get("REPLCTL_TEST_POSTGRES")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="replctl_postgres") as folder, _started(Path(folder)):
        yield f"host={folder} user=postgres"


@contextmanager
def _started(folder: Path) -> Iterator[None]:
    """Start a server with its data, its log and its socket in a folder."""
    programs = _programs()
    user = None
    if os.geteuid() == 0:  # initdb refuses root, whose own folders nobody else can read
        user = pwd.getpwnam("nobody").pw_uid
        if Path.home() in programs.parents:
            programs = shutil.copytree(programs.parent, folder / "programs") / "bin"
        os.chown(folder, user, -1)
    data, log = folder / "data", folder / "log"
    run = partial(
        subprocess.run, user=user, stdout=subprocess.DEVNULL, check=True, cwd=folder, text=True
    )
    run(
        [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
         "--no-locale", "--no-sync"],
    )  # fmt: skip
    options = f"-c listen_addresses='' -c wal_level=logical -c fsync=off -k {folder}"
    control = [programs / "pg_ctl", "-D", data, "-w"]
    run([*control, "-l", log, "-o", options, "start"])
    try:
        yield
    finally:
        run([*control, "-m", "immediate", "stop"])


def _programs() -> Path:
    """Return the directory of initdb, pg_ctl and postgres: of version 17 if possible, else of PATH.

    Raises:
        ObjectNotInPrerequisiteState: there is no PostgreSQL.
    """
    found = shutil.which("postgres")
    local = Path(found).resolve().parent if found else None
    if local is not None and f" {_MAJOR}." in _version(local):
        return local
    try:
        return _downloaded() / "bin"
    except ObjectNotInPrerequisiteState:
        if local is None:
            raise
        return local


def _version(programs: Path) -> str:
    command = [str(programs / "postgres"), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _downloaded() -> Path:
    """Return PostgreSQL 17 from Maven Central, in the user's cache."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    module = f"embedded-postgres-binaries-linux-{architecture}"
    folder = user_cache_path("replctl") / f"postgres-{_RELEASE}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(Path(f"{folder}.lock"), 3600):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                jars = Path(scratch) / module
                maven.resolve(
                    find_java(),
                    f'<dependency org="{_ORGANISATION}" name="{module}" rev="{_RELEASE}"'
                    ' conf="default->default" transitive="false"/>',
                    jars,
                )
                unpacked = Path(scratch) / "unpacked"
                _unpack(next(jars.glob("*.jar")), unpacked)
                unpacked.rename(folder)
    return folder


def _unpack(jar: Path, folder: Path) -> None:
    """Unpack the archive in the jar, which has the programs, the libraries and the shared files."""
    with zipfile.ZipFile(jar) as outer:
        (name,) = (item for item in outer.namelist() if item.endswith(".txz"))
        with outer.open(name) as packed, tarfile.open(fileobj=packed, mode="r|xz") as archive:
            archive.extractall(folder, filter="data")
