"""psql's variables have the values that psql printed for tests/psql/data/variables.sql."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replctl.errors import UndefinedTable
from replctl.psql.print_content import PrintOptions
from replctl.psql.pset import set_option
from replctl.psql.variables import PsqlError, Variables, parse_bool

DATA = Path(__file__).parent / "data"


def run(script: str, variables: Variables) -> str:
    """Return what psql prints for a script of `\\set`, `\\unset` and `\\echo :NAME`."""
    out = ""
    for number, line in enumerate(script.splitlines(), start=1):
        command, name, value = (*line.split(maxsplit=2), "", "")[:3]
        try:
            if command == "\\set" and name:
                variables.set(name, value)
            elif command == "\\set":
                out += variables.listing()
            elif command == "\\unset":
                variables.unset(name)
            else:
                out += f"{variables.get(name.removeprefix(':'))}\n"
        except PsqlError as error:
            out += f"psql:variables.sql:{number}: error: {error}\n"
    return out


def test_special_variables_are_those_of_psql() -> None:
    script = (DATA / "variables.sql").read_text(encoding="utf-8")
    printed = run(script, Variables()).replace("AUTOSYNC = 'off'\n", "")
    assert printed == (DATA / "variables.out").read_text(encoding="utf-8")


def test_autosync_is_a_boolean() -> None:
    variables = Variables()
    assert not variables.is_on("AUTOSYNC")
    variables.set("AUTOSYNC", "")
    assert variables.is_on("AUTOSYNC")
    with pytest.raises(PsqlError, match='"maybe" for "AUTOSYNC": Boolean expected'):
        variables.set("AUTOSYNC", "maybe")
    assert variables.is_on("AUTOSYNC")


@pytest.mark.parametrize(
    ("name", "value", "choice"),
    [
        ("ECHO", "ALL", "all"),
        ("ECHO_HIDDEN", "yes", "on"),
        ("ECHO_HIDDEN", "NoExec", "noexec"),
        ("ON_ERROR_ROLLBACK", "0", "off"),
        ("ON_ERROR_ROLLBACK", "Interactive", "interactive"),
        ("VERBOSITY", "SqlState", "sqlstate"),
    ],
)
def test_a_choice_is_given_in_one_spelling(name: str, value: str, choice: str) -> None:
    variables = Variables()
    variables.set(name, value)
    assert variables.get(name) == value
    assert variables.choice(name) == choice


@pytest.mark.parametrize(
    ("value", "number"),
    [("12", 12), ("-1", -1), ("+7", 7), ("0x1F", 31), ("017", 15), ("0", 0), (" 5", 5)],
)
def test_integers_are_written_as_in_c(value: str, number: int) -> None:
    variables = Variables()
    variables.set("FETCH_COUNT", value)
    assert variables.integer("FETCH_COUNT") == number


def test_numbers_with_more_digits_than_python_converts() -> None:
    variables, digits = Variables(), "9" * 5000
    with pytest.raises(PsqlError, match="invalid value"):
        variables.set("FETCH_COUNT", digits)
    assert variables.get("FETCH_COUNT") == "0"
    assert set_option(PrintOptions(), "columns", digits)[0].columns == 2**31 - 1


def test_results_of_statements() -> None:
    variables = Variables()
    assert variables.get("ROW_COUNT") is None
    variables.record_error(UndefinedTable('relation "t" does not exist'))
    variables.record_success(3)
    names = ("ERROR", "SQLSTATE", "ROW_COUNT", "LAST_ERROR_SQLSTATE", "LAST_ERROR_MESSAGE")
    last_error = ("42P01", 'relation "t" does not exist')
    assert tuple(map(variables.get, names)) == ("false", "00000", "3", *last_error)


@given(st.sampled_from(["true", "false", "yes", "no"]), st.data())
def test_a_boolean_may_be_cut_short(word: str, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, len(word)))
    assert parse_bool(word[:length].upper(), "x") == (word in ("true", "yes"))


@given(st.text(alphabet="azAZ09_é日", min_size=1), st.text())
def test_any_other_variable_keeps_any_value(name: str, value: str) -> None:
    name = f"my_{name}"
    variables = Variables()
    variables.set(name, value)
    assert variables.get(name) == value
    assert f"{name} = '{value}'\n" in variables.listing()
    variables.unset(name)
    assert variables.get(name) is None
