"""Options, exit codes, and the start and the end of the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from fix_psql import Psql

from replctl import __version__


def test_commands_and_files_run_in_their_order(psql: Psql, tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("\\echo file\n")
    outcome = psql("-X", "-c", "\\echo one", "-f", str(file), "-c", "\\echo two")
    assert outcome.stdout == "one\nfile\ntwo\n"
    assert outcome.exit_code == 0


def test_a_command_string_is_neither_split_nor_interpolated(psql: Psql) -> None:
    outcome = psql("-X", "-At", "-v", "x=1", "-c", "SELECT 1; SELECT ':x'")
    assert outcome.stdout == "1\n:x\n"


def test_stdin_is_a_script_without_places(psql: Psql) -> None:
    outcome = psql("-X", script="\\echo hello\n\\foo\n\\echo :DBNAME\n")
    assert outcome == type(outcome)("hello\npostgres\n", "invalid command \\foo\n", 0)


def test_errors_in_a_file_have_a_place(psql: Psql, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.sql", tmp_path / "outer.sql"
    inner.write_text("\n\\foo\n")
    outer.write_text("\\echo 1\n\\ir inner.sql\n\\bar\n")
    outcome = psql("-X", "-f", str(outer))
    assert outcome.stderr == (
        f"replctl:{inner}:2: error: invalid command \\foo\n"
        f"replctl:{outer}:3: error: invalid command \\bar\n"
    )


@pytest.mark.parametrize(
    ("arguments", "script", "exit_code"),
    [
        (["-c", "\\echo"], "", 0),
        (["-c", "\\foo"], "", 1),
        (["-c", "SELECT foo"], "", 1),
        (["-c", "SELECT foo", "-c", "SELECT 1"], "", 0),
        (["-v", "ON_ERROR_STOP=1", "-c", "SELECT foo", "-c", "SELECT 1"], "", 1),
        ([], "\\foo\n", 0),
        (["-v", "ON_ERROR_STOP=1"], "\\foo\n", 3),
        (["-v", "ON_ERROR_STOP=1"], "SELECT foo;\nSELECT 1;\n", 3),
        (["-v", "ON_ERROR_STOP=1"], "\\q\nSELECT foo;\n", 0),
        ([], "\\c nowhere\nSELECT 1;\n", 2),
        (["-f", "/does/not/exist"], "", 1),
        (["-d", "nowhere"], "", 2),
        (["-U", "nobody"], "", 2),
        (["postgres", "nobody"], "", 2),
        (["--nonsense"], "", 1),
        (["-y"], "", 1),
        (["-c"], "", 1),
        (["-P", "nonsense=1"], "", 1),
        (["-v", "ON_ERROR_STOP=nonsense"], "", 1),
        (["-1"], "", 0),
        (["sync", "--nonsense"], "", 1),
        (["sync", "--help"], "", 0),
        (["--help"], "", 0),
        (["-?"], "", 0),
        (["--version"], "", 0),
        (["-l"], "", 0),
    ],
)
def test_exit_code(psql: Psql, arguments: list[str], script: str, exit_code: int) -> None:
    options = [] if "sync" in arguments else ["-X"]
    assert psql(*options, *arguments, script=script).exit_code == exit_code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "unrecognized option '--nonsense'"),
        (["-y"], "invalid option -- 'y'"),
        (["-qc"], "option requires an argument -- 'c'"),
        (["--file"], "option '--file' requires an argument"),
        (["--list=x"], "option '--list' doesn't allow an argument"),
        (["--no-"], "option '--no-' is ambiguous"),
    ],
)
def test_bad_options(psql: Psql, arguments: list[str], message: str) -> None:
    assert psql(*arguments).stderr == (
        f'replctl: {message}\nreplctl: hint: Try "replctl --help" for more information.\n'
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-A"], "a|b\n1|x\n(1 row)\n"),
        (["-At"], "1|x\n"),
        (["-AtF", ";"], "1;x\n"),
        (["-At", "-R", "+", "--expanded"], "a|1+b|x\n"),
        (["--csv"], "a,b\n1,x\n"),
        (["-A0z"], "a\0b\x001\0x\0(1 row)\0"),
        (["--no-align", "--tuples-only", "--field-separator=:"], "1:x\n"),
        (["-P", "format=csv", "-P", "tuples_only"], "1,x\n"),
        (["-q", "-Atx"], "a|1\nb|x\n"),
    ],
)
def test_output_options(psql: Psql, arguments: list[str], expected: str) -> None:
    assert psql("-X", *arguments, "-c", "SELECT 1 AS a, 'x' AS b").stdout == expected


def test_output_file(psql: Psql, tmp_path: Path) -> None:
    file = tmp_path / "out"
    outcome = psql("-X", "-o", str(file), "-c", "SELECT 1 AS a", "-c", "\\echo here")
    assert outcome.stdout == "here\n"
    assert file.read_text() == " a \n---\n 1\n(1 row)\n\n"


def test_echo_queries_and_errors(psql: Psql) -> None:
    assert psql("-Xe", "-At", "-c", "SELECT 1").stdout == "SELECT 1\n1\n"
    assert psql("-Xb", "-c", "SELECT foo").stderr.endswith("STATEMENT:  SELECT foo\n")


def test_start_up_file(psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".replctlrc").write_text("\\set greeting hello\n\\pset format unaligned\n")
    assert psql("-c", "\\echo :greeting").stdout.endswith("hello\n")
    assert psql("-X", "-c", "\\echo :greeting").stdout == ":greeting\n"
    other = tmp_path / "other"
    other.write_text("\\set greeting other\n")
    monkeypatch.setenv("REPLCTLRC", str(other))
    assert psql("-c", "\\echo :greeting").stdout == "other\n"


def test_single_transaction(psql: Psql) -> None:
    create = ("-c", "CREATE SCHEMA s", "-c", "CREATE SCHEMA t")
    assert psql("-X1", *create, "-c", "CREATE SCHEMA s").exit_code == 1
    assert psql("-X1", *create).exit_code == 0


def test_a_single_transaction_of_stdin(psql: Psql) -> None:
    outcome = psql("-X1", script="CREATE SCHEMA s;\nSELECT 1/0;\nSELECT 2;\n")
    assert outcome.exit_code == 0  # as in psql, although the transaction has failed
    assert "ERROR:  current transaction is aborted" in outcome.stderr
    assert psql("-X1", script="CREATE SCHEMA s;\nCREATE SCHEMA t;\n").stderr == ""
    assert psql("-X1v", "ON_ERROR_STOP=1", script="DROP SCHEMA s;\nSELECT 1/0;").exit_code == 3
    assert psql("-X", "-c", "DROP SCHEMA s, t").exit_code == 0


def test_single_steps_take_their_answers_from_stdin(psql: Psql) -> None:
    shown = psql("-XAts", script="SELECT 1;\nx\nSELECT 2;\n\nSELECT 3;").stdout
    assert [line for line in shown.splitlines() if not line.startswith("/")] == [
        "SELECT 1;", "SELECT 2;", "2", "SELECT 3;", "3",
    ]  # fmt: skip


def test_the_case_of_a_backslash_command(psql: Psql) -> None:
    """Only \\copy ignores case.  replctl skips the line of an unknown command."""
    script = "\\COPY (SELECT 5) TO STDOUT\n\\DT\n\\ECHO a \\echo b\n\\copY (SELECT 6) TO STDOUT\n"
    outcome = psql("-X", script=script)
    assert outcome.stdout == "5\n6\n"
    assert outcome.stderr == "invalid command \\DT\ninvalid command \\ECHO\n"


def test_an_encoding_that_is_not_supported(psql: Psql) -> None:
    outcome = psql("-X", script="\\encoding latin1\n\\encoding nope\n\\encoding\n")
    assert outcome.stdout == "UTF8\n"
    assert outcome.stderr.splitlines() == [
        'ERROR:  value "LATIN1" of parameter "client_encoding" is not supported',
        'HINT:  Supported values: "UTF8", "SQL_ASCII".',
        "nope: invalid encoding name or conversion procedure not found",
    ]


def test_statements_of_one_string_are_one_transaction(psql: Psql) -> None:
    assert psql("-X", "-c", "CREATE SCHEMA s; CREATE SCHEMA s").exit_code == 1
    assert psql("-X", "-c", "CREATE SCHEMA s; COMMIT; CREATE SCHEMA s").exit_code == 1
    outcome = psql("-X", "-c", "CREATE SCHEMA s; SELECT 1")
    assert outcome.stderr == 'ERROR:  schema "s" already exists\n'


def test_version_variables(psql: Psql) -> None:
    script = "\\if :{?VERSION_NUM}\n\\echo :VERSION_NUM :VERSION_NAME :VERSION\n\\endif\n"
    version = f"replctl {__version__} (as psql of PostgreSQL 17)"
    assert psql("-X", script=script).stdout == f"170000 17.0 {version}\n"
    assert psql("-X", "-v", "VERSION_NUM=5", "-c", "\\echo :VERSION_NUM").stdout == "5\n"


def test_a_prompt_shows_the_block(psql: Psql) -> None:
    """At the end of the input, replctl rolls back an open transaction."""
    psql("-X", script="BEGIN;\nCREATE SCHEMA s;\n")
    assert psql("-X", "-c", "CREATE SCHEMA s").exit_code == 0


def test_a_connection_string_names_a_cluster(psql: Psql, tmp_path: Path) -> None:
    other = tmp_path / "other"
    outcome = psql("-X", "-d", f"host={other} dbname=postgres", "-c", "\\conninfo")
    assert outcome.stdout == (
        f'You are connected to database "postgres" as user "postgres" in cluster "{other}".\n'
    )
    outcome = psql("-X", "-d", "host=example.com dbname=postgres", "-c", "\\conninfo")
    assert outcome.exit_code == 2


def test_connect(psql: Psql) -> None:
    outcome = psql("-X", script="\\c\n\\c - nobody\n\\echo not reached\n")
    assert outcome.exit_code == 2
    assert outcome.stdout == ('You are now connected to database "postgres" as user "postgres".\n')
    assert 'FATAL:  role "nobody" does not exist' in outcome.stderr


def test_a_refused_connection_says_why(psql: Psql) -> None:
    script = """CREATE ROLE one LOGIN CONNECTION LIMIT 1;
