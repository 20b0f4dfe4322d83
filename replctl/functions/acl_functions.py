"""aclexplode() and acldefault(), by their names in pg_proc.prosrc (PostgreSQL's acl.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from replctl.catalog.acl import AclKind, Privilege, default_acl
from replctl.catalog.aclchk import acl_items
from replctl.catalog.pg_authid import role_names
from replctl.errors import FeatureNotSupported
from replctl.types import text

if TYPE_CHECKING:
    from replctl.functions.function_context import FunctionContext


def _acl_explode(context: FunctionContext, items: str) -> list[list[Any]]:
    """Return an access list as rows: grantor, grantee, privilege, grant option (aclexplode)."""
    names = {name: oid for oid, name in role_names(context.catalog).items()}
    rows = []
    parsed: Any = text.parse("_text", items)
    for item in parsed:
        grantee, rest = _acl_name(item)
        letters, _slash, grantor = rest.removeprefix("=").partition("/")
        for i, letter in enumerate(letters):
            if letter != "*":
                is_grantable = int(letters[i + 1 : i + 2] == "*")
                rows.append(
                    [names[_acl_name(grantor)[0]], names.get(grantee, 0), Privilege(letter).word,
                     is_grantable]
                )  # fmt: skip
    return rows


def _acl_name(shown: str) -> tuple[str, str]:
    """Return the unquoted role at the beginning of an item, and the rest of the item."""
    if not shown.startswith('"'):
        name = shown.partition("=")[0]
        return name, shown[len(name) :]
    end = 1
    while shown[end] != '"' or shown[end + 1 : end + 2] == '"':
        end += 2 if shown[end] == '"' else 1
    return shown[1:end].replace('""', '"'), shown[end + 1 :]


def _acl_default(context: FunctionContext, kind: str, owner: int) -> str:
    """Return the initial access list of an object (acldefault)."""
    kinds: dict[str, AclKind] = {
        "r": "table", "c": "column", "s": "sequence", "n": "schema", "d": "database",
        "f": "function", "T": "type",
    }  # fmt: skip
    if kind not in kinds:
        raise FeatureNotSupported(f'acldefault() of object type "{kind}" is not supported')
    return text.render(
        "_text", list(acl_items(context.catalog, default_acl(kinds[kind], owner)) or [])
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {"acldefault_sql": _acl_default}
SET_FUNCTIONS: dict[str, Callable[..., list[list[Any]]]] = {"aclexplode": _acl_explode}
