"""The report of `replctl cluster backup`: the parts of the backup, and the tables that it did not
copy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from deltalake import DeltaTable
from fix_lake import Lake


def test_a_backup_names_what_belongs_together(lake: Lake, tmp_path: Path) -> None:
    adopted = tmp_path / "adopted"
    DeltaTable.create(str(adopted), DeltaTable(lake.location).schema())
    lake.run(f"CREATE TABLE elsewhere USING delta LOCATION '{adopted}'")
    lake.run("ALTER SYSTEM SET max_replication_slots = 7")
    home, copy = lake.session.cluster.path, tmp_path / "backup"
    command = [sys.executable, "-m", "replctl", "cluster", "backup", str(copy), "--home", str(home)]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    assert said[0].startswith("1 tables, ")
    parts = [line.split(": ")[1] for line in said if line.startswith("copied: ")]
    assert sorted(parts) == sorted(path.name for path in copy.iterdir())
    assert sorted(parts) == ["base", "catalog.db", "postgresql.auto.conf"]
    assert f"not copied: table elsewhere at {adopted}" in said
    assert "the key that signs commits" in said[1]
    assert said[-1].startswith("Keep these together")


def test_a_backup_of_a_damaged_table_is_a_failure(lake: Lake, tmp_path: Path) -> None:
    lake.update()
    shutil.rmtree(Path(lake.location) / "_delta_log")
    home = str(lake.session.cluster.path)
    command = [sys.executable, "-m", "replctl", "cluster", "backup", str(tmp_path / "backup")]
    done = subprocess.run([*command, "--home", home], capture_output=True, check=False, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith("1 tables, ")
    assert done.stderr.startswith('ERROR:  table "t" in the backup is not as the catalog knows it')