CREATE ROLE out;
CREATE ROLE two LOGIN;
CREATE DATABASE closed;
REVOKE CONNECT ON DATABASE closed FROM public;
\\c - one
\\c - postgres
\\c - one
\\c closed two
"""
    outcome = psql("-X", "-q", script=script)
    assert outcome.exit_code == 2
    assert outcome.stderr.endswith(
        'failed: FATAL:  permission denied for database "closed"\n'
        "DETAIL:  User does not have CONNECT privilege.\n"
    )
    outcome = psql("-X", "-U", "out", "-c", "\\conninfo")
    assert outcome.stderr.endswith('FATAL:  role "out" is not permitted to log in\n')


def test_a_fault_of_ours_is_an_internal_error(
    psql: Psql, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from replctl import execute

    def fail(session: object, text: str) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(execute, "execute", fail)
    outcome = psql("-X", script="SELECT 1;\n\\echo goes on\n")
    assert outcome.stdout == "goes on\n"
    assert outcome.stderr.startswith("ERROR:  internal error: ZeroDivisionError: oh\nHINT:")
    assert "ZeroDivisionError" in (tmp_path / "home" / "log" / "replctl.log").read_text()


def _shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        # Output is written when the buffer is flushed, as for most users
        env={**os.environ, "REPLCTL_HOME": str(folder / "home"), "PYTHONUNBUFFERED": ""},
        check=False,
    )


@pytest.mark.parametrize(
    ("redirection", "code", "stderr"),
    [
        (">&-", 0, ""),
        (">/dev/full", 1, "could not print result table: No space left on device\n"),
    ],
)
def test_nobody_takes_the_output(tmp_path: Path, redirection: str, code: int, stderr: str) -> None:
    process = _shell(f"{sys.executable} -m replctl -X -c 'SELECT 1' {redirection}", tmp_path)
    assert process.returncode == code
    assert process.stderr.endswith(stderr)
    assert "Traceback" not in process.stderr
    assert "internal error" not in process.stderr


@pytest.mark.parametrize(
    ("arguments", "stderr"),
    [
        (r"-X -c '\dn'", "could not print result table"),
        ("-X -l", "replctl: error: could not print result table"),
        ("-X -c 'COPY (SELECT 1) TO STDOUT'", "could not write COPY data"),
        (r"-X -c '\echo x'", "ERROR:  could not write"),
        ("-X -c 'CREATE SCHEMA s'", "ERROR:  could not write"),
        ("status", "replctl: error: could not print result table"),
        ("dump", "ERROR:  could not write"),
        ("--help", "replctl: error: could not write"),
        ("--version", "replctl: error: could not write"),
    ],
)
def test_the_disk_is_full(tmp_path: Path, arguments: str, stderr: str) -> None:
    _shell(f"{sys.executable} -m replctl -X -c 'SELECT 1'", tmp_path)
    process = _shell(f"{sys.executable} -m replctl {arguments} >/dev/full", tmp_path)
    assert process.stderr == f"{stderr}: No space left on device\n"
    assert process.returncode == 1


def test_output_continues_after_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    commands = r"-c '\o /dev/full' -c 'SELECT 1' -c '\o' -c 'SELECT 2'"
    process = _shell(f"{sys.executable} -m replctl -X -At {commands}", tmp_path)
    assert process.stdout == "2\n"
    assert process.stderr == (
        "could not print result table: No space left on device\n"
        "/dev/full: No space left on device\n"
    )


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    script = tmp_path / "long.sql"
    script.write_text("\\echo " + "x" * 5000 + "\n" + ("\\echo y\n" * 50000))
    process = _shell(f"{sys.executable} -m replctl -X -f {script} | head -c 10", tmp_path)
    assert process.stdout == "x" * 10
    assert process.stderr == ""


_INTERRUPTED_WHILE_LOADING = """
import os, signal, sys
from replctl.__main__ import main

