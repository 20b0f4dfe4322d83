#!/usr/bin/env python3
"""Write the answers of two PostgreSQL 17 servers to the scripts in tests/subscription/data.

    .ci/generate_subscription_golden.py 'host=/tmp port=5429 user=postgres' \
        'host=/tmp port=5428 user=postgres' LOG1 LOG2 [NAME...]

The connection strings are those of the publisher and of the subscriber.  LOG1 and LOG2 are their log
files.  The servers need wal_level = logical, and a short wal_retrieve_retry_interval.  The script
drops and creates the databases pub and third (first server) and sub (second server) for each file.

The form is that of generate_script_golden.py, with two more statements.  `\\c NAME;` connects to a
database.  `\\sync;` waits until the subscriptions have applied all changes, or have failed.  Its
answer is the text that the workers have written into the server's log.  In a statement,
host=localhost stands for the server that has the database, and :finish_lsn for the LSN of the last
error that `\\sync;` has shown.  Words replace numbers that differ from run to run.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from generate_script_golden import SETTINGS, TESTS, Connection, statements

_DATABASES = {"pub": 0, "third": 0, "sub": 1}
_TIMEOUT = 20.0  # seconds that a \sync may take
_WORKER = re.compile(r"^\[logical replication [^]]*\] (\w+):  (?:(\w{5}): )?(.*)$")
_CONTINUED = re.compile(r"^\[logical replication [^]]*\] (DETAIL|HINT|CONTEXT):  (.*)$")
_SHOWN_LOG = ("disabled", "skipping", "disable", "reset")
_HIDDEN = (
    "terminating",
    "could not receive data",
    "will not start",
    "will stop",
    "could not start WAL",
)
_LSN = re.compile(r"\b[0-9A-F]+/[0-9A-F]{5,8}\b")


class Servers:
    """The two servers, with a connection to each database."""

    def __init__(self, conninfos: list[str], logs: list[Path]) -> None:
        self._conninfos, self._logs = conninfos, logs
        self._admin = [Connection(f"{conninfo} dbname=postgres") for conninfo in conninfos]
        for admin in self._admin:
            admin.execute("ALTER SYSTEM SET log_line_prefix = '[%b] '")
            admin.execute("ALTER SYSTEM SET log_error_verbosity = 'default'")
            admin.execute("SELECT pg_reload_conf()")
        self._make_databases()
        self.current = self._connect("pub")
        self._open = {"pub": self.current}
        self._marks = [log.stat().st_size for log in logs]
        self._last: list[str] = []
        self._finish_lsn = ""

    def execute(self, statement: str) -> list[str]:
        if statement.startswith("\\c "):
            name = statement.split()[1]
            if name not in self._open:
                self._open[name] = self._connect(name)
            self.current = self._open[name]
            return []
        if statement == "\\sync":
            return self._sync()
        text = statement.replace(":finish_lsn", f"'{self._finish_lsn}'")
        for name, number in (("", 0), *_DATABASES.items()):
            text = re.sub(
                rf"host=localhost dbname={name}\b"
                if name
                else r"host=localhost\b(?! dbname=sub\b)",
                f"{self._conninfos[number]}" + (f" dbname={name}" if name else ""),
                text,
            )
        return [self._normalised(line) for line in self.current.execute(text)]

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._drop_databases()
        for admin in self._admin:
            admin.close()

    def _connect(self, name: str) -> Connection:
        connection = Connection(f"{self._conninfos[_DATABASES[name]]} dbname={name}")
        for setting in SETTINGS:
            connection.execute(setting)
        return connection

    def _make_databases(self) -> None:
        self._drop_databases()
        for name, number in _DATABASES.items():
            self._admin[number].execute(
                f"CREATE DATABASE {name} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
            )

    def _drop_databases(self) -> None:
        for number in range(len(self._admin)):
            for name in self._values(
                number, "SELECT datname FROM pg_database WHERE datname IN ('pub', 'sub', 'third')"
            ):
                inside = Connection(f"{self._conninfos[number]} dbname={name}")
                for line in inside.execute(
                    "SELECT quote_ident(subname) FROM pg_subscription JOIN pg_database d"
                    " ON d.oid = subdbid WHERE datname = current_database()"
                ):
                    if line.startswith("| "):
                        inside.execute(f"ALTER SUBSCRIPTION {line[2:]} DISABLE")
                        inside.execute(f"ALTER SUBSCRIPTION {line[2:]} SET (slot_name = NONE)")
                        inside.execute(f"DROP SUBSCRIPTION {line[2:]}")
                inside.close()
        for number, admin in enumerate(self._admin):
            for slot in self._values(number, "SELECT slot_name FROM pg_replication_slots"):
                for _attempt in range(50):
                    lines = admin.execute(f"SELECT pg_drop_replication_slot('{slot}')")
                    if not lines[0].startswith("ERROR"):
                        break
                    time.sleep(0.1)
            for origin in self._values(number, "SELECT roname FROM pg_replication_origin"):
                admin.execute(f"SELECT pg_replication_origin_drop('{origin}')")
            for name, where in _DATABASES.items():
                if where == number:
                    admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _values(self, number: int, query: str) -> list[str]:
        lines = self._admin[number].execute(query)
        return [line[2:] for line in lines if line.startswith("| ")]

    def _sync(self) -> list[str]:
        targets = [self._values(i, "SELECT pg_current_wal_insert_lsn()")[0] for i in (0, 1)]
        for i in (0, 1):
            self._admin[i].execute("SELECT pg_log_standby_snapshot()")
        starts = [log.stat().st_size for log in self._logs]
        deadline = time.monotonic() + _TIMEOUT
        while time.monotonic() < deadline:
            failed = {name for i in (0, 1) for name in self._failed(i, starts[i])}
            if all(self._is_done(i, targets, failed) for i in (0, 1)):
                break
            time.sleep(0.1)
        else:
            print("\\sync has not come to an end", file=sys.stderr)
        time.sleep(0.3)
        late = [report for i in (0, 1) for report in self._reports(i, starts[i])]
        early = [
            report
            for i in (0, 1)
            for report in self._reports(i, self._marks[i])
            if report not in self._last
        ]
        reports = list(dict.fromkeys([*early, *late]))
        self._marks = [log.stat().st_size for log in self._logs]
        self._last = reports
        for report in reports:
            found = re.findall(r"finished at ([0-9A-F]+/[0-9A-F]+)", report)
            if found:
                self._finish_lsn = found[-1]
        lines = [line for report in reports for line in report.split("\n")]
        shown = [self._normalised(line) for line in lines]
        return list(shown)

    def _is_done(self, number: int, targets: list[str], failed: set[str]) -> bool:
        for line in self._values(
            number,
            "SELECT subname, subslotname, datname FROM pg_subscription"
            " JOIN pg_database d ON d.oid = subdbid WHERE subenabled AND subslotname IS NOT NULL",
        ):
            name, slot, database = line.split(" | ")
            if name in failed:
                continue
            other = 1 - number
            confirmed = self._values(
                other,
                f"SELECT confirmed_flush_lsn >= '{targets[other]}' FROM pg_replication_slots"
                f" WHERE slot_name = '{slot}'",
            )
            inside = Connection(f"{self._conninfos[number]} dbname={database}")
            states = inside.execute(
                "SELECT count(*) FROM pg_subscription_rel JOIN pg_subscription s ON s.oid = srsubid"
                f" WHERE subname = '{name}' AND srsubstate <> 'r'"
            )
            inside.close()
            if confirmed != ["t"] or states[0] != "| 0":
                return False
        return True

    def _failed(self, number: int, start: int) -> set[str]:
        """Return the subscriptions whose workers have failed twice since a position in the log."""
        text = self._text(number, start)
        names = re.findall(
            r'background worker "logical replication (?:apply|tablesync) worker"', text
        )
        if len(names) < 2:
            return set()
        return set(self._values(number, "SELECT subname FROM pg_subscription"))

    def _text(self, number: int, start: int) -> str:
        with self._logs[number].open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace")

    def _reports(self, number: int, start: int) -> list[str]:
        """Return the reports of workers since a position in the log."""
        reports: list[list[str]] = []
        wanted = False
        for line in self._text(number, start).split("\n"):
            continued = _CONTINUED.match(line)
            begun = _WORKER.match(line)
            if continued:
                # A context of COPY has line numbers of the server's own
                if wanted and not continued[2].startswith("COPY "):
                    reports[-1].append(f"{continued[1]}: {continued[2]}")
            elif begun:
                severity, message = begun[1], begun[3]
                wanted = severity in ("ERROR", "WARNING", "FATAL") or (
                    severity == "LOG" and any(word in message for word in _SHOWN_LOG)
                )
                if any(words in message for words in _HIDDEN):
                    wanted = False
                if wanted:
                    reports.append([f"{severity}: {message}"])
            elif line.startswith("\t") and wanted:
                reports[-1][-1] += "\\n" + line[1:]
            else:
                wanted = False
        return ["\n".join(report) for report in reports]

    def _normalised(self, line: str) -> str:
        for conninfo in self._conninfos:
            line = line.replace(conninfo, "host=localhost")
        line = re.sub(
            r"connection to server (?:at|on) .*? failed", "connection to server failed", line
        )
        line = re.sub(r"\btransaction \d+\b", "transaction XID", line)
        line = re.sub(r"\bpg_\d+_sync_\d+_\d+\b", "pg_OID_sync_OID_SYSID", line)
        line = line.replace("\n", "\\n")
        line = re.sub(r"\bpg_\d+(?:_\d+)?\b", "pg_OID", line)
        return _LSN.sub("LSN", line)


def generate(conninfos: list[str], logs: list[Path], path: Path) -> None:
    servers = Servers(conninfos, logs)
    lines: list[str] = []
    for statement in statements(path.read_text(encoding="utf-8") + "\n"):
        lines += [f"> {statement};", *servers.execute(statement), ""]
    path.with_suffix(".out").write_text("\n".join(lines), encoding="utf-8")
    servers.close()


def main() -> None:
    publisher, subscriber, publisher_log, subscriber_log, *names = sys.argv[1:]
    logs = [Path(publisher_log), Path(subscriber_log)]
    for path in sorted((TESTS / "subscription" / "data").glob("*.sql")):
        if not names or path.stem in names:
            generate([publisher, subscriber], logs, path)


if __name__ == "__main__":
    main()
