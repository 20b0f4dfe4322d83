"""Delta's jars: the folder that has them, the download, and a network that does not answer."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from fake_java import make_java
from patience import wait_until

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.spark import maven
from replctl.spark.java import find_java
from replctl.spark.java_environment import JAVA_VARIABLES
from replctl.spark.maven import delta_jars, known_s3_jars, proxy_options, resolve, s3_jars

_NAME = f"delta-{version('delta_spark')}-spark-4.2"
#: A program that downloads a jar like Ivy: the last argument is a pattern of files.
_BRINGS = """for last; do :; done
mkdir -p "$(dirname "$last")" && echo jar >"$(dirname "$last")/a-1.jar"
printf '%s\\n' "$@" >"$ARGUMENTS" """


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the proxy of this machine."""
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in JAVA_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def _java(tmp_path: Path, script: str) -> Path:
    return make_java(tmp_path / "jdk", script) / "bin" / "java"


def test_jars_are_brought_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ARGUMENTS", str(tmp_path / "arguments"))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.corp:3128")
    monkeypatch.setenv("HOME", "/nowhere")
    folder = tmp_path / "cache" / "replctl" / _NAME
    assert delta_jars(_java(tmp_path, _BRINGS)) == [folder / "a-1.jar"]
    arguments = (tmp_path / "arguments").read_text("utf-8").splitlines()
    assert "-Dhttps.proxyHost=proxy.corp" in arguments
    assert "-Dhttps.proxyPort=3128" in arguments
    assert "/nowhere" not in " ".join(arguments)
    cache = arguments[arguments.index("-cache") + 1]
    assert f"-Divy.default.ivy.user.dir={cache}" in arguments
    assert [entry.name for entry in folder.parent.iterdir() if entry.is_dir()] == [_NAME]
    assert delta_jars(Path("/no/java")) == [folder / "a-1.jar"]


def test_the_connector_for_s3_is_brought_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("ARGUMENTS", str(tmp_path / "arguments"))
    java = _java(tmp_path, _BRINGS)
    assert known_s3_jars(java) == []
    brought = s3_jars(java)
    assert [jar.parent.name for jar in brought] == ["hadoop-aws-3.5.0"]
    assert s3_jars(Path("/no/java")) == known_s3_jars(Path("/no/java")) == brought


