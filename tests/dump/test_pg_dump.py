"""replctl runs the scripts that pg_dump 15, 17 and 18 write for a shop
(.ci/generate_shop_dump.py)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from fix_psql import Psql
from fix_spark import spark_options

DATA = Path(__file__).parent / "data" / "pg_dump"
_ROLES = "CREATE ROLE shop_owner; CREATE ROLE shop_reader; CREATE ROLE shop_tenant"
#: The additional parts of a dump without --schema-only.
_ROWS = re.compile(
    r"^--\n-- (?:Data for )?Name: [^\n]*; Type: (?:TABLE DATA|SEQUENCE SET);.*?(?=^--\n-- )",
    re.MULTILINE | re.DOTALL,
)
_OID = re.compile(r"(?<=satisfies_hash_partition\(')\d+")


@pytest.mark.parametrize("name", ["shop_15", "shop_rows", "shop_18"])
def test_a_schema_dump_loads_and_is_described_as_by_psql(
    name: str, psql: Psql, tmp_path: Path
) -> None:
    os.chdir(DATA)
    schema = tmp_path / "schema.sql"
    schema.write_text(_ROWS.sub("", (DATA / f"{name}.sql").read_text(encoding="utf-8")))
    assert psql("-X", "-c", _ROLES).exit_code == 0
    loaded = psql("-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(schema))
    assert (loaded.exit_code, "ERROR" in loaded.stderr) == (0, False), loaded.stderr
    described = psql("-X", "-f", "describe.sql", merge=True)
    expected = (DATA / "describe.out").read_text(encoding="utf-8")
    assert _OID.sub("", described.stdout).splitlines() == _OID.sub("", expected).splitlines()


@pytest.mark.spark
def test_a_dump_with_rows_loads(psql: Psql) -> None:
    os.chdir(DATA)
    assert psql("-X", "-c", _ROLES).exit_code == 0
    options = [*spark_options(), "-X", "-q"]
    loaded = psql(*options, "-v", "ON_ERROR_STOP=1", "-f", "shop_rows.sql")
    assert (loaded.exit_code, "ERROR" in loaded.stderr) == (0, False), loaded.stderr
    shown = psql(*options, "-f", "rows.sql", merge=True)
    assert shown.stdout.splitlines() == (DATA / "rows.out").read_text().splitlines()
    refused = psql(*options, "-c", "DELETE FROM shop.orders WHERE id = 1")
    assert "ON DELETE CASCADE of foreign key constraint" in refused.stderr
