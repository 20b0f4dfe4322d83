"""Read the data that all parts of a dump need: the catalog, names with schemas, and comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_description import get_comment
from replctl.catalog.pg_type import type_oid
from replctl.catalog.transaction import Catalog
from replctl.dump.entry import Entry, ObjectKey
from replctl.expr import nodes
from replctl.expr.nextval_call import sequences_of
from replctl.record import dataclass
from replctl.types.builtin import FIRST_USER_OID
from replctl.types.quote import quote_identifier, quote_string


@dataclass(frozen=True)
class Source:
    """A database to dump.

    Attributes:
        environment: its search path is empty, so it shows all names with their schemas.
    """

    environment: CatalogEnvironment

    @property
    def catalog(self) -> Catalog:
        return self.environment.catalog

    def role_name(self, oid: int) -> str:
        return self.environment.role_name(oid) or f"unknown (OID={oid})"

    def schema_name(self, oid: int) -> str:
        return self.environment.schema_name(oid) or ""

    def commented(
        self, entry: Entry, class_name: str, oid: int, what: str, name: str, number: int = 0
    ) -> Entry:
        """Return an entry, with the comment on one of its objects if there is one.

        Args:
            what: the kind of the object in the statement, such as `TABLE` or `COLUMN`.
            name: the object's name in the statement.
        """
        text = get_comment(self.catalog, class_name, oid, number)
        if text is None:
            return entry
        statement = f"COMMENT ON {what} {name} IS {quote_string(text)};\n"
        label = f"{what} {unqualified(name, entry.schema)}"
        comment = Entry("COMMENT", label, statement, entry.schema, entry.owner)
        return replace(entry, comments=(*entry.comments, comment))


def unqualified(name: str, schema: str | None) -> str:
    """Remove the schema from a qualified name: (`public.t`, public) -> `t`"""
    return name if schema is None else name.replace(f"{quote_identifier(schema)}.", "", 1)


def type_key(name: str) -> Iterator[ObjectKey]:
    """Yield the key of a type, if the type is user-defined."""
    if name.startswith("@"):
        yield "pg_type", type_oid(name)


def expression_keys(exprs: Iterable[nodes.Expr | None]) -> Iterator[ObjectKey]:
    """Yield the keys of user-defined functions, operators, types and sequences in expressions."""
    for expr in exprs:
        if expr is None:
            continue
        yield from (("pg_class", oid) for oid in sequences_of(expr))
        for node in nodes.walk(expr):
            yield from node_keys(node)


def node_keys(node: object) -> Iterator[ObjectKey]:
    """Yield the keys of the objects in a node of an expression (`expression_keys`)."""
    function, operator = getattr(node, "function_oid", 0), getattr(node, "operator_oid", 0)
    if function >= FIRST_USER_OID:
        yield "pg_proc", function
    if operator >= FIRST_USER_OID:
        yield "pg_operator", operator
    type_ = getattr(node, "type", "")
    if isinstance(type_, str):
        yield from type_key(type_)


def with_options(options: Mapping[str, str]) -> str:
    """Return the clause for options, such as ` WITH (security_invoker='true')`.  Values other than
    plain names are quoted.
    """
    if not options:
        return ""
    shown = []
    for name, value in options.items():
        quoted = value if quote_identifier(value) == value else quote_string(value)
        parts = map(quote_identifier, name.split("."))  # the namespace and the name
        shown.append(f"{'.'.join(parts)}={quoted}")
    return f" WITH ({', '.join(shown)})"
