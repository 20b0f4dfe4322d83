"""Other programs drop columns, or change their types.  The subscriptions that need these columns
stop, and the HINTs have statements that help."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from golden_script import answer_of

from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_publication import list_publications
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    insert_subscription,
    insert_subscription_relation,
)
from replctl.errors import PostgresError, UndefinedColumn
from replctl.lake import table_read
from replctl.lake.adopt import DeltaColumn
from replctl.lake.column_fault import check_columns, check_decodable, column_fault
from replctl.lake.publisher import LakePublisher
from replctl.lake.table_read import _is_wider, relation_sources
from replctl.lake.widened_column import is_wider
from replctl.relation_name import RelationName
from replctl.replication.apply_error import DecodingFailure
from replctl.replication.published_relation import PublicationSet
from replctl.session import Session
from replctl.types.numeric import numeric_typmod

_ID = ("id", "integer", "id")
_V = ("v", "string", "v")
_N = ("n", "integer", "n")
#: Objects that keep a dropped column in the relation.
_KEPT = "CREATE PUBLICATION kept FOR TABLE t (id, v, n)"


class Adopted:
    """The adopted table t (id, v, n), whose schema another program changes in Delta's log."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session, self.folder = session, folder
        rows = {"id": pa.array([1], pa.int32()), "v": ["a"], "n": pa.array([1], pa.int32())}
        write_deltalake(str(folder), pa.table(rows))
        self.version = 0
        self.adopt()

    def adopt(self) -> None:
        self.run(
            f"CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) USING delta LOCATION '{self.folder}'"
        )

    def run(self, statement: str) -> None:
        answer = answer_of(self.session, statement)
        assert not any(line.startswith("ERROR") for line in answer), answer

    def change(self, *columns: tuple[str, Any, str], not_null: Collection[str] = ()) -> None:
        """Commit a schema: name, type and physical name of each column."""
        fields = [
            {
                "name": name,
                "type": type_,
                "nullable": name not in not_null,
                "metadata": {"delta.columnMapping.physicalName": physical},
            }
            for name, type_, physical in columns
        ]
        schema = json.dumps({"type": "struct", "fields": fields})
        metadata = {
            "id": "x",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": [],
            "configuration": {},
        }
        self._commit({"metaData": metadata})

    def append(self) -> None:
        """Commit rows."""
        add = {"path": f"{self.version}.parquet", "size": 1, "modificationTime": 0}
        self._commit({"add": add | {"partitionValues": {}, "dataChange": True}})

    def _commit(self, action: dict[str, Any]) -> None:
        self.version += 1
        commit = self.folder / "_delta_log" / f"{self.version:020d}.json"
        commit.write_text(f"{json.dumps(action)}\n")
        LakePublisher(self.session).slots.current_lsn([RelationName("public", "t")])

    def relation(self) -> Relation:
        with self.session.read() as catalog:
            oid = self.session.environment(catalog).relation_oid(None, "t")
            assert oid is not None
            return load_relations(catalog, [oid])[oid]

    def failure(self) -> DecodingFailure | None:
        """Return the error that stops the subscriptions to all publications at the newest
        version."""
        with self.session.read() as catalog:
            relation = self.relation()
            published = PublicationSet(catalog, list_publications(catalog)).changes_of(relation)
        assert published is not None
        try:
            check_decodable(self.session, published, [self.version])
        except DecodingFailure as failure:
            return failure
        return None


@pytest.fixture
def adopted(session: Session, tmp_path: Path) -> Adopted:
    return Adopted(session, tmp_path / "t")


@pytest.mark.parametrize(
    ("columns", "names", "found"),
    [
        ((_ID, _V, _N), {"id", "v", "n"}, None),
        ((_ID, ("w", "string", "v"), _N), {"id", "v", "n"}, None),
        ((_ID, _V), {"id", "v"}, None),
        ((_ID, _V), {"id", "n"}, ("n", None)),
        ((_ID, _V, ("n", "integer", "col-1")), {"n"}, ("n", None)),  # the files have no col-1
        ((_ID, _V, ("n", "long", "n")), {"n"}, None),
        ((_ID, _V, ("n", "string", "n")), {"n"}, ("n", "string")),
        ((_ID, _V, ("n", "string", "n")), {"id", "v"}, None),
        ((_ID, _V, ("n", {"type": "struct", "fields": []}, "n")), {"n"}, ("n", "struct")),
        ((_ID, _V, ("n", "decimal(10,0)", "n")), {"n"}, None),
        ((_ID, _V, ("n", "decimal(9,0)", "n")), {"n"}, ("n", "decimal(9,0)")),
    ],
)
def test_which_column_cannot_be_read(
    adopted: Adopted,
    columns: tuple[tuple[str, Any, str], ...],
    names: set[str],
    found: tuple[str, str | None] | None,
) -> None:
    adopted.run(_KEPT)
    adopted.change(*columns)
    fault = column_fault(adopted.relation(), names, [0, adopted.version])
    assert (None if fault is None else (fault.column.name, fault.found)) == found
    assert column_fault(adopted.relation(), names, [0]) is None


