"""The start and the end of the JVM of a session."""

import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import pytest
from fake_java import make_java
from patience import wait_until

from replctl.errors import ConnectionFailure, InvalidParameterValue
from replctl.spark import ServerConf, SparkConf, java_start, session_start, start_server
from replctl.spark.java import find_java
from replctl.spark.scratch import make_scratch


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", False),
        ("local[*]", False),
        ("local[2,3]", False),
        ("local-cluster[1,1,1024]", True),
        ("spark://h:7077", True),
        ("k8s://https://h", True),
        ("yarn", True),
    ],
)
def test_has_executors(master: str, expected: bool) -> None:
    assert java_start.has_executors(master) is expected


@pytest.mark.spark
def test_why_a_jvm_does_not_start(tmp_path: Path) -> None:
    scratch = make_scratch(tmp_path)
    with (
        pytest.raises(ConnectionFailure) as caught,
        java_start.gateway({"spark.master": "bogus"}, scratch),
    ):
        pass
    assert caught.value.message == "could not start Spark"
    assert caught.value.detail == ("Master must either be yarn or start with spark, k8s, or local")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", "-XX:+UseParallelGC"),
        ("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "-XX:+UseSerialGC"),
        ("-XX:+UseSerialGC -Xss4m -XX:+UseG1GC", "-XX:+UseG1GC"),
    ],
)
def test_one_garbage_collector(options: str, expected: str) -> None:
    properties = {"spark.driver.extraJavaOptions": options}
    given = java_start.arguments(find_java(), properties)
    collectors = [option for option in given if re.fullmatch(r"-XX:\+Use\w+GC", option)]
    assert collectors == [expected]
    assert set(options.split()) - set(given) <= {"-XX:+UseSerialGC"}


_JAVA = """#!/bin/sh
{ tr '\\0' ' ' </proc/$$/cmdline; tr '\\0' ' ' </proc/$PPID/cmdline; } >"$REPORT"
for last; do :; done
file=${last#@}
stat -c %a "$file" >"$REPORT.mode"
cp "$file" "$REPORT.file"
env >"$REPORT.environment"
pwd >"$REPORT.cwd"
exit 1
"""
_SECRET = 'a "secret" \\ key'


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which a Java records its arguments and its caller.  This Java does not
    start."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_JAVA)
    java.chmod(0o755)
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("REPORT", str(tmp_path / "report"))
    monkeypatch.setattr(java_start, "delta_jars", lambda java: [])
    return tmp_path / "report"


def test_properties_are_no_arguments_of_a_jvm(report: Path, tmp_path: Path) -> None:
    properties = {
        "spark.hadoop.fs.s3a.secret.key": _SECRET,
        "spark.driver.extraJavaOptions": "-Dpassword=secret",
    }
    old = os.umask(0)
    try:
        with (
            pytest.raises(ConnectionFailure),
            java_start.gateway(properties, make_scratch(tmp_path)),
        ):
            pass
    finally:
        os.umask(old)
    shown = report.read_text("utf-8")
    assert "secret" not in shown
    assert "-Djava.io.tmpdir=" in shown
    assert report.with_suffix(".mode").read_text("utf-8") == "600\n"
    told = report.with_suffix(".file").read_text("utf-8").splitlines()
    assert r'"spark.hadoop.fs.s3a.secret.key=a \"secret\" \\ key"' in told
    assert '"-Dpassword=secret"' in told
    file = Path(shown.partition(" @")[2].split()[0])
    assert file.is_relative_to(tmp_path)
    assert not file.exists()


_STARTS = """
import sys
from pathlib import Path
from replctl.spark import java_start
from replctl.spark.scratch import make_scratch
with java_start.gateway({}, make_scratch(Path(sys.argv[1]))):
    pass
"""
_STARTS_A_SERVER = """
import sys
from pathlib import Path
from replctl.spark import ServerConf, start_server
start_server(Path(sys.argv[1]), ServerConf())
"""


