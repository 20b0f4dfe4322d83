"""The scripts of the table of privileges: objects and roles, then statements."""

from __future__ import annotations

from pathlib import Path

#: Statements about objects; expressions, policies, views and sequences; columns of INSERT; single
#: rights of roles; new owners of objects; tables whose children belong to others; memberships.
SCRIPTS = (
    "privileges",
    "privileges_expression",
    "privileges_insert",
    "privileges_role",
    "privileges_owner",
    "privileges_child",
    "privileges_member",
)
_FOLDER = Path(__file__).with_name("commands") / "data"
_ROLE = "CREATE ROLE "


def read_script(name: str) -> tuple[list[str], list[str]]:
    """Return the statements that create objects and roles, and the statements to try."""
    setup, _, statements = (_FOLDER / f"{name}.sql").read_text("utf-8").partition("---\n")
    return setup.strip().splitlines(), statements.strip().splitlines()


def roles_of(setup: list[str]) -> list[str]:
    """Return the roles that a script makes, which try its statements."""
    made = [line.removeprefix(_ROLE) for line in setup if line.startswith(_ROLE)]
    return [words.rstrip(";").split()[0] for words in made]


def read_answers(name: str) -> dict[str, dict[str, str]]:
    """Return the answer of a server for each statement and role: `ok` or the SQLSTATE."""
    header, *lines = (_FOLDER / f"{name}.tsv").read_text("utf-8").splitlines()
    roles = header.split("\t")[1:]
    answers = {}
    for line in lines:
        statement, *found = line.split("\t")
        answers[statement] = dict(zip(roles, found, strict=True))
    return answers
