#!/usr/bin/env python3
"""Write tests/types/data/*.tsv: values as a PostgreSQL 17 server reads and prints them.

    .ci/generate_type_golden.py 'host=localhost user=postgres dbname=postgres'

The connection string is libpq's.  For each line of tests/types/data/inputs/*.tsv, psql lets the server
call its input and output functions:

    type, modifiers, input      -> type, modifiers, typmod, input, output or the error's fields
    coercion.tsv                -> the value of `input` cast to the type with its modifiers
    type_modifier.tsv           -> the typmod of the modifiers, and how format_type() prints it

Lines are in COPY's text format.  The database must be UTF8 with an lc_monetary of C or C.UTF-8.
"""

import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "tests" / "types" / "data"

SETTINGS = """
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
SET extra_float_digits = 1; SET bytea_output = 'hex'; SET xmloption = 'content';
SET client_min_messages = error;
"""

#: Every function returns output, sqlstate, message, detail, hint and the first line of the context.
FUNCTIONS = r"""
CREATE FUNCTION pg_temp.evaluate(query text, input text, typmod int) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE result text; code text; message text; detail text; hint text; context text;
BEGIN
  EXECUTE query INTO result USING input, typmod;
  RETURN ARRAY[result, NULL, NULL, NULL, NULL, NULL];
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
    detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
  context := split_part(context, E'\nSQL statement', 1);
  IF context LIKE 'PL/pgSQL%' OR context LIKE 'SQL statement%' THEN context := NULL; END IF;
  RETURN ARRAY[NULL, code, message, nullif(detail, ''), nullif(hint, ''), context];
END $$;

CREATE FUNCTION pg_temp.typmod(type name, modifiers text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE typmodin regproc := (SELECT t.typmodin FROM pg_type t
                              WHERE typname = type AND typnamespace = 'pg_catalog'::regnamespace);
BEGIN
  IF modifiers = '' THEN
    RETURN ARRAY['-1', NULL, NULL, NULL, NULL, NULL];
  ELSIF typmodin = 0 THEN
    RETURN pg_temp.evaluate(format('SELECT NULL::%I(%s)', type, modifiers), NULL, NULL);
  END IF;
  RETURN pg_temp.evaluate(format('SELECT %s(%L)::text', typmodin, '{' || modifiers || '}'),
                          NULL, NULL);
END $$;

CREATE FUNCTION pg_temp.input(type name, typmod int, input text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE t pg_type; arguments text := '';
BEGIN
  SELECT * INTO STRICT t FROM pg_type
   WHERE typname = type AND typnamespace = 'pg_catalog'::regnamespace;
  IF t.typtype IN ('r', 'm') THEN  -- range_in() cannot be called with its type from SQL
    RETURN pg_temp.evaluate(format('SELECT $1::%I::text', type), input, typmod);
  END IF;
  IF (SELECT pronargs FROM pg_proc WHERE oid = t.typinput) > 1 THEN
    arguments := format(', %s, $2', CASE WHEN t.typelem <> 0 THEN t.typelem ELSE t.oid END);
  END IF;
  RETURN pg_temp.evaluate(
    format('SELECT textin(%s(%s(textout($1)%s)))', t.typoutput, t.typinput, arguments),
    input, typmod);
END $$;

CREATE FUNCTION pg_temp.coercion(type name, typmod int, is_explicit bool, input text)
RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE source oid := ('pg_catalog.' || quote_ident(type))::regtype;
        target text := format_type(source, typmod);
        shown text := (SELECT typoutput FROM pg_type WHERE oid = source);
        result text[];
BEGIN
  IF is_explicit THEN
    RETURN pg_temp.evaluate(
      format('SELECT textin(%s(%L::pg_catalog.%I::%s))', shown, input, type, target), NULL, NULL);
  END IF;
  EXECUTE format('CREATE TEMP TABLE coerced (value %s)', target);
  result := pg_temp.evaluate(
    format('INSERT INTO coerced SELECT %L::pg_catalog.%I RETURNING textin(%s(value))',
           input, type, shown), NULL, NULL);
  DROP TABLE coerced;
  RETURN result;
END $$;
"""

RESULT = """
    r[1] AS output, r[2] AS sqlstate, r[3] AS message, r[4] AS detail, r[5] AS hint, r[6] AS context
"""

#: The queries of the table `input`, by the name of a file; "" for all other files.
QUERIES = {
    "": f"""
        SELECT type, modifiers, typmod, input, {RESULT}
          FROM (SELECT i.*, typmod[1]::int AS typmod,
                       pg_temp.input(type, typmod[1]::int, input) AS r
                  FROM input i, pg_temp.typmod(type, modifiers) AS typmod) ORDER BY n""",
    "coercion": f"""
        SELECT type, modifiers, typmod, is_explicit, input, {RESULT}
          FROM (SELECT i.*, typmod[1]::int AS typmod,
                       pg_temp.coercion(type, typmod[1]::int, is_explicit, input) AS r
                  FROM input i, pg_temp.typmod(type, modifiers) AS typmod) ORDER BY n""",
    "type_modifier": f"""
        SELECT type, modifiers, format_type(oid, r[1]::int) AS name, {RESULT}
          FROM (SELECT i.*, pg_temp.typmod(type, modifiers) AS r,
                       ('pg_catalog.' || quote_ident(type))::regtype AS oid
                  FROM input i) ORDER BY n""",
}


def generate(conninfo: str, inputs: Path) -> str:
    """Return the golden file for a file of inputs."""
    header, *rows = inputs.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    columns = ", ".join(
        f"{name} {'bool' if name == 'is_explicit' else 'text'}" for name in header.split("\t")
    )
    numbered = "".join(f"{number}\t{row}\n" for number, row in enumerate(rows))
    query = QUERIES.get(inputs.stem, QUERIES[""])
    script = f"""{SETTINGS} BEGIN; {FUNCTIONS}
        CREATE TEMP TABLE input (n int, {columns});
        COPY input FROM STDIN;\n{numbered}\\.
        COPY ({query}) TO STDOUT (HEADER);"""
    command = ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-", conninfo]
    result = subprocess.run(command, input=script.encode(), capture_output=True, check=False)
    if result.returncode:
        sys.exit(f"{inputs}: {result.stderr.decode()}")
    return result.stdout.decode()


def main() -> None:
    for inputs in sorted((DATA / "inputs").glob("*.tsv")):
        (DATA / inputs.name).write_text(generate(sys.argv[1], inputs), encoding="utf-8")


if __name__ == "__main__":
    main()
