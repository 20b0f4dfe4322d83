#!/usr/bin/env python3
"""Write tests/expr/data/*.tsv: the printed form or the error of expressions on a PostgreSQL 17
server.

    .ci/generate_expr_golden.py 'host=localhost user=postgres'

The connection string is libpq's, without a database: the script makes the database
`replctl_expr_golden`.  It tries each line of tests/expr/data/inputs/*.txt twice: as the row filter
of a publication of table ft, and as `CHECK ((expression) IS NULL)` of that table.  For the lines of
user.txt, it uses table ut, and the types, functions and operators of setup_user.sql.  The columns of
the files are

    context (filter, check), expression, SQLSTATE, printed text or message, detail, hint, position

The position counts characters of the expression from 0.  It is -1 if the error has no position.
Lines are in COPY's text format.
"""

import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "tests" / "expr" / "data"
DATABASE = "replctl_expr_golden"
SETTINGS = """
SET client_min_messages = error; SET timezone = 'UTC'; SET datestyle = 'ISO, MDY';
SET intervalstyle = 'postgres'; SET bytea_output = 'hex'; SET extra_float_digits = 1;
\\set VERBOSITY verbose
\\pset null ''
"""

FILTER = """\\echo #
CREATE PUBLICATION p FOR TABLE {table} WHERE (
{expression}
);
SELECT '=' || replace(pg_get_expr(prqual, prrelid), E'\\n', E'\\\\n') FROM pg_publication_rel;
DROP PUBLICATION IF EXISTS p;
"""
CHECK = """\\echo #
CREATE TABLE {table} (LIKE pattern.{table}, CHECK ((
{expression}
) IS NULL));
SELECT '=' || replace(pg_get_expr(conbin, conrelid), E'\\n', E'\\\\n') FROM pg_constraint
 WHERE contype = 'c' AND conrelid = (SELECT oid FROM pg_class
                                      WHERE relname = '{table}' AND relnamespace = 2200);
DROP TABLE IF EXISTS {table};
"""


def psql(conninfo: str, script: str) -> str:
    """Return the output of a script, with errors among the results."""
    command = ["psql", conninfo, "-X", "-q", "-A", "-t"]
    return subprocess.run(
        command,
        input=script,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ).stdout


def results(conninfo: str, table: str, expressions: list[str]) -> list[list[str]]:
    """Return the fields of a golden line for each expression, in the order of their input."""
    lines: list[list[str]] = []
    for context, template, prepare in (
        ("filter", FILTER, f"CREATE TABLE {table} (LIKE pattern.{table});"),
        ("check", CHECK, f"DROP TABLE {table};"),
    ):
        statements = [template.format(table=table, expression=item) for item in expressions]
        output = psql(conninfo, SETTINGS + prepare + "\n" + "".join(statements))
        answers = output.split("#\n")[1:]
        if len(answers) != len(expressions):
            raise SystemExit(f"{len(expressions)} expressions, {len(answers)} answers")
        for expression, answer in zip(expressions, answers, strict=True):
            lines.append([context, expression, *fields(expression, answer)])
    return lines


def fields(expression: str, answer: str) -> list[str]:
    """Return SQLSTATE, text or message, detail, hint and position from psql's output for a
    statement.
    """
    if answer.startswith("="):
        return ["00000", answer[1:].rstrip("\n").replace("\\n", "\n"), "", "", "-1"]
    shown = answer.splitlines()
    found = {"DETAIL": "", "HINT": ""}
    position = -1
    for i, line in enumerate(shown):
        label, _, text = line.partition(":  ")
        if label in found:
            found[label] = text
        if line.startswith("LINE 2: "):
            position = offset(expression, line.removeprefix("LINE 2: "), len(shown[i + 1]) - 9)
    _, code, message = shown[0].split(": ", 2)
    return [code.strip(), message, found["DETAIL"], found["HINT"], str(position)]


def offset(expression: str, excerpt: str, caret: int) -> int:
    """Return the position of the caret in the expression.  psql shows only a part of a long
    expression.
    """
    start = excerpt.removeprefix("...")
    cut = len(excerpt) - len(start)
    if expression.startswith(start):
        return caret
    start = start.removesuffix("...")
    if expression.count(start) != 1 and cut > 0:
        raise SystemExit(f"cannot tell the position of {start!r} in {expression!r}")
    return expression.index(start) + caret - cut


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def main(server: str) -> None:
    psql(
        f"{server} dbname=postgres",
        f"DROP DATABASE IF EXISTS {DATABASE};\nCREATE DATABASE {DATABASE};",
    )
    conninfo = f"{server} dbname={DATABASE}"
    set_up(conninfo, "setup.sql")
    for path in sorted((DATA / "inputs").glob("*.txt")):
        if path.stem != "user":
            write(conninfo, path, "ft")
    set_up(conninfo, "setup_user.sql")
    write(conninfo, DATA / "inputs" / "user.txt", "ut")


def set_up(conninfo: str, name: str) -> None:
    output = psql(conninfo, "SET client_min_messages = error;" + (DATA / name).read_text())
    if output.strip():
        raise SystemExit(output)


def write(conninfo: str, path: Path, table: str) -> None:
    lines = results(conninfo, table, path.read_text(encoding="utf-8").splitlines())
    text = "".join("\t".join(map(escaped, line)) + "\n" for line in lines)
    (DATA / f"{path.stem}.tsv").write_text(text, encoding="utf-8")
    print(f"{path.stem}.tsv: {len(lines)} lines")


if __name__ == "__main__":
    main(sys.argv[1])
