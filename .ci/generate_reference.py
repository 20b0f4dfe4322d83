#!/usr/bin/env python3
"""Write the pages of docs/reference that are generated from the code.

    .ci/generate_reference.py [--check]

Args:
    --check: write nothing; exit with 1 if a page is out of date.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any
from unittest.mock import patch

import typer

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from test_hint_list import HINTS, POSTGRESQL, literal, nodes_with_hints  # noqa: E402

from replctl import errors  # noqa: E402
from replctl.catalog import schema_table  # noqa: E402
from replctl.functions.system_views import _EMPTY, _VIEWS  # noqa: E402
from replctl.psql import help as psql_help  # noqa: E402
from replctl.psql.main import _run  # noqa: E402
from replctl.query import information_schema  # noqa: E402
from replctl.query.view_catalog import _CATALOGS  # noqa: E402
from replctl.types import builtin  # noqa: E402
from replctl.types.guc import Setting, settings, show_value  # noqa: E402
from replctl.types.guc_rule import OBEYED, SUPPORTED  # noqa: E402

_REFERENCE = _ROOT / "docs" / "reference"
_NOTE = "<!-- Written by .ci/generate_reference.py: change the code, not this page. -->"

_COMMANDS = {
    "sync": "[Monitoring](../guides/monitoring.md) explains the output.",
    "status": "[Monitoring](../guides/monitoring.md) explains the columns.",
    "verify": "[Monitoring](../guides/monitoring.md) says what counts as a difference.",
    "vacuum": "[Retention](../guides/retention.md) says what is removed.",
    "dump": "[Dumps](../guides/dump.md) says what a dump contains.",
    "schema": "[Schema changes](../guides/schema-changes.md) shows how to use it.",
    "standby create": "[Failover](../guides/failover.md) is the guide to standbys.",
    "standby sync": "",
    "standby promote": "",
    "cluster backup": "[Move, back up and restore](../guides/backup.md) is the guide.",
    "cluster identify": "",
    "spark start": "[Spark](../guides/spark.md) is the guide.",
    "spark status": "",
    "spark stop": "",
    "spark prepare": "",
}

#: Catalogs and views of replication, whose columns the page lists.
_REPLICATION = (
    "pg_publication", "pg_publication_rel", "pg_publication_namespace", "pg_publication_tables",
    "pg_subscription", "pg_subscription_rel", "pg_stat_subscription", "pg_stat_subscription_stats",
    "pg_stat_subscription_conflicts", "pg_replication_slots", "pg_stat_replication_slots",
    "pg_stat_replication", "pg_replication_origin", "pg_replication_origin_status",
    "pg_stat_activity",
)  # fmt: skip


def _fenced(text: str) -> list[str]:
    return ["```text", text.rstrip("\n"), "```", ""]


def _page(title: str, *purpose: str) -> list[str]:
    return [f"# {title}", "", _NOTE, "", *purpose, ""]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(*names: str) -> list[str]:
    return [_row(*names), "|" + "---|" * len(names)]


def _command(name: str) -> Any:
    """Return the click command that `replctl NAME` runs."""
    apps = list[typer.Typer]()

    def keep(app: typer.Typer, *_: Any, **__: Any) -> None:
        apps.append(app)

    with patch.object(typer.Typer, "__call__", keep):
        _run([*name.split(), "--help"])
    command: Any = typer.main.get_command(apps[0])
    for part in name.split()[1:]:
        command = command.commands[part]
    return command


def _argument(parameter: Any) -> str:
    """Return an argument of a command as its usage line has it: `[TABLE]...`, `DIRECTORY`."""
    return str(parameter.metavar or parameter.name.upper())


def _option(parameter: Any) -> str:
    """Return a row of the table of options."""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if not parameter.is_flag:
        value = parameter.metavar or parameter.opts[0].lstrip("-").upper()
        names += f" `{value}`" + (" ..." if parameter.multiple else "")
    default = "" if parameter.is_flag or parameter.default in (None, "") else parameter.default
    if isinstance(default, float):
        default = f"{default:g}"
    return _row(names, "required" if parameter.required else f"{default}", parameter.help or "")


def _command_help(name: str) -> list[str]:
    """Return the section of a command: its purpose, its usage, its options."""
    command = _command(name)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join(["replctl", name, "[OPTION]...", *map(_argument, arguments)])
    lines = [f"## replctl {name}", "", command.help, "", *_fenced(usage)]
    if arguments:
        lines += _table("argument", "meaning")
        lines += [_row(f"`{_argument(p).strip('[].')}`", p.help or "") for p in arguments]
        lines.append("")
    lines += _table("option", "default", "meaning")
    lines += [_option(p) for p in command.params if p.param_type_name == "option"]
    return [*lines, ""]


def commands() -> list[str]:
    """Return the page of the commands and their options."""
    lines = _page(
        "Commands and options",
        "This page lists the commands with their options. `replctl` alone runs SQL, as psql does. The other commands replicate, check and maintain a cluster.",
    )
    lines += ["## replctl", "", *_fenced(psql_help.OPTIONS)]
    for name, more in _COMMANDS.items():
        lines += _command_help(name)
        lines += [more, ""] if more else []
    return lines


def backslash_commands() -> list[str]:
    """Return the page of the backslash commands and the variables."""
    lines = _page(
        "Backslash commands and variables",
        "This page lists the backslash commands and the special variables. `\\?` and `\\? variables` print the same lists. Only `\\sync` and the variable AUTOSYNC are replctl's own. psql has all the others.",
    )
    lines += ["## Backslash commands", "", *_fenced(psql_help.slash_commands(None))]
    return [*lines, "## Variables", "", *_fenced(psql_help.VARIABLES)]


def statement_syntax() -> list[str]:
    """Return the page of the syntax that `\\h` prints."""
    lines = _page(
        "Syntax of the main statements",
        "This page shows the syntax of statements. `\\h NAME` prints the same. The syntax is abridged: many statements have"
        " more forms. [Statements](statements.md) lists all statements and"
        " replctl's own options.",
    )
    for name, (description, syntax) in sorted(psql_help._SQL.items()):
        link = f"https://www.postgresql.org/docs/17/sql-{name.lower().replace(' ', '')}.html"
        lines += [f"## {name}", "", f"{description.capitalize()} ([PostgreSQL]({link})).", ""]
        lines += _fenced(syntax)
    return lines


def _value(setting: Setting) -> str:
    return f"`{show_value(setting, setting.boot_value)}`" if setting.boot_value else "empty"


def settings_page() -> list[str]:
    """Return the page of the settings."""
    known = settings()
    lines = _page(
        "Settings",
        "This page lists all settings. `SET`, `ALTER ROLE ... SET`, `ALTER DATABASE ... SET` and `ALTER SYSTEM` change settings."
        " `SHOW` shows them.",
    )
    lines += [
        "The context says who may change a setting. Everybody may change a `user` setting, and",
        "superusers a `superuser` setting. `ALTER SYSTEM` changes `sighup` and `postmaster` settings.",
        "An `internal` setting never changes.",
        "",
    ]
    for title, names in (
        ("Settings of replctl", [name for name in known if name.startswith("replctl.")]),
        ("Settings of PostgreSQL that have an effect", sorted(OBEYED - {*SUPPORTED})),
    ):
        lines += [f"## {title}", "", *_table("setting", "default", "context", "meaning")]
        for name in names:
            if name in known and (name.startswith("replctl.") == title.endswith("replctl")):
                found = known[name]
                meaning = f"{found.description} {found.extra_description}".strip()
                lines.append(_row(f"`{found.name}`", _value(found), found.context, meaning))
        lines.append("")
    lines += ["## Settings with supported values only", ""]
    lines += ["replctl refuses other values (0A000), because they would change results.", ""]
    lines += _table("setting", "supported values")
    for name, values in sorted(SUPPORTED.items()):
        lines.append(
            _row(f"`{name}`", ", ".join(f"`{value}`" if value else "empty" for value in values))
        )
    lines += ["", "## Settings without effect", ""]
    lines += [
        "replctl accepts PostgreSQL's values for these settings. They change no result of a statement.",
        "",
    ]
    lines += _table("setting", "meaning in PostgreSQL")
    for key, setting in known.items():
        if not (key in OBEYED or key in SUPPORTED or key.startswith("replctl.")):
            lines.append(_row(f"`{setting.name}`", setting.description))
    return lines


def views() -> list[str]:
    """Return the page of the catalogs and views."""
    known = builtin.system_relations()
    lines = _page(
        "Catalogs and views",
        "This page lists the system catalogs and views that you can query. Their names and columns"
        " are those of PostgreSQL 17. Queries of them never start Spark.",
    )
    lines += [
        "`pg_stat_subscription_conflicts` is replctl's own: it counts conflicts as PostgreSQL 18"
        " does.",
        "",
        "## Replication",
        "",
    ]
    for name in _REPLICATION:
        lines += [f"### {name}", "", *_table("column", "type")]
        lines += [_row(f"`{column}`", type_) for column, type_ in known[name].columns]
        lines.append("")
    served = {*_VIEWS, *_CATALOGS, *schema_table.metadata.tables}
    has = [name for name in known if name in served]
    empty = [name for name in known if name in _EMPTY and name not in has]
    for title, said, names in (
        (
            "Other catalogs and views",
            "These catalogs and views have rows.",
            set(has) - {*_REPLICATION},
        ),
        ("Always empty", "replctl has no objects of these kinds.", set(empty)),
        (
            "information_schema",
            "These views are in schema `information_schema`.",
            {*information_schema._VIEWS, *information_schema._EMPTY},
        ),
    ):
        lines += [f"## {title}", "", said, "", *_fenced(fill(" ".join(sorted(names)), 100))]
    return [
        *lines,
        'replctl refuses queries of all other catalogs and views: `catalog "pg_locks" is not supported`.',
    ]


def _hinted() -> Iterator[tuple[str, str, str]]:
    """Yield SQLSTATE, message and HINT of the errors with a HINT of replctl's own."""
    for path, node in nodes_with_hints():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        error = getattr(errors, node.func.id, None)
        hints = [item.value for item in node.keywords if item.arg == "hint"]
        if not (isinstance(error, type) and issubclass(error, errors.PostgresError)):
            continue
        if not (node.args and hints):
            continue
        constants = _constants(path)
        message = literal(node.args[0], "...", constants)
        if message is not None:
            yield error.sqlstate, message, literal(hints[0], "...", constants) or ""


