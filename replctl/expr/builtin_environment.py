"""The environment of a database without user-defined objects."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from replctl.errors import FeatureNotSupported
from replctl.expr.environment import SYSTEM_SCHEMA, Column, DomainRules, Routine
from replctl.types import builtin, text
from replctl.types.builtin import Cast, Function, Operator, Type
from replctl.types.value_format import CANONICAL, ValueFormat


class BuiltinEnvironment:
    """The objects that initdb creates, with the search path `pg_catalog`.

    A catalog extends this class.  The methods at its end look up objects that only a catalog has.
    """

    database = "postgres"
    routine: Routine | None = None
    value_format: ValueFormat = CANONICAL

    def type(self, name: str) -> Type:
        return builtin.types()[name]

    def find_type(self, schema: str | None, name: str) -> Type | None:
        return builtin.types().get(name) if schema in (None, SYSTEM_SCHEMA) else None

    def domain_base(self, domain: Type) -> tuple[str, int]:
        raise FeatureNotSupported(f"domain {domain.sql_name} is not supported")

    def domain_rules(self, domain: Type) -> DomainRules:
        raise FeatureNotSupported(f"domain {domain.sql_name} is not supported")

    def check_domain(self, domain: Type, value: str | None) -> None:
        raise FeatureNotSupported(f"domain {domain.sql_name} is not supported")

    def columns(self, composite: Type) -> tuple[Column, ...] | None:
        return None

    def functions(self, schema: str | None, name: str) -> Sequence[tuple[int, Function]]:
        return _system_functions(name) if schema in (None, SYSTEM_SCHEMA) else ()

    def operators(self, schema: str | None, name: str) -> Sequence[tuple[int, Operator]]:
        return _system_operators(name) if schema in (None, SYSTEM_SCHEMA) else ()

    def function(self, oid: int) -> Function:
        return builtin.function_by_oid()[oid]

    def operator(self, oid: int) -> Operator:
        return builtin.operator_by_oid()[oid]

    def cast(self, source: str, target: str) -> Cast | None:
        return builtin.casts().get((source, target))

    def collation(self, schema: str | None, name: str) -> str | None:
        return name if schema in (None, SYSTEM_SCHEMA) and name in builtin.collations() else None

    def format_type(self, name: str, typmod: int | None = None) -> str:
        return text.format_type(self.type(name), typmod)

    # Look-ups for a catalog: they return None if there is no such object

    def enum_labels(self, enum: Type) -> tuple[str, ...]:
        """Return the labels of an enum, in order."""
        return ()

    def check_enum_labels(self, enum: Type, labels: Collection[str]) -> None:
        """Check that values of an enum may be used in this transaction."""

    def relation_oid(self, schema: str | None, name: str) -> int | None:
        """Return the OID of a relation."""
        return None

    def relation_name(self, oid: int) -> str | None:
        """Return the text of a relation as regclass: quoted, and with its schema if needed."""
        return None

    def role_oid(self, name: str) -> int | None:
        """Return the OID of a role."""
        return None

    def role_name(self, oid: int) -> str | None:
        """Return the name of a role."""
        return None

    def schema_oid(self, name: str) -> int | None:
        """Return the OID of a schema."""
        return {SYSTEM_SCHEMA: 11}.get(name)

    def schema_name(self, oid: int) -> str | None:
        """Return the name of a schema."""
        return {11: SYSTEM_SCHEMA}.get(oid)

    def type_by_oid(self, oid: int) -> Type | None:
        """Return the type with this OID."""
        return builtin.types_by_oid().get(oid)


@cache
def _system_functions(name: str) -> tuple[tuple[int, Function], ...]:
    return tuple((0, function) for function in builtin.functions().get(name, ()))


@cache
def _system_operators(name: str) -> tuple[tuple[int, Operator], ...]:
    return tuple((0, operator) for operator in builtin.operators().get(name, ()))
