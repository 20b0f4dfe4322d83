"""jsonb (PostgreSQL's jsonfuncs.c, jsonb_op.c and jsonb_util.c).

Values are stored as canonical text.  A parsed value is None, bool, Decimal, str, list, or a dict
with sorted keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from functools import cmp_to_key, lru_cache
from json.encoder import encode_basestring
from typing import Any

from replctl.adt import numeric_arithmetic
from replctl.adt.arrayfuncs import dimensions, flat
from replctl.errors import (
    ArraySubscriptError,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NullValueNotAllowed,
    ProgramLimitExceeded,
)
from replctl.types.character import byte_difference
from replctl.types.integer import decimal_int
from replctl.types.numeric import numeric_in, numeric_out

_decoder = json.JSONDecoder(parse_int=numeric_in, parse_float=numeric_in)
_KIND = {type(None): 0, str: 1, Decimal: 2, bool: 3, list: 4, dict: 5}
_MAX_ELEMENTS = 2**25 - 1  # JSONB_MAX_ELEMS in jsonb.h
_KIND_NAMES = ("null", "string", "numeric", "boolean", "array", "object")
_TYPE_NAMES = ("null", "string", "number", "boolean", "array", "object")


@lru_cache(2000)
def load(text: str) -> Any:
    """Return the value of a canonical text; callers must not change it."""
    return _decoder.decode(text)


def dump(value: Any) -> str:
    """Return the canonical text."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, Decimal):
        return numeric_out(value)
    if isinstance(value, dict):
        shown = (f"{encode_basestring(k)}: {dump(value[k])}" for k in sorted(value, key=_key_order))
        return f"{{{', '.join(shown)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(dump, value))}]"
    return {None: "null", True: "true", False: "false"}[value]


def type_name(value: Any) -> str:
    """Return the name of a value's type in JSON: null, string, number, boolean, array or object."""
    return _TYPE_NAMES[_KIND[type(value)]]


def _key_order(key: str) -> tuple[int, bytes]:
    encoded = key.encode()
    return len(encoded), encoded


def as_text(value: Any) -> str | None:
    """Return the result of ->>: a string without quotes; None for null."""
    if value is None:
        return None
    return value if isinstance(value, str) else dump(value)


class _Missing:
    """The result of a search that finds nothing, in contrast to null."""


_MISSING = _Missing()


def _element(value: Any, index: int) -> Any:
    """Return an element of an array; a scalar counts as an array with one element."""
    if isinstance(value, dict):
        return _MISSING
    items = value if isinstance(value, list) else [value]
    return items[index] if -len(items) <= index < len(items) else _MISSING


def _field(value: Any, name: str) -> Any:
    return value.get(name, _MISSING) if isinstance(value, dict) else _MISSING


def _result(value: Any) -> str | None:
    return None if value is _MISSING else dump(value)


def _text_result(value: Any) -> str | None:
    return None if value is _MISSING else as_text(value)


def _index(step: str) -> int | None:
    digits = step.strip(" \t\n\v\f\r")
    number = digits[1:] if digits[:1] in ("-", "+") else digits
    if not (number.isascii() and number.isdigit()):
        return None
    value = decimal_int(digits)
    return value if -(2**31) <= value < 2**31 else None


def _at_path(value: Any, path: list[Any]) -> Any:
    """Return the value at a path, whose dimensions do not matter."""
    steps = list(flat(path))
    if any(step is None for step in steps):
        return _MISSING
    for step in steps:
        if isinstance(value, dict):
            value = _field(value, step)
        elif isinstance(value, list):
            index = _index(step)
            value = _MISSING if index is None else _element(value, index)
        else:
            return _MISSING
        if value is _MISSING:
            return value
    return value


def contains(left: Any, right: Any) -> bool:
    """Return `left @> right`; an array contains a scalar only at the top level."""
    if isinstance(left, list) and not isinstance(right, list | dict):
        return any(_is_equal(item, right) for item in left)
    return _contains(left, right)