def _constants(path: Path) -> dict[str, object]:
    """Return the own and imported constants of a module, by name."""
    name = ".".join(path.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__")
    return {key: value for key, value in vars(import_module(name)).items() if key.isupper()}


def hints() -> list[str]:
    """Return the page of the errors with a HINT of replctl's own."""
    lines = _page(
        "Errors with a hint",
        "This page lists replctl's own errors that have a HINT. It does not list errors of PostgreSQL: "
        "replctl reports them in PostgreSQL's words.",
    )
    lines += [
        "`...` stands for a name or a value. If the hint is empty on this page, the error itself has the"
        " exact statement or command for your case.",
        "",
    ]
    lines += ["[Troubleshooting](../guides/troubleshooting.md) explains the frequent errors.", ""]
    theirs = {text.replace("{}", "...") for text, test in HINTS.items() if test == POSTGRESQL}
    found = defaultdict(set)
    for sqlstate, message, hint in _hinted():
        if hint not in theirs:
            found[sqlstate].add((message, hint))
    for sqlstate, errors_of_it in sorted(found.items()):
        lines += [f"## {sqlstate}", "", *_table("error", "hint")]
        lines += [
            _row(f"`{message}`", hint and f"`{hint}`") for message, hint in sorted(errors_of_it)
        ]
        lines.append("")
    return lines


_PAGES = {
    "commands.md": commands,
    "backslash-commands.md": backslash_commands,
    "syntax.md": statement_syntax,
    "settings.md": settings_page,
    "views.md": views,
    "hints.md": hints,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check name the pages that are out of date.

    Returns:
        1 if --check has found one, else 0.
    """
    stale = 0
    for name, page in _PAGES.items():
        path = _REFERENCE / name
        text = "\n".join(page()).rstrip("\n") + "\n"
        if "--check" not in arguments:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            print(f"{path.relative_to(_ROOT)} is not current: run .ci/generate_reference.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
