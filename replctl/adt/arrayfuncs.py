"""Arrays: lists, with None for NULL.  PostgreSQL's arrayfuncs.c and array_userfuncs.c.

The functions refuse arrays with a lower bound other than 1 (types.array_.BoundedArray).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

from replctl.errors import (
    ArraySubscriptError,
    DataError,
    FeatureNotSupported,
    NullValueNotAllowed,
    ProgramLimitExceeded,
)
from replctl.types import text as type_text
from replctl.types.array_ import MAX_DIMENSIONS, MAX_SIZE, BoundedArray

Key = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """Return an array; refuse one that does not begin at 1."""
    if isinstance(value, BoundedArray):
        raise FeatureNotSupported("arrays that do not begin at 1 are not supported")
    return value


def dimensions(value: list[Any]) -> list[int]:
    """Return the length of each dimension: [[1, 2, 3]] -> [1, 3]; the empty array has none."""
    result = []
    item: Any = value
    while isinstance(item, list) and item:
        result.append(len(item))
        item = item[0]
    return result


def flat(value: list[Any]) -> Iterator[Any]:
    """Yield all elements."""
    for item in value:
        if isinstance(item, list):
            yield from flat(item)
        else:
            yield item


def sort_key(value: list[Any], key: Key) -> tuple[Any, ...]:
    """Return a key that sorts like array_cmp: by elements (NULL last), then by the number of
    elements, then by dimensions.
    """
    items = tuple((1,) if item is None else (0, key(item)) for item in flat(value))
    return items, len(items), len(dimensions(value)), dimensions(value)


def _bound(value: list[Any], dimension: int) -> int | None:
    sizes = dimensions(value)
    return sizes[dimension - 1] if 1 <= dimension <= len(sizes) else None


def _concat(a: list[Any] | None, b: list[Any] | None) -> list[Any] | None:
    if a is None or b is None:
        return b if a is None else a
    if not a or not b:
        return a or b
    sizes_a, sizes_b = dimensions(a), dimensions(b)
    if len(sizes_a) == len(sizes_b) and sizes_a[1:] == sizes_b[1:]:
        return a + b
    if sizes_a[1:] == sizes_b:
        return [*a, b]
    if sizes_b[1:] == sizes_a:
        return [a, *b]
    if abs(len(sizes_a) - len(sizes_b)) > 1:
        what = f"Arrays of {len(sizes_a)} and {len(sizes_b)} dimensions"
    elif len(sizes_a) == len(sizes_b):
        what = "Arrays with differing element dimensions"
    else:
        what = "Arrays with differing dimensions"
    raise ArraySubscriptError(
        "cannot concatenate incompatible arrays",
        detail=f"{what} are not compatible for concatenation.",
    )


def _one_dimension(value: list[Any], what: str) -> None:
    if len(dimensions(value)) > 1:
        raise FeatureNotSupported(what)


def _append(value: list[Any] | None, item: Any) -> list[Any]:
    if value and len(dimensions(value)) > 1:
        raise DataError("argument must be empty or one-dimensional array")
    return [*(value or []), item]


def _prepend(item: Any, value: list[Any] | None) -> list[Any]:
    if value and len(dimensions(value)) > 1:
        raise DataError("argument must be empty or one-dimensional array")
    return [item, *(value or [])]


def _dims(value: list[Any]) -> str | None:
    return "".join(f"[1:{size}]" for size in dimensions(value)) or None


def check_dimensions(count: int) -> None:
    """Check the number of an array's dimensions.

    Raises:
        ProgramLimitExceeded: the number is too large (54000).
    """
    if count > MAX_DIMENSIONS:
        raise ProgramLimitExceeded(
            f"number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})"
        )


def _fill(item: Any, sizes: list[Any] | None) -> list[Any]:
    if sizes is None:
        raise NullValueNotAllowed("dimension array or low bound array cannot be null")
    _check_fill(sizes)
    check_dimensions(len(sizes))
    if any(size < 0 for size in sizes) or math.prod(sizes) > MAX_SIZE:
        raise ProgramLimitExceeded(f"array size exceeds the maximum allowed ({MAX_SIZE})")
    if not sizes or not all(sizes):
        return []
    result: Any = item
    for size in reversed(sizes):
        result = [result] * size
    return result  # type: ignore[no-any-return]


def _check_fill(numbers: list[Any]) -> None:
    """Check array_fill()'s array of sizes or of lower bounds."""
    if len(dimensions(numbers)) > 1:
        raise ArraySubscriptError(
            "wrong number of array subscripts", detail="Dimension array must be one dimensional."
        )
    if any(number is None for number in numbers):
        raise NullValueNotAllowed("dimension values cannot be null")


