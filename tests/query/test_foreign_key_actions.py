"""replctl does not run actions of foreign keys, so it refuses a change that needs one."""

from __future__ import annotations

import pytest

from replctl.errors import PostgresError
from replctl.execute import execute
from replctl.session import Session

pytestmark = pytest.mark.spark

_TABLES = """
    CREATE TABLE parent (id int PRIMARY KEY, code numeric UNIQUE, note text);
    CREATE TABLE child (id int, p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE,
                        c numeric REFERENCES parent (code) ON DELETE NO ACTION ON UPDATE SET NULL);
    CREATE TABLE tree (id int PRIMARY KEY,
                       above int REFERENCES tree ON DELETE CASCADE ON UPDATE CASCADE);
    INSERT INTO parent VALUES (1, 1.0, 'used'), (2, 2.0, 'also'), (3, 3.0, 'not'), (4, 4.0, 'not');
    INSERT INTO child VALUES (1, 1, NULL), (2, NULL, 2.0);
    INSERT INTO tree VALUES (1, NULL), (2, 1), (3, NULL), (4, 3);
"""
_ON_DELETE = 'ON DELETE CASCADE of foreign key constraint "child_p_fkey" on table "child"'
_ON_UPDATE = 'ON UPDATE CASCADE of foreign key constraint "child_p_fkey" on table "child"'
_SET_NULL = 'ON UPDATE SET NULL of foreign key constraint "child_c_fkey" on table "child"'
_TREE = 'ON UPDATE CASCADE of foreign key constraint "tree_above_fkey" on table "tree"'

#: Statements, and their answers: a command tag, or an error.
_CASES = [
    ("DELETE FROM parent WHERE id = 1", f"0A000 {_ON_DELETE} is not supported"),
    ("DELETE FROM parent", f"0A000 {_ON_DELETE} is not supported"),
    (
        "DELETE FROM parent WHERE id = 2",
        '23503 update or delete on table "parent" violates foreign key constraint "child_c_fkey"'
        ' on table "child"',
    ),
    ("DELETE FROM parent WHERE id = 3", "DELETE 1"),
    ("UPDATE parent SET id = 10 WHERE id = 1", f"0A000 {_ON_UPDATE} is not supported"),
    ("UPDATE parent SET id = 3 - id WHERE id < 3", f"0A000 {_ON_UPDATE} is not supported"),
    ("UPDATE parent SET id = 10 WHERE id = 2", "UPDATE 1"),
    ("UPDATE parent SET id = id, note = 'x'", "UPDATE 3"),
    ("UPDATE parent SET code = 20 WHERE code = 2", f"0A000 {_SET_NULL} is not supported"),
    ("UPDATE parent SET code = 2.00 WHERE code = 2", f"0A000 {_SET_NULL} is not supported"),
    ("UPDATE parent SET code = 10 WHERE code = 1", "UPDATE 1"),
    ("UPDATE tree SET id = 3 - id WHERE id < 3", f"0A000 {_TREE} is not supported"),
    ("DELETE FROM tree WHERE id < 3", "DELETE 2"),
    ("DELETE FROM child WHERE id = 1", "DELETE 1"),
    ("DELETE FROM parent WHERE id = 1", "DELETE 1"),
]


def test_a_change_that_an_action_would_spread_is_refused(spark_session: Session) -> None:
    list(execute(spark_session, _TABLES))
    answers = [_answer(spark_session, statement) for statement, _expected in _CASES]
    assert answers == [expected for _statement, expected in _CASES]
    (rows,) = execute(spark_session, "SELECT id, p, c FROM child")
    assert rows.rows == [["2", None, "2.0"]]


def _answer(session: Session, statement: str) -> str:
    try:
        (result,) = execute(session, statement)
    except PostgresError as error:
        return f"{error.sqlstate} {error.message}"
    return result.tag