def test_a_column_added_by_a_dropped_one_s_name_is_another_one(adopted: Adopted) -> None:
    adopted.run(_KEPT)
    adopted.change(_ID, _V)
    adopted.change(_ID, _V, ("n", "integer", "col-1"))
    fault = column_fault(adopted.relation(), {"n", "n_1"}, [adopted.version])
    assert fault is not None
    assert fault.column.name == "n"
    assert column_fault(adopted.relation(), {"n_1"}, [adopted.version]) is None


_DROP = "ALTER TABLE public.t DROP COLUMN n;"
_REFRESH = "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"
_LEAVE = "ALTER PUBLICATION p DROP TABLE public.t;"
_LEFT = "ALTER SUBSCRIPTION s REFRESH PUBLICATION;"
_TO_BIGINT = "ALTER TABLE public.t ALTER COLUMN n TYPE bigint;"


@pytest.mark.parametrize(
    ("publication", "columns", "statements"),
    [
        pytest.param(
            "TABLE t (id, n)",
            (_ID, _V),
            [_LEAVE, _DROP, "ALTER PUBLICATION p ADD TABLE public.t (id);", _REFRESH],
            id="dropped from a list",
        ),
        pytest.param(
            "TABLE t (id, n) WHERE (id > 5)",
            (_ID, _V),
            [
                _LEAVE,
                _DROP,
                "ALTER PUBLICATION p ADD TABLE public.t (id) WHERE (id > 5);",
                _REFRESH,
            ],
            id="with a filter",
        ),
        pytest.param("TABLE t WHERE (n > 5)", (_ID, _V), [_LEAVE, _LEFT], id="of a filter"),
        pytest.param("TABLE t", (_V, _N), [_LEAVE, _LEFT], id="of the key"),
        pytest.param(
            "ALL TABLES", (_V, _N), ["DROP TABLE public.t;", _LEFT], id="of the key, all tables"
        ),
        pytest.param(
            "TABLE t (id, n)",
            (_ID, _V, ("n", "string", "n")),
            [
                _LEAVE,
                "ALTER TABLE public.t ALTER COLUMN n TYPE text USING n::text;",
                "ALTER PUBLICATION p ADD TABLE public.t (id, n);",
                "ALTER TABLE public.t ALTER COLUMN n TYPE text USING n::text;",
                _REFRESH,
            ],
            id="retyped",
        ),
        pytest.param(
            "TABLE t",
            (_ID, ("v", "long", "v"), _N),
            ["ALTER TABLE public.t ALTER COLUMN v TYPE bigint USING v::bigint;", _REFRESH],
            id="retyped without a cast",
        ),
        pytest.param(
            "TABLE t",
            (_ID, _V, ("n", "date", "n")),
            [
                "ALTER TABLE public.t ALTER COLUMN n TYPE date USING n::text::date;",
                "ALTER TABLE public.t DROP COLUMN n;",
                "ALTER TABLE public.t ADD COLUMN n date;",
                _REFRESH,
            ],
            id="retyped, and values that do not fit",
        ),
        pytest.param(
            "TABLE t WHERE (n > 5)",
            (_ID, _V, ("n", "string", "n")),
            [_LEAVE, _LEFT],
            id="retyped, and a filter that does not fit",
        ),
        pytest.param(
            "TABLE t WHERE (n > 5)",
            (_ID, _V, ("n", "long", "n")),
            [
                _LEAVE,
                _TO_BIGINT,
                "ALTER PUBLICATION p ADD TABLE public.t WHERE (n > 5);",
                "ALTER TABLE public.t ALTER COLUMN n TYPE bigint USING n::bigint;",
                _REFRESH,
            ],
            id="widened in a filter",
        ),
        pytest.param(
            "TABLE t",
            (_ID, _V, ("n", {"type": "struct", "fields": []}, "n")),
            [_DROP, _REFRESH],
            id="of a type that cannot be read",
        ),
    ],
)
def test_the_statements_of_the_hint_end_it(
    adopted: Adopted,
    publication: str,
    columns: tuple[tuple[str, Any, str], ...],
    statements: list[str],
) -> None:
    adopted.run(f"CREATE PUBLICATION p FOR {publication}")
    adopted.change(*columns)
    failure = adopted.failure()
    assert failure is not None
    subscription = Subscription(0, 0, "s", 10, "", ("p",), "s")
    hint = failure.reported(subscription, lambda _target: False).hint or ""
    assert hint.partition(" of the subscription, use ")[2] == statements[-1]
    error = failure.reported(subscription, lambda _target: True)
    is_there = {"id", "n"} <= {name for name, *_type in columns}
    assert error.sqlstate == ("42804" if is_there else "42703")
    assert 'of table "public.t" of database "postgres" was' in error.message
    assert str(adopted.folder) in (error.detail or "")
    shown = (error.hint or "").removeprefix('In database "postgres", use ')
    source, _, target = shown.partition(" Then, in the database of the subscription, use ")
    own, there = ([f"{s.strip()};" for s in side.split(";") if s] for side in (source, target))
    assert own + there == statements
    for statement in own:
        adopted.run(statement.removesuffix(";"))
    if statements[-1] == _REFRESH:
        assert adopted.failure() is None


