"""The JVM that a session gets."""

import pytest

from replctl.spark.jvm import has_executors


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
    assert has_executors(master) is expected
