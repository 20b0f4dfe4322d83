"""A user at a terminal: prompts, editing, colours, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from replctl.psql.messages import Messages
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.statement_scan import StatementScanner
from replctl.psql.typed_history import History, history_text
from replctl.psql.variables import Variables
from replctl.session import Session

CSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


class Terminal:
    """The command at the other end of a pseudo-terminal."""

    def __init__(self, home: Path, *arguments: str, kind: str = "xterm-256color") -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ |= {"REPLCTL_HOME": str(home), "HOME": str(home), "TERM": kind}
            os.environ.pop("NO_COLOR", None)
            os.execv(sys.executable, [sys.executable, "-m", "replctl", "-X", *arguments])
        self.raw = ""
        self._read_up_to = 0

    def expect(self, text: str, timeout: float = 60) -> None:
        """Read until `text` appears after the text that was expected before."""
        end = time.monotonic() + timeout
        while (found := self._plain().find(text, self._read_up_to)) < 0:
            assert time.monotonic() < end, f"{text!r} did not come, but {self.raw!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                received = os.read(self.fd, 65536).decode()
                if "\x1b[6n" in received:  # a request for the position of the cursor
                    os.write(self.fd, b"\x1b[1;1R")
                self.raw += received
        self._read_up_to = found + len(text)

    def _plain(self) -> str:
        return CSI.sub("", self.raw).replace("\r", "")

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def exit_code(self) -> int:
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        _pid, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


@pytest.fixture
def terminal(fresh_home: Path, tmp_path: Path) -> Terminal:
    home = tmp_path / "home"
    shutil.copytree(fresh_home, home)
    return Terminal(home)


def test_a_session(terminal: Terminal) -> None:
    terminal.expect('Type "help" for help.')
    terminal.expect("postgres=#")
    terminal.type("SELECT (1\r")
    terminal.expect("postgres(#")
    terminal.type(") AS one, NULL AS none;\r")
    terminal.expect("(1 row)")
    assert re.search(r"\x1b\[1m *one *\x1b\[0m", terminal.raw)
    terminal.expect("postgres=#")
    terminal.type("SELECT never sent\x03")
    terminal.expect("postgres=#")
    terminal.type("\\foo\r")
    terminal.expect("invalid command \\foo\nTry \\? for help.")
    terminal.expect("postgres=#")
    terminal.type("\\if false\r")
    terminal.expect("postgres@#")
    terminal.type("\\echo x\r")
    terminal.expect("command ignored")
    terminal.type("\\endif\r")
    terminal.expect("postgres=#")
    terminal.type("\\s\r")
    terminal.expect("SELECT (1\n) AS one, NULL AS none;\n\\foo")
    terminal.expect("postgres=#")
    terminal.type("\x04")
    assert terminal.exit_code() == 0


def test_a_terminal_without_escape_sequences(fresh_home: Path, tmp_path: Path) -> None:
    shutil.copytree(fresh_home, tmp_path / "home")
    terminal = Terminal(tmp_path / "home", kind="dumb")
    terminal.expect("postgres=# ")
    terminal.type("SELECT 1 AS one;\n")
    terminal.expect("(1 row)")
    terminal.expect("postgres=# ")
    terminal.type("\\q\n")
    assert terminal.exit_code() == 0
    assert "\x1b" not in terminal.raw


def test_completion(terminal: Terminal) -> None:
    terminal.expect("postgres=#")
    terminal.type("\\ech\t")
    terminal.expect("\\ech")
    terminal.expect("o")  # the completed letter may be drawn alone; the prompt also has an o
    terminal.type(" :DBNAME\r")
    terminal.expect("\npostgres\n")
    terminal.type("\\q\r")
    assert terminal.exit_code() == 0


#: Lines to type.  The history must not contain the lines with the word secret.
_SECRETS = r"""
CREATE ROLE a LOGIN PASSWORD 'secret1';
 ALTER ROLE a
  password
'secret2';
\c "host=/nowhere password=secret3"
\c postgresql://a:secret4@nowhere/db
CREATE USER MAPPING FOR a SERVER s
OPTIONS (user 'u', "password" 'secret5');
CREATE SUBSCRIPTION s CONNECTION 'dbname=x
password=secret6' PUBLICATION p;
SELECT 'sc://host:1/;token=secret7';
\password a
\set first 'secret8'
\set second :first
\set greeting hello
ALTER ROLE a
PASSWORD :'second';
SELECT 1 AS password_required,
2 AS last;
"""


def test_the_history_holds_no_passwords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLCTL_HISTORY", str(tmp_path / "history"))
    (tmp_path / "history").touch(0o666)
    variables = Variables()
    variables.set("HISTCONTROL", "ignorespace")
    settings = PsqlSettings(variables, Messages(variables), connect=_no_session)
    scanner = StatementScanner(variables, lambda severity, text: None)
    history = History(settings, lambda: bool(scanner.buffer))
    for line in _SECRETS.strip("\n").split("\n"):
        history.append_string(line)
        if not line.startswith("\\"):
            list(scanner.scan(line))
    assert "last" not in history_text(settings)
    history.flush()
    kept = ["\\password a", "SELECT 1 AS password_required,", "2 AS last;"]
    assert history_text(settings).split("\n") == kept
    history.close()
    assert history_text(settings).split("\n") == [*kept, "\\set greeting hello"]
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o600


def _no_session(
    database: str, role: str, directory: str | None, parameters: Mapping[str, str]
) -> Session:
    raise AssertionError


_SLOW_JAVA = """#!/bin/sh
case "$*" in *-version*) echo 'openjdk version "17.0.1"' >&2; exit;; esac
sleep 2
exit 1
"""


def test_a_start_of_spark_is_shown(
    fresh_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_SLOW_JAVA)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    home = tmp_path / "home"
    shutil.copytree(fresh_home, home)
    statements = ("-c", "CREATE TABLE t (a int)", "-c", "INSERT INTO t SELECT 1")
    terminal = Terminal(home, *statements)
    terminal.expect("Starting Spark ...")
    terminal.expect("ERROR:")
    assert re.search(r"Starting Spark \.\.\.\r +\r", terminal.raw)
    assert terminal.exit_code() == 1
    quiet = Terminal(home, "-q", *statements[2:])
    quiet.expect("ERROR:")
    assert "Starting" not in quiet.raw
    assert quiet.exit_code() == 1
    command = [sys.executable, "-m", "replctl", "-X", "--home", str(home), *statements[2:]]
    piped = subprocess.run(command, capture_output=True, text=True, check=False)
    assert piped.returncode == 1
    assert "Starting" not in piped.stdout + piped.stderr
