"""The interface to the catalog for analysing and printing expressions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from replctl.expr import nodes
from replctl.record import dataclass
from replctl.types.builtin import Cast, Function, Operator, Type
from replctl.types.value_format import ValueFormat

SYSTEM_SCHEMA = "pg_catalog"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation or a field of a composite type; `type` is an internal type name."""

    name: str
    attnum: int
    type: str
    typmod: int = -1
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class DomainRules:
    """The default of a domain, and the rules for its values, including those of its base
    domains.
    """

    not_null: bool
    checks: tuple[nodes.DomainCheck, ...]
    default: nodes.Expr | None = None
    schema: str = ""  # of the domain


@dataclass(frozen=True, slots=True)
class Routine:
    """The function whose body is analysed: its name, and its parameters as (name, expression)."""

    name: str
    parameters: tuple[tuple[str, nodes.Expr], ...]


def user_collation(oid: int) -> str:
    """Return the internal name of a user-defined collation, which looks like that of a type."""
    return f"@{oid}"


def is_user_collation(name: str | None) -> bool:
    """Return whether an internal name belongs to a user-defined collation."""
    return name is not None and name.startswith("@")


class Environment(Protocol):
    """A database as seen by expressions.

    Types have internal names: built-in ones their name in the catalog (`int4`), user-defined ones
    `@` and their OID.  If a schema is None, the search path decides.  Methods that return an OID or
    a name return None if there is no such object.
    """

    @property
    def database(self) -> str:
        """Return the name of the database; statements may write it before a schema."""

    @property
    def routine(self) -> Routine | None:
        """Return the function whose parameters expressions may use."""

    @property
    def value_format(self) -> ValueFormat:
        """Return the session's format for reading and showing values."""

    def type(self, name: str) -> Type:
        """Return the type with this internal name."""

    def enum_labels(self, enum: Type) -> tuple[str, ...]:
        """Return the labels of an enum, in their order."""

    def check_enum_labels(self, enum: Type, labels: Collection[str]) -> None:
        """Check that values of an enum may be used in this transaction.

        Raises:
            UnsafeNewEnumValueUsage: the open transaction has added a label.
        """

    def find_type(self, schema: str | None, name: str) -> Type | None:
        """Return the type that `schema.name` means in a statement."""

    def domain_base(self, domain: Type) -> tuple[str, int]:
        """Return the type on which a domain is based (perhaps also a domain), and its modifier."""

    def domain_rules(self, domain: Type) -> DomainRules:
        """Return the rules for values of a domain, including the rules of its base domains."""

    def check_domain(self, domain: Type, value: str | None) -> None:
        """Check a value of a domain's base type, in canonical text (domain_check_input).

        Raises:
            CheckViolation, NotNullViolation: the value is not valid.
        """

    def columns(self, composite: Type) -> tuple[Column, ...] | None:
        """Return the fields of a composite type, in order; None for other types."""

    def functions(self, schema: str | None, name: str) -> Sequence[tuple[int, Function]]:
        """Return the functions with this name, with the positions of their schemas in the search
        path.
        """

    def operators(self, schema: str | None, name: str) -> Sequence[tuple[int, Operator]]:
        """Return the operators with this name, with the positions of their schemas in the search
        path.
        """

    def function(self, oid: int) -> Function:
        """Return the function with this OID."""

    def operator(self, oid: int) -> Operator:
        """Return the operator with this OID."""

    def cast(self, source: str, target: str) -> Cast | None:
        """Return the row of pg_cast for two internal type names."""

    def collation(self, schema: str | None, name: str) -> str | None:
        """Return the internal name of a collation; None if there is no such collation."""

    def format_type(self, name: str, typmod: int | None = None) -> str:
        """Return format_type() of an internal name.

        Args:
            typmod: the modifier; -1 if it is not set, None to ignore modifiers.
        """

    def relation_oid(self, schema: str | None, name: str) -> int | None:
        """Return the OID of a relation."""

    def relation_name(self, oid: int) -> str | None:
        """Return the text of a relation as regclass: quoted, and with its schema if needed."""

    def role_oid(self, name: str) -> int | None:
        """Return the OID of a role."""

    def role_name(self, oid: int) -> str | None:
        """Return the name of a role."""

    def schema_oid(self, name: str) -> int | None:
        """Return the OID of a schema."""

    def schema_name(self, oid: int) -> str | None:
        """Return the name of a schema."""

    def type_by_oid(self, oid: int) -> Type | None:
        """Return the type with this OID."""


def element_of(type_: Type) -> str | None:
    """Return the element type of a true array, int2vector or oidvector; None for other types."""
    # record[] is a true array, too, but as a pseudo-type it has not the category of arrays.
    return "record" if type_.name == "_record" else type_.element
