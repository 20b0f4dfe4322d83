"""The outputs in the pages are those of replctl: messages, reports, and programs that read a
copy."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from test_hint_list import literal

from replctl.errors import PostgresError
from replctl.explain import RunPlan, SubscriptionPlan, TablePlan
from replctl.lsn import parse_lsn
from replctl.psql.explain_output import _ALIGNMENTS, _COLUMNS, _rows
from replctl.psql.print_content import PrintOptions, Table
from replctl.psql.print_table import print_table
from replctl.psql.retention_lines import retention_lines
from replctl.psql.sync_report import _Outcome
from replctl.relation_name import RelationName
from replctl.replication.node import RowCounts, TableRetention
from replctl.replication.refresh_hint import refresh_statement

_ROOT = Path(__file__).parent.parent
_GUIDES = _ROOT / "docs" / "guides"
_MESSAGE = re.compile(r"^(?:ERROR|WARNING|NOTICE|LOG|DETAIL|HINT):  (.*)$", re.MULTILINE)
_OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ADVICE = re.compile(r"^\| `([^`|]{12,}?)`(?: \(\w+\))? \|", re.MULTILINE)


def _text(page: str) -> str:
    return (_GUIDES / f"{page}.md").read_text("utf-8")


def _output(page: str, start: str) -> str:
    """Return the output on a page that begins with these characters."""
    (found,) = [text for text in _OUTPUT.findall(_text(page)) if text.lstrip().startswith(start)]
    return str(found)


@cache
def _templates() -> frozenset[str]:
    """Return the texts in the code, with ... for the values in f-strings."""
    nodes = (
        node
        for path in (_ROOT / "replctl").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    )
    expressions = (node for node in nodes if isinstance(node, ast.expr))
    return frozenset(text for node in expressions if (text := literal(node, "...")) is not None)


def _messages() -> Iterator[object]:
    for page in sorted(_GUIDES.glob("*.md")):
        text = page.read_text("utf-8")
        shown = [m for output in _OUTPUT.findall(text) for m in _MESSAGE.findall(output)]
        if page.stem == "troubleshooting":
            shown += _ADVICE.findall(text)
        yield from (pytest.param(m, id=m[:60]) for m in shown if not m.startswith("ALTER"))


@pytest.mark.parametrize("message", list(_messages()))
def test_a_message_of_a_guide_is_one_of_the_code(message: str) -> None:
    """A page may show the beginning of a message, with ... for names and numbers."""
    assert any(
        text.startswith(message)
        or re.fullmatch(re.escape(text).replace(re.escape("..."), ".+"), message)
        for text in _templates()
        if len(re.sub(r"\W", "", text)) > 8
    )


def test_lines_of_a_sync() -> None:
    counts = RowCounts(inserted=2, updated=0, deleted=0)
    failed = _Outcome("s3", "d", True, 1, counts, parse_lsn("0/A8"), True, PostgresError("x"))
    lines = [
        _Outcome("s1", "d", True, 3, RowCounts(5, 1, 0), parse_lsn("0/B0"), is_something=True),
        _Outcome("s2", "d", True),
        failed,
        _Outcome("s4", "d", False),
    ]
    printed = "".join(f"{line.line(is_qualified=False)}\n" for line in lines)
    assert printed == _output("monitoring", "s1:")


def test_the_plan_of_a_sync() -> None:
    runs = (RunPlan(8, 0, 1, 1, "replaceWhere"), RunPlan(9, 0, 1, 0, "MERGE", is_estimated=True))
    name = RelationName("public", "t")
    table = TablePlan(*name, name, "r", 3, 6, 9181, runs)
    rows = list(_rows(SubscriptionPlan("s1", "sales", 1, 9, (table,), None)))
    printed = io.StringIO()
    print_table(printed, Table(_COLUMNS, rows, _ALIGNMENTS), PrintOptions())
    lines = [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]
    assert lines == _output("monitoring", "Subscription").splitlines()


def test_the_retention_of_changes() -> None:
    until = 1795842600 * 1_000_000  # 2026-11-28 05:10:00
    kept = TableRetention("public", "events", False, until, "delta.deletedFileRetentionDuration",
                          7 * 86400)  # fmt: skip
    lines = retention_lines("s", [(RelationName("public", "events"), kept)], is_enabled=True)
    assert "\n".join([*lines, ""]) == _output("retention", "Retention")
    hint = refresh_statement("s", RelationName("public", "events"))
    assert _output("retention", "HINT:") == f"HINT:  {hint}\n"


@pytest.mark.parametrize("library", ["deltalake", "polars", "pandas"])
def test_a_program_that_reads_a_copy(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    write_deltalake(tmp_path / "orders", pa.table({"id": pa.array([1, None, 200], pa.int64())}))
    blocks = re.findall(r"^```python\n(.*?)^```$", _text("read-the-copy"), re.DOTALL | re.MULTILINE)
    mine = [block for block in blocks if re.match(rf"(import|from) {library}\b", block)]
    assert mine
    for block in mine:
        exec(block.replace("/storage/team_b/orders", str(tmp_path / "orders")), {})
