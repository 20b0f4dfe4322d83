"""NaN for a column of type numeric(p,s), which Spark's DECIMAL does not have."""

from __future__ import annotations

import pytest
from fix_replication import Database

from replctl.errors import FeatureNotSupported

pytestmark = pytest.mark.spark

_MESSAGE = "NaN cannot be stored in a numeric with a precision"


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO n VALUES ('NaN')",
        "INSERT INTO n SELECT x::numeric FROM (VALUES ('NaN')) v (x)",
        "UPDATE n SET v = 'NaN'",
        "UPDATE n SET v = w",
        "UPDATE n SET a = '{NaN}'",
        "UPDATE n SET a = ARRAY[w]",
    ],
)
def test_statements_refuse_it_alike(statement: str, publisher: Database) -> None:
    publisher.run("CREATE TABLE n (v numeric(5,2), w numeric, a numeric(5,2)[])")
    publisher.run("INSERT INTO n VALUES (1, 'NaN', '{1}')")
    with pytest.raises(FeatureNotSupported, match=_MESSAGE):
        publisher.run(statement)
    assert publisher.rows("SELECT * FROM n") == [("1.00", "NaN", "{1.00}")]


def test_copies_and_changes_refuse_it_alike(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE n (id int PRIMARY KEY, v numeric)")
    subscriber.run("CREATE TABLE n (id int PRIMARY KEY, v numeric(5,2))")
    publisher.run("INSERT INTO n VALUES (1, 'NaN')")
    publisher.run("CREATE PUBLICATION p FOR TABLE n")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    (failure,) = subscriber.sync()
    assert (failure.error.sqlstate, failure.error.message) == ("0A000", _MESSAGE)

    publisher.run("UPDATE n SET v = 1.5")
    assert subscriber.sync() == []
    publisher.run("UPDATE n SET v = 'NaN'")
    (failure,) = subscriber.sync()
    assert (failure.error.sqlstate, failure.error.message) == ("0A000", _MESSAGE)
    assert subscriber.rows("SELECT * FROM n") == [("1", "1.50")]
