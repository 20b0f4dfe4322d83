"""Statements that do not read rows accept or refuse native columns: columns of Delta types that
PostgreSQL lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_script import answer_of

from replctl.session import Session

_STRUCT = "STRUCT<a: INT>"


def _struct(*names: str) -> dict[str, object]:
    return {"type": "struct", "fields": [{"name": name, "type": "integer"} for name in names]}


def _commit(folder: Path, version: int, **types: object) -> None:
    """Commit a schema: columns with their types in Delta's form."""
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    schema = json.dumps({"type": "struct", "fields": fields})
    lines = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "7", "format": {"provider": "parquet"}, "schemaString": schema,
                "partitionColumns": [], "configuration": {},
            }
        },
        {"commitInfo": {"timestamp": 0}},
    ]  # fmt: skip
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))


@pytest.fixture
def table(session: Session, tmp_path: Path) -> Session:
    """Return a session with an adopted table and tables of replctl.

    The adopted table is t (id int, s STRUCT<a: INT>).  The others are u, child and w.
    """
    _commit(tmp_path / "t", 0, id="integer", s=_struct("a"))
    for statement in (
        f"create table t using delta location '{tmp_path / 't'}'",
        "create table u (id int primary key, s jsonb, k jsonb unique, d jsonb default '1')",
        "create table child () inherits (u)",
        "create table w (id int, s jsonb)",
    ):
        assert answer_of(session, statement)[0].startswith("CREATE")
    return session


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("create publication p for table t where (s ->> 'a' = '1')", "expressions over columns"),
        ("alter table t add check (s is not null)", "expressions over columns"),
        ("create index on t ((s ->> 'a'))", "expressions over columns"),
        ("create index on t (id) where s is null", "expressions over columns"),
        ("create policy p on t using (s is null)", "expressions over columns"),
        ("alter table t add primary key (s)", "keys over columns"),
        ("create unique index on t (id) include (s)", "keys over columns"),
        ("alter table t alter column s set default '{}'", "defaults for columns"),
        ("alter table t alter column s type text", "conversions"),
        ("insert into t values (1, '{}')", "new values"),
        ("insert into t (s) select '{}'::jsonb", "new values"),
        ("insert into t (id) values (1) returning s", "expressions over columns"),
        ("update t set s = null", "new values"),
        ("update t set id = 1 where s ->> 'a' = '1'", "expressions over columns"),
        ("delete from t returning *", "expressions over columns"),
        ("delete from t where t is null", "expressions over columns"),
    ],
)
def test_what_is_refused(table: Session, statement: str, what: str) -> None:
    answer = answer_of(table, statement)
    assert answer[0] == f"ERROR 0A000: {what} of Delta type {_STRUCT} are not supported"
    assert answer[1] == 'DETAIL: Column "s" of table "t" has this type.'


def test_a_native_column_is_jsonb_with_an_option(table: Session) -> None:
    set_it = f"alter table w alter column s set (delta_type = '{_STRUCT.lower()}')"
    assert answer_of(table, set_it) == ("ALTER TABLE",)
    shown = "select attoptions, format_type(atttypid, atttypmod) from pg_attribute"
    for name in ("t", "w"):
        answer = answer_of(table, f"{shown} where attrelid = '{name}'::regclass and attname = 's'")
        assert answer[0] == f'| {{"delta_type={_STRUCT}"}} | jsonb'


