"""Read received values of composite types with the input functions of the subscriber's attributes
(record_in).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

from replctl.errors import InvalidTextRepresentation
from replctl.expr.composite import composite_in
from replctl.spark.values import EnumType, RowField, RowType
from replctl.types import text
from replctl.types.array_ import array_form
from replctl.types.text_form import TextForm

#: Types whose values are equal if and only if their texts are.
_EQUAL_TEXTS = frozenset(
    """bool int2 int4 int8 oid text varchar name date time timestamp timestamptz uuid bytea
    _bool _int2 _int4 _int8 _text _varchar _date _timestamp _timestamptz _uuid""".split()
)


def row_definition(row: RowType) -> str:
    """Return a composite type as text, for `read_row`."""
    return json.dumps(asdict(row))


def read_row(value: str, definition: str) -> str:
    """Return the canonical text of a row.

    Args:
        definition: the composite type, from `row_definition`.

    Raises:
        PostgresError: the text is not a row of the type.
    """
    return _reader(definition)(value)


def has_equal_texts(row: RowType) -> bool:
    """Return whether equal rows of a type always have the same text."""
    return all(
        has_equal_texts(field.user_type)
        if isinstance(field.user_type, RowType)
        else field.type in _EQUAL_TEXTS
        for field in row.fields
    )


@cache
def _reader(definition: str) -> Callable[[str], str]:
    return _row_reader(_row(json.loads(definition)))


def _row(loaded: dict[str, Any]) -> RowType:
    return RowType(tuple(_field(**field) for field in loaded["fields"]))


def _field(type: str, typmod: int, user_type: dict[str, Any] | None) -> RowField:
    if user_type is None:
        return RowField(type, typmod)
    is_row = "fields" in user_type
    known = _row(user_type) if is_row else EnumType(user_type["name"], tuple(user_type["labels"]))
    return RowField(type, typmod, known)


def _row_reader(row: RowType) -> Callable[[str], str]:
    def reader(field: RowField) -> Callable[[str | None], str | None]:
        read = _field_reader(field)
        return lambda item: None if item is None else read(item)

    readers = [reader(field) for field in row.fields]
    return lambda value: composite_in(value, readers)


def _field_reader(field: RowField) -> Callable[[str], str]:
    known = field.user_type
    if isinstance(known, RowType):
        return _row_reader(known)
    if known is None:
        return lambda value: text.canonical(field.type, value, field.typmod)
    read = _label_reader(known)
    if field.type == "text":
        return read
    form = array_form(TextForm(lambda item, typmod, now: read(item), str), ",")
    return lambda value: str(form.render(form.parse(value, -1, None)))


def _label_reader(enum: EnumType) -> Callable[[str], str]:
    labels = frozenset(enum.labels)

    def read(value: str) -> str:
        if value not in labels:
            message = f'invalid input value for enum {enum.name}: "{value}"'
            raise InvalidTextRepresentation(message)
        return value

    return read