def _contains(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return all(key in left and _contains(left[key], item) for key, item in right.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(any(_contains(mine, item) for mine in left) for item in right)
    return _is_equal(left, right)


def _is_equal(a: Any, b: Any) -> bool:
    return compare(a, b) == 0


def compare(a: Any, b: Any, *, is_top: bool = True) -> int:
    """Compare in B-tree order: object > array > boolean > number > string > null.

    An empty array at the top level sorts before everything else (compareJsonbContainers).
    """
    kind_a, kind_b = _KIND[type(a)], _KIND[type(b)]
    if kind_a != kind_b:
        if is_top:
            empty_a, empty_b = a == [] and kind_a == 4, b == [] and kind_b == 4
            if empty_a or empty_b:
                return -1 if empty_a else 1
        return -1 if kind_a < kind_b else 1
    if kind_a == 0:
        return 0
    if kind_a == 4:
        return _compare_lists(a, b)
    if kind_a == 5:
        return _compare_objects(a, b)
    if kind_a == 1:
        return _compare_texts(a, b)
    return int(a > b) - int(a < b)


def _compare_texts(a: str, b: str) -> int:
    return byte_difference(a.encode(), b.encode()) or int(a > b) - int(a < b)


def _compare_lists(a: list[Any], b: list[Any]) -> int:
    if len(a) != len(b):
        return -1 if len(a) < len(b) else 1
    for x, y in zip(a, b, strict=True):
        order = compare(x, y, is_top=False)
        if order:
            return order
    return 0


def _compare_objects(a: dict[str, Any], b: dict[str, Any]) -> int:
    if len(a) != len(b):
        return -1 if len(a) < len(b) else 1
    keys_a, keys_b = (sorted(item, key=_key_order) for item in (a, b))
    for key_a, key_b in zip(keys_a, keys_b, strict=True):
        if key_a != key_b:
            return _compare_texts(key_a, key_b)
        order = compare(a[key_a], b[key_b], is_top=False)
        if order:
            return order
    return 0


key: Callable[[str], Any] = cmp_to_key(lambda a, b: compare(load(a), load(b)))


def _has(value: Any, name: str) -> bool:
    """Implement `?`: search for a key, a string among the elements, or the string itself."""
    if isinstance(value, dict):
        return name in value
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, str) and item == name for item in items)


def _concat(a: Any, b: Any) -> Any:
    if isinstance(a, dict) and isinstance(b, dict):
        return {**a, **b}
    return [*(a if isinstance(a, list) else [a]), *(b if isinstance(b, list) else [b])]


def _check_one_dimension(names: list[Any]) -> None:
    if len(dimensions(names)) > 1:
        raise ArraySubscriptError("wrong number of array subscripts")


def _cannot(what: str) -> Exception:
    return InvalidParameterValue(f"cannot {what}")


def _delete(value: Any, name: str) -> Any:
    if not isinstance(value, dict | list):
        raise _cannot("delete from scalar")
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key != name}
    return [item for item in value if item != name or not isinstance(item, str)]


def _delete_array(value: Any, names: list[str | None]) -> Any:
    _check_one_dimension(names)
    for name in names:
        if name is not None:
            value = _delete(value, name)
    if not isinstance(value, dict | list):
        raise _cannot("delete from scalar")
    return value


def _delete_index(value: Any, index: int) -> Any:
    if isinstance(value, dict):
        raise _cannot("delete from object using integer index")
    if not isinstance(value, list):
        raise _cannot("delete from scalar")
    if not -len(value) <= index < len(value):
        return value
    position = index % len(value)
    return value[:position] + value[position + 1 :]


def _path_index(step: str | None, place: int) -> int:
    index = None if step is None else _index(step)
    if index is None:
        raise InvalidTextRepresentation(
            f'path element at position {place} is not an integer: "{step}"'
        )
    return index


def _changed(
    value: Any, path: list[str | None], place: int, change: Callable[[Any, str | int, bool], Any]
) -> Any:
    """Return a copy in which `change(container, key, is_there)` has changed the end of a path."""
    step = path[place]
    if step is None:
        raise NullValueNotAllowed(f"path element at position {place + 1} is null")
    if isinstance(value, dict):
        if place == len(path) - 1:
            return change(dict(value), step, step in value)
        if step in value:
            return {**value, step: _changed(value[step], path, place + 1, change)}
        return value
    if isinstance(value, list):
        index = _path_index(step, place + 1)
        is_there = -len(value) <= index < len(value)
        if place == len(path) - 1:
            return change(list(value), index, is_there)
        if is_there:
            copy = list(value)
            copy[index] = _changed(value[index], path, place + 1, change)
            return copy
    return value


def _delete_path(value: Any, path: list[str | None]) -> Any:
    _check_one_dimension(path)
    if not isinstance(value, dict | list):
        raise _cannot("delete path in scalar")

    def remove(container: Any, key: str | int, is_there: bool) -> Any:
        if is_there:
            del container[key]
        return container

    return _changed(value, path, 0, remove) if value and path else value


def _set(value: Any, path: list[str | None], new: Any, create: bool = True) -> Any:
    _check_one_dimension(path)
    if not isinstance(value, dict | list):
        raise _cannot("set path in scalar")

    def put(container: Any, key: Any, is_there: bool) -> Any:
        if is_there or (create and isinstance(container, dict)):
            container[key] = new
        elif create:
            container.insert(0 if key < 0 else len(container), new)
        return container

    return _changed(value, path, 0, put) if path and (value or create) else value


