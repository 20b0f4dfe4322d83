"""Statements about keys in other forms (1.0 and 1.00) have the results and errors of a PostgreSQL
server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from long_tests import with_long

from replctl.errors import PostgresError
from replctl.execute import execute
from replctl.session import Session

pytestmark = pytest.mark.spark

_SEED = 30
_STATEMENTS = 12
_SETTINGS = "-c timezone=UTC -c datestyle=ISO,MDY -c extra_float_digits=1"
#: Values of types that a key may have: the forms of one value, and of another one.
_VALUES = {
    "numeric": (["1.0", "1.00", "1"], ["-0.50", "-0.5"], ["NaN"]),
    "interval": (["30 days", "1 mon", "720:00:00"], ["1 day", "24:00"], ["-1 mon"]),
    "jsonb": (['{"a": [1.0]}', '{"a": [1.00]}'], ['"1.0"'], ['"1.00"'], ["1.0", "1.00"]),
    "numeric[]": (["{1.0,NULL}", "{1.00,NULL}"], ["{}"], ["{1}", "{1.0}"]),
    "float8": (["0", "-0"], ["NaN"], ["1.5", "1.50"]),
    "bpchar": (["a", "a ", "a  "], [" a"], [""]),
    "numrange": (["[1.0,2)", "[1.00,2.0)"], ["empty"], ["[1,2]"]),
    "pg_lsn": (["0/A", "0/0a"], ["7FFFFFFF/FFFFFFFF"], ["FFFFFFFF/FFFFFFFF"]),
}


@pytest.fixture(scope="module")
def server(postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection for a transaction with the tables, and roll it back afterwards."""
    with psycopg.connect(postgres_server, dbname="postgres", options=_SETTINGS) as connection:
        yield connection
        connection.rollback()


def statements(type_name: str, chance: random.Random) -> Iterator[str]:
    """Yield inserts, updates and deletes by keys, and by values that refer to keys."""
    kinds = [lambda a, b: f"INSERT INTO k VALUES ({a}, 1)"] * 3
    kinds += [
        lambda a, b: f"INSERT INTO k VALUES ({a}, 1), ({b}, 2)",
        lambda a, b: f"UPDATE k SET v = v + 1 WHERE id = {a}",
        lambda a, b: f"UPDATE k SET id = {b} WHERE id = {a}",
        lambda a, b: f"UPDATE k SET v = v * 2 WHERE id IN ({a}, {b})",
        lambda a, b: f"DELETE FROM k WHERE id = {a}",
        lambda a, b: f"DELETE FROM k WHERE id = ANY (ARRAY[{a}])",
        lambda a, b: f"INSERT INTO f VALUES ({a})",
        lambda a, b: f"UPDATE f SET r = {b} WHERE r = {a}",
        lambda a, b: f"DELETE FROM f USING k WHERE f.r = k.id AND k.id = {a}",
    ]
    for _ in range(_STATEMENTS):
        a, b = (
            f"'{chance.choice(chance.choice(_VALUES[type_name]))}'::{type_name}" for _ in range(2)
        )
        yield chance.choice(kinds)(a, b)


def answer_here(session: Session, statement: str) -> list[Any]:
    """Return the tag and the rows of a statement, or its error."""
    try:
        (result,) = execute(session, statement)
    except PostgresError as error:
        return [error.sqlstate, error.message, error.detail]
    return [result.tag, *(tuple(row) for row in result.rows or ())]


def answer_of_server(server: psycopg.Connection[Any], statement: str) -> list[Any]:
    """Return the server's answer, in the form of `answer_here`."""
    try:
        with server.transaction():
            cursor = server.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
            return [cursor.statusmessage, *rows]
    except psycopg.Error as error:
        return [error.sqlstate, error.diag.message_primary, error.diag.message_detail]


@pytest.mark.parametrize("type_name", with_long(list(_VALUES), 4))
def test_keys_in_other_forms(
    type_name: str, server: psycopg.Connection[Any], spark_session: Session
) -> None:
    run = [
        f"CREATE TABLE k (id {type_name} PRIMARY KEY, v int)",
        f"CREATE TABLE f (r {type_name} REFERENCES k)",
        *statements(type_name, random.Random(f"{_SEED} {type_name}")),
        "SELECT id::text, v::text FROM k ORDER BY id::text",
        "SELECT r::text, count(*)::text FROM f GROUP BY r::text ORDER BY r::text",
    ]
    with server.transaction(force_rollback=True):
        expected = [(text, answer_of_server(server, text)) for text in run]
    assert [(text, answer_here(spark_session, text)) for text in run] == expected