def _fill_from(item: Any, sizes: list[Any] | None, lower: list[Any] | None) -> list[Any]:
    """Implement array_fill() with lower bounds, which must be 1."""
    if sizes is None or lower is None:
        raise NullValueNotAllowed("dimension array or low bound array cannot be null")
    result = _fill(item, sizes)
    _check_fill(lower)
    if len(lower) != len(sizes):
        raise ArraySubscriptError(
            "wrong number of array subscripts",
            detail="Low bound array has different size than dimensions array.",
        )
    if result:
        _check_begins_at_1(lower)
    return result


def _trim(value: list[Any], count: int) -> list[Any]:
    if not 0 <= count <= len(value):
        raise ArraySubscriptError(f"number of elements to trim must be between 0 and {len(value)}")
    return value[: len(value) - count]


class _Keyed:
    """Functions that compare the elements of arrays with a key."""

    def __init__(self, key: Key) -> None:
        self._key = key

    def _same(self, a: Any, b: Any) -> bool:
        """Return whether two elements are equal; NULL equals NULL."""
        if a is None or b is None:
            return a is None and b is None
        return bool(self._key(a) == self._key(b))

    def position(self, value: list[Any] | None, item: Any, start: int | None = 1) -> int | None:
        if value is None:
            return None
        _one_dimension(value, "searching for elements in multidimensional arrays is not supported")
        if not value or (item is None and None not in value):
            return None
        if start is None:
            raise NullValueNotAllowed("initial position must not be null")
        for i, element in enumerate(value, start=1):
            if i >= start and self._same(element, item):
                return i
        return None

    def positions(self, value: list[Any] | None, item: Any) -> list[int] | None:
        if value is None:
            return None
        _one_dimension(value, "searching for elements in multidimensional arrays is not supported")
        return [i for i, element in enumerate(value, start=1) if self._same(element, item)]

    def remove(self, value: list[Any] | None, item: Any) -> list[Any] | None:
        if value is None:
            return None
        _one_dimension(value, "removing elements from multidimensional arrays is not supported")
        return [element for element in value if not self._same(element, item)]

    def replace(self, value: list[Any] | None, old: Any, new: Any) -> list[Any] | None:
        if value is None:
            return None
        return [
            self.replace(item, old, new)
            if isinstance(item, list)
            else (new if self._same(item, old) else item)
            for item in value
        ]

    def contains(self, a: list[Any], b: list[Any]) -> bool:
        """Return whether `a` contains all elements of `b`; False if an element of `b` is NULL."""
        mine = [self._key(item) for item in flat(a) if item is not None]
        return all(item is not None and self._key(item) in mine for item in flat(b))

    def contained(self, a: list[Any], b: list[Any]) -> bool:
        return self.contains(b, a)

    def overlap(self, a: list[Any], b: list[Any]) -> bool:
        mine = [self._key(item) for item in flat(a) if item is not None]
        return any(item is not None and self._key(item) in mine for item in flat(b))

    def width_bucket(self, operand: Any, thresholds: list[Any]) -> int:
        """Return the number of sorted thresholds that are not greater than `operand`."""
        if len(dimensions(thresholds)) > 1:
            raise ArraySubscriptError("thresholds must be one-dimensional array")
        if any(item is None for item in thresholds):
            raise NullValueNotAllowed("thresholds array must not contain NULLs")
        return bisect_right(thresholds, self._key(operand), key=self._key)

    def larger(self, a: list[Any], b: list[Any]) -> list[Any]:
        return a if sort_key(a, self._key) > sort_key(b, self._key) else b

    def smaller(self, a: list[Any], b: list[Any]) -> list[Any]:
        return a if sort_key(a, self._key) < sort_key(b, self._key) else b