def with_element(text: str, path: list[str], new: str | None) -> str:
    """Implement `value['a'][0] = new`, which makes missing objects and arrays
    (jsonb_set_element)."""
    return dump(_with_element(load(text), path, 0, None if new is None else load(new)))


def _with_element(value: Any, path: list[str], place: int, new: Any) -> Any:
    """Return a copy of a value in which the element at `path[place:]` is `new` (setPath)."""
    if place == len(path):
        return new
    step = path[place]
    if isinstance(value, dict):
        if step in value:
            return {**value, step: _with_element(value[step], path, place + 1, new)}
        return {**value, step: _grown(path, place + 1, new)}
    if not isinstance(value, list):
        raise InvalidParameterValue(
            "cannot replace existing key",
            detail="The path assumes key is a composite object, but it is a scalar value.",
        )
    index = _path_index(step, place + 1)
    if index < -len(value):
        raise InvalidParameterValue(
            f"path element at position {place + 1} is out of range: {index}"
        )
    copy = list(value)
    if index < len(value):
        copy[index] = _with_element(value[index], path, place + 1, new)
        return copy
    return [*copy, *_nulls(index - len(value)), _grown(path, place + 1, new)]


def _grown(path: list[str], place: int, new: Any) -> Any:
    """Return `new` in new objects and arrays, so that it is at `path[place:]` (push_path)."""
    if place == len(path):
        return new
    inner, index = _grown(path, place + 1, new), _index(path[place])
    return {path[place]: inner} if index is None else [*_nulls(index), inner]


def _nulls(count: int) -> list[None]:
    if count >= _MAX_ELEMENTS:
        raise ProgramLimitExceeded(
            f"number of jsonb array elements exceeds the maximum allowed ({_MAX_ELEMENTS})"
        )
    return [None] * count


def _set_lax(
    text: str | None,
    path: list[str | None] | None,
    new: str | None,
    create: bool | None,
    treatment: str | None,
) -> str | None:
    """Implement jsonb_set_lax(), whose caller chooses the meaning of NULL as the new value."""
    if text is None or path is None or create is None:
        return None
    treatments = ("delete_key", "return_target", "use_json_null", "raise_exception")
    if treatment is None or (new is None and treatment not in treatments):
        raise InvalidParameterValue(
            'null_value_treatment must be "delete_key", "return_target", "use_json_null", or'
            ' "raise_exception"'
        )
    value = load(text)
    if new is not None or treatment == "use_json_null":
        return dump(_set(value, path, None if new is None else load(new), create))
    if treatment == "raise_exception":
        raise NullValueNotAllowed(
            "JSON value must not be null",
            detail='Exception was raised because null_value_treatment is "raise_exception".',
            hint="To avoid, either change the null_value_treatment argument or ensure that an SQL"
            " NULL is not passed.",
        )
    return dump(_delete_path(value, path)) if treatment == "delete_key" else text


def _insert(value: Any, path: list[str | None], new: Any, after: bool = False) -> Any:
    _check_one_dimension(path)
    if not isinstance(value, dict | list):
        raise _cannot("set path in scalar")

    def put(container: Any, key: Any, is_there: bool) -> Any:
        if isinstance(container, dict):
            if is_there:
                raise InvalidParameterValue(
                    "cannot replace existing key",
                    hint="Try using the function jsonb_set to replace key value.",
                )
            container[key] = new
        elif is_there:
            position = key % len(container)
            container.insert(position + after, new)
        else:
            container.insert(0 if key < 0 else len(container), new)
        return container

    return _changed(value, path, 0, put) if path else value


def _strip_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip_nulls(item) for key, item in value.items() if item is not None}
    return [_strip_nulls(item) for item in value] if isinstance(value, list) else value


