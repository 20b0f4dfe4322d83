"""Convert values of native columns (types/delta_type.py) in Spark SQL: to JSON, and to forms that
Spark can compare, group and hash.
"""

from __future__ import annotations

from collections.abc import Callable

from replctl.types.delta_type import VARIANT, DeltaType, native_type, quoted_name

#: Returns SQL of a simple value in another form; or the same SQL, if the form does not differ.
_Leaf = Callable[[DeltaType, str], str]

_FLOATS = ("FLOAT", "DOUBLE")


def json_text(type_name: str, value: str) -> str:
    """Return SQL of a native value as JSON, with times and binary values as in to_jsonb()."""
    shown = _rewritten(native_type(type_name), value, _as_json, sorts_maps=False)
    return f"to_json({shown}, map('ignoreNullFields', 'false'))"


def equal_form(type_name: str, value: str) -> str:
    """Return SQL of a form that is the same if and only if two native values are equal: the
    entries of maps are sorted.
    """
    return _rewritten(native_type(type_name), value, _equal, sorts_maps=True)


def exact_form(type_name: str, value: str) -> str:
    """Return SQL of a form that is the same if and only if two native values are stored
    identically: -0.0 differs from 0.0.  There are two exceptions: the order of entries in maps, and
    some types within VARIANTs (`_variant`), do not matter.
    """
    return _rewritten(native_type(type_name), value, _exact, sorts_maps=True)


def exact_text(type_name: str, value: str) -> str:
    """Return SQL of a text that differs if `exact_form` differs.  replctl hashes this text, because
    Spark's hash of nested values ignores NULLs and boundaries.
    """
    type_ = native_type(type_name)
    exact = _rewritten(type_, value, _exact_text, sorts_maps=True)
    if type_.name == VARIANT:
        return exact  # a text
    return f"to_json({exact}, map('ignoreNullFields', 'false'))"


def _as_json(type_: DeltaType, value: str) -> str:
    match type_.name:
        case "TIMESTAMP":
            return f"concat(translate(CAST({value} AS STRING), ' ', 'T'), '+00:00')"
        case "TIMESTAMP_NTZ":
            return f"translate(CAST({value} AS STRING), ' ', 'T')"
        case "DATE":
            return f"CAST({value} AS STRING)"
        case "BINARY":
            return rf"concat('\\x', lower(hex({value})))"
    return value


def _equal(type_: DeltaType, value: str) -> str:
    return _variant(value) if type_.name == VARIANT else value


def _exact(type_: DeltaType, value: str) -> str:
    return f"CAST({value} AS STRING)" if type_.name in _FLOATS else _equal(type_, value)


def _variant(value: str) -> str:
    """Return SQL of a VARIANT as text: its type and its JSON.

    Spark neither compares nor groups VARIANTs.  It calls an array of elements of several types
    ARRAY<VARIANT>.  So two such arrays that differ only in types, as [1, '2020-01-01'] and [1, DATE
    '2020-01-01'] do, have the same text.
    """
    return f"concat(schema_of_variant({value}), ' ', to_json({value}))"


def _exact_text(type_: DeltaType, value: str) -> str:
    return _as_json(type_, _exact(type_, value))


def _rewritten(
    type_: DeltaType, value: str, leaf: _Leaf, *, sorts_maps: bool, depth: int = 1
) -> str:
    """Return SQL of a value with the simple values in it in another form.

    Args:
        leaf: returns the other form of a simple value.
        sorts_maps: convert a map to an array of its entries, sorted by key.
    """

    def inner(part: DeltaType, text: str) -> str:
        return _rewritten(part, text, leaf, sorts_maps=sorts_maps, depth=depth + 1)

    item = f"x{depth}_"
    match type_.name:
        case "STRUCT":
            return _struct(type_, value, inner)
        case "ARRAY":
            element = inner(type_.parts[0][1], item)
            return value if element == item else f"transform({value}, {item} -> {element})"
        case "MAP":
            (_key, key_type), (_value, value_type) = type_.parts
            entries = f"map_entries({value})"
            key, held = (inner(t, f"{item}.{n}") for n, t in type_.parts)
            if sorts_maps:
                entry = f"named_struct('key', {key}, 'value', {held})"
                return f"array_sort(transform({entries}, {item} -> {entry}))"
            if (key, held) == (f"{item}.key", f"{item}.value"):
                return value
            key, held = inner(key_type, f"k{depth}_"), inner(value_type, f"v{depth}_")
            shown = f"transform_keys({value}, (k{depth}_, v{depth}_) -> {key})"
            return f"transform_values({shown}, (k{depth}_, v{depth}_) -> {held})"
    return leaf(type_, value)


def _struct(type_: DeltaType, value: str, inner: Callable[[DeltaType, str], str]) -> str:
    forms, is_same = [], True
    for name, part in type_.parts:
        field = f"({value}).{quoted_name(name)}"
        form = inner(part, field)
        is_same = is_same and form == field
        forms.append(f"{form} AS {quoted_name(name)}")
    return value if is_same else f"if({value} IS NULL, NULL, struct({', '.join(forms)}))"
