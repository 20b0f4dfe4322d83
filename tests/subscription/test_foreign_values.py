"""Other programs write values in other forms than PostgreSQL's into a published table.  The types'
input functions read them before filters, keys and the subscriber do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fix_replication import Database

from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_LOW = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
_OTHER = "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
#: Type -> a value that another program may store, and its canonical text.
_VALUES = {
    "jsonb": ('{"b":1,"a":2}', '{"a": 2, "b": 1}'),
    "numeric": ("+1.50e1", "15.0"),
    "numeric(50,1)": ("1.26", "1.3"),
    "char(3)": ("a", "a  "),
    "varchar(3)": ("abc  ", "abc"),
    "inet": ("10.0.0.1/32", "10.0.0.1"),
    "macaddr": ("08002B:010203", "08:00:2b:01:02:03"),
    "bit(3)": ("B101", "101"),
    "int4range": ("(1,3]", "[2,4)"),
    "timetz": ("10:00+1", "10:00:00+01"),
    "money": ("12", "$12.00"),
    "name": ("n" * 64, "n" * 63),
    "uuid[]": ([_LOW.upper(), None], f"{{{_LOW},NULL}}"),
    "varchar(2)[]": (["a   "], '{"a "}'),
}


def _literal(value: str | Sequence[str | None]) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return f"array({', '.join('NULL' if item is None else _literal(item) for item in value)})"


def test_values_are_read_by_the_input_functions(
    publisher: Database, subscriber: Database, engine: Engine
) -> None:
    columns = "".join(f", c{i} {type_}" for i, type_ in enumerate(_VALUES))
    table = f"CREATE TABLE t (id uuid PRIMARY KEY{columns})"
    publisher.run(f"{table}; CREATE PUBLICATION p FOR TABLE t WHERE (id <> '{_LOW}')")
    publisher.run(f"INSERT INTO t (id) VALUES ('{_LOW}'), ('{_OTHER}')")
    subscriber.run(table)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    place = f"delta.`{publisher.location()}`"
    values = ", ".join(_literal(stored) for stored, _canonical in _VALUES.values())
    engine.rows(
        f"MERGE INTO {place} t USING (SELECT upper(id) AS id FROM {place}) s"
        f" ON lower(s.id) = t.id WHEN MATCHED THEN UPDATE SET id = s.id"
    )
    engine.rows(
        f"INSERT INTO {place} SELECT id, {values} FROM VALUES"
        f" ('{{{_OTHER.replace('-', '').replace('b', 'c').upper()}}}') AS new(id)"
    )
    assert subscriber.sync() == []
    expected = [
        (_OTHER, *[None] * len(_VALUES)),
        (_OTHER.replace("b", "c"), *[canonical for _stored, canonical in _VALUES.values()]),
    ]
    assert subscriber.rows("SELECT * FROM t ORDER BY id") == expected

    engine.rows(f"INSERT INTO {place} (id, c0) VALUES ('{_OTHER.replace('b', 'd')}', 'no json')")
    (failure,) = subscriber.sync()
    error = failure.error
    assert (error.sqlstate, error.message) == ("22P02", "invalid input syntax for type json")
    assert error.detail == 'Token "no" is invalid. The value is in column "c0" of table "public.t".'
    engine.rows(f"DELETE FROM {place} WHERE c0 = 'no json'")
    assert error.hint is not None
    told, statement = error.hint.split(", then use ")
    assert told == "Correct the value at the publisher"
    subscriber.run(statement)
    assert subscriber.sync() == []  # the reconcile reads the rows as a copy does
    assert subscriber.rows("SELECT * FROM t ORDER BY id") == expected
