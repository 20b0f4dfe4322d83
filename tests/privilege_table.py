"""The script of the table of privileges: objects and roles, then statements."""

from __future__ import annotations

from pathlib import Path

#: Roles that privileges.sql makes; `nobody` owns nothing, the others have what they are called by.
ROLES = (
    "nobody", "reader", "a_reader", "inserter", "updater", "deleter", "truncator", "referencer",
    "maintainer", "creator", "replicator", "owner", "superuser",
)  # fmt: skip
_FOLDER = Path(__file__).with_name("commands") / "data"


def read_script() -> tuple[list[str], list[str]]:
    """Return the statements that make objects and roles, and those that are tried."""
    setup, _, statements = (_FOLDER / "privileges.sql").read_text("utf-8").partition("---\n")
    return setup.strip().splitlines(), statements.strip().splitlines()


def read_answers() -> list[tuple[str, str, str]]:
    """Return what a server answered: statement, role, and `ok` or the SQLSTATE."""
    header, *lines = (_FOLDER / "privileges.tsv").read_text("utf-8").splitlines()
    roles = header.split("\t")[1:]
    answers = []
    for line in lines:
        statement, *found = line.split("\t")
        answers += [(statement, *pair) for pair in zip(roles, found, strict=True)]
    return answers
