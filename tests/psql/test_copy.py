"""The data of COPY comes from scripts, stdin, files and a user, and reaches replicas."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fix_psql import Psql
from fix_spark import spark_options
from test_interactive import Terminal, terminal

from replctl.parser import ast
from replctl.parser.parse import parse
from replctl.query.copy_options import copy_format
from replctl.query.copy_parse import DEFAULT, FieldReader, LineReader

__all__ = ["terminal"]


def test_data_in_stdin_end_at_the_marker(psql: Psql) -> None:
    script = (
        "CREATE TABLE t (a int);\nCOPY t FROM STDIN;\nx\n\\.\n\\echo after\nCOPY t FROM STDIN;\ny"
    )
    outcome = psql("-X", script=script)
    assert outcome.stdout == "CREATE TABLE\nafter\n"
    assert outcome.stderr == (
        'ERROR:  invalid input syntax for type integer: "x"\n'
        'CONTEXT:  COPY t, line 1, column a: "x"\n'
        'ERROR:  invalid input syntax for type integer: "y"\n'
        'CONTEXT:  COPY t, line 1, column a: "y"\n'
    )


def test_a_statement_that_is_refused_takes_no_data(psql: Psql) -> None:
    outcome = psql(
        "-X", "-v", "ON_ERROR_STOP=1", script="COPY nosuch FROM STDIN;\n\\echo no data\n"
    )
    assert (outcome.exit_code, outcome.stdout) == (3, "")
    outcome = psql("-X", script="COPY nosuch FROM STDIN;\n\\echo no data\n")
    assert outcome.stdout == "no data\n"


def test_commands_of_the_command_line_read_stdin(psql: Psql) -> None:
    psql("-X", "-c", "CREATE TABLE t (a int)")
    outcome = psql(
        "-X", "-c", "COPY t FROM STDIN", "-c", "\\copy t from stdin", script="x\n\\.\ny\n"
    )
    assert outcome.stderr.splitlines()[1::2] == [
        'CONTEXT:  COPY t, line 1, column a: "x"',
        'CONTEXT:  COPY t, line 1, column a: "y"',
    ]
    assert outcome.exit_code == 1


def test_included_scripts_have_their_own_data(psql: Psql, tmp_path: Path) -> None:
    inner = tmp_path / "inner.sql"
    inner.write_text("COPY t FROM STDIN;\ninner\n\\.\n\\copy t from pstdin\n")
    outer = tmp_path / "outer.sql"
    outer.write_text("CREATE TABLE t (a int);\n\\i inner.sql\nCOPY t FROM STDIN;\nouter\n\\.\n")
    os.chdir(tmp_path)
    outcome = psql("-X", "-f", "outer.sql", script="own\n")
    assert outcome.stderr.splitlines() == [
        'replctl:inner.sql:3: ERROR:  invalid input syntax for type integer: "inner"',
        'CONTEXT:  COPY t, line 1, column a: "inner"',
        'replctl:inner.sql:4: ERROR:  invalid input syntax for type integer: "own"',
        'CONTEXT:  COPY t, line 1, column a: "own"',
        'replctl:outer.sql:5: ERROR:  invalid input syntax for type integer: "outer"',
        'CONTEXT:  COPY t, line 1, column a: "outer"',
    ]


def test_a_user_is_asked_for_data_and_for_passwords(terminal: Terminal) -> None:
    terminal.expect("postgres=#")
    terminal.type("CREATE TABLE t (a int);\r")
    terminal.expect("CREATE TABLE\n")
    terminal.expect("postgres=#")
    terminal.type("COPY t FROM STDIN;\r")
    terminal.expect("Enter data to be copied followed by a newline.\n")
    terminal.expect("End with a backslash and a period on a line by itself, or an EOF signal.\n>> ")
    terminal.type("x\n")
    terminal.expect(">> ")
    terminal.type("\\.\n")
    terminal.expect('CONTEXT:  COPY t, line 1, column a: "x"')
    terminal.expect("postgres=#")
    terminal.type("\\password\r")
    terminal.expect('Enter new password for user "postgres": ')
    terminal.type("secret\n")
    terminal.expect("Enter it again: ")
    terminal.type("secreT\n")
    terminal.expect("Passwords didn't match.")
    terminal.expect("postgres=#")
    terminal.type("\\password postgres\r")
    terminal.expect('Enter new password for user "postgres": ')
    terminal.type("secret\n")
    terminal.expect("Enter it again: ")
    terminal.type("secret\n")
    terminal.expect("postgres=#")
    terminal.type("SELECT substr(rolpassword, 1, 13) FROM pg_authid WHERE oid = 10;\r")
    terminal.expect("SCRAM-SHA-256")
    terminal.type("\\q\r")
    assert terminal.exit_code() == 0
    assert "secret" not in terminal.raw


def test_lines_may_come_in_any_pieces_of_lines() -> None:
    (statement,) = parse("COPY t FROM STDIN (FORMAT csv, DEFAULT 'D', ESCAPE '\\')")
    assert isinstance(statement, ast.Copy)
    format_ = copy_format(statement.options, is_from=True)
    data = [b"1\n", b'a,"b\n', b'c\\"\n', b'",D\n', b'"D",,""\n', b'x"y"z\n', b"\\.\n", b"after\n"]
    lines = LineReader(data, format_)
    fields = [FieldReader(format_).fields(line) for line in lines]
    assert fields == [["1"], ["a", 'b\nc"\n', DEFAULT], ["D", None, ""], ["xyz"]]
    assert lines.number == 7  # the line of the end marker


@pytest.mark.spark
def test_rows_are_copied_and_replicated(psql: Psql, tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("id,name\n" + "".join(f'{i},"row ""{i}"""\n' for i in range(3000)))
    script = f"""
        CREATE TABLE t (id int PRIMARY KEY, name text, at serial);
        CREATE PUBLICATION p FOR TABLE t WHERE (id % 1000 = 1);
        CREATE DATABASE replica;
        \\c replica
        CREATE TABLE t (id int PRIMARY KEY, name text, at int);
        CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=postgres' PUBLICATION p;
        \\sync
        \\c postgres
        \\copy t (id, name) from '{source}' csv header
        SELECT count(*), count(DISTINCT at), sum(id), max(at) FROM t;
        \\copy (SELECT id, name, at FROM t WHERE id < 2 ORDER BY id) to stdout csv
        \\c replica
        \\sync
        SELECT id, name, at FROM t ORDER BY id;
    """
    outcome = psql(*spark_options(), "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", script=script)
    assert outcome.exit_code == 0, outcome.stderr
    lines = [line for line in outcome.stdout.splitlines() if line and line[0].isdigit()]
    assert lines == [
        "3000|3000|4498500|3000",
        '0,"row ""0""",1',
        '1,"row ""1""",2',
        '1|row "1"|2',
        '1001|row "1001"|1002',
        '2001|row "2001"|2002',
    ]


@pytest.mark.spark
def test_each_call_in_a_default_takes_a_value(psql: Psql) -> None:
    script = """
        CREATE SEQUENCE q;
        CREATE TABLE t (
            a int, b int DEFAULT nextval('q') * 100 + nextval('q'), c int DEFAULT nextval('q')
        );
        COPY t (a) FROM STDIN;
1
2
\\.
        SELECT * FROM t ORDER BY a;
    """
    outcome = psql(*spark_options(), "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", script=script)
    assert outcome.exit_code == 0, outcome.stderr
    found = [line.split("|") for line in outcome.stdout.split()]
    taken = [(*divmod(int(b), 100), int(c)) for _a, b, c in found]
    assert [a for a, _b, _c in found] == ["1", "2"]
    assert sorted(value for row in taken for value in row) == [1, 2, 3, 4, 5, 6]