def _pretty(value: Any, indent: int = 0) -> str:
    inner, outer = " " * 4 * (indent + 1), " " * 4 * indent
    if isinstance(value, dict):
        lines = [
            f"{inner}{encode_basestring(key)}: {_pretty(value[key], indent + 1)}"
            for key in sorted(value, key=_key_order)
        ]
    elif isinstance(value, list):
        lines = [inner + _pretty(item, indent + 1) for item in value]
    else:
        return dump(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    body = ",\n".join(lines)
    return f"{opening}\n{body}\n{outer}{closing}" if lines else f"{opening}\n{outer}{closing}"


def _array_length(value: Any) -> int:
    if isinstance(value, list):
        return len(value)
    what = "non-array" if isinstance(value, dict) else "scalar"
    raise InvalidParameterValue(f"cannot get array length of a {what}")


def _cast(type_name: str, shown: str) -> Callable[[str], Any]:
    convert: Callable[[Any], Any] = numeric_arithmetic.FUNCTIONS.get(
        f"numeric_{type_name}", lambda value: value
    )

    def apply(text: str) -> Any:
        value = load(text)
        wanted: type = bool if type_name == "bool" else Decimal
        if type(value) is not wanted:
            kind = _KIND_NAMES[_KIND[type(value)]]
            raise InvalidParameterValue(f"cannot cast jsonb {kind} to type {shown}")
        return value if wanted is bool else convert(value)

    return apply


def pairs_of(pairs: list[Any]) -> list[tuple[str, str | None]]:
    """Implement jsonb_object(text[]): alternating keys and values, or pairs."""
    sizes = dimensions(pairs)
    if len(sizes) > 2:
        raise ArraySubscriptError("wrong number of array subscripts")
    if len(sizes) == 2:
        if sizes[1] != 2:
            raise ArraySubscriptError("array must have two columns")
        return _checked_pairs([(key, value) for key, value in pairs])
    if len(pairs) % 2:
        raise ArraySubscriptError("array must have even number of elements")
    return _checked_pairs(list(zip(pairs[::2], pairs[1::2], strict=True)))


def pairs_of_two(keys: list[Any], values: list[Any]) -> list[tuple[str, str | None]]:
    """Implement jsonb_object(text[], text[])."""
    sizes = dimensions(keys)
    if len(sizes) > 1 or len(sizes) != len(dimensions(values)):
        raise ArraySubscriptError("wrong number of array subscripts")
    if len(keys) != len(values):
        raise ArraySubscriptError("mismatched array dimensions")
    return _checked_pairs(list(zip(keys, values, strict=True)))


def _checked_pairs(items: list[tuple[Any, Any]]) -> list[tuple[str, str | None]]:
    if any(key is None for key, _ in items):
        raise NullValueNotAllowed("null value not allowed for object key")
    return items


def _of_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a canonical text that calls `function` with the parsed value."""
    return lambda text, *rest: function(load(text), *rest)


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like that of `_of_value`, but with the result as canonical text."""
    return lambda text, *rest: dump(function(load(text), *rest))


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "jsonb_object_field": lambda text, name: _result(_field(load(text), name)),
    "jsonb_object_field_text": lambda text, name: _text_result(_field(load(text), name)),
    "jsonb_array_element": lambda text, index: _result(_element(load(text), index)),
    "jsonb_array_element_text": lambda text, index: _text_result(_element(load(text), index)),
    "jsonb_extract_path": lambda text, path: _result(_at_path(load(text), path)),
    "jsonb_extract_path_text": lambda text, path: _text_result(_at_path(load(text), path)),
    "jsonb_contains": lambda a, b: contains(load(a), load(b)),
    "jsonb_contained": lambda a, b: contains(load(b), load(a)),
    "jsonb_exists": _of_value(_has),
    "jsonb_exists_any": lambda text, names: any(
        _has(load(text), name) for name in flat(names) if name is not None
    ),
    "jsonb_exists_all": lambda text, names: all(
        _has(load(text), name) for name in flat(names) if name is not None
    ),
    "jsonb_concat": lambda a, b: dump(_concat(load(a), load(b))),
    "jsonb_delete": _of_values(_delete),
    "jsonb_delete_idx": _of_values(_delete_index),
    "jsonb_delete_array": _of_values(_delete_array),
    "jsonb_delete_path": _of_values(_delete_path),
    "jsonb_set": lambda text, path, new, create=True: dump(
        _set(load(text), path, load(new), create)
    ),
    "jsonb_set_lax": _set_lax,
    "jsonb_insert": lambda text, path, new, after=False: dump(
        _insert(load(text), path, load(new), after)
    ),
    "jsonb_strip_nulls": _of_values(_strip_nulls),
    "jsonb_pretty": _of_value(_pretty),
    "jsonb_typeof": _of_value(type_name),
    "jsonb_array_length": _of_value(_array_length),
    "jsonb_object": lambda pairs: dump(dict(pairs_of(pairs))),
    "jsonb_object_two_arg": lambda keys, values: dump(dict(pairs_of_two(keys, values))),
    "jsonb_bool": _cast("bool", "boolean"),
    "jsonb_numeric": _cast("numeric", "numeric"),
    "jsonb_int2": _cast("int2", "smallint"),
    "jsonb_int4": _cast("int4", "integer"),
    "jsonb_int8": _cast("int8", "bigint"),
    "jsonb_float4": _cast("float4", "real"),
    "jsonb_float8": _cast("float8", "double precision"),
}