def _to_text(element: str) -> Callable[..., str | None]:
    """Return array_to_string() for arrays of an element type."""

    def apply(
        value: list[Any] | None, delimiter: str | None, null: str | None = None
    ) -> str | None:
        if value is None or delimiter is None:
            return None
        shown = [null if item is None else type_text.render(element, item) for item in flat(value)]
        return delimiter.join(item for item in shown if item is not None)

    return apply


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "array_append": _append,
    "array_prepend": _prepend,
    "array_cat": _concat,
    "array_length": _bound,
    "array_upper": _bound,
    "array_lower": lambda value, dimension: None if _bound(value, dimension) is None else 1,
    "array_ndims": lambda value: len(dimensions(value)) or None,
    "array_dims": _dims,
    "array_cardinality": lambda value: sum(1 for _item in flat(value)),
    "array_fill": _fill,
    "array_fill_with_lower_bounds": _fill_from,
    "trim_array": _trim,
}

#: Functions that compare elements, by their names in pg_proc.prosrc.  They need the elements' key.
KEYED: dict[str, Callable[[Key], Callable[..., Any]]] = {
    "array_position": lambda key: _Keyed(key).position,
    "array_position_start": lambda key: _Keyed(key).position,
    "array_positions": lambda key: _Keyed(key).positions,
    "array_remove": lambda key: _Keyed(key).remove,
    "array_replace": lambda key: _Keyed(key).replace,
    "arraycontains": lambda key: _Keyed(key).contains,
    "arraycontained": lambda key: _Keyed(key).contained,
    "arrayoverlap": lambda key: _Keyed(key).overlap,
    "width_bucket_array": lambda key: _Keyed(key).width_bucket,
    "array_larger": lambda key: _Keyed(key).larger,
    "array_smaller": lambda key: _Keyed(key).smaller,
}

#: Functions that print elements, by their names in pg_proc.prosrc.  They need the elements' type.
PRINTING: dict[str, Callable[[str], Callable[..., Any]]] = {
    "array_to_text": _to_text,
    "array_to_text_null": _to_text,
}


def subscript(value: list[Any], indexes: list[int]) -> Any:
    """Return value[i][j]; NULL outside of the array, or if the number of dimensions differs."""
    if len(indexes) != len(dimensions(value)):
        return None
    item: Any = value
    for index in indexes:
        if not 1 <= index <= len(item):
            return None
        item = item[index - 1]
    return item


def array_slice(value: list[Any], lower: int | None, upper: int | None) -> list[Any]:
    """Return value[lower:upper] by the first dimension; keep the others complete."""
    return value[max(lower or 1, 1) - 1 : max(len(value) if upper is None else upper, 0)]


def with_element(value: Any, indexes: list[int], new: Any) -> list[Any]:
    """Return an array in which one element is `new`.  An array of one dimension grows, and NULL
    fills the gap (array_set_element).

    Raises:
        ArraySubscriptError: the number of subscripts is wrong, or one is out of range (2202E).
        ProgramLimitExceeded: the array would be too large (54000).
        FeatureNotSupported: the array would not begin at 1.
    """
    value = plain(value)
    sizes = dimensions(value)
    if not sizes:
        _check_begins_at_1(indexes)
        item: Any = new
        for _index in indexes:
            item = [item]
        return item  # type: ignore[no-any-return]
    _check_number(len(indexes), sizes, is_slice=False)
    if len(sizes) == 1:
        return _spliced(value, indexes[0], indexes[0], [new])
    if any(not 1 <= index <= size for index, size in zip(indexes, sizes, strict=True)):
        raise ArraySubscriptError("array subscript out of range")
    return _nested(value, [range(index - 1, index) for index in indexes], iter([new]))


