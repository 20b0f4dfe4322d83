"""Tables in every format equal those of psql (tests/psql/data/print_table), and have some
properties in all formats."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replctl.psql.display import display_width
from replctl.psql.print_content import Format, PrintOptions, Table
from replctl.psql.print_table import print_table

DATA = Path(__file__).parent / "data"
CASES = json.loads((DATA / "print_table.json").read_text(encoding="utf-8"))
NUMBERS = {"int4", "int8", "numeric"}
SMALL = Table(["n", "t"], [["1", None], ["22", "x\ny"]], alignments=["r", "l"])


def printed(table: Table, options: PrintOptions, *, styled: bool = False) -> str:
    out = io.StringIO(newline="")
    print_table(out, table, options, styled=styled)
    return out.getvalue()


def case_table(case: dict[str, Any]) -> Table:
    return Table(
        columns=[name for name, _ in case["columns"]],
        rows=case["rows"],
        alignments=["r" if kind in NUMBERS else "l" for _, kind in case["columns"]],
        title=case.get("title"),
        footers=case.get("footers"),
    )


@pytest.mark.parametrize("name", CASES["options"])
def test_a_table_looks_as_in_psql(name: str) -> None:
    options = PrintOptions(**CASES["options"][name])
    out = "".join(
        f"== {title}\n{printed(case_table(case), options)}"
        for title, case in CASES["tables"].items()
    )
    assert out == (DATA / "print_table" / f"{name}.out").read_bytes().decode()


def test_a_zero_byte_as_separator_also_ends_the_output() -> None:
    options = PrintOptions(format="unaligned", field_separator="\0", record_separator="\0")
    assert printed(SMALL, options) == "n\0t\0001\0\00022\0x\ny\0(2 rows)\0"
    expanded = replace(options, expanded="on", tuples_only=True)
    assert printed(SMALL, expanded) == "n\0001\0t\0\0\0n\00022\0t\0x\ny\0"


def test_a_table_may_have_no_footer_whatever_the_options_say() -> None:
    table = replace(SMALL, footers=())
    assert printed(table, PrintOptions(format="unaligned")) == "n|t\n1|\n22|x\ny\n"


def test_json_is_an_array_with_a_line_for_each_row() -> None:
    table = Table(
        ["n", "t", "t"],
        [["1.50", None, 'a "b"\n\t日本'], ["NaN", "t", "1"], [None, "", "\\"]],
        alignments=["r", "l", "l"],
        title="Title",
    )
    lines = [
        "[",
        '{"n": 1.50, "t": null, "t": "a \\"b\\"\\n\\t日本"},',
        '{"n": "NaN", "t": "t", "t": "1"},',
        '{"n": null, "t": "", "t": "\\\\"}',
        "]",
    ]
    options = PrintOptions(format="json", expanded="on", null="-", numeric_locale=True)
    assert printed(table, options).splitlines() == lines
    assert printed(Table(["n"], []), options) == "[]\n"


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("1234567.25", "1,234,567.25"),
        ("-123456", "-123,456"),
        ("123", "123"),
        ("1e+20", "1e+20"),
        (".5", ".5"),
        ("NaN", "NaN"),
        ("$1234.00", "$1234.00"),
    ],
)
def test_numeric_locale_groups_digits(number: str, shown: str) -> None:
    table = Table(["n"], [[number]], alignments=["r"])
    options = PrintOptions(format="unaligned", tuples_only=True, numeric_locale=True)
    assert printed(table, options) == f"{shown}\n"


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("abc", 3),
        ("a\nbcd\n", 3),
        ("ab\tc", 9),
        ("\x01", 4),
        ("\u0085", 6),
        ("日本", 4),
        ("e\u0301", 1),
        ("\u200b", 0),
        ("\U0001f44d", 2),
        ("\U000323af", 2),
    ],
)
def test_display_width(text: str, width: int) -> None:
    assert display_width(text) == width


ANY_TEXT = st.text(alphabet="ab \n\t日\u0301,;\"'\\|", max_size=12)
TABLES = st.integers(1, 4).flatmap(
    lambda count: st.builds(
        Table,
        columns=st.lists(ANY_TEXT.map("nn".__add__), min_size=count, max_size=count),
        rows=st.lists(st.lists(st.none() | ANY_TEXT, min_size=count, max_size=count), max_size=5),
        alignments=st.lists(st.sampled_from("lr"), min_size=count, max_size=count),
    )
)


@given(TABLES, st.sampled_from(["aligned", "wrapped"]), st.integers(0, 40), st.booleans())
def test_all_lines_in_a_frame_are_equally_wide(
    table: Table, format_: Any, columns: int, is_expanded: bool
) -> None:
    options = PrintOptions(
        format=format_, border=2, linestyle="unicode", columns=columns, footer=False
    )
    if is_expanded:
        options = replace(options, expanded="on", tuples_only=True)
    *lines, last = printed(table, options).split("\n")[:-1]
    assert last == ""
    assert len({display_width(line) for line in lines}) <= 1


@given(TABLES, st.sampled_from([",", ";", "|", "a"]))
def test_csv_can_be_read_back(table: Table, separator: str) -> None:
    options = PrintOptions(format="csv", csv_field_separator=separator)
    out = printed(table, options)
    rows = [[value or "" for value in row] for row in table.rows]
    expected = [row for row in [table.columns, *rows] if row != [""]]
    read = csv.reader(io.StringIO(out, newline=""), delimiter=separator)
    assert [row for row in read if row] == expected


@given(TABLES)
def test_json_can_be_read_back(table: Table) -> None:
    out = printed(table, PrintOptions(format="json"))
    rows = json.loads(out, object_pairs_hook=list)
    assert rows == [list(zip(table.columns, row, strict=True)) for row in table.rows]


@given(
    TABLES,
    st.sampled_from(get_args(Format)),
    st.sampled_from(["off", "on", "auto"]),
)
def test_styles_change_no_character(table: Table, format_: Any, expanded: Any) -> None:
    options = PrintOptions(format=format_, expanded=expanded, columns=20, null="null")
    styled = printed(table, options, styled=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", styled) == printed(table, options)


def test_a_terminal_sees_bold_headers_and_dim_lines_and_nulls() -> None:
    options = PrintOptions(null="∅", border=0)
    lines = printed(SMALL, options, styled=True).splitlines()
    assert lines[:3] == [
        "\x1b[1mn\x1b[0m  \x1b[1mt\x1b[0m ",
        "\x1b[2m-- -\x1b[0m",
        " 1 \x1b[2m∅\x1b[0m",
    ]


def test_nothing_of_the_terminal_is_loaded_for_a_pipe() -> None:
    code = (
        "import io, sys\n"
        "from replctl.psql import print_table, statement_scan\n"
        "table = print_table.Table(['a'], [['日']])\n"
        "print_table.print_table(io.StringIO(), table, print_table.PrintOptions())\n"
        "sys.exit(bool({'rich', 'typer', 'prompt_toolkit', 'subprocess'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
