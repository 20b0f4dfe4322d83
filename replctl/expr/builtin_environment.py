"""The environment of a database in which nobody has made anything yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache

from replctl.errors import FeatureNotSupported, InvalidTextRepresentation
from replctl.expr import object_identifier
from replctl.expr.composite import composite_in
from replctl.expr.environment import SYSTEM_SCHEMA, Column, Routine, element_of
from replctl.types import builtin, text
from replctl.types.array_ import array_form
from replctl.types.builtin import Cast, Function, Operator, Type
from replctl.types.session_form import CANONICAL, SessionForm, read_by, reading
from replctl.types.text_form import TextForm


class BuiltinEnvironment:
    """The objects that initdb makes, found through the search path `pg_catalog`.

    A catalog extends it: the methods at its end are about relations, roles and schemas.
    """

    database = "postgres"
    routine: Routine | None = None
    form: SessionForm = CANONICAL

    def has_schema(self, name: str) -> bool:
        return name == SYSTEM_SCHEMA

    def type(self, name: str) -> Type:
        return builtin.types()[name]

    def find_type(self, schema: str | None, name: str) -> Type | None:
        return builtin.types().get(name) if schema in (None, SYSTEM_SCHEMA) else None

    def domain_base(self, domain: Type) -> tuple[str, int]:
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

    def function_schema(self, oid: int) -> str:
        return SYSTEM_SCHEMA

    def operator_schema(self, oid: int) -> str:
        return SYSTEM_SCHEMA

    def cast(self, source: str, target: str) -> Cast | None:
        return builtin.casts().get((source, target))

    def collation(self, schema: str | None, name: str) -> str | None:
        return name if schema in (None, SYSTEM_SCHEMA) and name in builtin.collations() else None

    def format_type(self, name: str, typmod: int | None = None) -> str:
        return text.format_type(self.type(name), typmod)

    def input(self, type_: Type, value: str, typmod: int, now: datetime | None) -> str:
        if self.form != reading():
            with read_by(self.form):
                return self.input(type_, value, typmod, now)
        form = self._own_form(type_)
        if form is None:
            return text.canonical(type_.name, value, typmod, now=now)
        return str(form.render(form.parse(value, typmod, now)))

    def shown(self, type_: Type, value: str) -> str:
        found = self.output(type_, value)
        if self.form == CANONICAL:
            return found
        from replctl.types.shown import shown  # few sessions need it

        return shown(self.shown_type(type_.name), found, self.form)

    def shown_type(self, name: str) -> str:
        """Return the type as whose values those of a type are shown: rows are records."""
        return "record" if self.type(name).category == "C" else name

    def output(self, type_: Type, value: str) -> str:
        element_name = element_of(type_)
        element = self.type(element_name) if element_name else type_
        if element.name not in object_identifier.TYPES:
            return value
        if element is type_:
            return object_identifier.name_of(self, type_.name, value)
        shown = TextForm(
            parse=lambda item, typmod, now: item,
            render=lambda item: object_identifier.name_of(self, element.name, item),
        )
        form = array_form(shown, type_.delimiter)
        return str(form.render(form.parse(value, -1, None)))

    def _own_form(self, type_: Type) -> TextForm | None:
        """Input and output of a type whose values only a catalog can tell, None for all others."""
        element_name = element_of(type_)
        if element_name is not None:
            element = self._own_form(self.type(element_name))
            return None if element is None else array_form(element, type_.delimiter)
        if type_.name in object_identifier.TYPES:
            return TextForm(
                parse=lambda item, typmod, now: object_identifier.read(self, type_.name, item),
                render=str,
            )
        match type_.kind:
            case "e":
                return TextForm(
                    parse=lambda item, typmod, now: self._enum_label(type_, item), render=str
                )
            case "d":
                base, typmod_ = self.domain_base(type_)
                return TextForm(
                    parse=lambda item, typmod, now: self.input(self.type(base), item, typmod_, now),
                    render=str,
                )
            case "c":
                return TextForm(
                    parse=lambda item, typmod, now: self._composite(type_, item, now), render=str
                )
            case "p" if type_.name == "void":
                return TextForm(parse=lambda item, typmod, now: "", render=str)
            case "p" if type_.name not in ("cstring", "unknown"):
                return TextForm(parse=lambda item, typmod, now: _refuse(type_), render=str)
            case "b" if type_.name in _WITHOUT_INPUT:
                return TextForm(parse=lambda item, typmod, now: _refuse(type_), render=str)
            case _:
                return None

    def _composite(self, type_: Type, value: str, now: datetime | None) -> str:
        def reader(column: Column) -> Callable[[str], str]:
            return lambda item: self.input(self.type(column.type), item, column.typmod, now)

        return composite_in(value, [reader(column) for column in self.columns(type_) or ()])

    def _enum_label(self, type_: Type, value: str) -> str:
        if value in self.enum_labels(type_):
            return value
        raise InvalidTextRepresentation(
            f'invalid input value for enum {self.format_type(type_.name)}: "{value}"'
        )

    # What only a catalog knows: an OID or None, a name or None

    def enum_labels(self, enum: Type) -> tuple[str, ...]:
        """Return the labels of an enum, in order."""
        return ()

    def relation_oid(self, schema: str | None, name: str) -> int | None:
        """Return the OID of a relation."""
        return None

    def relation_name(self, oid: int) -> str | None:
        """Return how regclass shows a relation, quoted and, where needed, with its schema."""
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


#: Base types that only the server itself writes.
_WITHOUT_INPUT = frozenset(
    {
        "gtsvector",
        "pg_node_tree",
        "pg_ndistinct",
        "pg_dependencies",
        "pg_mcv_list",
        "pg_brin_bloom_summary",
        "pg_brin_minmax_multi_summary",
    }
)


def _refuse(type_: Type) -> str:
    if type_.name == "record":
        raise FeatureNotSupported("input of anonymous composite types is not implemented")
    raise FeatureNotSupported(f"cannot accept a value of type {type_.name}")


@cache
def _system_functions(name: str) -> tuple[tuple[int, Function], ...]:
    return tuple((0, function) for function in builtin.functions().get(name, ()))


@cache
def _system_operators(name: str) -> tuple[tuple[int, Operator], ...]:
    return tuple((0, operator) for operator in builtin.operators().get(name, ()))
