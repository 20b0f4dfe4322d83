"""Expand the `%` escapes of PROMPT1 and PROMPT2 to the text of a prompt (psql's prompt.c).

`%/%R%x%# ` becomes `postgres=# `.  In an open transaction block it becomes `postgres=*# `, and
within parentheses `postgres(# `.
"""

from __future__ import annotations

import os
import re
import subprocess

from replctl.catalog.pg_authid import find_role
from replctl.psql.command_context import CommandContext
from replctl.psql.statement_scan import Prompt

_ESCAPE = re.compile(
    r"%(?:(?P<octal>[0-7]{1,3})|:(?P<variable>[^:]*):|`(?P<command>[^`]*)`|(.))", re.S
)


def prompt_text(context: CommandContext, variable: str | None = None) -> str:
    """Return the prompt before the next line.

    Args:
        variable: the variable with the prompt; None for PROMPT1 at the beginning of a statement,
            and for PROMPT2 within a statement.
    """
    status = context.scanner.prompt
    usual = "PROMPT1" if status is Prompt.READY else "PROMPT2"
    template = context.settings.variables.get(variable or usual)
    return _ESCAPE.sub(lambda escape: _expand(escape, context, status), template or "")


def _expand(escape: re.Match[str], context: CommandContext, status: Prompt) -> str:
    if escape["octal"] is not None:
        return chr(int(escape["octal"], 8))
    if escape["variable"] is not None:
        return context.settings.variables.get(escape["variable"]) or ""
    if escape["command"] is not None:
        run = subprocess.run(escape["command"], shell=True, stdout=subprocess.PIPE, check=False)
        return run.stdout.decode("utf-8", "replace").removesuffix("\n")
    session = context.settings.session
    match escape[4]:
        case "/":
            return session.database_name if session else ""
        case "~":
            name = session.database_name if session else ""
            return "~" if name == (session.login_name if session else None) else name
        case "n":
            return session.login_name if session else ""
        case "m" | "M":
            return str(session.cluster.path) if session else ""
        case "p":
            return str(os.getpid())
        case "R":
            return _input_status(context, status)
        case "x":
            return context.settings.transaction_status.value if session else "?"
        case "#":
            return "#" if _is_superuser(context) else ">"
        case "[" | "]" | "w" | ">":
            return ""
        case "l":
            place = context.settings.messages.place
            return str(place.line) if place else ""
        case _:
            return str(escape[4])


def _input_status(context: CommandContext, status: Prompt) -> str:
    if status is not Prompt.READY:
        return str(status.value)
    if not context.conditions.is_active:
        return "@"
    if context.settings.session is None:
        return "!"
    return "^" if context.settings.variables.is_on("SINGLELINE") else "="


def _is_superuser(context: CommandContext) -> bool:
    session = context.settings.session
    if session is None:
        return False
    with session.cluster.read(0) as catalog:
        role = find_role(catalog, session.login_name)
    return role is not None and role.is_superuser
