"""`\\dT` and `\\dD`: types and domains (describe.c)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from replctl.catalog import schema
from replctl.catalog.acl import Acl, decode_acl
from replctl.catalog.initdb import BOOTSTRAP_SUPERUSER
from replctl.catalog.pg_authid import role_names
from replctl.catalog.pg_description import get_comment
from replctl.catalog.pg_domain import Domain, get_domain
from replctl.catalog.pg_namespace import schema_names
from replctl.catalog.pg_type import type_name
from replctl.catalog.ruleutils import domain_constraint_definition
from replctl.psql.described import SYSTEM_SCHEMAS, Described, shown_acl
from replctl.psql.pattern import parse_pattern
from replctl.psql.print_content import Table
from replctl.record import dataclass
from replctl.types import builtin
from replctl.types.type_kind import TypeKind

#: Names of types that `\\dT` also understands as patterns (map_typename_pattern).
_TYPE_NAMES = {
    "decimal": "numeric",
    "float": "double precision",
    "int": "integer",
    "bool[]": "boolean[]",
    "decimal[]": "numeric[]",
    "float[]": "double precision[]",
    "float4[]": "real[]",
    "float8[]": "double precision[]",
    "int[]": "integer[]",
    "int2[]": "smallint[]",
    "int4[]": "integer[]",
    "int8[]": "bigint[]",
    "time[]": "time without time zone[]",
    "timetz[]": "time with time zone[]",
    "timestamp[]": "timestamp without time zone[]",
    "timestamptz[]": "timestamp with time zone[]",
    "varbit[]": "bit varying[]",
    "varchar[]": "character varying[]",
}


def list_types(target: Described, pattern: str | None, verbose: bool, show_system: bool) -> bool:
    """Run `\\dT`: list types, except for row types of tables and, without `[]` in the pattern,
    arrays (describeTypes).
    """
    if pattern is not None:
        pattern = _TYPE_NAMES.get(pattern.lower(), pattern)
    parsed = parse_pattern(pattern, target.session.database_name)
    owners = role_names(target.catalog)
    with_arrays = pattern is not None and "[]" in pattern
    rows: list[list[str | None]] = []
    for type_ in _types(target):
        if type_.is_array and not with_arrays:
            continue
        if type_.schema in SYSTEM_SCHEMAS and pattern is None and not show_system:
            continue
        names = type_.name, type_.shown
        if not any(parsed.matches(type_.schema, name) for name in names):
            continue
        if not (parsed.has_schema or type_.is_visible):
            continue
        rows.append([type_.schema, type_.shown])
        if verbose:
            owner, acl = owners[type_.owner], shown_acl(target, type_.acl)
            rows[-1] += [type_.name, type_.size, "\n".join(type_.labels), owner, acl]
        rows[-1].append(get_comment(target.catalog, "pg_type", type_.oid))
    rows.sort(key=lambda row: (row[0] or "", row[1] or ""))
    columns = ["Schema", "Name"]
    if verbose:
        columns += ["Internal name", "Size", "Elements", "Owner", "Access privileges"]
    target.print(Table([*columns, "Description"], rows, title="List of data types"))
    return True


@dataclass(frozen=True, slots=True)
class _ListedType:
    """A type that `\\dT` can list."""

    oid: int
    schema: str
    name: str
    shown: str
    is_visible: bool
    is_array: bool
    size: str
    labels: Sequence[str]
    owner: int
    acl: Acl | None


def _types(target: Described) -> Iterator[_ListedType]:
    """Yield all types except for the row types of tables."""
    environment, places = target.environment, schema_names(target.catalog)
    places_of: dict[int, tuple[str, int, Acl | None]] = {
        type_.oid: ("pg_catalog", BOOTSTRAP_SUPERUSER, None) for type_ in builtin.types().values()
    }
    for row in target.catalog.select(schema.pg_type):
        acl = decode_acl(row.typacl)
        places_of[int(row.oid)] = (places[int(row.typnamespace)], int(row.typowner), acl)
    for oid, (place, owner, acl) in places_of.items():
        type_ = environment.type_by_oid(oid)
        if type_ is None or (type_.kind == TypeKind.COMPOSITE and not type_.is_composite):
            continue
        name = type_.name if type_.is_builtin else type_.sql_name
        found = environment.find_type(None, name)
        shown = environment.format_type(type_.name)
        size = "var" if type_.length < 0 else str(type_.length)
        yield _ListedType(
            oid,
            place,
            name,
            shown,
            found is not None and found.oid == oid,
            shown.endswith("[]"),
            "tuple" if type_.is_composite else size,
            environment.enum_labels(type_) if type_.kind == TypeKind.ENUM else (),
            owner,
            acl,
        )


def list_domains(target: Described, pattern: str | None, verbose: bool, show_system: bool) -> bool:
    """Run `\\dD`: list user-defined domains (listDomains)."""
    parsed = parse_pattern(pattern, target.session.database_name)
    environment, places = target.environment, schema_names(target.catalog)
    table = schema.pg_type
    rows: list[list[str | None]] = []
    for row in target.catalog.select(table, table.c.typtype == TypeKind.DOMAIN):
        place, name = places[int(row.typnamespace)], str(row.typname)
        found = environment.find_type(None, name)
        is_visible = found is not None and found.oid == int(row.oid)
        if not parsed.matches(place, name) or not (parsed.has_schema or is_visible):
            continue
        rows.append([place, name, *_domain(target, get_domain(target.catalog, type_name(row.oid)))])
        if verbose:
            rows[-1].append(shown_acl(target, decode_acl(row.typacl)))
            rows[-1].append(get_comment(target.catalog, "pg_type", int(row.oid)))
    rows.sort(key=lambda row: (row[0] or "", row[1] or ""))
    columns = ["Schema", "Name", "Type", "Collation", "Nullable", "Default", "Check"]
    columns += ["Access privileges", "Description"] if verbose else []
    target.print(Table(columns, rows, title="List of domains"))
    return True


def _domain(target: Described, domain: Domain) -> list[str | None]:
    environment = target.environment
    own, base = environment.type(domain.name), environment.type(domain.base)
    checks = [
        domain_constraint_definition(environment, item, is_pretty=True)
        for item in sorted(domain.constraints, key=attrgetter("oid"))
        if item.check is not None
    ]
    return [
        environment.format_type(domain.base, domain.typmod),
        own.collation if own.collation != base.collation else None,
        "not null" if domain.not_null else None,
        domain.default_text,
        " ".join(checks),
    ]
