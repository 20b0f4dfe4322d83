"""The environment of a JVM does not contain variables of another installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from replctl.process_environment import environment_with
from replctl.psql import spark as spark_command
from replctl.spark.installation import pyspark_folder
from replctl.spark.java_environment import (
    connect_environment,
    jvm_environment,
    without_chosen_properties,
)


@pytest.fixture(autouse=True)
def _locale(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "de_CH.UTF-8")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ""),
        ("-Xss4m  -Dhttps.proxyHost=p", "-Xss4m -Dhttps.proxyHost=p"),
        ("-Dspark.sql.parquet.outputTimestampType=TIMESTAMP_MILLIS -Da=b", "-Da=b"),
        ("-Duser.timezone=Asia/Tokyo -Duser.home=/h", "-Duser.home=/h"),
        ('-Dx.y="/a b/c" "-Dspark.x=a b"', '-Dx.y="/a b/c"'),
        ("-Duser.language=tr -Dfile.encoding=latin1 -Djava.io.tmpdir=/x", ""),
    ],
)  # fmt: skip
def test_what_replctl_chooses_is_no_option_of_the_environment(options: str, expected: str) -> None:
    assert without_chosen_properties(options) == expected


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"])
def test_options_of_java(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(name, "-Xss4m -Dspark.sql.ansi.enabled=false")
    assert jvm_environment(tmp_path, has_executors=False)[name] == "-Xss4m"


@pytest.mark.parametrize("has_executors", [False, True])
def test_another_installation_of_spark(
    has_executors: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile = {
        "SPARK_CONF_DIR": "/other/conf",
        "SPARK_HOME": "/other",
        "SPARK_ANSI_SQL_MODE": "false",
        "PYSPARK_PYTHON": "/other/python",
        "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.ansi.enabled=false pyspark-shell",
        "MASTER": "spark://other:7077",
        "DEPLOY_MODE": "cluster",
    }
    for name, value in hostile.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.1")
    found = jvm_environment(tmp_path, has_executors=has_executors)
    assert not set(hostile.values()) & set(found.values())
    assert found["SPARK_CONF_DIR"] == str(tmp_path)
    assert found["PYSPARK_PYTHON"] == sys.executable
    assert found["SPARK_LOCAL_IP"] == "10.0.0.1"
    assert found.get("SPARK_HOME") == (str(pyspark_folder()) if has_executors else None)


def test_the_name_of_this_machine_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(name, raising=False)
    local = jvm_environment(tmp_path, has_executors=False)
    assert local["SPARK_LOCAL_HOSTNAME"] == local["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert "SPARK_LOCAL_IP" not in jvm_environment(tmp_path, has_executors=True)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"LANG": "de_CH.UTF-8"}, None),
        ({"LANG": "C.utf8"}, None),
        ({"LANG": "de_CH.UTF-8", "LC_ALL": "C"}, "C.UTF-8"),
        ({"LANG": ""}, "C.UTF-8"),
        ({"LANG": "POSIX"}, "C.UTF-8"),
    ],
)
def test_names_of_files_are_utf_8(
    variables: dict[str, str],
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = jvm_environment(tmp_path, has_executors=False).get("LC_ALL")
    assert found == (expected or variables.get("LC_ALL"))


def test_pyspark_is_told_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "yarn")
    monkeypatch.delenv("REPLCTL_TOLD", raising=False)
    with environment_with({"MASTER": None, "REPLCTL_TOLD": "1"}):
        assert (os.environ.get("MASTER"), os.environ["REPLCTL_TOLD"]) == (None, "1")
    assert (os.environ["MASTER"], os.environ.get("REPLCTL_TOLD")) == ("yarn", None)


@pytest.fixture
def hostile_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new working directory.  Its modules have the names of others, and cannot be loaded.

    PYTHONPATH leads to replctl, which may not be installed.
    """
    folder = tmp_path / "hostile"
    for name in ("typer.py", "select.py", "traceback.py", "replctl/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("raise SystemExit('a module of the working directory')")
    monkeypatch.setenv("PYTHONPATH", str(Path(spark_command.__file__).parents[2]))
    monkeypatch.chdir(folder)
    return folder


def test_the_warm_up_loads_nothing_from_the_working_directory(
    hostile_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def start(command: list[str], **_options: object) -> SimpleNamespace:
        started.append(command)
        return SimpleNamespace()

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", start)
        spark_command._warm_up_in_background("sc://localhost:1")
    (command,) = started
    code = command.index("-c") + 1
    command[code] = command[code].replace("warm_up()", "print(warm_up.__module__)")
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (ended.stdout, ended.stderr) == ("replctl.psql.spark\n", "")


@pytest.mark.parametrize("has_executors", [False, True])
def test_workers_load_nothing_from_the_working_directory(
    has_executors: bool, hostile_directory: Path, tmp_path: Path
) -> None:
    """Spark starts its Python workers in the working directory of the JVM."""
    ended = subprocess.run(
        [sys.executable, "-m", "pyspark.daemon", "pyspark.worker"],
        env=jvm_environment(tmp_path, has_executors=has_executors),
        stdin=subprocess.DEVNULL,  # the workers end with their JVM
        capture_output=True,
        check=False,
    )
    assert b"working directory" not in ended.stderr
    assert len(ended.stdout) >= 4  # the number of the port


#: Prints whether a Connect session reaches a server on this machine.
_CONNECT = """
import grpc
from concurrent.futures import ThreadPoolExecutor
from replctl.spark.session_start import connect
server = grpc.server(ThreadPoolExecutor(1))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
session = connect(f"sc://127.0.0.1:{port}")
grpc.channel_ready_future(session.client._channel).result(timeout=20)
print("reached", flush=True)
import os
os._exit(0)  # the server cannot end the session
"""


def test_a_proxy_is_not_used_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    ended = subprocess.run(
        [sys.executable, "-c", _CONNECT], capture_output=True, check=False, text=True
    )
    assert ended.stdout == "reached\n", ended.stderr


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "localhost"),
        ({"NO_PROXY": ".corp,spark"}, "localhost,.corp,spark"),
        ({"NO_PROXY": "a", "no_proxy": "b"}, "localhost,b"),
        ({"no_proxy": "b", "no_grpc_proxy": "c"}, "localhost,c"),
    ],
)
def test_addresses_without_a_proxy(variables: dict[str, str], expected: str) -> None:
    assert connect_environment(variables)["no_grpc_proxy"] == expected
