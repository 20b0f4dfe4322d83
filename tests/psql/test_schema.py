"""`replctl schema` prints statements that create the published tables that a database lacks."""

from __future__ import annotations

from fix_psql import Psql

_PUBLISHED = r"""
CREATE DATABASE shop;
CREATE DATABASE branch;
\c shop
CREATE SCHEMA "Odd s";
CREATE TYPE "Odd s".mood AS ENUM ('a', 'b''c');
CREATE DOMAIN base AS numeric(10,2) CHECK (VALUE > 0);
CREATE DOMAIN price AS base NOT NULL DEFAULT 1;
ALTER DOMAIN price ADD CONSTRAINT low CHECK (VALUE < 100) NOT VALID;
COMMENT ON TYPE "Odd s".mood IS 'feels';
COMMENT ON DOMAIN price IS 'in euro';
CREATE TABLE "Odd s"."T x" (id int, m "Odd s".mood, p price, d text DEFAULT 'x' COLLATE "C",
    g int GENERATED ALWAYS AS (id * 2) STORED, s serial, hidden int CHECK (hidden > 0),
    PRIMARY KEY (id, d));
COMMENT ON TABLE "Odd s"."T x" IS 'it''s';
COMMENT ON COLUMN "Odd s"."T x".p IS 'paid';
COMMENT ON COLUMN "Odd s"."T x".hidden IS 'not published';
CREATE TABLE indexed (a int NOT NULL, b int NOT NULL);
CREATE UNIQUE INDEX indexed_b ON indexed (b);
ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_b;
CREATE TABLE whole (a timestamptz(3)[]);
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE keyless (id int PRIMARY KEY, v varchar(3));
CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE PUBLICATION p FOR TABLE "Odd s"."T x" (id, m, d, p), indexed, whole;
CREATE PUBLICATION inserts FOR TABLE keyless (v) WITH (publish = 'insert');
CREATE PUBLICATION root FOR TABLE parted WITH (publish_via_partition_root);
CREATE PUBLICATION leaves FOR TABLE parted;
"""
_TABLES_OF_P = """\
CREATE SCHEMA "Odd s";

CREATE TYPE "Odd s".mood AS ENUM (
    'a',
    'b''c'
);

COMMENT ON TYPE "Odd s".mood IS 'feels';

CREATE DOMAIN public.base AS numeric(10,2)
\tCONSTRAINT base_check CHECK ((VALUE > (0)::numeric));

CREATE DOMAIN public.price AS public.base NOT NULL DEFAULT 1;

ALTER DOMAIN public.price
    ADD CONSTRAINT low CHECK (((VALUE)::numeric < (100)::numeric)) NOT VALID;

COMMENT ON DOMAIN public.price IS 'in euro';

CREATE TABLE "Odd s"."T x" (
    id integer NOT NULL,
    m "Odd s".mood,
    p public.price,
    d text COLLATE pg_catalog."C" NOT NULL,
    CONSTRAINT "T x_pkey" PRIMARY KEY (id, d)
);

COMMENT ON TABLE "Odd s"."T x" IS 'it''s';

COMMENT ON COLUMN "Odd s"."T x".p IS 'paid';

CREATE TABLE public.indexed (
    a integer NOT NULL,
    b integer NOT NULL
);

CREATE UNIQUE INDEX indexed_b ON public.indexed (b);

ALTER TABLE public.indexed REPLICA IDENTITY USING INDEX indexed_b;

CREATE TABLE public.whole (
    a timestamp(3) with time zone[]
);

ALTER TABLE public.whole REPLICA IDENTITY FULL;
"""


def _schema(psql: Psql, *publications: str, options: str = "") -> str:
    named = [argument for name in publications for argument in ("--publication", name)]
    done = psql("schema", "-d", "branch", "dbname=shop", *named, "--table-options", options)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_statements_make_what_is_missing(psql: Psql) -> None:
    psql("-X", script=_PUBLISHED)
    printed = _schema(psql, "p")
    assert printed == _TABLES_OF_P
    made = psql("-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "branch", script=printed)
    assert (made.exit_code, made.stderr) == (0, "")
    assert _schema(psql, "p") == ""
    subscribed = psql(
        "-X", "-q", "-d", "branch", "-c",
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=shop' PUBLICATION p",
    )  # fmt: skip
    assert subscribed.exit_code == 0


def test_a_key_that_is_not_published_is_left_out(psql: Psql) -> None:
    psql("-X", script=_PUBLISHED)
    assert _schema(psql, "inserts", options="deletion_vectors = off") == (
        "CREATE TABLE public.keyless (\n    v character varying(3)\n)"
        " WITH (deletion_vectors = off);\n"
    )


def test_a_partitioned_table_is_one_table_or_its_partitions(psql: Psql) -> None:
    psql("-X", script=_PUBLISHED)
    columns = "    id integer NOT NULL,\n    v text,\n"
    assert _schema(psql, "root") == (
        f"CREATE TABLE public.parted (\n{columns}    CONSTRAINT parted_pkey PRIMARY KEY (id)\n);\n"
    )
    mapped = psql(
        "schema", "-d", "branch", "dbname=shop", "--publication", "root", "--table-map",
        "parted = copy",
    )  # fmt: skip
    assert mapped.stdout.startswith("CREATE TABLE public.copy (\n"), mapped.stderr
    assert _schema(psql, "leaves") == (
        f"CREATE TABLE public.low (\n{columns}    CONSTRAINT low_pkey PRIMARY KEY (id)\n);\n"
    )


def test_errors(psql: Psql) -> None:
    psql("-X", script=_PUBLISHED)
    done = psql("schema", "-d", "branch", "dbname=shop", "--publication", "none")
    assert done.exit_code == 1
    assert done.stderr == 'ERROR:  publication "none" does not exist\n'
    done = psql("schema", "dbname=nowhere", "--publication", "p")
    assert done.exit_code == 1
    assert 'database "nowhere" does not exist' in done.stderr
    assert psql("schema", "dbname=shop").exit_code == 1
