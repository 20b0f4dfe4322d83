"""The storage parameters partition_by and cluster_by, and Delta's properties, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_script import answer_of

from replctl.lake.delta_description import delta_description
from replctl.session import Session

_OPTIONS = "SELECT reloptions::text FROM pg_class WHERE relname = 't'"


def _run(session: Session, *statements: str) -> None:
    for statement in statements:
        answer = answer_of(session, statement)
        assert not answer[0].startswith("ERROR"), (statement, answer)


def _actions(location: Path) -> dict[str, list[dict[str, object]]]:
    """Return the actions of a table's first version, by kind."""
    found: dict[str, list[dict[str, object]]] = {}
    for line in (location / "_delta_log" / f"{0:020d}.json").read_text().splitlines():
        for kind, body in json.loads(line).items():
            found.setdefault(kind, []).append(body)
    return found


def test_a_table_with_a_location_is_partitioned_at_once(session: Session, tmp_path: Path) -> None:
    place = f"USING delta LOCATION '{tmp_path}/t'"
    _run(
        session,
        f'CREATE TABLE t (id int PRIMARY KEY, "Re gion" text, d date) {place}'
        " WITH (partition_by = '\"Re gion\", d', delta.logretentionduration = '60 days')",
    )
    (metadata,) = _actions(tmp_path / "t")["metaData"]
    assert metadata["partitionColumns"] == ["Re_gion", "d"]
    assert isinstance(metadata["configuration"], dict)
    assert metadata["configuration"]["delta.logRetentionDuration"] == "interval 60 days"
    assert delta_description(str(tmp_path / "t")).partitions == ("Re_gion", "d")


def test_a_table_with_a_location_is_clustered_at_once(session: Session, tmp_path: Path) -> None:
    place = f"USING delta LOCATION '{tmp_path}/t'"
    _run(session, f"CREATE TABLE t (id int, r text) {place} WITH (cluster_by = 'r, id')")
    actions = _actions(tmp_path / "t")
    (domain,) = actions["domainMetadata"]
    assert json.loads(str(domain["configuration"]))["clusteringColumns"] == [["r"], ["id"]]
    assert isinstance(actions["protocol"][0]["writerFeatures"], list)
    assert "clustering" in actions["protocol"][0]["writerFeatures"]
    assert delta_description(str(tmp_path / "t")).clustering == ("r", "id")


@pytest.mark.parametrize(
    ("columns", "options", "error"),
    [
        ("id int, r text", "partition_by = 'q'",
         '42703: column "q" named in storage parameter "partition_by" does not exist'),
        ("id int, r text", "partition_by = 'r,'",
         '22023: invalid value for parameter "partition_by": "r,"'),
        ("id int, r text", "cluster_by = ''",
         '22023: invalid value for parameter "cluster_by": ""'),
        ("id int, r text", "partition_by = 'r, R'",
         '42701: column "r" specified more than once'),
        ("id int, r text", "partition_by = 'r, id'",
         '42P16: cannot partition the Delta table of "x" by all of its columns'),
        ("id int, r text", "partition_by = 'r', cluster_by = 'r'",
         "42601: partition_by and cluster_by are mutually exclusive options"),
        *((f"id int, r {type_}", "partition_by = 'r'",
           '0A000: storage parameter "partition_by" does not support column "r"')
          for type_ in ("bytea", "jsonb", "timestamptz", "timestamp", "float8", "int[]")),
        *((f"id int, r {type_}", "cluster_by = 'r'",
           '0A000: storage parameter "cluster_by" does not support column "r"')
          for type_ in ("bytea", "jsonb", "boolean", "int[]", "interval")),
        ("a int, b int, c int, d int, e int", "cluster_by = 'a, b, c, d, e'",
         "54011: cannot cluster a Delta table by more than 4 columns"),
        ("a int, b interval, c int", "cluster_by = c, delta.dataSkippingNumIndexedCols = 4",
         '0A000: storage parameter "cluster_by" does not support column "c"'),
        *(("id int", f"delta.{name} = true", f'22023: unrecognized parameter "delta.{name}"')
          for name in ("appendonly", "isolationlevel", "randomizefileprefixes", "x")),
        ("id int", "delta.enableChangeDataFeed = true",
         '42809: storage parameter "delta.enablechangedatafeed" is only for adopted tables'),
        ("id int", "delta.logRetentionDuration = '1 month'",
         '22023: invalid value for parameter "delta.logRetentionDuration": "1 month"'),
        ("id int", "delta.checkpointInterval = 0",
         '22023: invalid value for parameter "delta.checkpointInterval": "0"'),
        ("id int", "delta.checkpointInterval = 1e999",
         '22023: invalid value for parameter "delta.checkpointInterval": "1e999"'),
        ("id int", "delta.checkpointInterval = 5, delta.checkpointinterval = 6",
         '22023: parameter "delta.checkpointInterval" specified more than once'),
    ],
)  # fmt: skip
def test_wrong_parameters(session: Session, columns: str, options: str, error: str) -> None:
    assert answer_of(session, f"CREATE TABLE x ({columns}) WITH ({options})")[0] == f"ERROR {error}"


