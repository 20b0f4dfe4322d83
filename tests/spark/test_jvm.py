"""The JVM that a session gets."""

import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from replctl.errors import ConnectionFailure
from replctl.spark import ServerConf, jvm, start_server
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
    assert jvm.has_executors(master) is expected


@pytest.mark.spark
def test_why_a_jvm_does_not_start(tmp_path: Path) -> None:
    scratch = make_scratch(tmp_path)
    with (
        pytest.raises(ConnectionFailure) as caught,
        jvm.gateway({"spark.master": "bogus"}, scratch),
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
    given = jvm.arguments(jvm.find_java(), properties)
    collectors = [option for option in given if re.fullmatch(r"-XX:\+Use\w+GC", option)]
    assert collectors == [expected]
    assert set(options.split()) - set(given) <= {"-XX:+UseSerialGC"}


_JAVA = """#!/bin/sh
{ tr '\\\\0' ' ' </proc/$$/cmdline; tr '\\\\0' ' ' </proc/$PPID/cmdline; } >"$REPORT"
for last; do :; done
file=${last#@}
stat -c %a "$file" >"$REPORT.mode"
cp "$file" "$REPORT.file"
exit 1
"""
_SECRET = 'a "secret" \\ key'


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a Java that does not start writes what it was called with, and by whom."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_JAVA)
    java.chmod(0o755)
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("REPORT", str(tmp_path / "report"))
    monkeypatch.setattr(jvm, "delta_jars", lambda java: [])
    return tmp_path / "report"


def test_properties_are_no_arguments_of_a_jvm(report: Path, tmp_path: Path) -> None:
    properties = {
        "spark.hadoop.fs.s3a.secret.key": _SECRET,
        "spark.driver.extraJavaOptions": "-Dpassword=secret",
    }
    old = os.umask(0)
    try:
        with pytest.raises(ConnectionFailure), jvm.gateway(properties, make_scratch(tmp_path)):
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
    assert not Path(shown.partition("@")[2].split()[0]).exists()


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
    """A cache in which Delta's jars are looked for, and not brought."""
    spark = ".".join(version("pyspark").split(".")[:2])
    folder = tmp_path / "cache" / "replctl" / f"delta-{version('delta_spark')}-spark-{spark}"
    folder.mkdir(parents=True)
    return tmp_path / "cache"
