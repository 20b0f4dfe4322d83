"""Roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog


@dataclass(frozen=True, slots=True)
class Role:
    """A row of pg_authid."""

    oid: int
    name: str
    is_superuser: bool
    can_login: bool
    can_replicate: bool


def find_role(catalog: Catalog, name: str) -> Role | None:
    """The role of that name."""
    row = catalog.first(schema.pg_authid, schema.pg_authid.c.rolname == name)
    return None if row is None else _role(row)


def role_names(catalog: Catalog) -> dict[int, str]:
    """Names of all roles by OID."""
    return {int(row.oid): str(row.rolname) for row in catalog.select(schema.pg_authid)}


def _role(row: Any) -> Role:
    return Role(
        int(row.oid),
        str(row.rolname),
        bool(row.rolsuper),
        bool(row.rolcanlogin),
        bool(row.rolreplication),
    )
