"""Empty texts in partition columns of other types than text, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from golden_script import answer_of
from owners_log import OwnersLog, field

from replctl.lake.table_read import enter_foreign_versions
from replctl.session import Session


def _owner(folder: Path, type_: str, text: str | None) -> OwnersLog:
    """Write a table with a file that has a partition value."""
    owner = OwnersLog(folder, is_mapped=False)
    columns = [field("id", type_="integer"), field("q", type_=type_)]
    owner.commit(columns, partitioned_by=["q"], added=[{"q": text}])
    return owner


def _adopt(session: Session, folder: Path) -> tuple[str, ...]:
    return answer_of(session, f"create table t using delta location '{folder}'")


def _refused(folder: Path, path: str, *, stored: str = "") -> tuple[str, ...]:
    return (
        'ERROR 0A000: partition column "q" of table "public.t" has empty values',
        f'DETAIL: {stored}File "{path}" has one. Delta reads it as NULL, but Spark cannot evaluate'
        " conditions on the column.",
        "HINT: Ask the table's owner to write NULL instead, in Spark: SET spark.sql.ansi.enabled ="
        f" false; UPDATE delta.`{folder}` SET `q` = NULL WHERE `q` IS NULL",
    )


@pytest.mark.parametrize(
    ("type_", "text"), [("date", None), ("date", "2020-01-01"), ("string", ""), ("binary", "")]
)
def test_values_that_spark_reads(
    session: Session, tmp_path: Path, type_: str, text: str | None
) -> None:
    _owner(tmp_path, type_, text)
    assert _adopt(session, tmp_path) == ("CREATE TABLE",)


@pytest.mark.parametrize("has_checkpoint", [False, True])
@pytest.mark.parametrize("type_", ["date", "timestamp", "integer", "boolean", "decimal(5,2)"])
def test_empty_values_at_adoption(
    session: Session, tmp_path: Path, type_: str, *, has_checkpoint: bool
) -> None:
    owner = _owner(tmp_path, type_, "")
    if has_checkpoint:
        DeltaTable(tmp_path).create_checkpoint()
    assert _adopt(session, tmp_path) == _refused(tmp_path, "0-0.parquet")
    owner.commit(removed=["0-0.parquet"], added=[{"q": None}])  # the UPDATE of the HINT
    assert _adopt(session, tmp_path) == ("CREATE TABLE",)


def test_empty_values_later(session: Session, tmp_path: Path) -> None:
    owner = _owner(tmp_path, "date", None)
    assert _adopt(session, tmp_path) == ("CREATE TABLE",)
    owner.commit(added=[{"q": ""}])
    place = f'Table "public.t" of database "postgres" is stored at "{tmp_path}". '
    refused = _refused(tmp_path, "1-0.parquet", stored=place)
    assert answer_of(session, "select * from t") == refused
    owner.commit(removed=["1-0.parquet"], added=[{"q": None}])
    enter_foreign_versions(session)