@pytest.mark.parametrize(
    ("program", "number"),
    [
        (_STARTS, signal.SIGINT),
        (_STARTS, signal.SIGTERM),
        (_STARTS_A_SERVER, signal.SIGINT),
        (_STARTS_A_SERVER, signal.SIGHUP),
        (_STARTS_A_SERVER, signal.SIGKILL),
    ],
)
def test_a_start_that_is_interrupted_leaves_no_jvm(
    program: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python kills the JVM if possible.  Otherwise the JVM ends at the end of its input."""
    pid = tmp_path / "pid"
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", 'echo $$ >"$REPORT"; cat')))
    monkeypatch.setenv("REPORT", str(pid))
    monkeypatch.setenv("XDG_CACHE_HOME", str(_with_jars(tmp_path)))
    parent = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_until(lambda: pid.exists() and pid.read_text("utf-8") != "")
    parent.send_signal(number)
    parent.wait()
    wait_until(lambda: not Path(f"/proc/{pid.read_text('utf-8').strip()}").exists())


#: A program that answers like Spark with a port, a length and a secret, and ends with its input.
_ANSWERS = r"""
echo $$ >"$REPORT"
file=$_PYSPARK_DRIVER_CONN_INFO_PATH
echo '26/11/26 10:01:00 ERROR Backend: All masters are unresponsive!' >&2
printf '\000\000\060\071\000\000\000\001x' >"$file.new"
mv "$file.new" "$file"
exec cat
"""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("x"), SystemExit(1)])
def test_a_jvm_ends_with_a_start_that_fails(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", _ANSWERS)))
    monkeypatch.setenv("REPORT", str(tmp_path / "pid"))
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    monkeypatch.setattr(java_start, "delta_jars", lambda java: [])
    expected = ConnectionFailure if isinstance(error, RuntimeError) else type(error)
    before = list(java_start._running)
    told: dict[str, str] = {}

    def start() -> None:
        with java_start.gateway({}, make_scratch(tmp_path)):
            told.update(os.environ)
            raise error

    with pytest.raises(expected) as caught:
        start()
    assert told["PYSPARK_GATEWAY_PORT"] == "12345"
    assert told["PYSPARK_GATEWAY_SECRET"] == "x"
    assert told["PYSPARK_PIN_THREAD"] == "true"
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text('utf-8').strip()}").exists()
    if isinstance(caught.value, ConnectionFailure):
        assert caught.value.detail == "All masters are unresponsive!"
    assert java_start._running == before
    assert "PYSPARK_GATEWAY_PORT" not in os.environ
    assert os.environ["PYSPARK_PIN_THREAD"] == "false"


@pytest.mark.parametrize(
    ("end", "detail", "has_hint"),
    [
        (
            "kill -9 $$",
            "The JVM was killed (signal 9), as the system does where memory is short.",
            True,
        ),
        ("exit 1", "All masters are unresponsive!", False),
        ("exit 0", "All masters are unresponsive!", False),
    ],
)
def test_a_jvm_that_ends_while_spark_starts(
    end: str, detail: str, has_hint: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = _ANSWERS.replace("exec cat", f"read line; {end}")
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", script)))
    monkeypatch.setenv("REPORT", str(tmp_path / "pid"))
    monkeypatch.setattr(java_start, "delta_jars", lambda java: [])

    def start() -> NoReturn:
        with java_start.gateway({}, make_scratch(tmp_path)):
            stdin = java_start.started().stdin
            assert stdin is not None
            stdin.write(b"\n")
            stdin.flush()
            raise RuntimeError("the answer from Java is empty")

    with pytest.raises(ConnectionFailure) as caught:
        start()
    assert (caught.value.message, caught.value.detail) == ("could not start Spark", detail)
    assert ("spark.driver.memory" in (caught.value.hint or "")) is has_hint


class _AsksItsJvm(Exception):
    """An exception like those of Py4J, whose text is in the JVM."""

    def __init__(self, pid: Path) -> None:
        super().__init__()
        self._pid = pid

    def __str__(self) -> str:
        if not Path(f"/proc/{self._pid.read_text('utf-8').strip()}/exe").exists():
            raise ConnectionRefusedError
        return "stopped\nCaused by: java.lang.Error: no luck"


def test_a_jvm_is_asked_before_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", _ANSWERS)))
    monkeypatch.setenv("REPORT", str(pid))
    monkeypatch.setattr(java_start, "delta_jars", lambda java: [])
    with (
        pytest.raises(ConnectionFailure) as caught,
        java_start.gateway({}, make_scratch(tmp_path)),
    ):
        raise _AsksItsJvm(pid)
    assert caught.value.detail == "Error: no luck"


def test_a_jvm_reads_the_conf_of_no_other_installation(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.ansi.enabled false\n", "utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with pytest.raises(ConnectionFailure), java_start.gateway({}, make_scratch(tmp_path)):
        pass
    variables = report.with_suffix(".environment").read_text("utf-8").splitlines()
    (chosen,) = [line for line in variables if line.startswith("SPARK_CONF_DIR=")]
    folder = Path(chosen.partition("=")[2])
    assert folder != tmp_path
    assert list(folder.iterdir()) == []


def test_a_working_directory_that_was_removed(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = make_scratch(tmp_path)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ConnectionFailure), java_start.gateway({}, scratch):
        pass
    assert report.with_suffix(".cwd").read_text("utf-8").strip() == str(scratch.folder)


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ("exit 3", "The JVM has ended with exit code 3."),
        (
            "kill -9 $$",
            "The JVM was killed (signal 9), as the system does where memory is short.",
        ),
        ("echo 'Caused by: java.lang.Error: no luck'; exit 1", "Error: no luck"),
    ],
)
def test_why_a_server_does_not_start(
    script: str, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", script)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(_with_jars(tmp_path)))
    home = tmp_path / "home"
    home.mkdir()
    with pytest.raises(ConnectionFailure) as caught:
        start_server(home, ServerConf())
    assert caught.value.message == "could not start the Spark server"
    assert caught.value.detail == detail
    assert ("spark.driver.memory" in (caught.value.hint or "")) is ("kill" in script)


def test_properties_are_no_arguments_of_a_server(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(_with_jars(tmp_path)))
    home = tmp_path / "home"
    home.mkdir()
    conf = ServerConf(properties=(("spark.hadoop.fs.s3a.secret.key", _SECRET),))
    with pytest.raises(ConnectionFailure):
        start_server(home, conf)
    assert "secret" not in report.read_text("utf-8")
    assert "replctl.spark.server" in report.read_text("utf-8")
    assert "secret" in report.with_suffix(".file").read_text("utf-8")


def _with_jars(tmp_path: Path) -> Path:
    """Make a cache in which replctl finds Delta's jars without a download, and return its
    folder."""
    spark = ".".join(version("pyspark").split(".")[:2])
    folder = tmp_path / "cache" / "replctl" / f"delta-{version('delta_spark')}-spark-{spark}"
    folder.mkdir(parents=True)
    return tmp_path / "cache"


def test_a_start_that_fails_leaves_the_handler_of_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark sets a handler that calls the JVM, which a failed start has ended."""

    def fail(_builder: object) -> NoReturn:
        signal.signal(signal.SIGINT, lambda *_: None)
        raise ConnectionFailure("the JVM has ended")

    monkeypatch.setattr(java_start, "gateway", lambda *_: nullcontext())
    monkeypatch.setattr(java_start, "forget", lambda: None)  # other tests use this process's JVM
    monkeypatch.setattr(f"{session_start.__name__}.SparkSession.Builder.getOrCreate", fail)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ConnectionFailure):
        session_start.start(SparkConf(scratch=tmp_path))
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-Xss4m  -Da=b", ["-Xss4m", "-Da=b"]),
        ("-Da='b c' -Xss4m", ["-Da=b c", "-Xss4m"]),
        ('-Da="b \\"c" "-Dd=e f"', ['-Da=b "c', "-Dd=e f"]),
    ],
)
def test_options_with_spaces_are_quoted(report: Path, options: str, expected: list[str]) -> None:
    properties = {"spark.driver.extraJavaOptions": options}
    given = java_start.arguments(find_java(), properties)
    assert [option for option in given if option in expected] == expected


def test_a_quotation_mark_without_end_is_refused(report: Path) -> None:
    with pytest.raises(InvalidParameterValue, match="extraJavaOptions"):
        java_start.arguments(find_java(), {"spark.driver.extraJavaOptions": '-Da="b'})


def test_classes_are_archived_in_a_directory_with_a_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "my cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    (cache / "replctl").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", "exit 0")))
    monkeypatch.setattr(java_start, "delta_jars", lambda java: [])
    monkeypatch.setattr(java_start, "started", lambda: None)
    monkeypatch.setattr(java_start, "end", lambda *_: None)
    given: dict[str, str] = {}

    def work(options: str) -> None:
        properties = {"spark.driver.extraJavaOptions": options}
        for argument in java_start.arguments(find_java(), properties):
            name, _, value = argument.partition("=")
            given[name] = value
        Path(given["-XX:ArchiveClassesAtExit"]).touch()

    made = java_start.archive_classes(work)
    assert made.parent == cache / "replctl"
    assert made.exists()
    assert Path(given["-XX:SharedArchiveFile"]).parent == made.parent