@pytest.mark.parametrize(
    ("columns", "sqlstate", "change"),
    [
        ((_ID, _V, _N), None, ""),
        ((_ID, _V, ("n", "short", "n")), None, ""),
        ((_ID, ("v", "long", "v"), _N), "42804", "ALTER COLUMN v TYPE bigint USING v::bigint"),
        (
            (_ID, _V, ("n", {"type": "struct", "fields": []}, "n")),
            "42804",
            "DROP COLUMN n",
        ),
        ((_ID, _V), "42703", "DROP COLUMN n"),
    ],
)
def test_columns_that_cannot_be_written(
    adopted: Adopted, columns: tuple[tuple[str, Any, str], ...], sqlstate: str | None, change: str
) -> None:
    adopted.run(_KEPT)
    adopted.change(*columns)
    relation = adopted.relation()
    if sqlstate is None:
        check_columns(adopted.session, relation)
        return
    with pytest.raises(PostgresError) as caught:
        check_columns(adopted.session, relation)
    assert caught.value.sqlstate == sqlstate
    assert caught.value.hint == f"Use ALTER TABLE public.t {change};"


@pytest.mark.parametrize(
    ("added", "statement"),
    [
        (("n", "integer", "col-1"), "ALTER TABLE public.t RENAME COLUMN n_1 TO n;"),
        (("N", "integer", "col-1"), 'ALTER TABLE public.t RENAME COLUMN "N" TO n;'),
        (("n", "long", "col-1"), "ALTER TABLE public.t ADD COLUMN n integer;"),
        (None, "ALTER TABLE public.t ADD COLUMN n integer;"),
    ],
)
def test_a_target_takes_the_column_that_was_added_again(
    adopted: Adopted, added: tuple[str, str, str] | None, statement: str
) -> None:
    relid = adopted.relation().oid
    with adopted.session.write() as catalog:
        found = Subscription(catalog.new_oid(), catalog.database_oid, "s", 10, "", ("p",), "s")
        insert_subscription(catalog, found)
        member = SubscriptionRelation(found.oid, relid, RelState.READY)
        insert_subscription_relation(catalog, member)
    adopted.change(_ID, _V)
    if added is not None:
        adopted.change(_ID, _V, added)
    with pytest.raises(UndefinedColumn) as caught:
        check_columns(adopted.session, adopted.relation())
    assert caught.value.hint == f"Use {_DROP} {statement} {_REFRESH}"
    if "RENAME" in statement:
        adopted.run(_DROP.removesuffix(";"))
        adopted.run(statement.removesuffix(";"))
        check_columns(adopted.session, adopted.relation())
        names = {column.name for column in adopted.relation().columns}
        assert names == {"id", "v", "n"}