class Interrupts:
    def find_spec(self, name, *_):
        if name == "replctl.psql.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


def test_ctrl_c_while_the_command_is_loaded_ends_it_without_a_word() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_WHILE_LOADING], capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize(
    "arguments",
    [
        ("sync", "--watch", "--interval"),
        ("standby", "sync", "--watch", "--interval"),
        ("standby", "promote", "--wait"),
        ("spark", "start", "--idle-timeout"),
    ],
)
def test_nan_is_no_number_of_seconds(psql: Psql, arguments: tuple[str, ...]) -> None:
    refused = psql(*arguments, "nan")  # a watch would run without a pause
    assert refused.exit_code == 1
    assert refused.stderr.endswith(f"'{arguments[-1]}': nan is not in the range x>=0.\n")


def test_watch_refuses_what_is_no_number_of_seconds(psql: Psql) -> None:
    for value in ("nan", "inf", "1e400"):  # each ended the program with a traceback
        found = psql("-X", script=f"SELECT 1 \\watch {value}\n\\echo goes on\n")
        assert found.stderr == f'\\watch: incorrect interval value "{value}"\n'
        assert found.stdout == "goes on\n"


def test_watch_waits_longer_than_the_clock_can_count(
    psql: Psql, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        assert seconds < threading.TIMEOUT_MAX
        raise KeyboardInterrupt

    # Other threads of the process sleep with the module itself
    monkeypatch.setattr(
        "replctl.psql.mainloop.time", SimpleNamespace(**{**vars(time), "sleep": sleep})
    )
    found = psql("-XAt", script="SELECT 1 \\watch 1e30\n\\echo goes on\n")
    assert found.stdout == "1\n\ngoes on\n"
    assert found.stderr == ""
