#!/usr/bin/env python3
"""Write tests/spark/data/*.tsv: the values of expressions on a PostgreSQL 17 server, row by row.

    .ci/generate_evaluation_golden.py 'host=localhost user=postgres'

The connection string is libpq's, without a database: the script makes the database
replctl_evaluation_golden, with the table and the rows of tests/spark/data/setup.sql.  rows.tsv has
the rows.  Each expression of inputs/*.txt has a line with the expression and, for each row, one of

    =text    the value, by its type's output function
    !22012   the SQLSTATE of the error
    NULL

aggregates.tsv has the value of each line of aggregates.txt over all rows.  Lines are in COPY's text
format.  The script leaves out an expression that the server does not accept, and prints a note.
"""

import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "tests" / "spark" / "data"
DATABASE = "replctl_evaluation_golden"
SETTINGS = """
SET client_min_messages = error; SET timezone = 'UTC'; SET datestyle = 'ISO, MDY';
SET intervalstyle = 'postgres'; SET bytea_output = 'hex'; SET extra_float_digits = 1;
"""
EVALUATE = """
CREATE TABLE item (id serial, expression text);
CREATE FUNCTION evaluate(expression text, key int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE shown text; is_null boolean;
BEGIN
  EXECUTE format('SELECT format(''%%s'', v), v IS NOT DISTINCT FROM NULL FROM'
                 ' (SELECT (%s) AS v FROM et WHERE k = %s OFFSET 0) AS x', expression, key)
    INTO shown, is_null;
  RETURN CASE WHEN is_null THEN 'NULL' ELSE '=' || shown END;
EXCEPTION WHEN OTHERS THEN
  RETURN '!' || SQLSTATE;
END $$;
"""


def psql(conninfo: str, script: str) -> str:
    """Return the output of a script."""
    return subprocess.run(
        ["psql", conninfo, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"],
        input=script,
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ).stdout


def evaluated(conninfo: str, expressions: list[str]) -> str:
    """Return the golden lines of expressions."""
    script = SETTINGS + "TRUNCATE item RESTART IDENTITY;\nCOPY item (expression) FROM STDIN;\n"
    script += "".join(f"{escaped(item)}\n" for item in expressions) + "\\.\n"
    script += (
        "COPY (SELECT expression, v.* FROM item, LATERAL (SELECT "
        + ", ".join(f"evaluate(expression, {key})" for key in range(1, 13))
        + ") AS v ORDER BY id) TO STDOUT;\n"
    )
    lines = psql(conninfo, script).splitlines(keepends=True)
    for line in lines:
        if rejected(line):
            print("not accepted:", line.split("\t")[0], line.split("\t")[1])
    return "".join(line for line in lines if not rejected(line))


def rejected(line: str) -> bool:
    return all(field.startswith("!42") for field in line.rstrip("\n").split("\t")[1:])


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def main(server: str) -> None:
    psql(
        f"{server} dbname=postgres",
        f"DROP DATABASE IF EXISTS {DATABASE};\nCREATE DATABASE {DATABASE};",
    )
    conninfo = f"{server} dbname={DATABASE}"
    psql(conninfo, SETTINGS + (DATA / "setup.sql").read_text(encoding="utf-8") + EVALUATE)
    rows = psql(conninfo, SETTINGS + "COPY et TO STDOUT;")
    (DATA / "rows.tsv").write_text(rows, encoding="utf-8")
    columns = psql(
        conninfo,
        "SELECT attname, typname, atttypmod FROM pg_attribute JOIN pg_type t ON t.oid = atttypid"
        " WHERE attrelid = 'et'::regclass AND attnum > 0 ORDER BY attnum;",
    )
    (DATA / "columns.tsv").write_text(columns.replace("|", "\t"), encoding="utf-8")
    for path in sorted((DATA / "inputs").glob("*.txt")):
        write(conninfo, path.stem, path.read_text(encoding="utf-8").splitlines())
    write_aggregates(conninfo)


def write_aggregates(conninfo: str) -> None:
    """Write the value of each line of aggregates.txt over all rows."""
    lines = []
    for item in (DATA / "aggregates.txt").read_text(encoding="utf-8").splitlines():
        query = (
            "COPY (SELECT CASE WHEN v IS NULL THEN 'NULL' ELSE '=' || format('%s', v) END"
            f" FROM (SELECT {item} AS v FROM et) AS x) TO STDOUT;"
        )
        lines.append(f"{escaped(item)}\t{psql(conninfo, SETTINGS + query)}")
    (DATA / "aggregates.tsv").write_text("".join(lines), encoding="utf-8")
    print(f"aggregates.tsv: {len(lines)} expressions")


def write(conninfo: str, topic: str, expressions: list[str]) -> None:
    text = evaluated(conninfo, expressions)
    (DATA / f"{topic}.tsv").write_text(text, encoding="utf-8")
    print(f"{topic}.tsv: {text.count(chr(10))} expressions")


if __name__ == "__main__":
    main(sys.argv[1])
