"""The JVM that a session gets."""

import pytest

from replctl.errors import ConnectionFailure
from replctl.spark import jvm


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
def test_why_a_jvm_does_not_start() -> None:
    with pytest.raises(ConnectionFailure) as caught, jvm.gateway({"spark.master": "bogus"}, None):
        pass
    assert caught.value.message == "could not start Spark"
    assert caught.value.detail == ("Master must either be yarn or start with spark, k8s, or local")