def with_slice(value: Any, lower: list[int | None], upper: list[int | None], new: Any) -> list[Any]:
    """Return an array in which a slice has the elements of `new`, row by row.  If `new` is NULL,
    the array does not change (array_set_slice).

    Args:
        lower, upper: the bounds of each dimension; None if omitted.

    Raises:
        The errors of `with_element`.
    """
    value = plain(value)
    if new is None:
        return value  # type: ignore[no-any-return]
    source, sizes = list(flat(plain(new))), dimensions(value)
    if not sizes:
        return _new_slice(lower, upper, source)
    _check_number(len(upper), sizes, is_slice=True)
    bounds = [
        (1 if low is None else low, size if up is None else up)
        for low, up, size in zip(lower, upper, sizes, strict=False)
    ]
    bounds += [(1, size) for size in sizes[len(bounds) :]]
    if any(low > up for low, up in bounds):
        raise ArraySubscriptError("upper bound cannot be less than lower bound")
    if len(sizes) == 1:
        ((low, up),) = bounds
        _check_size(max(up, len(value)) - min(low, 1) + 1)
        _check_source(source, up - low + 1)
        return _spliced(value, low, up, source[: up - low + 1])
    if any(low < 1 or up > size for (low, up), size in zip(bounds, sizes, strict=True)):
        raise ArraySubscriptError("array subscript out of range")
    _check_source(source, math.prod(up - low + 1 for low, up in bounds))
    return _nested(value, [range(low - 1, up) for low, up in bounds], iter(source))


def _new_slice(lower: list[int | None], upper: list[int | None], source: list[Any]) -> list[Any]:
    """Return the array of a slice that is assigned to an empty array."""
    bounds = []
    for low, up in zip(lower, upper, strict=True):
        if low is None or up is None:
            raise ArraySubscriptError(
                "array slice subscript must provide both boundaries",
                detail="When assigning to a slice of an empty array value, slice boundaries must be"
                " fully specified.",
            )
        bounds.append((low, up))
    sizes = [up - low + 1 for low, up in bounds]
    for size in (*sizes, math.prod(sizes)):
        _check_size(size)
    _check_source(source, math.prod(sizes))
    if not all(sizes):
        return []
    _check_begins_at_1([low for low, _up in bounds])
    items = source[: math.prod(sizes)]
    for size in reversed(sizes[1:]):
        items = [items[i : i + size] for i in range(0, len(items), size)]
    return items


def _spliced(value: list[Any], lower: int, upper: int, new: list[Any]) -> list[Any]:
    """Return an array of one dimension with the elements from `lower` to `upper` replaced."""
    _check_size(max(upper, len(value)) - min(lower, 1) + 1)
    _check_begins_at_1([min(lower, 1)])
    gap = [None] * (lower - 1 - len(value))
    return [*value[: lower - 1], *gap, *new, *value[upper:]]


def _nested(value: list[Any], ranges: list[range], source: Iterator[Any]) -> list[Any]:
    """Return an array with the elements in the ranges of its dimensions replaced."""
    own, *inner = ranges
    copy = list(value)
    for i in own:
        copy[i] = _nested(value[i], inner, source) if inner else next(source)
    return copy


def _check_number(count: int, sizes: list[int], *, is_slice: bool) -> None:
    if count > len(sizes) or (count < len(sizes) and not is_slice):
        raise ArraySubscriptError("wrong number of array subscripts")


def _check_source(source: list[Any], count: int) -> None:
    if len(source) < count:
        raise ArraySubscriptError("source array too small")


def _check_size(count: int) -> None:
    if not 0 <= count <= MAX_SIZE:
        raise ProgramLimitExceeded(f"array size exceeds the maximum allowed ({MAX_SIZE})")


def _check_begins_at_1(lower: list[int]) -> None:
    if any(bound != 1 for bound in lower):
        raise FeatureNotSupported("arrays that do not begin at 1 are not supported")
