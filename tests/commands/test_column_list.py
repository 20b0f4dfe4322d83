"""A column list of CREATE TABLE ... USING delta LOCATION chooses columns of an existing Delta
table, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fix_cluster import relation_of
from fix_psql import Psql
from golden_script import answer_of

from replctl.lake.publisher import LakePublisher
from replctl.relation_name import RelationName
from replctl.session import Session

_STRUCT = {"type": "struct", "fields": []}


def _field(name: str, type_: Any = "integer", *, nullable: bool = True, **notes: Any) -> Any:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": notes}


_FIELDS = [
    _field("id", nullable=False),
    _field("v", "string"),
    _field("n", "decimal(10,2)"),
    _field("a", {"type": "array", "elementType": "integer", "containsNull": True}),
    _field("s", _STRUCT),
    _field("Mixed", "long"),
]


def _commit(folder: Path, version: int, fields: Sequence[Any]) -> None:
    schema = json.dumps({"type": "struct", "fields": list(fields)})
    metadata = {
        "id": "7", "format": {"provider": "parquet"}, "schemaString": schema,
        "partitionColumns": [], "configuration": {},
    }  # fmt: skip
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    lines = [{"protocol": protocol}, {"metaData": metadata}, {"commitInfo": {"timestamp": version}}]
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _commit(tmp_path / "t", 0, _FIELDS)
    return tmp_path / "t"


def _columns(session: Session, folder: Path, elements: str) -> list[tuple[str, str, int, bool]]:
    answer = answer_of(session, f"create table t {elements} using delta location '{folder}'")
    assert answer == ("CREATE TABLE",)
    return [(c.name, c.type, c.typmod, c.not_null) for c in relation_of(session).columns]


@pytest.mark.parametrize(
    ("elements", "columns"),
    [
        ("(id int)", [("id", "int4", -1, True)]),
        ("(v text, id int4)", [("v", "text", -1, False), ("id", "int4", -1, True)]),
        ("(v varchar)", [("v", "varchar", -1, False)]),
        (
            "(n numeric(10, 2), a int[])",
            [("n", "numeric", 655366, False), ("a", "_int4", -1, False)],
        ),
        ('("Mixed" bigint)', [("Mixed", "int8", -1, False)]),
        ("(id int, primary key (id) not enforced)", [("id", "int4", -1, True)]),
        ("(id int default 1)", [("id", "int4", -1, True)]),
    ],
)
def test_the_list_chooses_columns(
    session: Session, folder: Path, elements: str, columns: list[tuple[str, str, int, bool]]
) -> None:
    assert _columns(session, folder, elements) == columns


@pytest.mark.parametrize(
    ("elements", "error"),
    [
        ("(id bigint)", '42804: column "id" of {t} has type integer, not bigint'),
        ("(id serial)", None),
        ("(v varchar(5))", '42804: column "v" of {t} has type text, not character varying(5)'),
        ("(v uuid)", '42804: column "v" of {t} has type text, not uuid'),
        ("(n numeric)", '42804: column "n" of {t} has type numeric(10,2), not numeric'),
        ("(a int)", '42804: column "a" of {t} has type integer[], not integer'),
        ("(a text)", '42804: column "a" of {t} has type integer[], not text'),
        ("(id int, nix int)", '42703: column "nix" of {t} does not exist'),
        ("(mixed bigint)", '42703: column "mixed" of {t} does not exist'),
        ("(id int, id int)", '42701: column "id" specified more than once'),
        (
            "(s jsonb)",
            '0A000: column "s" of {t} has the type struct, which has no counterpart in PostgreSQL',
        ),
        (
            "(id int generated always as (1) stored)",
            '0A000: column "id" of {t} cannot be a generated column, because its values are there'
            " already",
        ),
    ],
)
def test_a_list_that_does_not_fit_is_refused(
    session: Session, folder: Path, elements: str, error: str | None
) -> None:
    answer = answer_of(session, f"create table t {elements} using delta location '{folder}'")
    if error is None:
        assert answer == ("CREATE TABLE",)
        return
    shown = error.format(t=f'the Delta table "{folder}"')
    assert answer[0].partition(" @")[0] == f"ERROR {shown}"


@pytest.mark.parametrize(
    ("type_", "notes", "shown"),
    [
        (_STRUCT, {}, "struct"),
        ("void", {}, "void"),
        ("interval year to month", {}, "interval year to month"),
        ("geometry(4326)", {}, "geometry(4326)"),
        ("string", {"__COLLATIONS": {"x": "icu.UNICODE"}}, "string collate icu.UNICODE"),
    ],
)
def test_types_that_postgresql_lacks(
    psql: Psql, tmp_path: Path, type_: Any, notes: Any, shown: str
) -> None:
    folder = tmp_path / "t"
    _commit(folder, 0, [_field("id"), _field("x", type_, **notes)])
    place = f"USING delta LOCATION '{folder}'"
    listed = psql("-c", f"CREATE TABLE t (x text) {place}")
    assert listed.stderr.startswith(
        f'ERROR:  column "x" of the Delta table "{folder}" has the type {shown}, which has no'
        " counterpart in PostgreSQL\n"
    )
    found = psql("-c", f"CREATE TABLE t {place}")
    assert found.stderr == (
        f'NOTICE:  column "x" of the Delta table "{folder}" is left out\n'
        f"DETAIL:  PostgreSQL has no counterpart of the type {shown}.\n"
    )
    assert psql("-A", "-t", "-c", "\\d t").stdout == "id|integer|||\n"
    _commit(folder, 0, [_field("x", type_, **notes)])
    assert psql("-c", f"CREATE TABLE u {place}").exit_code == 1


def test_columns_left_out_do_not_come_back(session: Session, folder: Path) -> None:
    _columns(session, folder, "(id int)")
    publisher = LakePublisher(session)
    _commit(folder, 1, [*_FIELDS, _field("later", "long")])
    publisher.slots.current_lsn([RelationName("public", "t")])
    relation = relation_of(session)
    assert [column.name for column in relation.columns] == ["id", "later"]
    assert relation.storage is not None
    assert relation.storage.left_out == ("Mixed", "a", "n", "s", "v")
    fewer = [field for field in _FIELDS if field["name"] != "v"]
    _commit(folder, 2, fewer)
    _commit(folder, 3, [*_FIELDS, _field("later", "long")])
    publisher.slots.current_lsn([RelationName("public", "t")])
    assert [column.name for column in relation_of(session).columns] == ["id", "later"]


def test_a_dump_has_the_list(psql: Psql, folder: Path) -> None:
    place = f"USING delta LOCATION '{folder}'"
    elements = '("Mixed" bigint, v varchar COLLATE "C", id int DEFAULT 3)'
    made = psql(script=f"CREATE TABLE t {elements} {place};\nALTER TABLE t RENAME COLUMN v TO w;\n")
    assert made.stderr == ""
    script = psql("dump", "-s").stdout
    assert (
        'CREATE TABLE public.t ("Mixed" bigint, v character varying COLLATE pg_catalog."C",'
        f" id integer) {place};\n"
        "ALTER TABLE ONLY public.t RENAME COLUMN v TO w;\n"
    ) in script
    assert psql("-c", "DROP TABLE t").exit_code == 0
    loaded = psql("-v", "ON_ERROR_STOP=1", "-q", script=script)
    assert (loaded.exit_code, loaded.stderr) == (0, "")
    assert psql("dump", "-s").stdout == script


def test_a_dump_has_no_list_if_none_is_needed(psql: Psql, folder: Path) -> None:
    psql("-c", f"CREATE TABLE t USING delta LOCATION '{folder}'")
    _commit(folder, 1, [*_FIELDS, _field("later", "long")])  # not in the commit log yet
    script = psql("dump", "-s").stdout
    assert f"CREATE TABLE public.t USING delta LOCATION '{folder}';\n" in script
    (folder / "_delta_log" / f"{1:020d}.json").write_text("no JSON")
    assert "CREATE TABLE public.t (id integer, v text" in psql("dump", "-s").stdout
