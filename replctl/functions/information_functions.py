"""Functions that describe the session and the server, by their names in pg_proc.prosrc: encodings,
addresses, and look-ups of names that may not exist.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from replctl.errors import PostgresError
from replctl.expr import object_identifier
from replctl.expr.environment import SYSTEM_SCHEMA
from replctl.types import text

if TYPE_CHECKING:
    from replctl.functions.function_context import FunctionContext

_UTF8 = 6


def _schemas(context: FunctionContext, with_implicit: int) -> str:
    environment = context.environment
    names = [name for name, _oid in environment.search_path.for_creation]
    if with_implicit:
        temporary = [name for name, _oid in environment.search_path.entries if name not in names]
        names = [*temporary, SYSTEM_SCHEMA, *names]
    return text.render("_name", names)


def _object(type_name: str) -> Callable[..., Any]:
    """Return to_regclass() or a similar function: NULL where ::regclass raises an error."""

    def call(context: FunctionContext, name: str) -> int | None:
        try:
            return int(object_identifier.read(context.environment, type_name, name))
        except PostgresError:  # the same that ::regclass raises
            return None

    return call


def _nothing(context: FunctionContext, *args: object) -> None:
    """Return NULL, because the session has no network connection."""


def _no(context: FunctionContext, *args: object) -> int:
    return 0


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "current_schemas": _schemas,
    "pg_backend_pid": lambda context: os.getpid(),
    "pg_client_encoding": lambda context: "UTF8",
    "getdatabaseencoding": lambda context: "UTF8",
    "PG_encoding_to_char": lambda context, encoding: "UTF8" if encoding == _UTF8 else "",
    **{
        f"to_{name}": _object(name)
        for name in ("regclass", "regtype", "regnamespace", "regrole", "regproc", "regprocedure")
    },
    **dict.fromkeys(
        ("inet_server_addr", "inet_server_port", "inet_client_addr", "inet_client_port"), _nothing
    ),
    "pg_is_other_temp_schema": _no,
    "pg_my_temp_schema": _no,
    "pg_tablespace_location": lambda context, oid: "",
}
