"""Processes that change objects of one cluster at random, and a check of the answers.

The check looks for one order of all statements that explains every answer.  In this order, a
statement that ended before another began comes first.

CREATE must succeed if the name does not exist, and fail otherwise.  DROP must succeed if the name
exists, and fail otherwise.  No other statement affects a name, so the check takes the names one by
one, with Wing and Gong's search.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from replctl.catalog.open_cluster import open_cluster
from replctl.errors import PostgresError
from replctl.execute import execute
from replctl.session import Session

#: Kinds of objects: the rest of the CREATE statement, and the SQLSTATEs of a second CREATE and a
#: second DROP.
KINDS = {
    "TABLE": ("(id int PRIMARY KEY, v text, w int)", "42P07", "42P01"),
    "PUBLICATION": ("WITH (publish = 'insert, delete')", "42710", "42704"),
    "SCHEMA": ("", "42P06", "3F000"),
    "SEQUENCE": ("", "42P07", "42P01"),
    "ROLE": ("", "42710", "42704"),
    "SUBSCRIPTION": (
        "CONNECTION 'dbname=postgres' PUBLICATION p WITH (connect = false, slot_name = NONE)",
        "42710",
        "42704",
    ),
}
NAMES = 3  # of each kind
PAIRS = 3  # pairs of tables; one transaction creates or drops both

#: SQLSTATEs to expect while others change the same objects: an object exists, does not exist, is in
#: use, or has dependents, or two processes wait for each other.
_EXPECTED = {
    *(state for kind in KINDS.values() for state in kind[1:]),
    "42701", "42703", "42704", "42710", "2BP01", "40P01", "55006",
}  # fmt: skip


@dataclass(frozen=True)
class Event:
    """A statement about a name: its effect, its success, and its time."""

    name: str
    is_create: bool
    succeeded: bool
    start: float
    end: float


@dataclass
class History:
    """The statements of one process, and their results.

    Attributes:
        events: its statements about names, in order.
        numbers: the numbers that nextval() returned.
        own: tables that only this process creates, and that it has not dropped.
        wrong: answers that no order explains, each with its statement.
        statements: the number of statements.
    """

    events: list[Event] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    statements: int = 0


class Worker:
    """A process with a session, which runs random tasks."""

    def __init__(self, home: Path, number: int, seed: int) -> None:
        self._cluster = open_cluster(home)
        self._session = Session.connect(self._cluster, "postgres", "postgres")
        self._session.on_notice = lambda notice: None
        self._random = random.Random(f"{seed} {number}")
        self._number = number
        self.history = History()

    def run(self, seconds: float) -> History:
        """Run random tasks for some seconds, and return their history.

        Three tasks run before the time starts, so that all modules are loaded.
        """
        for task in (self._query, self._block_that_is_rolled_back, self._take_number):
            task()
        deadline = time.monotonic() + seconds
        tasks = (
            *(self._make_or_drop,) * 8,
            *(self._publish,) * 4,
            *(self._alter_table,) * 2,
            *(self._take_number,) * 2,
            *(self._pair,) * 2,
            *(self._query,) * 4,
            self._own_table,
            self._block_that_is_rolled_back,
            self._grant,
            self._views,
        )
        while time.monotonic() < deadline:
            self._random.choice(tasks)()
        self._cluster.close()
        return self.history

    # -- tasks

    def _make_or_drop(self) -> None:
        kind = self._random.choice(list(KINDS))
        name = f"{kind.lower()}_{self._random.randrange(NAMES)}"
        definition, exists, missing = KINDS[kind]
        is_create = self._random.random() < 0.5
        statement = f"CREATE {kind} {name} {definition}" if is_create else f"DROP {kind} {name}"
        start = time.monotonic()
        state = self._execute(statement)
        end = time.monotonic()
        if state in ("00000", exists if is_create else missing):
            self.history.events.append(Event(name, is_create, state == "00000", start, end))
        elif state != "2BP01" or is_create:  # a view depends on the table
            self.history.wrong.append(f"{statement}: {state}")

    def _publish(self) -> None:
        name = f"changing_{self._random.randrange(NAMES)}"
        table = f"table_{self._random.randrange(NAMES)}"
        other = f"changing_{self._random.randrange(NAMES)}"
        schema = f"schema_{self._random.randrange(NAMES)}"
        self._execute(
            self._random.choice(
                (
                    f"CREATE PUBLICATION {name} FOR TABLE {table} WHERE (id > 1)",
                    f"CREATE PUBLICATION {name} FOR TABLES IN SCHEMA {schema}, TABLE {table}",
                    f"CREATE PUBLICATION {name} FOR ALL TABLES",
                    f"ALTER PUBLICATION {name} ADD TABLE {table} (id, v)",
                    f"ALTER PUBLICATION {name} DROP TABLE {table}",
                    f"ALTER PUBLICATION {name} SET TABLE {table}, TABLES IN SCHEMA {schema}",
                    f"ALTER PUBLICATION {name} SET (publish = 'insert')",
                    f"ALTER PUBLICATION {name} RENAME TO {other}",
                    f"DROP PUBLICATION IF EXISTS {name}",
                )
            ),
            also={"55000", "0A000", "22023"},  # FOR ALL TABLES, and lists with schemas
        )

    def _alter_table(self) -> None:
        table = f"table_{self._random.randrange(NAMES)}"
        column = f"c{self._random.randrange(3)}"
        self._execute(
            self._random.choice(
                (
                    f"ALTER TABLE {table} ADD COLUMN {column} int DEFAULT 1",
                    f"ALTER TABLE {table} DROP COLUMN {column}",
                    f"CREATE INDEX ON {table} (v)",
                    f"ALTER TABLE {table} REPLICA IDENTITY FULL",
                    f"COMMENT ON TABLE {table} IS 'seen'",
                )
            )
        )

    def _take_number(self) -> None:
        rows = self._rows("SELECT nextval('counter')")
        self.history.numbers += [int(str(value)) for (value,) in rows]

    def _pair(self) -> None:
        """Create or drop two tables in one transaction."""
        number = self._random.randrange(PAIRS)
        words = self._random.choice(("CREATE TABLE {} (a int)", "DROP TABLE {}"))
        self._block([words.format(f"pair_{number}_{half}") for half in "ab"], "COMMIT")

    def _block_that_is_rolled_back(self) -> None:
        name = f"never_{self._number}"
        self._block([f"CREATE TABLE {name} (a int)", f"CREATE PUBLICATION {name}"], "ROLLBACK")

    def _own_table(self) -> None:
        name = f"own_{self._number}_{self.history.statements}"
        if self._execute(f"CREATE TABLE {name} (a serial PRIMARY KEY)") != "00000":
            self.history.wrong.append(f"{name} could not be made")
        elif self._random.random() < 0.5 and self._execute(f"DROP TABLE {name}") == "00000":
            return
        else:
            self.history.own.append(name)

    def _grant(self) -> None:
        self._execute(f"GRANT SELECT ON table_{self._random.randrange(NAMES)} TO PUBLIC")

    def _views(self) -> None:
        number = self._random.randrange(NAMES)
        self._execute(
            self._random.choice(
                (
                    f"CREATE VIEW view_{number} AS SELECT id, v FROM table_{number}",
                    f"DROP VIEW view_{number}",
                )
            ),
            also={"42P07"},
        )

    def _query(self) -> None:
        """Run queries that see the catalogs at one moment."""
        number = self._random.randrange(PAIRS)
        halves = self._rows(
            f"SELECT count(*) FROM pg_class WHERE relname IN ('pair_{number}_a', 'pair_{number}_b')"
        )
        if halves and halves[0][0] not in ("0", "2"):
            self.history.wrong.append(f"half of pair {number} was seen")
        if self._rows("SELECT relname FROM pg_class WHERE relname LIKE 'never%'"):
            self.history.wrong.append("what was rolled back was seen")
        self._rows(
            "SELECT pubname, schemaname, tablename, attnames, rowfilter FROM pg_publication_tables"
        )
        unknown = self._rows(
            "SELECT prrelid FROM pg_publication_rel WHERE prrelid NOT IN (SELECT oid FROM pg_class)"
        )
        if unknown:
            self.history.wrong.append("a publication has a table that is not there")

    # -- statements

    def _block(self, statements: list[str], end: str) -> None:
        done = all(self._execute(statement) == "00000" for statement in ("BEGIN", *statements))
        self._execute(end if done else "ROLLBACK")
        if self._session.block is not None:  # COMMIT has failed
            self._execute("ROLLBACK")

    def _rows(self, query: str) -> list[tuple[str | None, ...]]:
        rows: list[tuple[str | None, ...]] = []
        self.history.statements += 1
        try:
            for result in execute(self._session, query):
                rows += [tuple(row) for row in result.rows]
        except PostgresError as error:
            self.history.wrong.append(f"{query}: {error.sqlstate} {error.message}")
        return rows

    def _execute(self, statement: str, also: Iterable[str] = ()) -> str:
        """Run a statement, and return its SQLSTATE."""
        self.history.statements += 1
        try:
            for _result in execute(self._session, statement):
                pass
        except PostgresError as error:
            if error.sqlstate not in _EXPECTED | set(also) or "locked" in error.message:
                text = f"{statement}: {error.sqlstate} {error.message} {error.detail or ''}"
                self.history.wrong.append(text)
            return error.sqlstate
        return "00000"


def work(home: Path, number: int, seed: int, seconds: float) -> History:
    """Run random tasks in one process, and return their history."""
    return Worker(home, number, seed).run(seconds)


def unexplained(histories: list[History], there: set[str]) -> list[str]:
    """Return the names whose events no order explains.

    Args:
        there: the names that exist at the end.
    """
    by_name: dict[str, list[list[Event]]] = defaultdict(list)
    for history in histories:
        own: dict[str, list[Event]] = defaultdict(list)
        for event in history.events:
            own[event.name].append(event)
        for name, events in own.items():
            by_name[name].append(events)
    return [name for name, events in by_name.items() if not _has_order(events, name in there)]


def _has_order(processes: list[list[Event]], is_there_at_end: bool) -> bool:
    """Return whether one order of all events explains their answers."""
    seen: set[tuple[tuple[int, ...], bool]] = set()
    todo = [((0,) * len(processes), False)]
    while todo:
        places, exists = todo.pop()
        if (places, exists) in seen:
            continue
        seen.add((places, exists))
        following = [
            events[place] if place < len(events) else None
            for place, events in zip(places, processes, strict=True)
        ]
        ends = [event.end for event in following if event is not None]
        if not ends:
            if exists == is_there_at_end:
                return True
            continue
        for number, event in enumerate(following):
            if event is None or event.start > min(ends):  # another had ended before
                continue
            if event.succeeded == (event.is_create != exists):
                after = event.is_create if event.succeeded else exists
                moved = (*places[:number], places[number] + 1, *places[number + 1 :])
                todo.append((moved, after))
    return False
