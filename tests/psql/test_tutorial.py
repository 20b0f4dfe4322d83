"""The tutorial (docs/tutorial/index.md), the session of README.md and samples/ci.sh: their commands
work, and print what the pages show."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path

import pytest
from patience import wait_until

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "tutorial" / "index.md"
#: A block of commands, and their output if the page shows it.
_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
#: The session of README.md: the lines after a prompt, and the output of the last statement.
_TYPED = re.compile(r"^    \w+=# (.*)$", re.MULTILINE)
_PRINTED = re.compile(r"^    \w+=# SELECT .*\n((?:    .*\n)+)", re.MULTILINE)
_LSN = re.compile(r"\b0/[0-9A-F]+\b")
_END = "-- end of block"


def _comparable(text: str) -> str:
    """Return a text without LSNs, and without blanks at the ends of lines."""
    lines = [line.rstrip() for line in _LSN.sub("0/...", text).splitlines()]
    return "\n".join(lines).strip()


@pytest.fixture
def environment(tmp_path: Path, connect_server: str) -> dict[str, str]:
    """Return the environment of a shell that finds replctl, python3 and Spark."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (("replctl", f"{sys.executable} -m replctl"), ("python3", sys.executable)):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "SPARK_REMOTE": connect_server}


def _run(
    command: list[str], folder: Path, environment: dict[str, str], typed: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.spark
def test_the_tutorial_prints_what_it_shows(tmp_path: Path, environment: dict[str, str]) -> None:
    blocks = _BLOCK.findall(_PAGE.read_text("utf-8"))
    assert len(blocks) > 5
    script = "".join(f"{commands}echo '{_END}'\n" for commands, _ in blocks)
    done = _run(["sh", "-euc", script], tmp_path, environment)
    lines = done.stderr.splitlines()
    faults = [line for line in lines if line[:7] not in ("NOTICE:", "LOG:  s")]
    assert (done.returncode, faults) == (0, []), done.stdout
    printed = done.stdout.split(f"{_END}\n")
    for (commands, shown), actual in zip(blocks, printed, strict=False):
        if shown:
            assert _comparable(actual) == _comparable(shown), commands
    home = {"REPLCTL_HOME": str(tmp_path / "tutorial" / "cluster")}
    _service_of_step_6(tmp_path / "tutorial", environment | home)


def _metrics(port: int) -> bool:
    """Return whether a service prints metrics."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _service_of_step_6(folder: Path, environment: dict[str, str]) -> None:
    """Run the command that the page starts as a service, with a free port, and end it."""
    (command,) = re.findall(r"^(replctl sync --watch.*)$", _PAGE.read_text("utf-8"), re.MULTILINE)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert command.endswith(" --metrics-port 9187")
    words = [*command.split()[:-1], str(port)]
    with subprocess.Popen(words, cwd=folder, env=environment) as service:
        try:
            wait_until(lambda: _metrics(port))
            service.send_signal(signal.SIGTERM)
            assert service.wait(60) == 0
        finally:
            service.kill()


def test_the_line_for_cron_is_that_of_the_guide() -> None:
    """`test_guide_scheduling.py` runs the line."""
    guide = (_PAGE.parents[1] / "guides" / "scheduling.md").read_text("utf-8")
    lines = re.findall(r"^(?:REPLCTL_HOME=|\*/5 ).*$", _PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 2
    assert set(lines) <= set(guide.splitlines())


def test_the_installation_is_that_of_the_readme() -> None:
    """`test_release.py` runs the command of README.md."""
    page, readme = (path.read_text("utf-8") for path in (_PAGE, _ROOT / "README.md"))
    lines = page.partition("```bash\n")[2].partition("```")[0].replace("export ", "").splitlines()
    command = " && ".join(lines).replace("pip install", "pip install --quiet")
    assert f"    {command} samples/run.sh\n" in readme


@pytest.mark.spark
def test_the_session_of_the_readme(tmp_path: Path, environment: dict[str, str]) -> None:
    page = (_ROOT / "README.md").read_text("utf-8")
    command = ["replctl", "-X", "-q", "--home", str(tmp_path / "cluster")]
    done = _run(command, tmp_path, environment, "\n".join(_TYPED.findall(page)))
    assert done.returncode == 0, done.stderr
    [shown] = _PRINTED.findall(page)
    assert _comparable(done.stdout) == _comparable(textwrap.dedent(shown))


@pytest.mark.spark
def test_the_sample_for_ci_after_the_story(tmp_path: Path, environment: dict[str, str]) -> None:
    environment["REPLCTL_HOME"] = str(tmp_path / "cluster")
    for name in ("run.sh", "ci.sh"):
        done = _run([str(_ROOT / "samples" / name)], tmp_path, environment)
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ci.sh: all is well")