def _hint(session: Session, statement: str) -> str:
    return answer_of(session, statement)[-1].removeprefix("HINT: ").removesuffix(".")


def test_the_hint_of_a_type_that_cannot_partition(session: Session) -> None:
    table = 'CREATE TABLE t (id int, "a\'b" timestamptz) WITH ({})'
    hint = _hint(session, table.format("partition_by = '\"a''b\"'"))
    _run(session, table.format(hint.removeprefix("Use ").removesuffix(" instead")))


def test_the_hint_of_a_column_without_statistics(session: Session) -> None:
    table = "CREATE TABLE t (a int, b int) WITH (cluster_by = b, {})"
    hint = _hint(session, table.format("delta.dataSkippingNumIndexedCols = 1"))
    _run(session, table.format(hint.removeprefix("Also set ")))


def test_the_hint_of_a_retention(session: Session) -> None:
    table = "CREATE TABLE t (a int) WITH (delta.deletedFileRetentionDuration = '90 days'{})"
    name = _hint(session, table.format("")).removeprefix("Set ").partition(" to")[0]
    _run(session, table.format(f", {name} = '90 days'"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enableDeletionVectors", "off"),
        ("columnMapping.mode", ""),
        ("enableTypeWidening", ""),
    ],
)
def test_the_hint_of_a_property(session: Session, name: str, value: str) -> None:
    hint = _hint(session, f'CREATE TABLE t (a int) WITH ("delta.{name}" = true)')
    option = hint.removeprefix("Use ").removesuffix(" instead")
    _run(session, f"CREATE TABLE t (a int) WITH ({option}{value and f' = {value}'})")


def test_columns_of_the_layout_change_only_their_names(session: Session) -> None:
    _run(session, "CREATE DOMAIN m AS text")
    _run(session, "CREATE TABLE t (id int, r m, v int, w int) WITH (partition_by = 'r, id')")
    names = 'because storage parameter "partition_by" of relation "t" names it'
    for statement, answer in [
        ("ALTER TABLE t DROP COLUMN r", f'ERROR 42P16: cannot drop column "r" {names}'),
        ("DROP DOMAIN m CASCADE", f'ERROR 42P16: cannot drop column "r" {names}'),
        ("ALTER TABLE t ALTER COLUMN id TYPE bigint",
         f'ERROR 42P16: cannot alter column "id" {names}'),
        ("ALTER TABLE t DROP COLUMN v", "ALTER TABLE"),
        ("ALTER TABLE t DROP COLUMN w",
         'ERROR 42P16: cannot partition the Delta table of "t" by all of its columns'),
        ('ALTER TABLE t RENAME COLUMN r TO "R"', "ALTER TABLE"),
        (_OPTIONS, '| {"partition_by=\\"R\\", id"}'),
        ("ALTER TABLE t SET (delta.checkpointInterval = 20, partition_by = id)", "ALTER TABLE"),
        (_OPTIONS, "| {partition_by=id,delta.checkpointInterval=20}"),
        ("ALTER TABLE t RESET (partition_by, delta.checkpointInterval)", "ALTER TABLE"),
        (_OPTIONS, "| NULL"),
        ("DROP DOMAIN m CASCADE", "DROP DOMAIN"),
    ]:  # fmt: skip
        assert answer in answer_of(session, statement), statement


def test_the_layout_of_a_table_that_is_there_stays(session: Session, tmp_path: Path) -> None:
    place = f"USING delta LOCATION '{tmp_path}/t'"
    _run(session, f"CREATE TABLE t (id int, r text) {place} WITH (partition_by = 'r')")
    answer = answer_of(session, "ALTER TABLE t RESET (partition_by)")
    assert answer == (
        'ERROR 0A000: the option "partition_by" of a table that has been written cannot be changed',
        "HINT: Make a new table with this option, and copy the rows.",
    )
    _run(session, "CREATE TABLE n (id int, r text) WITH (cluster_by = 'r')")


def test_an_adopted_table_has_the_layout_of_its_owner(session: Session, tmp_path: Path) -> None:
    place = f"USING delta LOCATION '{tmp_path}/t'"
    _run(session, f"CREATE TABLE t (id int, r text) {place} WITH (partition_by = 'r')")
    _run(session, "DROP TABLE t", f"CREATE TABLE t {place}")
    answer = answer_of(session, "ALTER TABLE t SET (cluster_by = 'id')")
    assert answer[0] == 'ERROR 42809: storage parameter "cluster_by" is not for adopted tables'
