"""status and \\dRs+ describe the retention of adopted tables, without Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from fix_psql import Psql


def subscription(psql: Psql, location: Path) -> None:
    """Make a subscription to a table that deltalake has written."""
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]})
    properties = {
        "delta.enableChangeDataFeed": "true",
        "delta.deletedFileRetentionDuration": "interval 2 days",
    }
    write_deltalake(location, rows, configuration=properties)
    outcome = psql(
        "-X", "-q", "-v", "ON_ERROR_STOP=1",
        script=f"""CREATE DATABASE pub;
CREATE DATABASE sub;
\\c pub
CREATE TABLE t USING delta LOCATION '{location}';
CREATE PUBLICATION p FOR TABLE t;
\\c sub
CREATE TABLE t (id int, v text);
CREATE SUBSCRIPTION "My s" CONNECTION 'dbname=pub' PUBLICATION p
    WITH (copy_data = false, slot_name = 's');
""",
    )  # fmt: skip
    notice = 'NOTICE:  created replication slot "s" on publisher\n'
    assert (outcome.exit_code, outcome.stderr) == (0, notice)


def lines(psql: Psql) -> list[str]:
    """Return the lines after the row count of \\dRs+."""
    found = psql("-X", "-d", "sub", "-c", "\\dRs+").stdout.splitlines()
    return [line for line in found[found.index("(1 row)") + 1 :] if line]


def test_status_and_describe_say_when_changes_are_taken(psql: Psql, tmp_path: Path) -> None:
    location = tmp_path / "lake"
    subscription(psql, location)
    assert lines(psql) == []
    assert "Retention" not in psql("status").stdout
    DeltaTable(location).update(updates={"v": "'new'"}, predicate="id = 1")
    status = psql("status").stdout
    heading = 'Retention of changes that subscription "My s" needs:'
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00"
    expected = rf'    "public.t" until {when} \(delta.deletedFileRetentionDuration is 2 days\)'
    found = lines(psql)
    assert found[0] == heading
    assert re.fullmatch(expected, found[1])
    assert f"\n{found[0]}\n{found[1]}\n" in status
    (shown,) = json.loads(psql("status", "--json").stdout)
    (table,) = shown["tables"]
    assert table["retention"]["setting"] == "delta.deletedFileRetentionDuration"
    assert not table["retention"]["is_lost"]

    DeltaTable(location).update(updates={"v": "'newer'"}, predicate="id = 1")
    DeltaTable(location).create_checkpoint()
    for number in (0, 1):
        (location / "_delta_log" / f"{number:020d}.json").unlink()
    statement = 'ALTER SUBSCRIPTION "My s" REFRESH TABLE public.t;'
    lost = f'    "public.t" lost: the owner has removed some. Use {statement}'
    assert lines(psql) == [heading, lost]
    assert f"\n{heading}\n{lost}\n" in psql("status").stdout
    slots = "SELECT wal_status FROM pg_replication_slots"
    assert psql("-X", "-d", "pub", "-At", "-c", slots).stdout == "lost\n"
