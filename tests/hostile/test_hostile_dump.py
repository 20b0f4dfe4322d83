"""A database whose objects have hostile names is the same after a dump and its replay."""

from __future__ import annotations

import psycopg
from hostile_texts import NAMES

from replctl.dump.dumped_database import DumpOptions, dump_database
from replctl.execute import execute
from replctl.session import Session
from replctl.types.quote import quote_identifier, quote_string

TEXTS = [text for label, text in NAMES.items() if len(text) > 20 or label in ("keyword", "dots")]


def _objects(number: int, text: str) -> str:
    """Return statements that create an object of every kind with a name."""
    name, string = quote_identifier(text), quote_string(text)
    label, view, index, sequence, column = (
        quote_identifier(text[:40] + suffix) for suffix in ("e", "v", "i", "s", "c")
    )
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"""
CREATE SCHEMA {name}; CREATE ROLE {name};
CREATE TYPE {name}.{label} AS ENUM ('a', {string}, 'z');
CREATE TABLE {name}.{name} (id int PRIMARY KEY, e {name}.{label} DEFAULT {string},
  {name} text DEFAULT {string} CONSTRAINT {name} CHECK ({name} <> {string}));
CREATE INDEX {index} ON {name}.{name} ({name});
COMMENT ON TABLE {name}.{name} IS {string};
COMMENT ON COLUMN {name}.{name}.{name} IS {string};
ALTER TABLE {name}.{name} OWNER TO {name};
GRANT SELECT ON {name}.{name} TO {name};
CREATE PUBLICATION {name} FOR TABLE {name}.{name} (id, {name}) WHERE ({name} = {string});
CREATE VIEW {name}.{view} AS SELECT {name}, {string}::text AS {column} FROM {name}.{name};
CREATE SEQUENCE {name}.{sequence};
CREATE POLICY {name} ON {name}.{name} TO {name} USING ({name} = {string});
CREATE FUNCTION {name}.{name}(x text) RETURNS text LANGUAGE sql
  AS {quote_string("select " + string)};
CREATE SUBSCRIPTION {name} CONNECTION {quote_string(f"dbname=x application_name='{escaped}'")}
  PUBLICATION {name} WITH (connect = false, slot_name = s{number});
ALTER DEFAULT PRIVILEGES FOR ROLE {name} IN SCHEMA {name} GRANT SELECT ON TABLES TO {name};
"""


def _run(session: Session, script: str) -> None:
    for _result in execute(session, script):
        pass


def _dumped(session: Session) -> str:
    return "".join(dump_database(session, DumpOptions(schema_only=True)))


def test_a_dump_makes_the_same_database_again(session: Session, postgres_server: str) -> None:
    for number, text in enumerate(TEXTS):
        _run(session, _objects(number, text))
    script = _dumped(session)
    _run(session, "CREATE DATABASE again")
    again = Session.connect(session.cluster, "again", "postgres")
    _run(again, script)
    assert _dumped(again) == script

    with psycopg.connect(postgres_server, autocommit=True) as server:
        roles = [quote_identifier(text) for text in TEXTS]
        server.execute("CREATE DATABASE replctl_hostile_dump")
        for role in roles:
            server.execute(f"CREATE ROLE {role}".encode())
        try:
            with psycopg.connect(postgres_server, dbname="replctl_hostile_dump") as database:
                database.execute(script.encode())
                database.rollback()
        finally:
            server.execute("DROP DATABASE replctl_hostile_dump")
            for role in roles:
                server.execute(f"DROP ROLE {role}".encode())
