"""replctl reads the rules in the metadata of a Delta table, and checks them before a write.

Tests of rules that need no row run without Spark.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fix_cluster import relation_of
from fix_psql import Psql
from golden_script import answer_of

from replctl.catalog.relation_kind import Identity
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_rules import DeltaRules, check_can_be_undone, check_uniform, rules_of
from replctl.lake.table_state import TableState
from replctl.session import Session
from replctl.types.text_length import TextLength


def _field(name: str, kind: str = "integer", *, nullable: bool = True, **notes: object) -> object:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": notes}


def _notes(**notes: object) -> dict[str, Any]:
    return {f"delta.{name.replace('_', '.')}": value for name, value in notes.items()}


def _metadata(*fields: object, partitions: tuple[str, ...] = (), **properties: str) -> Any:
    return {
        "id": "an id",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": list(partitions),
        "configuration": _notes(**properties),
    }


def _make(folder: Path, metadata: Any) -> None:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 6}}
    actions = [protocol, {"metaData": metadata}]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def _change(folder: Path, metadata: Any) -> None:
    """Write a version with other metadata as the owner does."""
    log = folder / "_delta_log"
    version = len(list(log.glob("*.json")))
    (log / f"{version:020d}.json").write_text(json.dumps({"metaData": metadata}))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (_metadata(_field("a")), DeltaRules(("a",))),
        (_metadata(_field("a", nullable=False)), DeltaRules(("a",), frozenset(["a"]))),
        (
            _metadata(_field("a", CURRENT_DEFAULT="1 + 1")),
            DeltaRules(("a",), defaults=(("a", "1 + 1"),)),
        ),
        (
            _metadata(_field("a"), constraints_b="a > 1", constraints_a="a < 9"),
            DeltaRules(("a",), checks=(("a", "a < 9"), ("b", "a > 1"))),
        ),
        (
            _metadata(
                _field("a", **_notes(invariants='{"expression": {"expression": "a > 3"}}')),
                _field("b", **_notes(invariants="no JSON")),
            ),
            DeltaRules(("a", "b"), checks=(("a", "a > 3"),)),
        ),
        (
            _metadata(
                _field("a", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)"),
                _field("b", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
                _field("c", "string", __CHAR_VARCHAR_TYPE_STRING="struct<a:varchar(5)>"),
            ),
            DeltaRules(
                ("a", "b", "c"),
                lengths=(("a", TextLength(5)), ("b", TextLength(3, is_exact=True))),
            ),
        ),
        (
            _metadata(_field("a"), _field("g", **_notes(generationExpression="a * 2"))),
            DeltaRules(("a", "g"), generated=(("g", "a * 2"),)),
        ),
        (
            _metadata(
                _field("a", "long", **_notes(identity_start=1, identity_step=1)),
                _field("d", "long", **_notes(identity_start=1, identity_allowExplicitInsert=True)),
                _field("e", "long", **_notes(identity_start=1, identity_allowExplicitInsert=False)),
            ),
            DeltaRules(
                ("a", "d", "e"),
                identity=(
                    ("a", Identity.ALWAYS),
                    ("d", Identity.BY_DEFAULT),
                    ("e", Identity.ALWAYS),
                ),
            ),
        ),
        (
            _metadata(_field("p", "string"), _field("q"), partitions=("q", "p")),
            DeltaRules(("p", "q"), text_partitions=("p",)),
        ),
        (_metadata(_field("a"), appendOnly="TRUE"), DeltaRules(("a",), is_append_only=True)),
        (_metadata(_field("a"), appendOnly="false"), DeltaRules(("a",))),
        (
            _metadata(_field("a"), universalFormat_enabledFormats="iceberg, Hudi"),
            DeltaRules(("a",), formats=("iceberg", "hudi")),
        ),
    ],
)
def test_rules_of_a_table(metadata: Any, expected: DeltaRules) -> None:
    assert rules_of(TableState(0, None, {}, metadata), "/t") == expected


_GENERATED = _metadata(_field("a"), _field("g", **_notes(generationExpression="a * 2")))
_ALWAYS = _metadata(_field("a", "long", **_notes(identity_start=1, identity_step=1)))
_BY_DEFAULT = _metadata(
    _field("a", "long", **_notes(identity_start=1, identity_allowExplicitInsert=True))
)
_APPEND_ONLY = _metadata(_field("a"), appendOnly="true")
_COMPUTED = 'DETAIL: Column "g" is a generated column.'
_ASSIGNED = (
    'DETAIL: Column "a" is an identity column of the Delta table, whose values Delta always'
    " assigns."
)


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize(
    ("metadata", "statement", "error", "detail"),
    [
        (
            _GENERATED,
            "insert into t values (1, 2)",
            '428C9: cannot insert a non-DEFAULT value into column "g"',
            _COMPUTED,
        ),
        (
            _GENERATED,
            "update t set g = 1",
            '428C9: column "g" can only be updated to DEFAULT',
            _COMPUTED,
        ),
        (
            _GENERATED,
            "copy t (a, g) from stdin",
            '42P10: column "g" is a generated column',
            "DETAIL: Generated columns cannot be used in COPY.",
        ),
        (
            _ALWAYS,
            "insert into t (a) values (1)",
            '428C9: cannot insert a non-DEFAULT value into column "a"',
            _ASSIGNED,
        ),
        (
            _ALWAYS,
            "insert into t (a) overriding system value values (1)",
            '428C9: cannot insert a non-DEFAULT value into column "a"',
            _ASSIGNED,
        ),
        (
            _BY_DEFAULT,
            "insert into t values (default), (7)",
            '0A000: rows with and without a value for identity column "a" are not supported in one'
            " INSERT",
            'DETAIL: Column "a" is an identity column of the Delta table. In one commit, Delta'
            " assigns its values in all rows or in none.",
        ),
        (
            _BY_DEFAULT,
            "update t set a = 1",
            '428C9: column "a" cannot be updated',
            'DETAIL: Column "a" is an identity column of the Delta table. Delta does not update'
            " identity columns.",
        ),
    ],
)
def test_columns_that_delta_computes_take_no_values(
    session: Session,
    tmp_path: Path,
    metadata: Any,
    statement: str,
    error: str,
    detail: str,
    is_later: bool,
) -> None:
    columns = json.loads(metadata["schemaString"])["fields"]
    plain = _metadata(*({**field, "metadata": {}} for field in columns))
    _make(tmp_path / "t", plain if is_later else metadata)
    adopted = answer_of(session, f"create table t using delta location '{tmp_path / 't'}'")
    assert adopted == ("CREATE TABLE",)
    if is_later:
        _change(tmp_path / "t", metadata)
    answer = answer_of(session, statement)
    assert (answer[0].partition(" @")[0].replace("ERROR ", ""), answer[1:]) in (
        (error, (detail,)),
        (error.partition(":")[0], (detail,)),
    )


@pytest.mark.parametrize(
    ("statement", "does"),
    [
        ("update t set a = 1", "update"),
        ("delete from t", "delete from"),
        ("truncate t", "truncate"),
    ],
)
def test_rows_of_append_only_tables_stay(
    session: Session, tmp_path: Path, statement: str, does: str
) -> None:
    folder = tmp_path / "t"
    _make(folder, _metadata(_field("a")))
    answer_of(session, f"create table t using delta location '{folder}'")
    _change(folder, _APPEND_ONLY)
    assert answer_of(session, statement) == (
        f'ERROR 55000: cannot {does} table "t"',
        f'DETAIL: The Delta table "{folder}" is append-only: its owner has set delta.appendOnly.',
        "HINT: To allow such changes, its owner can use Spark: ALTER TABLE"
        f" delta.`{folder}` SET TBLPROPERTIES ('delta.appendOnly' = 'false').",
    )
    with pytest.raises(ObjectNotInPrerequisiteState, match="in a transaction block"):
        check_can_be_undone(relation_of(session))


def test_other_formats_need_their_library(session: Session, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    _make(folder, _metadata(_field("a"), universalFormat_enabledFormats="iceberg"))
    answer_of(session, f"create table t using delta location '{folder}'")
    asked: list[str] = []

    def has_class(name: str) -> bool:
        asked.append(name)
        return len(asked) > 1

    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        check_uniform(relation_of(session), has_class)
    assert caught.value.message == (
        'cannot write table "t": Spark does not have the library "delta-iceberg"'
    )
    assert caught.value.hint == (
        "If nobody needs the format, the table's owner can use Spark: ALTER TABLE"
        f" delta.`{folder}` UNSET TBLPROPERTIES ('delta.universalFormat.enabledFormats')."
    )
    check_uniform(relation_of(session), has_class)
    assert asked == ["org.apache.spark.sql.delta.icebergShaded.IcebergConverter"] * 2


def test_rules_are_described(psql: Psql, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    metadata = _metadata(
        _field("a", "long", **_notes(identity_start=1)),
        _field("g", **_notes(generationExpression="a * 2")),
        constraints_positive="a > 0",
    )
    _make(folder, metadata)
    assert psql("-c", f"create table t using delta location '{folder}'").exit_code == 0
    assert psql("-c", "\\d t").stdout == (
        '                               Table "public.t"\n'
        " Column |  Type   | Collation | Nullable |              Default               \n"
        "--------+---------+-----------+----------+------------------------------------\n"
        " a      | bigint  |           |          | generated always as identity\n"
        " g      | integer |           |          | generated always as (a * 2) stored\n"
        "Check constraints of the Delta table:\n"
        '    "positive" CHECK (a > 0)\n\n'
    )
