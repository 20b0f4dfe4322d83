"""replctl uses literal defaults of a Delta table.  It refuses a statement that needs another kind
of default, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_script import answer_of

from replctl.catalog.pg_class import Column
from replctl.expr import nodes
from replctl.lake.delta_default import literal_default, with_delta_default
from replctl.session import Session
from replctl.types.numeric import numeric_typmod


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("int4", "7", "7"),
        ("int8", " -7 ", "-7"),
        ("float8", "1.5", "1.5"),
        ("float4", "2", "2"),
        ("bool", "TRUE", "t"),
        ("bool", "false", "f"),
        ("text", "'it is'", "it is"),
        ("text", "''", ""),
        ("varchar", '"two"', "two"),
        ("date", "DATE '2024-02-29'", "2024-02-29"),
        ("date", "date'0001-01-01'", "0001-01-01"),
        ("numeric", "1.25", "1.25"),
        ("numeric", "3", "3.00"),
    ],
)
def test_a_literal_is_a_default(type_: str, text: str, value: str) -> None:
    typmod = numeric_typmod(10, 2) if type_ == "numeric" else -1
    assert literal_default(Column(1, "a", type_, typmod), text) == nodes.Const(type_, value, typmod)


@pytest.mark.parametrize("type_", ["int4", "text", "timestamptz"])
def test_null_is_a_default(type_: str) -> None:
    assert literal_default(Column(1, "a", type_), "NULL") == nodes.Const(type_, None)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("int4", "1 + 1"), ("int4", "1.0"), ("int4", "99999999999"), ("int4", "'1'"),
        ("numeric", "1.005"), ("float4", "1.1"), ("text", "'a' 'b'"), ("text", r"'a\\n'"),
        ("text", "upper('a')"), ("text", "1"), ("text", "r'a'"), ("date", "'2024-01-01'"),
        ("date", "DATE '2024-02-30'"), ("bool", "1"), ("bytea", "X'00'"),
        ("timestamptz", "current_timestamp()"), ("timestamp", "TIMESTAMP '2024-01-01'"),
    ],
)  # fmt: skip
def test_another_expression_is_none(type_: str, text: str) -> None:
    typmod = numeric_typmod(10, 2) if type_ == "numeric" else -1
    column = Column(1, "a", type_, typmod)
    assert literal_default(column, text) is None
    assert with_delta_default(column, "a", {"a": text}).foreign_default == text


def test_a_default_of_the_relation_comes_first() -> None:
    own = Column(1, "a", "int4", default=nodes.Const("int4", "1"))
    assert with_delta_default(own, "a", {"a": "7"}) == own
    assert with_delta_default(Column(1, "a", "int4"), "a", {"b": "7"}) == Column(1, "a", "int4")


def _make(folder: Path) -> None:
    fields: list[Any] = [
        {"name": "id", "type": "integer", "nullable": True, "metadata": {}},
        {
            "name": "at",
            "type": "timestamp",
            "nullable": True,
            "metadata": {"CURRENT_DEFAULT": "current_timestamp()"},
        },
    ]
    metadata = {
        "id": "7", "format": {"provider": "parquet"}, "partitionColumns": [],
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "configuration": {},
    }  # fmt: skip
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    (folder / "_delta_log").mkdir(parents=True)
    actions = [{"protocol": protocol}, {"metaData": metadata}]
    (folder / "_delta_log" / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t (id) values (1)",
        "insert into t values (1, default)",
        "insert into t default values",
        "insert into t (id) select 1",
        "update t set at = default",
        "copy t (id) from stdin",
    ],
)
def test_a_default_that_spark_evaluates_is_refused(
    session: Session, tmp_path: Path, statement: str
) -> None:
    _make(tmp_path / "t")
    adopt = f"create table t using delta location '{tmp_path / 't'}'"
    assert answer_of(session, adopt) == ("CREATE TABLE",)
    answer = answer_of(session, statement)
    assert (answer[0].partition(" @")[0], *answer[1:]) == (
        'ERROR 0A000: the default of column "at" of the Delta table is not supported',
        "DETAIL: It is current_timestamp(), which only Spark evaluates.",
        "HINT: Give the column a value, or use ALTER TABLE ... ALTER COLUMN ... SET DEFAULT.",
    )
    followed = "alter table t alter column at set default now()"
    assert answer_of(session, followed) == ("ALTER TABLE",)
    assert "default" not in answer_of(session, statement)[0]
