"""Keys can be equal but stored differently (1.0 and 1.00).  An UPDATE or DELETE finds its row, and
writes the publisher's form of the value."""

from __future__ import annotations

import pytest
from fix_replication import Database
from long_tests import sampled

pytestmark = pytest.mark.spark

#: Type, three forms of one value, and another value.
_FORMS = [
    ("numeric", "1.0", "1.00", "1.000", "2.50"),
    ("interval", "30 days", "1 mon", "720:00:00", "2 days"),
    ("jsonb", '{"a": 1.0}', '{"a": 1.00}', '{"a": 1.000}', '{"a": 2}'),
    ("numeric[]", "{1.0,NULL}", "{1.00,NULL}", "{1.000,NULL}", "{1.0}"),
    ("interval[]", "{30 days}", "{1 mon}", "{720:00:00}", "{2 days}"),
    ("jsonb[]", '{"1.0"}', '{"1.00"}', '{"1.000"}', '{"\\"1.0\\""}'),
    ("float8", "0", "-0", "-0", "NaN"),
    ("float4[]", "{0}", "{-0}", "{-0}", "{NaN}"),
    ("bpchar", "a", "a ", "a  ", " a"),
    ("bpchar[]", "{a}", '{"a "}', '{"a  "}', '{" a"}'),
    ("numrange", "[1.0,2)", "[1.00,2.0)", "[1,2)", "[1,3)"),
    ("nummultirange", "{[1.0,2)}", "{[1.00,2.0)}", "{[1,2)}", "{}"),
    ("tsquery", "a", "a:*", "a:B", "b"),
    ("char(4)", "a", "a ", "a   ", "b"),
    ("timetz", "12:00+00", "12:00+00", "12:00+00", "14:00+02"),
]
_TRIED = sampled(_FORMS, 2)
_COLUMNS = ", ".join(f"k{i} {type_}" for i, (type_, *_) in enumerate(_TRIED))
_NAMES = ", ".join(f"k{i}" for i in range(len(_TRIED)))
_TEXTS = ", ".join(f"k{i}::text" for i in range(len(_TRIED)))
_VALUES = {
    form: ", ".join(f"'{forms[place]}'::{type_}" for type_, *forms in _TRIED)
    for place, form in enumerate("abcd")
}
_SHOWN = {
    f"{form}_texts": ", ".join(f"'{forms[place]}'::{type_}::text" for type_, *forms in _TRIED)
    for place, form in enumerate("abcd")
}


def _each(databases: list[Database], *statements: str) -> None:
    """Run statements in which {a}, {b} and {c} are three forms of a value of each type, and {d} is
    another value."""
    nulls = ", ".join("NULL" for _ in _TRIED)
    for database in databases:
        for statement in statements:
            names = {"columns": _COLUMNS, "k": _NAMES, "texts": _TEXTS, "nulls": nulls}
            database.run(statement.format(**names, **_VALUES, **_SHOWN))


def _subscribed(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE PUBLICATION p FOR ALL TABLES")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p WITH (copy_data = false)"
    )
    assert subscriber.sync() == []


def _same_rows(publisher: Database, subscriber: Database) -> None:
    """Check that the tables have the same rows, as they are written."""
    query = f"SELECT {_TEXTS}, v FROM t ORDER BY v, {_TEXTS}"
    assert subscriber.rows(query) == publisher.rows(query)


