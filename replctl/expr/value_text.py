"""Read and show values as text, including values that depend on the catalog: names of objects,
enums, domains and rows (InputFunctionCall, OutputFunctionCall; fmgr.c).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from replctl.errors import FeatureNotSupported, InvalidTextRepresentation
from replctl.expr import object_identifier
from replctl.expr.composite import composite_in
from replctl.expr.environment import Column, Environment, element_of
from replctl.expr.type_facts import TypeFacts
from replctl.types import text
from replctl.types.array_ import array_form
from replctl.types.builtin import Type
from replctl.types.text_form import TextForm
from replctl.types.type_kind import TypeCategory, TypeKind
from replctl.types.value_format import CANONICAL, current_format, use_format

#: Base types whose values users cannot write.
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


def input_value(
    environment: Environment, type_: Type, value: str, typmod: int, now: datetime | None
) -> str:
    """Return the canonical text of a value, like the type's input function.

    Raises:
        PostgresError: `value` is not valid for the type.
    """
    if environment.value_format != current_format():
        with use_format(environment.value_format):
            return input_value(environment, type_, value, typmod, now)
    form = _own_form(environment, type_)
    if form is None:
        return text.canonical(type_.name, value, typmod, now=now)
    return str(form.render(form.parse(value, typmod, now)))


def shown_value(environment: Environment, type_: Type, value: str) -> str:
    """Return the output text of a canonical value under the session's settings.

    Raises:
        FeatureNotSupported: the type does not support a setting (0A000).
    """
    found = output_value(environment, type_, value)
    if environment.value_format == CANONICAL:
        return found
    from replctl.types.shown import shown  # few sessions need it

    type_ = environment.type(TypeFacts(environment).base(type_.name))
    if type_.is_composite:
        columns = environment.columns(type_) or ()
        return composite_in(found, [_field_output(environment, column) for column in columns])
    own_type = "record" if type_.category == TypeCategory.COMPOSITE else type_.name
    return shown(own_type, found, environment.value_format)


def _field_output(environment: Environment, column: Column) -> Callable[[str | None], str | None]:
    """Return the output function of an attribute of a composite type."""
    type_ = environment.type(column.type)
    return lambda value: None if value is None else shown_value(environment, type_, value)


def is_shown_otherwise(environment: Environment, name: str) -> bool:
    """Return whether the session's settings change the output of a type's values."""
    if environment.value_format == CANONICAL:
        return False
    from replctl.types.shown import depends  # few sessions need it

    type_ = environment.type(name)
    is_row = type_.category == TypeCategory.COMPOSITE and not type_.is_composite
    parts = {"record"} if is_row else TypeFacts(environment).contained(name)
    return any(
        not part.startswith("@") and depends(part, environment.value_format) for part in parts
    )


def output_value(environment: Environment, type_: Type, value: str) -> str:
    """Return the output text of a canonical value: the names of objects instead of their OIDs, and
    other values unchanged.
    """
    element_name = element_of(type_)
    element = environment.type(element_name) if element_name else type_
    if element.name not in object_identifier.TYPES:
        return value
    if element is type_:
        return object_identifier.name_of(environment, type_.name, value)
    shown = TextForm(
        parse=lambda item, typmod, now: item,
        render=lambda item: object_identifier.name_of(environment, element.name, item),
    )
    form = array_form(shown, type_.delimiter)
    return str(form.render(form.parse(value, -1, None)))


def _own_form(environment: Environment, type_: Type) -> TextForm | None:
    """Return input and output functions of types that depend on the catalog; None for others."""
    element_name = element_of(type_)
    if element_name is not None:
        element = _own_form(environment, environment.type(element_name))
        return None if element is None else array_form(element, type_.delimiter)
    if type_.name in object_identifier.TYPES:
        return TextForm(
            parse=lambda item, typmod, now: object_identifier.read(environment, type_.name, item),
            render=str,
        )
    match type_.kind:
        case TypeKind.ENUM:
            return TextForm(
                parse=lambda item, typmod, now: _enum_label(environment, type_, item), render=str
            )
        case TypeKind.DOMAIN:
            return TextForm(
                parse=lambda item, typmod, now: _domain(environment, type_, item, now), render=str
            )
        case TypeKind.COMPOSITE:
            return TextForm(
                parse=lambda item, typmod, now: _composite(environment, type_, item, now),
                render=str,
            )
        case TypeKind.PSEUDO if type_.name == "void":
            return TextForm(parse=lambda item, typmod, now: "", render=str)
        case TypeKind.PSEUDO if type_.name not in ("cstring", "unknown"):
            return TextForm(parse=lambda item, typmod, now: _refuse(type_), render=str)
        case TypeKind.BASE if type_.name in _WITHOUT_INPUT:
            return TextForm(parse=lambda item, typmod, now: _refuse(type_), render=str)
        case _:
            return None


def _domain(environment: Environment, type_: Type, value: str, now: datetime | None) -> str:
    base, typmod = environment.domain_base(type_)
    read = input_value(environment, environment.type(base), value, typmod, now)
    environment.check_domain(type_, read)
    return read


def _composite(environment: Environment, type_: Type, value: str, now: datetime | None) -> str:
    def reader(column: Column) -> Callable[[str | None], str | None]:
        field = environment.type(column.type)

        def read(item: str | None) -> str | None:
            if item is not None:
                return input_value(environment, field, item, column.typmod, now)
            if field.kind == TypeKind.DOMAIN:
                environment.check_domain(field, None)
            return None

        return read

    return composite_in(value, [reader(column) for column in environment.columns(type_) or ()])


def _enum_label(environment: Environment, type_: Type, value: str) -> str:
    if value in environment.enum_labels(type_):
        environment.check_enum_labels(type_, [value])
        return value
    raise InvalidTextRepresentation(
        f'invalid input value for enum {environment.format_type(type_.name)}: "{value}"'
    )


def _refuse(type_: Type) -> str:
    if type_.name == "record":
        raise FeatureNotSupported("input of anonymous composite types is not implemented")
    raise FeatureNotSupported(f"cannot accept a value of type {type_.name}")
