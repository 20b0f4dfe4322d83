"""Types of Delta without a counterpart in PostgreSQL, in the spelling of Delta's schemas and of
Spark."""

from __future__ import annotations

import pytest

from replctl.types.delta_type import declared, parsed


def _field(name: str, type_: object) -> dict[str, object]:
    return {"name": name, "type": type_, "nullable": True, "metadata": {}}


_STRUCT = {"type": "struct", "fields": [_field("a", "integer"), _field("b`c", "decimal(10,2)")]}
_ARRAY = {"type": "array", "elementType": "long", "containsNull": True}


@pytest.mark.parametrize(
    ("schema", "text", "is_native"),
    [
        ("string", "STRING", False),
        (_ARRAY, "ARRAY<BIGINT>", False),
        ("variant", "VARIANT", True),
        ({"type": "array", "elementType": "variant", "containsNull": True}, "ARRAY<VARIANT>", True),
        (_STRUCT, "STRUCT<a: INT, `b``c`: DECIMAL(10,2)>", True),
        (
            {"type": "array", "elementType": _ARRAY, "containsNull": True},
            "ARRAY<ARRAY<BIGINT>>",
            True,
        ),
        (
            {"type": "map", "keyType": "date", "valueType": _STRUCT, "valueContainsNull": True},
            "MAP<DATE, STRUCT<a: INT, `b``c`: DECIMAL(10,2)>>",
            True,
        ),
    ],
)
def test_types_are_written_and_read(schema: object, text: str, is_native: bool) -> None:
    found = declared(schema)
    assert found is not None
    assert (found.text, found.is_native) == (text, is_native)
    assert parsed(text) == parsed(text.lower().replace(" ", "")) == found
    assert found.declaration == schema


@pytest.mark.parametrize(
    "schema",
    [
        "void",
        {"type": "struct", "fields": []},
        {"type": "struct", "fields": [_field("a", "void")]},
        {"type": "struct", "fields": [_field("a", "string") | {"metadata": {"__COLLATIONS": {}}}]},
        {"type": "map", "keyType": _ARRAY, "valueType": "long"},
        {"type": "map", "keyType": "variant", "valueType": "long"},
    ],
)
def test_other_types_are_not_carried(schema: object) -> None:
    assert declared(schema) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "STRUCT", "STRUCT<>", "STRUCT<a>", "STRUCT<a: INT", "STRUCT<a: INT>>", "a;b"),
        *("MAP<INT>", "MAP<INT, INT, INT>", "ARRAY<>", "ARRAY<INT, INT>", "STRUCT<a: VOID>"),
        *("ARRAY<MAP<ARRAY<INT>, INT>>", "MAP<VARIANT, INT>"),
    ],
)
def test_texts_that_are_no_types(text: str) -> None:
    assert parsed(text) is None
