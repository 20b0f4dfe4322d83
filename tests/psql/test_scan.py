"""replctl splits statements, backslash commands and their arguments as psql does
(tests/psql/data/scan)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replctl.psql.scan_slash import Argument, SlashScanner
from replctl.psql.statement_scan import Prompt, Statement, StatementScanner
from replctl.psql.variables import Variables

SCRIPTS = sorted((Path(__file__).parent / "data" / "scan").glob("*.sql"))


class Script:
    """A main loop that knows five commands, and prints statements instead of executing them."""

    def __init__(self) -> None:
        self.variables = Variables()
        self.complaints: list[tuple[str, str]] = []
        self.scanner = StatementScanner(self.variables, lambda *args: self.complaints.append(args))

    def events(self, *lines: str) -> Iterator[Statement | SlashScanner]:
        for line in lines:
            yield from self.scanner.scan(line)

    def slash(self, line: str) -> SlashScanner:
        event = next(self.events(line))
        assert isinstance(event, SlashScanner)
        return event

    def statements(self, *lines: str) -> list[str]:
        """Return the statements in `lines`, without the output of their commands."""
        texts = []
        for event in self.events(*lines):
            if isinstance(event, Statement):
                texts.append(event.text)
            else:
                self.execute(event)
        return texts

    def run(self, text: str) -> str:
        """Return what `psql -e -q -o /dev/null` prints for a script."""
        out = ""
        for event in self.events(*text.splitlines()):
            out += f"{event.text}\n" if isinstance(event, Statement) else self.execute(event)
        return out + (f"{self.scanner.buffer}\n" if self.scanner.buffer else "")

    def execute(self, slash: SlashScanner) -> str:
        out = ""
        match slash.command:
            case "echo":
                words = list(iter(slash.argument, None))
                out = " ".join(words[1:]) if words[:1] == ["-n"] else " ".join(words) + "\n"
            case "set":
                self.variables.set(slash.argument() or "", "".join(iter(slash.argument, None)))
            case "unset":
                self.variables.unset(slash.argument() or "")
            case "g":
                out = self.scanner.take() + "\n"
            case "r":
                self.scanner.take()
            case _:
                slash.abandon()
        slash.finish()
        return out


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_is_taken_apart_as_by_psql(script: Script, path: Path) -> None:
    printed = script.run(path.read_text(encoding="utf-8"))
    assert printed == path.with_suffix(".out").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("lines", "prompt"),
    [
        ([""], Prompt.READY),
        (["SELECT 1;  "], Prompt.READY),
        (["-- SELECT"], Prompt.READY),
        (["SELECT 1"], Prompt.CONTINUE),
        (["SELECT '"], Prompt.SINGLE_QUOTE),
        (["SELECT E'\\'"], Prompt.SINGLE_QUOTE),
        (["SELECT E'a'"], Prompt.CONTINUE),
        (['SELECT U&"'], Prompt.DOUBLE_QUOTE),
        (["SELECT $a$ $b$"], Prompt.DOLLAR_QUOTE),
        (["/* /* */"], Prompt.COMMENT),
        (["SELECT (1", ", '"], Prompt.SINGLE_QUOTE),
        (["SELECT (1", ", 2;"], Prompt.PAREN),
        (["SELECT (1 \\g"], Prompt.READY),
        (["CREATE FUNCTION f() BEGIN ATOMIC SELECT 1;"], Prompt.CONTINUE),
    ],
)
def test_the_prompt_says_what_is_open(script: Script, lines: list[str], prompt: Prompt) -> None:
    script.statements(*lines)
    assert script.scanner.prompt is prompt


def test_a_line_is_a_statement_with_singleline(script: Script) -> None:
    script.variables.set("SINGLELINE", "on")
    lines = ["SELECT 1", "SELECT (2", "); SELECT 3", "SELECT '4", "'", "-- 5"]
    assert script.statements(*lines) == [
        "SELECT 1",
        "SELECT (2\n);",
        "SELECT 3",
        "SELECT '4\n'",
    ]


def test_a_variable_counts_from_where_it_is_set(script: Script) -> None:
    assert script.statements("SELECT :x; \\set x 5 \\\\ SELECT :x;") == ["SELECT :x;", "SELECT 5;"]


def test_a_variable_that_leads_to_itself_is_not_expanded_again(script: Script) -> None:
    script.variables.set("a", ":b")
    script.variables.set("b", "1 + :a")
    assert script.statements("SELECT :a;") == ["SELECT 1 + :a;"]
    assert script.complaints == [("warning", 'skipping recursive expansion of variable "a"')]


def test_a_branch_not_taken_leaves_no_trace(script: Script) -> None:
    script.variables.set("x", "1")
    script.statements("SELECT (1")
    saved = script.scanner.save()
    script.scanner.is_active = False
    script.statements(", :x); DROP TABLE t;")
    command = script.slash("\\echo :x `exit 3` :{?x}")
    assert list(iter(command.argument, None)) == [":x", "exit 3", "FALSE"]
    assert script.variables.get("SHELL_EXIT_CODE") is None
    script.scanner.restore(saved)
    script.scanner.is_active = True
    assert script.scanner.prompt is Prompt.PAREN
    assert script.statements("+ :x);") == ["SELECT (1\n+ 1);"]


@pytest.mark.parametrize(
    ("line", "kind", "expected", "quote"),
    [
        ("\\d Foo;;", Argument.NORMAL, "Foo", None),
        ("\\d ';'", Argument.NORMAL, ";", "'"),
        ("\\d ';';", Argument.NORMAL, ";", "'"),
        ('\\d "Foo";', Argument.NORMAL, '"Foo"', '"'),
        ("\\d :x;", Argument.NORMAL, "it's;", ":"),
        ("\\d :'x'", Argument.NORMAL, "'it''s;'", ":"),
        ("\\d ;", Argument.NORMAL, None, None),
        ("\\d", Argument.NORMAL, None, None),
        ("\\d\\d x", Argument.NORMAL, None, None),
        ("\\c ''", Argument.VERBATIM_IDENTIFIER, "", "'"),
        ('\\c Foo."Bar""s".Q', Argument.VERBATIM_IDENTIFIER, 'Foo.Bar"s.Q', '"'),
        ('\\password Foo."Bar""s".Q', Argument.SQL_IDENTIFIER, 'foo.Bar"s.q', '"'),
        ("\\password ÄB", Argument.SQL_IDENTIFIER, "Äb", None),
        ("\\o file name", Argument.FILE_PIPE, "file", None),
        ("\\o | sort :x \\\\ ;", Argument.FILE_PIPE, "| sort :x \\\\ ;", None),
        ("\\copy t FROM 'it''s' :x ;", Argument.WHOLE_LINE, "t FROM 'it''s' :x ;", None),
        ("\\!   ", Argument.WHOLE_LINE, None, None),
    ],
)
def test_an_argument_is_read_as_the_command_asks(
    script: Script, line: str, kind: Argument, expected: str | None, quote: str | None
) -> None:
    script.variables.set("x", "it's;")
    command = script.slash(line)
    assert command.argument(kind, strip_semicolons=True) == expected
    assert command.quote == quote


def test_arguments_left_over_are_reported(script: Script) -> None:
    script.variables.set("x", "1")
    assert script.statements("\\unset a b :x `exit 3` \\\\ SELECT 1;") == ["SELECT 1;"]
    assert script.complaints == [
        ("warning", f'\\unset: extra argument "{extra}" ignored') for extra in ("b", ":x", "exit 3")
    ]


def test_a_quote_never_closed_is_reported_and_no_argument(script: Script) -> None:
    assert script.run("\\echo a 'b \\\\ SELECT 1;") == "a\n"
    assert script.complaints == [("error", "unterminated quoted string")]


def test_a_command_that_failed_takes_its_line_with_it(script: Script) -> None:
    assert script.statements("\\nonsense 'a \\\\ SELECT 1;", "SELECT 2;") == ["SELECT 2;"]


def test_a_command_in_backticks_leaves_its_exit_code(script: Script) -> None:
    script.variables.set("word", "it's")
    command = script.slash("\\echo `echo :'word'; exit 3` `kill -TERM $$`")
    assert command.argument() == "it's"
    assert script.variables.get("SHELL_EXIT_CODE") == "3"
    assert command.argument() == ""
    assert script.variables.get("SHELL_EXIT_CODE") == "143"
    assert script.variables.get("SHELL_ERROR") == "true"


def scanned(lines: list[str]) -> list[str]:
    """Return the statements in `lines`, and the rest in the query buffer."""
    script = Script()
    return [*script.statements(*lines), script.scanner.buffer]


TOKENS = [
    *("SELECT", "CREATE", "FUNCTION", "PROCEDURE", "OR", "REPLACE", "BEGIN", "END", "CASE"),
    *("1", "1.5e3", "$1", ";", "(", ")", "+", "::", "a.b"),
    *("'it''s ; x'", '"a ; b"', "E'x\\' ; y'", "$t$ ; ' $t$", "/* ; /* ' */ \" */", "N'- -'"),
]


@given(st.lists(st.sampled_from(TOKENS)), st.data())
def test_any_space_may_be_a_line_break(tokens: list[str], data: st.DataObject) -> None:
    text = " ".join(tokens)
    spaces = [position for position, character in enumerate(text) if character == " "]
    breaks = data.draw(st.sets(st.sampled_from(spaces))) if spaces else set()
    broken = "".join("\n" if n in breaks else character for n, character in enumerate(text))
    statements = scanned(broken.split("\n"))
    assert [statement.replace("\n", " ") for statement in statements] == scanned([text])


@given(st.text(alphabet="ab1 ;'\"$()/*eEU&\n\t"))
def test_nothing_but_space_is_lost(text: str) -> None:
    assert "".join("".join(scanned(text.split("\n"))).split()) == "".join(text.split())


@given(st.lists(st.sampled_from(TOKENS), min_size=1).map(" ".join))
def test_statements_are_statements_again(text: str) -> None:
    pieces = scanned([text])
    assert scanned(pieces) == pieces
