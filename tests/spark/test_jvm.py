"""The JVM that a session gets."""

import re
from pathlib import Path

import pytest

from replctl.errors import ConnectionFailure
from replctl.spark import jvm
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
def test_one_garbage_collector(options: str, expected: str, tmp_path: Path) -> None:
    properties = {"spark.driver.extraJavaOptions": options}
    command = jvm.command(jvm.find_java(), properties, tmp_path)
    collectors = [option for option in command if re.fullmatch(r"-XX:\+Use\w+GC", option)]
    assert collectors == [expected]
    assert set(options.split()) - set(command) <= {"-XX:+UseSerialGC"}
