"""Spark's errors about files become errors that name the table, the database and a remedy."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from deltalake import DeltaTable
from fix_lake import Lake
from golden_script import answer_of
from test_target_fault import subscribe

from replctl.errors import (
    DataCorrupted,
    DiskFull,
    FileAccessDenied,
    InternalError,
    PostgresError,
    UndefinedFile,
    UnreadableColumn,
)
from replctl.lake.table_error import named


def about(path: str, error: PostgresError | None = None) -> PostgresError:
    """Return a message of Spark about a file."""
    error = error or DataCorrupted("Spark could not read a table", detail="some words")
    error.path = path
    return error


def data_file(lake: Lake) -> Path:
    """Return a file of the newest version."""
    return Path(DeltaTable(lake.location).file_uris()[0])


def test_a_file_that_is_gone(lake: Lake) -> None:
    path = data_file(lake)
    path.unlink()
    told = named(lake.session, about(f"file://{path}"))
    assert (told.sqlstate, told.message) == (
        "58P01",
        f'file "{path.name}" of table "public.t" of database "postgres" does not exist',
    )
    assert told.detail == f'The table is stored at "{lake.location}".'
    assert f'DeltaTable("{lake.location}").repair()' in (told.hint or "")
    DeltaTable(lake.location).repair()
    assert lake.rows() == []


def test_a_file_that_cannot_be_read(lake: Lake) -> None:
    path = data_file(lake)
    told = named(lake.session, about(f"file:{path}", InternalError("Spark failed: some words")))
    assert told.sqlstate == "XX001"
    assert told.message == (
        f'could not read file "{path.name}" of table "public.t" of database "postgres"'
    )
    assert (told.detail or "").endswith("Spark failed: some words")
    assert told.hint == "Restore the file from a backup."
    log = f"file:{lake.location}/_delta_log/00000000000000000000.checkpoint.parquet"
    told = named(lake.session, about(log))
    assert (told.sqlstate, told.hint) == ("58P01", "Restore the file from a backup.")


def test_a_file_with_a_type_that_spark_does_not_convert(lake: Lake) -> None:
    path = data_file(lake)
    column = 'Column "a" is stored as INT64. Spark cannot read it as timestamp.'
    error = about(f"file:{path}", UnreadableColumn("Spark could not read a table", detail=column))
    told = named(lake.session, error)
    assert (told.sqlstate, told.message) == (
        "0A000",
        f'could not read file "{path.name}" of table "public.t" of database "postgres"',
    )
    assert told.detail == f'The table is stored at "{lake.location}". {column}'
    assert told.hint == (
        "The file is complete. Ask the table's owner to rewrite it with the types of the table's"
        " schema. Until then, read only the other columns."
    )
    told = named(lake.session, error, subscribe(lake))
    assert told.hint == 'ALTER SUBSCRIPTION "My sub" REFRESH TABLE public.t WITH (replace = true);'


def test_a_target_s_file_is_replaced_by_another_copy(lake: Lake) -> None:
    told = named(lake.session, about(f"file:{data_file(lake)}"), subscribe(lake))
    assert told.hint == 'ALTER SUBSCRIPTION "My sub" REFRESH TABLE public.t WITH (replace = true);'


def test_the_table_itself(lake: Lake) -> None:
    told = named(lake.session, about(lake.location, InternalError("Spark failed: some words")))
    assert told.message == "Spark failed: some words"
    assert told.detail == 'It concerns table "public.t" of database "postgres".'
    error = UndefinedFile(f'could not find the Delta table "{lake.location}"')
    Path(lake.location).rename(f"{lake.location}-elsewhere")
    told = named(lake.session, about(lake.location, error))
    assert told.detail == 'It concerns table "public.t" of database "postgres".'
    assert told.hint == "Restore the directory from a backup, or use DROP TABLE public.t."


@pytest.mark.parametrize("path", [None, "file:/nowhere/part-1.parquet"])
def test_what_belongs_to_no_table_stays_as_it_is(lake: Lake, path: str | None) -> None:
    error = InternalError("Spark failed: some words")
    error.path = path
    assert named(lake.session, error) is error


def test_statements_tell_it(lake: Lake) -> None:
    error = about(f"file:{data_file(lake)}")
    engine = mock.Mock()
    engine.fetch.side_effect = error
    lake.session.engine = lambda: engine
    lake.run("set replctl.small_table_rows = 0")
    answer = answer_of(lake.session, "select * from t")
    assert answer[0].startswith('ERROR XX001: could not read file "')
    assert 'of table "public.t" of database "postgres"' in answer[0]


@pytest.mark.parametrize("error", [DiskFull("x", hint="y"), FileAccessDenied("x")])
def test_what_cannot_be_written_is_told_with_its_cause(lake: Lake, error: PostgresError) -> None:
    allowed = f'Allow replctl and its Spark to write the files in "{lake.location}".'
    hint = error.hint or allowed
    told = named(lake.session, about(f"{lake.location}/part-9.parquet", error), subscribe(lake))
    assert (told.sqlstate, told.message, told.hint) == (error.sqlstate, "x", hint)
    assert told.detail == 'It concerns table "public.t" of database "postgres".'
