"""Settings of another installation of Spark change no value.  The same applies to a host name that
does not resolve, and to a locale without umlauts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_HOSTILE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.session.timeZone": "America/Caracas",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.legacy.castComplexTypesToString.enabled": "true",
    "spark.databricks.delta.properties.defaults.appendOnly": "true",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": "file:///no/such/directory",
    "spark.sql.extensions": "no.such.Extension",
}
_SCRIPT = """
create table t (id int primary key, tz timestamptz, d date);
insert into t values (1, '2024-07-01 12:00:00.999999+00', '1582-10-10');
insert into t values (2, '0001-01-01 00:00:00+00', '0001-01-01');
delete from t where id = 2;
table t;
select 1 / (id - 1) from t;
"""


def _elsewhere() -> list[str]:
    """Return a command that runs another one on a machine whose name does not resolve, if this user
    may do that."""
    command = ["unshare", "--uts", "sh", "-c", 'hostname no-such-host.invalid && exec "$@"', "sh"]
    if shutil.which("unshare") is None or shutil.which("hostname") is None:
        return []
    tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    return command if tried.returncode == 0 else []


@pytest.mark.spark
def test_no_value_changes(tmp_path: Path) -> None:
    folder = tmp_path / "spark" / "conf"
    folder.mkdir(parents=True)
    lines = [f"{name} {value}\n" for name, value in _HOSTILE.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), "utf-8")
    options = " ".join(f"-D{name}={value}" for name, value in _HOSTILE.items())
    environment = os.environ | {
        "SPARK_CONF_DIR": str(folder),
        "SPARK_HOME": str(tmp_path / "spark"),
        "JAVA_TOOL_OPTIONS": f"{options} -Duser.timezone=Asia/Tokyo",
        "_JAVA_OPTIONS": f"{options} -Duser.timezone=Asia/Tokyo",
        "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
        "PYSPARK_PIN_THREAD": "false",
        "SPARK_API_MODE": "connect",
        "SPARK_ANSI_SQL_MODE": "false",
        "MASTER": "spark://no.such.host:7077",
        "DEPLOY_MODE": "cluster",
        "LC_ALL": "C",
    }
    for name in ("SPARK_REMOTE", "TZ"):
        environment.pop(name, None)
    home = tmp_path / "Zürich"
    answer = subprocess.run(
        [
            *_elsewhere(),
            sys.executable,
            "-m",
            "replctl",
            "--home",
            str(home),
            "-X",
            "-A",
            "-t",
            "-q",
        ],
        input=_SCRIPT,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout == "1|2024-07-01 12:00:00.999999+00|1582-10-10\n"
    assert "ERROR:  division by zero" in answer.stderr
    assert answer.stderr.count("ERROR") == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(["spark", home.name])