def test_changes_find_keys_in_another_form(publisher: Database, subscriber: Database) -> None:
    _each([publisher, subscriber], "CREATE TABLE t ({columns}, v int, PRIMARY KEY ({k}))")
    _each([publisher], "INSERT INTO t VALUES ({a}, 1), ({d}, 2)")
    _each([subscriber], "INSERT INTO t VALUES ({b}, 1), ({d}, 2)")
    _subscribed(publisher, subscriber)

    _each([publisher], "UPDATE t SET v = 3 WHERE ({k}) = ({c})")
    assert subscriber.sync() == []
    _same_rows(publisher, subscriber)

    # the stored form of the key changes, but its value does not
    _each([publisher], "UPDATE t SET ({k}) = ({c}) WHERE ({k}) = ({b})")
    assert subscriber.sync() == []
    _same_rows(publisher, subscriber)

    # several changes of a key at once, in different forms
    _each(
        [publisher],
        "BEGIN; UPDATE t SET v = 4 WHERE ({k}) = ({a}); UPDATE t SET ({k}) = ({a}) WHERE v = 4;"
        " DELETE FROM t WHERE ({k}) = ({b}); INSERT INTO t VALUES ({b}, 5); COMMIT",
    )
    assert subscriber.sync() == []
    _same_rows(publisher, subscriber)

    # keys that move
    _each(
        [publisher],
        "BEGIN; DELETE FROM t WHERE ({k}) = ({d}); UPDATE t SET ({k}) = ({d}) WHERE ({k}) = ({a});"
        " INSERT INTO t VALUES ({c}, 6); COMMIT",
        "DELETE FROM t WHERE ({k}) = ({a})",
    )
    assert subscriber.sync() == []
    _same_rows(publisher, subscriber)


def test_an_insert_of_an_equal_key_is_a_conflict(publisher: Database, subscriber: Database) -> None:
    for database in (publisher, subscriber):
        database.run("CREATE TABLE n (k numeric PRIMARY KEY, v int)")
    subscriber.run("INSERT INTO n VALUES (1.00, 1)")
    _subscribed(publisher, subscriber)
    publisher.run("INSERT INTO n VALUES (1.0, 2)")
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "23505"
    assert failure.error.detail is not None
    assert "(k)=(1.0) already exists." in failure.error.detail
    assert subscriber.rows("SELECT * FROM n") == [("1.00", "1")]


def test_rows_without_a_key_are_found_as_they_are_stored_first(
    publisher: Database, subscriber: Database
) -> None:
    _each([publisher, subscriber], "CREATE TABLE t ({columns}, v int)")
    _each([publisher], "ALTER TABLE t REPLICA IDENTITY FULL")
    _subscribed(publisher, subscriber)
    _each([publisher], "INSERT INTO t VALUES ({a}, 1), ({b}, 1), ({c}, 1), ({b}, 1), ({nulls}, 1)")
    assert subscriber.sync() == []
    _same_rows(publisher, subscriber)

    _each(
        [publisher],
        "UPDATE t SET v = 2 WHERE ({texts}) = ({c_texts})",
        "DELETE FROM t WHERE ({texts}) = ({a_texts}) AND v = 1",
    )
    assert subscriber.sync() == []
    _same_rows(publisher, subscriber)

    _each(
        [publisher],
        "BEGIN; INSERT INTO t VALUES ({c}, 1); DELETE FROM t WHERE ({texts}) = ({c_texts})"
        " AND v = 1; UPDATE t SET ({k}) = ({a}) WHERE k0 IS NULL; COMMIT",
    )
    assert subscriber.sync() == []
    _same_rows(publisher, subscriber)


def test_a_row_without_a_key_is_found_by_equality(
    publisher: Database, subscriber: Database
) -> None:
    _each([publisher, subscriber], "CREATE TABLE t ({columns}, v int)")
    _each([publisher], "ALTER TABLE t REPLICA IDENTITY FULL", "INSERT INTO t VALUES ({a}, 1)")
    _each([subscriber], "INSERT INTO t VALUES ({b}, 1)")
    _subscribed(publisher, subscriber)
    _each([publisher], "UPDATE t SET v = 2")
    assert subscriber.sync() == []
    _same_rows(publisher, subscriber)
    _each([publisher], "DELETE FROM t WHERE ({k}) = ({c})")
    assert subscriber.sync() == []
    _same_rows(publisher, subscriber)
