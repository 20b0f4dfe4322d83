"""Queries find NaN in files of other programs, whose statistics omit NaN."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from golden_script import answer_of

from replctl.session import Session

_VALUES = (0.0, float("nan"), 2.0)


#: Conditions on a column, with the number of rows that satisfy them.
_CONDITIONS = {
    "{} = 'NaN'": 1,
    "{} > 5": 1,
    "5 < {}": 1,
    "{} >= 'NaN'": 1,
    "NOT {} < 3": 1,
    "NOT {} <= 2": 1,
    "{} IS NOT DISTINCT FROM 'NaN'": 1,
    "{} IN (7, 'NaN')": 1,
    "{} IN (SELECT 'NaN'::float8)": 1,
    "{} = ANY (ARRAY['NaN', 8]::float8[])": 1,
    "{} BETWEEN 5 AND 'NaN'": 1,
    "NOT {} BETWEEN -1 AND 3": 1,
    "({}, 1) > (5, 0)": 1,
    "CASE WHEN {} < 3 THEN false ELSE true END": 1,
    "{} NOT IN (0, 2)": 1,
    "{} <> 0 AND {} <> 2": 1,
    "EXISTS (SELECT FROM (VALUES ('NaN'::float8)) AS x (y) WHERE y = {})": 1,
    "{} < 5": 2,
}


@pytest.mark.spark
def test_nan_is_found(spark_session: Session, tmp_path: Path) -> None:
    rows = pa.table({"a": pa.array(_VALUES), "b": pa.array(_VALUES, pa.float32())})
    write_deltalake(tmp_path / "n", rows)
    made = f"CREATE TABLE n (a float8, b float4) USING delta LOCATION '{tmp_path / 'n'}'"
    answer_of(spark_session, made)
    answer_of(spark_session, "SET replctl.small_table_rows = 0")
    found: dict[str, set[str]] = {}
    for condition in _CONDITIONS:
        for column in ("a", "b"):
            query = f"SELECT count(*) FROM n WHERE {condition.replace('{}', column)}"
            found.setdefault(condition, set()).add(answer_of(spark_session, query)[0])
    assert found == {condition: {f"| {count}"} for condition, count in _CONDITIONS.items()}
