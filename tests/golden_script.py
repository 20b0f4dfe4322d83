"""Scripts whose answers a PostgreSQL server has given (.ci/generate_script_golden.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replctl.errors import Notice, PostgresError
from replctl.execute import execute
from replctl.session import Session


@dataclass(frozen=True)
class Step:
    """A statement with the lines of PostgreSQL's answer."""

    statement: str
    answer: tuple[str, ...]


def steps_of(path: Path) -> list[Step]:
    """Return the steps of a file NAME.out."""
    steps = []
    for block in path.read_text(encoding="utf-8").split("\n> "):
        lines = block.removeprefix("> ").rstrip("\n").split("\n")
        end = next(i for i, line in enumerate(lines) if line.endswith(";"))
        statement = "\n".join(lines[: end + 1]).rstrip(";")
        steps.append(Step(statement, tuple(line for line in lines[end + 1 :] if line)))
    return steps


def differences(session: Session, path: Path) -> list[str]:
    """Return the statements of a file NAME.out to which replctl gives a different answer, each with
    both answers."""
    found = []
    for step in steps_of(path):
        answer = answer_of(session, step.statement)
        if answer != step.answer:
            expected, actual = "\n".join(step.answer), "\n".join(answer)
            found.append(f"> {step.statement}\n{expected}\n--- but replctl:\n{actual}")
    return found


def answer_of(session: Session, statement: str) -> tuple[str, ...]:
    """Return the answer of replctl to a statement, in the form of the golden files."""
    lines: list[str] = []
    session.on_notice = lambda notice: lines.extend(
        shown(f"{notice.severity} {notice.sqlstate}", notice)
    )
    try:
        for result in execute(session, statement):
            for row in result.rows:
                values = ["NULL" if value is None else value.replace("\n", "\\n") for value in row]
                lines.append("| " + " | ".join(values))
            lines.append(result.tag)
    except PostgresError as error:
        lines += shown(f"{error.severity} {error.sqlstate}", error)
    return tuple(line for line in lines if line)


def shown(head: str, report: Notice | PostgresError, *, with_context: bool = False) -> list[str]:
    """Return a notice or an error in the form of the golden files, after `head`."""
    place = f" @{report.position}" if report.position >= 0 else ""
    parts = [("DETAIL", report.detail), ("HINT", report.hint)]
    if with_context:
        parts.append(("CONTEXT", report.context))
    lines = [f"{head}{place}: " + report.message.replace("\n", "\\n")]
    for label, text in parts:
        if text is not None:
            lines.append(f"{label}: " + text.replace("\n", "\\n"))
    return lines