def test_a_slot_is_read_again_after_its_hint(adopted: Adopted) -> None:
    adopted.run("SELECT pg_create_logical_replication_slot('slot', 'test_decoding')")
    adopted.run("CREATE INDEX ON t (n)")  # keeps the column in the relation
    adopted.change(_ID, _V)
    adopted.append()
    listed = "SELECT count(*) FROM pg_logical_slot_get_changes('slot', NULL, NULL)"
    *_others, hint = answer_of(adopted.session, listed)
    for statement in hint.removeprefix('HINT: In database "postgres", use ').split(";")[:-1]:
        adopted.run(statement)
    assert answer_of(adopted.session, listed)[-2:] == ("| 0", "SELECT 1")


def test_what_is_not_published_stops_nothing(adopted: Adopted) -> None:
    adopted.run("CREATE PUBLICATION p FOR TABLE t (id, v) WHERE (id > 1)")
    adopted.change(_ID, _V)
    assert adopted.failure() is None


def test_a_widened_column_has_the_new_type_from_then_on(adopted: Adopted) -> None:
    adopted.run("CREATE PUBLICATION p FOR TABLE t")
    adopted.change(_ID, _V, ("m", "long", "n"))
    column = adopted.relation().column("m")
    assert column is not None
    assert column.type == "int8"
    assert adopted.failure() is None
    adopted.change(_ID, _V, _N)  # restored
    assert adopted.failure() is None


@pytest.mark.parametrize("publication", ["TABLE t", "TABLES IN SCHEMA public"])
def test_a_dropped_column_leaves_the_relation_until_it_is_restored(
    adopted: Adopted, publication: str
) -> None:
    adopted.run(f"CREATE PUBLICATION p FOR {publication}")
    before = adopted.relation()
    adopted.change(_ID, _V)
    assert [column.name for column in adopted.relation().columns] == ["id", "v"]
    assert adopted.failure() is None
    adopted.change(_ID, _V, ("m", "long", "col-1"))
    adopted.change(_ID, _V, ("m", "long", "col-1"), ("n", "long", "col-2"))  # another column
    names = {column.name: column.attnum for column in adopted.relation().columns}
    assert names == {"id": 1, "v": 2, "m": 4, "n": 5}
    adopted.change(_ID, _V, _N)
    assert adopted.relation().columns == before.columns
    assert adopted.failure() is None


def test_a_column_that_alter_table_has_dropped_does_not_come_back(adopted: Adopted) -> None:
    adopted.run("ALTER TABLE t DROP COLUMN n")
    adopted.change(_ID, _V)
    adopted.change(_ID, _V, _N)
    assert [column.name for column in adopted.relation().columns] == ["id", "v"]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE PUBLICATION q FOR TABLE t (id, n)",
        "CREATE PUBLICATION q FOR TABLE t WHERE (n > 5)",
        "CREATE VIEW w AS SELECT n FROM t",
        "CREATE VIEW w AS SELECT count(t) FROM t",
        "CREATE POLICY y ON t USING (n > 5)",
        "CREATE POLICY y ON other USING (EXISTS (SELECT FROM t WHERE n > 5))",
        "CREATE INDEX i ON t (n)",
        "CREATE INDEX i ON t (v) INCLUDE (n)",
        "CREATE TABLE below () INHERITS (t)",
    ],
)
def test_what_depends_on_a_dropped_column_keeps_it(adopted: Adopted, statement: str) -> None:
    adopted.run("CREATE TABLE other (a int)")
    adopted.run(statement)
    adopted.change(_ID, _V)
    assert adopted.relation().column("n") is not None


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW w AS SELECT id, v FROM t",
        "CREATE VIEW w AS SELECT a, b, c FROM other",
        "CREATE POLICY y ON t USING (v > 'a')",
        "CREATE POLICY y ON other USING (c > 5 AND EXISTS (SELECT FROM other o WHERE o.c = 1))",
    ],
)
def test_a_column_that_nothing_reads_is_dropped(adopted: Adopted, statement: str) -> None:
    adopted.run("CREATE TABLE other (a int, b int, c int)")
    adopted.run(statement)
    adopted.change(_ID, _V)
    assert adopted.relation().column("n") is None


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE PUBLICATION q FOR TABLE t WHERE (n > 5)",
        "CREATE VIEW w AS SELECT n FROM t",
        "CREATE POLICY y ON t USING (n > 5)",
        "ALTER TABLE t ALTER COLUMN n SET DEFAULT 1",
        "CREATE INDEX i ON t (v) WHERE n > 5",
    ],
)
def test_what_depends_on_a_type_keeps_it(adopted: Adopted, statement: str) -> None:
    adopted.run(statement)
    adopted.change(_ID, _V, ("n", "long", "n"))
    column = adopted.relation().column("n")
    assert column is not None
    assert column.type == "int4"


