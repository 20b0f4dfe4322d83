"""The file to which a JVM writes does not grow without limit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fake_java import make_java
from patience import wait_until

from replctl.spark import java_log, java_start
from replctl.spark.scratch import make_scratch

#: A program that answers like Spark (test_java_start.py).  For each line of its input it writes a
#: line of 2000 bytes.
_JAVA = r"""
file=$_PYSPARK_DRIVER_CONN_INFO_PATH
printf '\000\000\060\071\000\000\000\001x' >"$file.new"
mv "$file.new" "$file"
while read line; do printf '%2000s' "$line"; echo >>"$REPORT"; done
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java_log, "_FILE_SIZE", 5000)
    monkeypatch.setattr(java_log, "_INTERVAL", 0.05)
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", _JAVA)))
    monkeypatch.setenv("REPORT", str(tmp_path / "report"))
    monkeypatch.setattr(java_start, "delta_jars", lambda java: [])


def _write(process: subprocess.Popen[bytes], report: Path, text: str) -> None:
    """Let the program write a line, and wait for it."""
    before = report.stat().st_size if report.exists() else 0
    assert process.stdin is not None
    process.stdin.write(f"{text}\n".encode())
    process.stdin.flush()
    wait_until(lambda: report.exists() and report.stat().st_size > before, 0.01)


def test_the_log_of_a_server_is_rotated(tmp_path: Path) -> None:
    log, old, report = (tmp_path / name for name in ("server.log", "server.log.1", "report"))
    log.touch(0o600)
    with java_start.gateway({}, make_scratch(tmp_path), log):
        pass
    process = java_start.started()
    try:
        for text in ("first", "second", "third"):
            _write(process, report, text)
        wait_until(lambda: log.stat().st_size == 0, 0.01)
        _write(process, report, "fourth")
        assert old.read_text()[-2000:].strip() == "third"
        assert old.stat().st_size == 5000
        assert old.stat().st_mode & 0o777 == 0o600
        assert log.read_text().strip() == "fourth"
        assert log.stat().st_size == 2000  # without a hole
    finally:
        java_start.end(process)
        java_start._running.remove(process)


def test_a_log_without_a_name_is_emptied(tmp_path: Path) -> None:
    report = tmp_path / "report"
    with java_start.gateway({}, make_scratch(tmp_path)):
        pass
    process = java_start.started()
    log = Path(f"/proc/{process.pid}/fd/1")
    try:
        for text in ("first", "second", "third"):
            _write(process, report, text)
        wait_until(lambda: log.stat().st_size == 0, 0.01)
        _write(process, report, "fourth")
        assert log.read_text().strip() == "fourth"
    finally:
        java_start.end(process)
        java_start._running.remove(process)


def test_a_log_is_emptied_even_if_it_cannot_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    (tmp_path / "server.log.1").mkdir()
    path.write_bytes(b"x" * 6000)
    with path.open("ab+") as file:
        java_log.shorten(file.fileno(), path)
    assert path.read_text() == "replctl could not keep older messages: Is a directory\n"
