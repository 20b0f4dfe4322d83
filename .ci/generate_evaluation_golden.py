#!/usr/bin/env python3
"""Write tests/spark/data/*.tsv: what a PostgreSQL 17 server makes of expressions, row by row.

    .ci/generate_evaluation_golden.py 'host=localhost user=postgres'

The connection string is libpq's, without a database: the script makes replctl_evaluation_golden,
with the table and the rows of tests/spark/data/setup.sql.  rows.tsv has the rows; of each
expression of inputs/*.txt, and of random ones that are made here, a line has the expression and for
each row

    =text    the value, by its type's output function
    !22012   the SQLSTATE of the error
    NULL

aggregates.tsv has the value of each line of aggregates.txt over all rows.  Lines are in COPY's text
format.  An expression that the server does not accept at all is left out, with a note.
"""

import random
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

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
SEED = 20240229
RANDOM_EXPRESSIONS = 400


def psql(conninfo: str, script: str) -> str:
    """What a script prints."""
    return subprocess.run(
        ["psql", conninfo, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"],
        input=script,
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ).stdout


def evaluated(conninfo: str, expressions: list[str]) -> str:
    """Golden lines of expressions."""
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


class Generator:
    """Random expressions of the types that filters are mostly made of."""

    COLUMNS: ClassVar = {
        "int": ["i4", "j4", "i2"],
        "numeric": ["n2", "n4", "n", "m"],
        "float": ["f8", "g8"],
        "text": ["t", "s", "v"],
        "date": ["d", "e"],
        "timestamp": ["ts", "tu"],
    }
    CONSTANTS: ClassVar = {
        "int": ["0", "1", "5", "-7", "42"],
        "numeric": ["0.5", "1.50", "-2.25", "100.0", "3"],
        "float": ["'0.1'::float8", "'2.5'::float8", "'-1'::float8", "'NaN'::float8"],
        "text": ["'abc'", "'a'", "''", "'Quick'", "'é'"],
        "date": ["'2024-02-29'::date", "'2000-01-01'::date"],
        "timestamp": ["'2024-01-01'::timestamp", "'2024-02-29 12:00'::timestamp"],
    }
    FORMS: ClassVar = {
        "int": [
            "{int} + {int}",
            "{int} - {int}",
            "{int} * {int}",
            "{int} / {int}",
            "{int} % {int}",
            "- {int}",
            "abs({int})",
            "length({text})",
            "{date} - {date}",
            "({numeric})::int",
            "CASE WHEN {bool} THEN {int} ELSE {int} END",
            "COALESCE({int}, {int})",
        ],
        "numeric": [
            "{numeric} + {numeric}",
            "{numeric} - {numeric}",
            "{numeric} * {numeric}",
            "{numeric} / {numeric}",
            "round({numeric}, 1)",
            "abs({numeric})",
            "({int})::numeric",
            "COALESCE({numeric}, {numeric})",
            "GREATEST({numeric}, {numeric})",
            "CASE WHEN {bool} THEN {numeric} ELSE {numeric} END",
        ],
        "float": [
            "{float} + {float}",
            "{float} * {float}",
            "{float} / {float}",
            "- {float}",
            "({numeric})::float8",
            "LEAST({float}, {float})",
            "floor({float})",
        ],
        "text": [
            "{text} || {text}",
            "lower({text})",
            "substring({text}, {int})",
            "left({text}, {int})",
            "replace({text}, {text}, {text})",
            "trim({text})",
            "COALESCE({text}, {text})",
        ],
        "date": [
            "{date} + {int}",
            "{date} - {int}",
            "GREATEST({date}, {date})",
            "({timestamp})::date",
        ],
        "timestamp": [
            "{timestamp} + interval '1 month'",
            "{timestamp} - interval '1 day 02:00'",
            "date_trunc('month', {timestamp})",
            "({date})::timestamp",
            "LEAST({timestamp}, {timestamp})",
        ],
        "bool": [
            "{int} > {int}",
            "{int} = {int}",
            "{numeric} < {numeric}",
            "{numeric} = {numeric}",
            "{float} >= {float}",
            "{text} = {text}",
            "{text} < {text}",
            "{text} LIKE 'a%'",
            "{date} > {date}",
            "{timestamp} <= {timestamp}",
            "{bool} AND {bool}",
            "{bool} OR {bool}",
            "NOT ({bool})",
            "({bool}) IS NOT TRUE",
            "{int} IS NULL",
            "{int} IN (1, 5, {int})",
            "{numeric} BETWEEN {numeric} AND {numeric}",
            "{text} IS DISTINCT FROM {text}",
            "b",
            "{int} > {numeric}",
            "{date} = {timestamp}",
        ],
    }

    def __init__(self) -> None:
        self._random = random.Random(SEED)

    def expression(self, type_: str, depth: int) -> str:
        if depth == 0 and type_ != "bool":
            return self._random.choice(self.COLUMNS[type_] * 2 + self.CONSTANTS[type_])
        forms = self.FORMS[type_] if depth else self.FORMS["bool"][:10]
        parts = self._random.choice(forms)
        for inner in (*self.COLUMNS, "bool"):
            while "{" + inner + "}" in parts:
                made = self.expression(inner, max(depth - 1, 0))
                parts = parts.replace("{" + inner + "}", f"({made})", 1)
        return parts


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
    generator = Generator()
    types = ["bool"] * 3 + list(Generator.COLUMNS)
    made = [
        generator.expression(types[i % len(types)], 1 + i % 3) for i in range(RANDOM_EXPRESSIONS)
    ]
    write(conninfo, "random", list(dict.fromkeys(made)))


def write_aggregates(conninfo: str) -> None:
    """Of each line of aggregates.txt the value over all rows."""
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
