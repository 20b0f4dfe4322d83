"""point, lseg, box, path, polygon, line and circle: a value is its canonical text (PostgreSQL's
geo_ops.c).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from replctl.errors import InvalidTextRepresentation, NumericValueOutOfRange
from replctl.types.floating import float8_prefix, float8out
from replctl.types.text_form import BLANKS, text_form

Point: TypeAlias = tuple[float, float]

EPSILON = 1e-6  # numbers that differ by at most this are equal


def point_in(text: str) -> str:
    """Parse a point: ` ( 1 , 2.0 )` -> `(1,2)`.

    Raises:
        InvalidTextRepresentation: `text` is not a point.
        NumericValueOutOfRange: a number overflows.
    """
    reader = _Reader(text, "point")
    point = reader.point()
    reader.end()
    return _point_text(point)


def lseg_in(text: str) -> str:
    """Parse a line segment: `1,2,3,4` -> `[(1,2),(3,4)]`.

    Raises:
        InvalidTextRepresentation, NumericValueOutOfRange: see point_in.
    """
    reader = _Reader(text, "lseg")
    points, _ = reader.points(2, may_be_open=True)
    reader.end()
    return f"[{_points_text(points)}]"


def box_in(text: str) -> str:
    """Parse a box, and put the upper right corner first: `(1,2),(3,4)` -> `(3,4),(1,2)`.

    Raises:
        InvalidTextRepresentation, NumericValueOutOfRange: see point_in.
    """
    reader = _Reader(text, "box")
    points, _ = reader.points(2, may_be_open=False)
    reader.end()
    (high_x, low_x), (high_y, low_y) = (
        sorted(numbers, key=_order, reverse=True) for numbers in zip(*points, strict=True)
    )
    return _points_text([(high_x, high_y), (low_x, low_y)])


def path_in(text: str) -> str:
    """Parse a path, open or closed: `[1,2,3,4]`, `1,2,3,4` -> `[(1,2),(3,4)]`, `((1,2),(3,4))`.

    Raises:
        InvalidTextRepresentation, NumericValueOutOfRange: see point_in.
    """
    reader = _Reader(text, "path")
    count = reader.count_points()
    has_parenthesis = reader.skip_only_parenthesis()
    points, is_open = reader.points(count, may_be_open=True)
    if has_parenthesis:
        reader.expect(")")
        reader.skip_blanks()
    reader.end()
    return f"[{_points_text(points)}]" if is_open else f"({_points_text(points)})"


def poly_in(text: str) -> str:
    """Parse a polygon: `1,2,3,4` -> `((1,2),(3,4))`.

    Raises:
        InvalidTextRepresentation, NumericValueOutOfRange: see point_in.
    """
    reader = _Reader(text, "polygon")
    points, _ = reader.points(reader.count_points(), may_be_open=False)
    reader.end()
    return f"({_points_text(points)})"


def line_in(text: str) -> str:
    """Parse a line Ax + By + C = 0: `{1,2,3}`, `(0,0),(1,2)` -> `{1,2,3}`, `{2,-1,0}`.

    Raises:
        InvalidTextRepresentation: `text` is not a line, or its points are equal.
        NumericValueOutOfRange: a number overflows.
    """
    reader = _Reader(text, "line")
    reader.skip_blanks()
    if reader.skip("{"):
        a = reader.number()
        reader.expect(",")
        b = reader.number()
        reader.expect(",")
        c = reader.number()
        reader.expect("}")
        reader.skip_blanks()
        reader.end()
        if abs(a) <= EPSILON and abs(b) <= EPSILON:
            raise InvalidTextRepresentation(
                "invalid line specification: A and B cannot both be zero"
            )
    else:
        (first, second), _ = reader.points(2, may_be_open=True)
        reader.end()
        a, b, c = _line_through(first, second)
    return f"{{{float8out(a)},{float8out(b)},{float8out(c)}}}"


def circle_in(text: str) -> str:
    """Parse a circle: `1,2,3`, `((1,2),3)` -> `<(1,2),3>`.

    Raises:
        InvalidTextRepresentation: `text` is not a circle, or its radius is negative.
        NumericValueOutOfRange: a number overflows.
    """
    reader = _Reader(text, "circle")
    reader.skip_blanks()
    closing = ""
    if reader.skip("<") or reader.skip_first_of_two_parentheses():
        closing = ")>"
    center = reader.point()
    reader.skip(",")
    radius = reader.number()
    if radius < 0:
        raise reader.error()
    if closing:
        reader.expect(closing)
        reader.skip_blanks()
    reader.end()
    return f"<{_point_text(center)},{float8out(radius)}>"


class _Reader:
    """Reads numbers and points.  Every error is a syntax error that quotes the whole literal."""

    def __init__(self, text: str, type_name: str) -> None:
        self._text = text
        self._type_name = type_name
        self._position = 0

    def error(self) -> InvalidTextRepresentation:
        return InvalidTextRepresentation(
            f'invalid input syntax for type {self._type_name}: "{self._text}"'
        )

    def end(self) -> None:
        if self._position < len(self._text):
            raise self.error()

    def skip_blanks(self) -> None:
        while self._peek() and self._peek() in BLANKS:
            self._position += 1

    def skip(self, char: str) -> bool:
        """Skip this character if it comes next, and return whether it did."""
        if self._peek() != char:
            return False
        self._position += 1
        return True

    def expect(self, chars: str) -> None:
        """Skip one of these characters, or raise an error."""
        char = self._peek()
        if not char or char not in chars:
            raise self.error()
        self._position += 1

    def number(self) -> float:
        rest = self._text[self._position :]
        number, end = float8_prefix(rest, self._type_name, self._text)
        self._position += end
        self.skip_blanks()
        return number

    def point(self) -> Point:
        self.skip_blanks()
        has_parenthesis = self.skip("(")
        x = self.number()
        self.expect(",")
        y = self.number()
        if has_parenthesis:
            self.expect(")")
            self.skip_blanks()
        return x, y

    def points(self, count: int, may_be_open: bool) -> tuple[list[Point], bool]:
        """Read `count` points, which may be in parentheses, or in brackets if `may_be_open`."""
        self.skip_blanks()
        is_open = self._peek() == "["
        if is_open and not may_be_open:
            raise self.error()
        closing = ""
        if is_open:
            self._position += 1
            closing = ")]"
        elif self.skip_first_of_two_parentheses() or self.skip_only_parenthesis():
            closing = ")"
        points = []
        for _ in range(count):
            points.append(self.point())
            self.skip(",")
        if closing:
            self.expect(closing)
            self.skip_blanks()
        return points, is_open

    def count_points(self) -> int:
        """Return the number of points in the whole literal: each point has a comma, and a comma
        separates two points.
        """
        commas = self._text.count(",")
        if commas % 2 == 0:
            raise self.error()
        return (commas + 1) // 2

    def skip_first_of_two_parentheses(self) -> bool:
        """Skip the first parenthesis of a text such as `((1,2)`.  The second one belongs to the
        point.
        """
        rest = self._text[self._position :]
        if not rest.startswith("(") or not rest[1:].lstrip(BLANKS).startswith("("):
            return False
        self._position += 1
        self.skip_blanks()
        return True

    def skip_only_parenthesis(self) -> bool:
        """Skip the only parenthesis of a text such as `(1,2,3,4)`, which belongs to all points."""
        self.skip_blanks()
        if self._peek() != "(" or self._text.rindex("(") != self._position:
            return False
        self._position += 1
        return True

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]


def _line_through(first: Point, second: Point) -> tuple[float, float, float]:
    if _are_equal_points(first, second):
        raise InvalidTextRepresentation("invalid line specification: must be two distinct points")
    slope = _slope(first, second)
    if math.isinf(slope):
        return -1.0, 0.0, first[0]
    if slope == 0:
        return 0.0, -1.0, first[1]
    product = _checked(slope * first[0], slope, first[0])
    if product == 0 and first[0] != 0:
        raise NumericValueOutOfRange("value out of range: underflow")
    return slope, -1.0, _difference(first[1], product) + 0.0  # no negative zero


def _slope(first: Point, second: Point) -> float:
    if _are_equal(first[0], second[0]):
        return math.inf
    if _are_equal(first[1], second[1]):
        return 0.0
    rise, run = _difference(first[1], second[1]), _difference(first[0], second[0])
    return _checked(rise / run, rise, run)


def _are_equal(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= EPSILON


def _are_equal_points(first: Point, second: Point) -> bool:
    if any(map(math.isnan, (*first, *second))):
        return all(
            a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(first, second, strict=True)
        )
    return _are_equal(first[0], second[0]) and _are_equal(first[1], second[1])


def _difference(a: float, b: float) -> float:
    return _checked(a - b, a, b)


def _checked(result: float, *operands: float) -> float:
    if math.isinf(result) and not any(map(math.isinf, operands)):
        raise NumericValueOutOfRange("value out of range: overflow")
    return result


def _order(number: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(number) else (False, number)  # NaN is the largest number


def _point_text(point: Point) -> str:
    return f"({float8out(point[0])},{float8out(point[1])})"


def _points_text(points: list[Point]) -> str:
    return ",".join(map(_point_text, points))


_INPUTS: dict[str, Callable[[str], str]] = {
    "point": point_in,
    "lseg": lseg_in,
    "box": box_in,
    "path": path_in,
    "polygon": poly_in,
    "line": line_in,
    "circle": circle_in,
}

FORMS = {name: text_form(read, str) for name, read in _INPUTS.items()}