def test_a_conflict_of_inherited_types_shows_delta_types(table: Session) -> None:
    own = "create table own (s jsonb) inherits (t)"
    assert answer_of(table, own)[-3:] == (
        'ERROR 42804: column "s" has a type conflict',
        f"DETAIL: Delta type {_STRUCT} versus jsonb",
        'HINT: Leave column "s" out: the table inherits it.',
    )
    assert answer_of(table, "create table own () inherits (t)") == ("CREATE TABLE",)
    set_it = "alter table w alter column s set (delta_type = 'VARIANT')"
    assert answer_of(table, set_it) == ("ALTER TABLE",)
    assert answer_of(table, "create table two () inherits (t, w)")[-2:] == (
        'ERROR 42804: inherited column "s" has a type conflict',
        f"DETAIL: Delta type {_STRUCT} versus Delta type VARIANT",
    )


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("w alter column s set (delta_type = 'ARRAY<INT>')", "22023"),
        ("w alter column s set (delta_type = 'nothing')", "22023"),
        ("w alter column s set (delta_type = 'STRUCT<`a b`: INT>')", "0A000"),
        ("w alter column id set (delta_type = 'STRUCT<a: INT>')", "42809"),
        ("u alter column s set (delta_type = 'STRUCT<a: INT>')", "42809"),
        ("t alter column s set (delta_type = 'STRUCT<b: INT>')", "55000"),
        ("t alter column s reset (delta_type)", "0A000"),
    ],
)
def test_wrong_delta_types(table: Session, statement: str, error: str) -> None:
    assert answer_of(table, f"alter table {statement}")[0].startswith(f"ERROR {error}")


@pytest.mark.parametrize(
    ("now", "statement", "shown"),
    [
        (
            {"id": "integer", "s": _struct("a", "b c")},
            "alter column s set (delta_type = 'STRUCT<a: INT, `b c`: INT>')",
            "id integer, s jsonb STRUCT<a: INT, `b c`: INT>",
        ),
        (
            {"id": _struct("a"), "s": _struct("a")},
            "alter column id set (delta_type = 'STRUCT<a: INT>')",
            "id jsonb STRUCT<a: INT>, s jsonb STRUCT<a: INT>",
        ),
        (
            {"id": "integer", "s": "string"},
            "alter column s type text",
            "id integer, s text",
        ),
        (
            {"id": "integer", "s": {"type": "array", "elementType": "integer"}},
            "alter column s type int[]",
            "id integer, s integer[]",
        ),
    ],
)
def test_the_type_that_the_owner_gave_a_column_is_taken_over(
    table: Session, tmp_path: Path, now: dict[str, object], statement: str, shown: str
) -> None:
    refused = answer_of(table, f"alter table t {statement}")
    assert refused[0].startswith("ERROR ")
    _commit(tmp_path / "t", 1, **now)
    assert answer_of(table, f"alter table t {statement}") == ("ALTER TABLE",)
    answer = answer_of(
        table,
        "select string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod),"
        " substr(attoptions[1], 12)), ', ' order by attnum) from pg_attribute"
        " where attrelid = 't'::regclass and attnum > 0",
    )
    assert answer[0] == f"| {shown}"


def test_a_column_that_is_left_out_is_not_added_again(table: Session) -> None:
    answer_of(table, "alter table t drop column s")
    answer = answer_of(table, "alter table t add column s jsonb")
    assert answer[0] == 'ERROR 42701: column "s" of relation "t" already exists'
    hint = answer[2].removeprefix("HINT: To use the column, adopt the table again: ")
    for statement in hint.removesuffix(".").split(", which leaves the files, then "):
        assert not answer_of(table, statement)[0].startswith("ERROR"), statement
    shown = "select attname from pg_attribute where attrelid = 't'::regclass and attname = 's'"
    assert answer_of(table, shown)[0] == "| s"


def test_the_hint_of_a_field_name(session: Session, tmp_path: Path) -> None:
    _commit(tmp_path / "t", 0, id="integer", s=_struct("a b"), n="integer")
    for statement in (
        "create database copy",
        f"create table t using delta location '{tmp_path / 't'}'",
        "create publication p for table t",
    ):
        assert answer_of(session, statement)[0].startswith("CREATE")
    copy = Session.connect(session.cluster, "copy", "postgres")
    subscribe = (
        "create subscription s connection 'dbname=postgres' publication p"
        " with (create_tables = true)"
    )
    answer = answer_of(copy, subscribe)
    assert answer[0].startswith("ERROR 0A000"), answer
    (hint,) = [line for line in answer if line.startswith("HINT")]
    columns = hint.rsplit(": ")[-1].removesuffix(".")
    answer_of(session, f"alter publication p set table t {columns}")
    assert answer_of(copy, subscribe)[-1] == "CREATE SUBSCRIPTION"
