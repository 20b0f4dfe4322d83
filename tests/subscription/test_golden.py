"""Subscriptions have the answers of two PostgreSQL 17 servers (data/*.out)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from golden_script import Step, answer_of, shown, steps_of
from long_tests import LONG

from replctl.catalog.cluster import Cluster
from replctl.errors import Notice, PostgresError
from replctl.execute import execute
from replctl.launcher import sync
from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

DATA = Path(__file__).parent / "data"
SCRIPTS = {path.stem: path for path in sorted(DATA.glob("*.out"))}
WITH_SPARK = [name for name, path in SCRIPTS.items() if "> \\sync;" in path.read_text("utf-8")]
#: Scripts that take minutes.
_LONG = {"type_change"}


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in WITH_SPARK])
def test_definitions(name: str, cluster: Cluster) -> None:
    assert _Databases(cluster).differences(SCRIPTS[name]) == []


@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[LONG] if name in _LONG else []) for name in WITH_SPARK],
)
def test_replication(name: str, cluster: Cluster, engine: Engine) -> None:
    assert _Databases(cluster, lambda: engine).differences(SCRIPTS[name]) == []


def _no_engine() -> Engine:
    raise AssertionError("a script without Spark has asked for it")


class _Databases:
    """The databases of a script, pub, sub and third, each with a session."""

    def __init__(self, cluster: Cluster, engine: Callable[[], Engine] = _no_engine) -> None:
        postgres = Session.connect(cluster, "postgres", "postgres")
        self._sessions = {}
        for name in ("pub", "sub", "third"):
            list(execute(postgres, f"CREATE DATABASE {name}"))
            connected = Session.connect(cluster, name, "postgres", engine=engine)
            self._sessions[name] = connected
        self._current = self._sessions["pub"]
        self._finish_lsn = ""

    def differences(self, path: Path) -> list[str]:
        """Return the steps to which replctl gives a different answer, each with both answers."""
        found = []
        for step in steps_of(path):
            answer = tuple(map(_normalised, self._answer(step)))
            if answer != step.answer:
                expected, actual = "\n".join(step.answer), "\n".join(answer)
                found.append(f"> {step.statement}\n{expected}\n--- but replctl:\n{actual}")
        return found

    def _answer(self, step: Step) -> tuple[str, ...]:
        if step.statement.startswith("\\c "):
            self._current = self._sessions[step.statement.split()[1]]
            return ()
        if step.statement == "\\sync":
            has_hint = any(line.startswith("HINT") for line in step.answer)
            # replctl has hints of its own for errors that have no hint in PostgreSQL
            return tuple(x for x in self._sync() if has_hint or not x.startswith("HINT"))
        statement = step.statement.replace(":finish_lsn", f"'{self._finish_lsn}'")
        return answer_of(self._current, statement)

    def _sync(self) -> list[str]:
        """Return the reports of the workers.  Errors come before the messages that follow from
        them."""
        notices: list[Notice] = []
        self._current.on_notice = notices.append
        failures = sync(self._current)
        lines = []
        reports: list[Notice | PostgresError] = [failure.error for failure in failures]
        for report in reports + notices:
            lines += shown(report.severity, report, with_context=True)
            numbers = re.findall(r"finished at ([0-9A-F]+/[0-9A-F]+)", report.context or "")
            self._finish_lsn = numbers[-1] if numbers else self._finish_lsn
        return lines


def _normalised(line: str) -> str:
    """Return a line with fixed words instead of the parts that differ from run to run."""
    line = re.sub(r"connection to server (?:at|on) .*? failed", "connection to server failed", line)
    line = re.sub(r"\btransaction \d+\b", "transaction XID", line)
    line = re.sub(r"\bpg_\d+_sync_\d+_\d+\b", "pg_OID_sync_OID_SYSID", line)
    line = re.sub(r"\bpg_\d+(?:_\d+)?\b", "pg_OID", line)
    return re.sub(r"\b[0-9A-F]+/[0-9A-F]{5,8}\b", "LSN", line)