def test_a_column_may_be_null_once_its_table_says_so(adopted: Adopted) -> None:
    adopted.change(_ID, _V, _N, not_null=["id", "v", "n"])
    adopted.run("DROP TABLE t")
    adopted.adopt()
    adopted.change(_ID, _V, ("m", "integer", "n"), not_null=["v"])
    not_null = {column.name: column.not_null for column in adopted.relation().columns}
    assert not_null == {"id": True, "v": True, "m": False}


_10_2, _12_2, _12_4 = (("numeric", numeric_typmod(*p)) for p in ((10, 2), (12, 2), (12, 4)))


@pytest.mark.parametrize(
    ("old", "new", "is_wide"),
    [
        (("int2", -1), ("int4", -1), True),
        (("int4", -1), ("int8", -1), True),
        (("int8", -1), ("int4", -1), False),
        (("int4", -1), ("int4", -1), False),
        (("int4", -1), ("float8", -1), True),
        (("int8", -1), ("float8", -1), False),
        (("float4", -1), ("float8", -1), True),
        (("float8", -1), ("float4", -1), False),
        (("date", -1), ("timestamp", -1), True),
        (("int4", -1), ("text", -1), False),
        (("_int4", -1), ("_int8", -1), True),
        (("_int8", -1), ("_int4", -1), False),
        (("int4", -1), ("_int8", -1), False),
        (("_numeric", _10_2[1]), ("_numeric", _12_4[1]), True),
        (_10_2, _12_2, True),
        (_10_2, _12_4, True),
        (_12_2, _12_4, False),
        (("int4", -1), _12_2, True),
        (("int4", -1), _10_2, False),
        (("numeric", numeric_typmod(4, 0)), ("int8", -1), False),
    ],
)
def test_which_type_is_wider(old: tuple[str, int], new: tuple[str, int], *, is_wide: bool) -> None:
    assert is_wider(old, new) == is_wide


@pytest.mark.parametrize(
    ("column", "is_refused"),
    [
        (_N, False),
        (("n", "string", "n"), True),
        (("n", "double", "n"), False),  # widened
        (("n", "float", "n"), True),
        (("n", {"type": "struct", "fields": []}, "n"), True),
        (("m", "string", "n"), True),
    ],
)
def test_queries_do_not_read_a_column_of_another_type(
    adopted: Adopted, column: tuple[str, Any, str], is_refused: bool
) -> None:
    adopted.change(_ID, _V, column)
    with adopted.session.read() as catalog:
        (newest,) = relation_sources(catalog, adopted.relation())
    faults = [None if c.fault is None else c.fault.sqlstate for c in newest.columns]
    assert faults == [None, None, "42804" if is_refused else None]
    with (
        adopted.session.read() as catalog,
        patch.object(table_read, "visible_versions", lambda _catalog, oids: dict.fromkeys(oids, 0)),
    ):
        (earlier,) = relation_sources(catalog, adopted.relation())
    assert [c.fault for c in earlier.columns] == [None] * 3


@pytest.mark.parametrize(
    ("stored", "type_", "typmod", "is_wide"),
    [
        (("text", -1), "varchar", 9, False),
        (("_text", -1), "_varchar", 9, False),
        (("varchar", 13), "varchar", 9, False),
        (("int8", -1), "int4", -1, True),
        (None, "varchar", 9, False),
    ],
)
def test_which_type_is_stored_as_a_wider_one(
    stored: tuple[str, int] | None, type_: str, typmod: int, *, is_wide: bool
) -> None:
    """replctl stores varchar and text alike, and reads and writes such columns without a cast."""
    found = None if stored is None else DeltaColumn("v", *stored, not_null=False)
    assert _is_wider(found, type_, typmod) == is_wide


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET v = 'x' WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM t USING t o WHERE t.id = o.id",
        "INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET v = 'x'",
    ],
)
def test_statements_that_write_rows_name_a_column_with_another_type(
    adopted: Adopted, statement: str
) -> None:
    """They read all columns, so Spark would fail."""
    adopted.change(_ID, _V, ("n", "date", "n"))
    (answer,) = answer_of(adopted.session, statement)[:1]
    assert answer.startswith('ERROR 42804: the type of column "n" of table "public.t"'), answer