def test_jars_of_a_read_only_image_need_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "replctl" / _NAME
    folder.mkdir(parents=True)
    (folder / "a.jar").touch()

    def refuse(*_arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr(maven, "locked", refuse)
    assert delta_jars(Path("/no/java")) == [folder / "a.jar"]
    assert [entry.name for entry in folder.parent.iterdir()] == [_NAME]


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        delta_jars(Path("/no/java"))
    assert caught.value.detail == f'"{tmp_path / "file" / "replctl"}": Not a directory.'
    assert "XDG_CACHE_HOME" in (caught.value.hint or "")


def test_a_cache_with_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a:b"))
    with pytest.raises(ObjectNotInPrerequisiteState, match="could not store the jars"):
        delta_jars(Path("/no/java"))


def test_a_user_without_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        delta_jars(Path("/no/java"))
    assert caught.value.detail == "This user has no home directory."


@pytest.mark.parametrize(
    ("script", "detail", "hint"),
    [
        (
            'echo ":: problems summary ::"; echo "  Server access error at url https://r/x'
            ' (java.net.UnknownHostException: r)" >&2; exit 1',
            "Server access error at url https://r/x (java.net.UnknownHostException: r)",
            "HTTPS_PROXY",
        ),
        (
            "echo 'javax.net.ssl.SSLHandshakeException: PKIX path building failed: none'; exit 1",
            "javax.net.ssl.SSLHandshakeException: PKIX path building failed: none",
            "trustStore",
        ),
    ],
)
def test_why_nothing_was_brought(script: str, detail: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        resolve(_java(tmp_path, script), "<dependency/>", tmp_path / "jars")
    assert caught.value.message == "could not get jars from Maven Central"
    assert caught.value.detail == detail
    assert hint in (caught.value.hint or "")
    assert not (tmp_path / "jars").exists()


def test_a_network_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(maven, "_SILENCE", 0.5)
    monkeypatch.setattr(maven, "_REPORT_INTERVAL", 0.2)
    monkeypatch.setenv("HTTPS_PROXY", "proxy.corp:3128")
    monkeypatch.setenv("PID", str(tmp_path / "pid"))
    caplog.set_level(logging.INFO, maven.__name__)
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        resolve(_java(tmp_path, 'echo $$ >"$PID"; exec sleep 60'), "<x/>", tmp_path / "jars")
    assert caught.value.detail == (
        "Nothing has come for 0.5 seconds through proxy.corp:3128 (HTTPS_PROXY)."
    )
    first, *others = caplog.messages
    assert first == "downloading jars from Maven Central"
    assert others[0] == "downloading jars: 0 kB, 0 s without an answer"
    pid = (tmp_path / "pid").read_text("utf-8").strip()
    assert not Path(f"/proc/{pid}").exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["jdk", "pid"]


@pytest.mark.spark
def test_a_proxy_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test is like the one above, but uses Ivy itself instead of a fake.  Nothing remains of
    the attempt."""
    monkeypatch.setattr(maven, "_SILENCE", 10.0)
    monkeypatch.delenv("REPLCTL_IVY_SETTINGS", raising=False)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(9)
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{silent.getsockname()[1]}")
        dependency = '<dependency org="io.delta" name="delta-storage" rev="4.4.0"/>'
        with pytest.raises(ObjectNotInPrerequisiteState) as caught:
            resolve(find_java(), dependency, tmp_path / "jars")
        silent.settimeout(0.1)
        connection, _address = silent.accept()
        with connection:
            assert re.match(rb"CONNECT [a-z0-9.]+:443 ", connection.recv(1000))
    assert caught.value.detail == (
        "Nothing has come for 10 seconds through"
        f" 127.0.0.1:{os.environ['HTTPS_PROXY'].rpartition(':')[2]} (HTTPS_PROXY)."
    )
    assert list(tmp_path.iterdir()) == []
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text("utf-8").split()
    commands = [Path(f"/proc/{child}/cmdline").read_text("utf-8") for child in children]
    assert not [command for command in commands if "ivy-" in command]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ivy_ends_with_its_parent(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PID", str(tmp_path / "pid"))
    java = _java(tmp_path, 'echo $$ >"$PID.new"; mv "$PID.new" "$PID"; exec sleep 60')
    program = (
        "import sys; from pathlib import Path; from replctl.spark.maven import resolve;"
        " resolve(Path(sys.argv[1]), '<x/>', Path(sys.argv[2]))"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, java, tmp_path / "jars"],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_until((tmp_path / "pid").exists)
    parent.send_signal(number)
    parent.wait()
    pid = (tmp_path / "pid").read_text("utf-8").strip()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, []),
        ({"https_proxy": ""}, []),
        (
            {"HTTPS_PROXY": "http://u:p@proxy:3128/"},
            ["-Dhttps.proxyHost=proxy", "-Dhttps.proxyPort=3128"],
        ),
        (
            {"http_proxy": "proxy", "NO_PROXY": ".corp, localhost"},
            [
                "-Dhttp.proxyHost=proxy",
                "-Dhttp.proxyPort=80",
                "-Dhttp.nonProxyHosts=*.corp|localhost",
            ],
        ),
        ({"HTTPS_PROXY": "http://p:1", "JAVA_TOOL_OPTIONS": "-Dhttps.proxyHost=q"}, []),
        ({"NO_PROXY": "localhost"}, []),
    ],
)  # fmt: skip
def test_proxies(environment: dict[str, str], expected: list[str]) -> None:
    assert proxy_options(environment) == expected
