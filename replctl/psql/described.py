r"""Find the objects that `\d` commands describe, and name their properties (describe.c)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replctl.catalog import pg_class, pg_inherits, pg_namespace, schema
from replctl.catalog.acl import PUBLIC, Acl
from replctl.catalog.aclchk import acl_items
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_authid import role_names
from replctl.catalog.pg_class import Index, Relation
from replctl.catalog.pg_index import is_valid_index
from replctl.catalog.pg_policy import Policy
from replctl.catalog.relation_kind import (
    INDEX_KINDS,
    READABLE,
    WITH_DELTA_TABLE,
    WITH_ROWS,
    RelKind,
)
from replctl.catalog.transaction import Catalog
from replctl.psql.pattern import NamePattern
from replctl.psql.print_content import PrintOptions, Table
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.variables import PsqlError
from replctl.record import dataclass
from replctl.transaction_block import check_not_failed
from replctl.types.builtin import SystemRelation, system_relations_by_oid

if TYPE_CHECKING:
    from replctl.session import Session

RELATION_TYPES: dict[str, str] = {
    RelKind.TABLE: "table",
    RelKind.PARTITIONED_TABLE: "partitioned table",
    RelKind.VIEW: "view",
    RelKind.MATERIALIZED_VIEW: "materialized view",
    RelKind.INDEX: "index",
    RelKind.PARTITIONED_INDEX: "partitioned index",
    RelKind.SEQUENCE: "sequence",
    RelKind.FOREIGN_TABLE: "foreign table",
    RelKind.COMPOSITE_TYPE: "composite type",
}
#: Kinds of relations for which `\\d` shows collation, NOT NULL and default of the columns.
WITH_COLUMN_DETAILS = (*READABLE, RelKind.FOREIGN_TABLE, RelKind.COMPOSITE_TYPE)
SYSTEM_SCHEMAS = frozenset({"pg_catalog", "information_schema", "pg_toast"})


@dataclass(frozen=True, slots=True)
class Described:
    """The objects that a `\\d` command describes.

    Attributes:
        settings: the state of the command, with the output.
        session, catalog, environment: the connected database.
    """

    settings: PsqlSettings
    session: Session
    catalog: Catalog
    environment: CatalogEnvironment

    @property
    def options(self) -> PrintOptions:
        """Return the session's options for printing."""
        return self.settings.print_options

    def print(self, table: Table) -> None:
        self.settings.print(table, self.options)

    def is_visible(self, oid: int, name: str) -> bool:
        """Return whether the search path finds a relation by its name without a schema."""
        return self.environment.relation_oid(None, name) == oid


@contextmanager
def described(settings: PsqlSettings) -> Iterator[Described]:
    """Yield the connected database for a `\\d` command.

    Raises:
        PsqlError: there is no connection.
        InFailedSqlTransaction: the open block has failed.
    """
    session = settings.session
    if session is None:
        raise PsqlError("You are currently not connected to a database.")
    check_not_failed(session.block)
    with session.read() as catalog:
        yield Described(settings, session, catalog, session.environment(catalog))


def find_relations(
    target: Described, kinds: Collection[RelKind], pattern: NamePattern
) -> list[pg_class.Relation]:
    """Return the relations of these kinds that match a pattern, by schema and name."""
    rows = target.catalog.select(schema.pg_class, schema.pg_class.c.relkind.in_(list(kinds)))
    names = pg_namespace.schema_names(target.catalog)
    oids = [
        int(row.oid)
        for row in rows
        if _is_meant(target, pattern, names[int(row.relnamespace)], str(row.relname), int(row.oid))
    ]
    found = pg_class.load_relations(target.catalog, oids).values()
    return sorted(found, key=lambda relation: (relation.schema, relation.name))


def find_system_relations(
    target: Described, kinds: Collection[RelKind], pattern: NamePattern
) -> list[SystemRelation]:
    """Return the catalogs and system views of these kinds that match a pattern."""
    return [
        relation
        for relation in system_relations_by_oid().values()
        if relation.kind in kinds
        and _is_meant(target, pattern, relation.schema, relation.name, relation.oid)
    ]


def _is_meant(target: Described, pattern: NamePattern, schema: str, name: str, oid: int) -> bool:
    return pattern.matches(schema, name) and (pattern.has_schema or target.is_visible(oid, name))


def column_titles(target: Described, kind: str, verbose: bool) -> list[str]:
    """Return the titles that `\\d` shows for the columns of a kind of relation."""
    titles = ["Column", "Type"]
    has_details = kind in WITH_COLUMN_DETAILS
    if has_details:
        titles += ["Collation", "Nullable", "Default"]
    if verbose:
        titles += ["Storage"]
        if kind in WITH_ROWS and shows_compression(target.settings):
            titles += ["Compression"]
        if kind in (*WITH_ROWS, RelKind.FOREIGN_TABLE):
            titles += ["Stats target"]
        if has_details:
            titles += ["Description"]
    return titles


def shows_compression(settings: PsqlSettings) -> bool:
    """Return whether `\\d+` has a column for compression."""
    return not settings.variables.is_on("HIDE_TOAST_COMPRESSION")


def index_words(is_primary: bool, is_unique: bool, is_constraint: bool) -> str:
    """Return the words between an index's name and its definition."""
    if is_primary:
        return " PRIMARY KEY,"
    if is_unique:
        return " UNIQUE CONSTRAINT," if is_constraint else " UNIQUE,"
    return ""


def access_method(settings: PsqlSettings, kind: str) -> str | None:
    """Return the access method that psql would show."""
    if settings.variables.is_on("HIDE_TABLEAM"):
        return None
    if kind in WITH_DELTA_TABLE:
        return "heap"
    return "btree" if kind in INDEX_KINDS else None


def shown_acl(target: Described, acl: Acl | None) -> str | None:
    """Return an access list as text, with one item per line (printACLColumn)."""
    items = acl_items(target.catalog, acl)
    return items if items is None else "\n".join(items) or "(none)"


def policy_roles(target: Described, policy: Policy) -> list[str]:
    """Return the names of a policy's roles; none if it applies to everybody."""
    names = role_names(target.catalog)
    return sorted(names[oid] for oid in policy.roles if oid != PUBLIC)


def listed(title: str, items: list[str]) -> list[str]:
    """Return lines with a title and names: `Inherits: a,`, and the other names below."""
    lines = []
    for number, item in enumerate(items):
        head = f"{title}: " if number == 0 else " " * (len(title) + 2)
        lines.append(head + item + ("," if number < len(items) - 1 else ""))
    return lines


def is_valid(target: Described, relation: Relation, index: Index) -> bool:
    """Return whether an index is valid: all partitions of its table have an index that belongs to
    it.
    """
    if not relation.is_partitioned:
        return True
    below = pg_inherits.descendants_of(target.catalog, relation.oid)
    return is_valid_index(pg_class.load_relations(target.catalog, below), relation, index)
