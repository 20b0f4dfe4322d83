"""Functions that describe the session and the server, by their names in pg_proc.prosrc: encodings,
addresses, and look-ups of names that may not exist.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from replctl.catalog.pg_namespace import find_schema, temporary_schemas
from replctl.errors import InsufficientPrivilege, PostgresError
from replctl.expr import object_identifier
from replctl.types import text

if TYPE_CHECKING:
    from replctl.functions.function_context import FunctionContext

#: The names of encodings, by their numbers (pg_wchar.h).
_ENCODINGS = (
    "SQL_ASCII EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 UTF8 MULE_INTERNAL LATIN1 LATIN2 LATIN3"
    " LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 WIN1256 WIN1258 WIN866 WIN874 KOI8R"
    " WIN1251 WIN1252 ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 WIN1250 WIN1253 WIN1254 WIN1255"
    " WIN1257 KOI8U SJIS BIG5 GBK UHC GB18030 JOHAB SHIFT_JIS_2004".split()
)


def _encoding_name(context: FunctionContext, number: int) -> str:
    return _ENCODINGS[number] if 0 <= number < len(_ENCODINGS) else ""


def _schemas(context: FunctionContext, with_implicit: int) -> str:
    path = context.environment.search_path
    entries = path.entries if with_implicit else path.for_creation
    return text.render("_name", [name for name, _oid in entries])


def _object(type_name: str) -> Callable[..., Any]:
    """Return to_regclass() or a similar function: NULL where ::regclass finds no object."""

    def call(context: FunctionContext, name: str) -> int | None:
        try:
            return int(object_identifier.read(context.environment, type_name, name))
        except InsufficientPrivilege:  # the role may not use the schema
            raise
        except PostgresError:  # the same that ::regclass raises
            return None

    return call


def _nothing(context: FunctionContext, *args: object) -> None:
    """Return NULL, because the session has no network connection."""


def _my_temp_schema(context: FunctionContext) -> int:
    name = context.session.temporary_schema
    return 0 if name is None else find_schema(context.catalog, name) or 0


def _is_other_temp_schema(context: FunctionContext, oid: int) -> int:
    return int(oid != _my_temp_schema(context) and oid in temporary_schemas(context.catalog))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "current_schemas": _schemas,
    "pg_backend_pid": lambda context: os.getpid(),
    "pg_client_encoding": lambda context: "UTF8",
    "getdatabaseencoding": lambda context: "UTF8",
    "PG_encoding_to_char": _encoding_name,
    **{
        f"to_{name}": _object(name)
        for name in ("regclass", "regtype", "regnamespace", "regrole", "regproc", "regprocedure")
    },
    **dict.fromkeys(
        ("inet_server_addr", "inet_server_port", "inet_client_addr", "inet_client_port"), _nothing
    ),
    "pg_is_other_temp_schema": _is_other_temp_schema,
    "pg_my_temp_schema": _my_temp_schema,
    "pg_tablespace_location": lambda context, oid: "",
}
