#!/usr/bin/env python3
"""Write tests/commands/data/privileges*.tsv: the privileges of roles on a PostgreSQL 17 server.

    .ci/generate_privileges_golden.py [SCRIPT ...]

A script there has the objects and roles, then a line "---", then one statement for each line.  Each
role tries each statement in a transaction, which is rolled back.  The answer is ok or the SQLSTATE.
"""

import sys
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "commands" / "data"
sys.path.insert(0, str(ROOT / "tests"))

from fix_postgres import postgres  # noqa: E402
from privilege_table import SCRIPTS, read_script, roles_of  # noqa: E402


def main(names: list[str]) -> None:
    for name in names:
        with postgres() as conninfo, psycopg.connect(conninfo, dbname="postgres") as server:
            lines = _lines(server, *read_script(name))
        (DATA / f"{name}.tsv").write_text("\n".join(lines) + "\n", "utf-8")


def _lines(server: psycopg.Connection, setup: list[str], statements: list[str]) -> list[str]:
    roles = roles_of(setup)
    lines = ["\t".join(["statement", *roles])]
    server.autocommit = True
    for statement in setup:
        server.execute(statement)
    server.autocommit = False
    for statement in statements:
        answers = [_answer(server, role, statement) for role in roles]
        lines.append("\t".join([statement, *answers]))
    return lines


def _answer(server: psycopg.Connection, role: str, statement: str) -> str:
    try:
        server.execute(f"SET LOCAL ROLE {role}")
        if statement.endswith(" STDOUT"):
            with server.cursor().copy(statement) as rows:
                list(rows)
        else:
            server.execute(statement)
    except psycopg.Error as error:
        return error.sqlstate or "?"
    else:
        return "ok"
    finally:
        server.rollback()


if __name__ == "__main__":
    main(sys.argv[1:] or list(SCRIPTS))
