"""Build the nodes of types and names in expression.lark."""

from __future__ import annotations

import dataclasses
from typing import cast

from lark import Token

from replctl.errors import InvalidParameterValue, ReservedName
from replctl.parser import ast
from replctl.parser.build_parts import (
    integer_constant,
    names_only,
    relation_name,
    start_of,
    system_name,
)

#: Bits of an interval's fields in its type modifier (INTERVAL_MASK in timestamp.h).
INTERVAL_BITS = {"year": 2, "month": 1, "day": 3, "hour": 10, "minute": 11, "second": 12}
_INTERVAL_ORDER = ("year", "month", "day", "hour", "minute", "second")
INTERVAL_FULL_RANGE = 0x7FFF


class TypeBuilder:
    """Builds the nodes of types and names.  Each rule or alias has a method."""

    def typename(self, base: ast.TypeName, bounds: tuple[int, ...] = ()) -> ast.TypeName:
        return dataclasses.replace(base, array_bounds=bounds) if bounds else base

    def typename_array(self, base: ast.TypeName, bound: Token | None = None) -> ast.TypeName:
        return dataclasses.replace(base, array_bounds=(-1 if bound is None else int(bound),))

    def typename_setof_array(self, base: ast.TypeName, bound: Token | None = None) -> ast.TypeName:
        return dataclasses.replace(self.typename_array(base, bound), is_setof=True)

    def typename_setof(self, base: ast.TypeName, bounds: tuple[int, ...] = ()) -> ast.TypeName:
        return dataclasses.replace(base, array_bounds=bounds, is_setof=True)

    def array_bounds(self, *bounds: int) -> tuple[int, ...]:
        return bounds

    def array_bound(self, bound: Token | None = None) -> int:
        return -1 if bound is None else int(bound)

    def type_attrs(self, *names: Token) -> tuple[Token, ...]:
        return names

    def type_modifiers(self, modifiers: tuple[ast.RawExpr, ...]) -> tuple[ast.RawExpr, ...]:
        return modifiers

    def generic_type(
        self, name: Token, *rest: tuple[Token, ...] | tuple[ast.RawExpr, ...] | None
    ) -> ast.TypeName:
        *attrs, modifiers = rest
        names = (name, *(attrs[0] if attrs and attrs[0] else ()))
        return ast.TypeName(
            tuple(map(str, names)),
            cast("tuple[ast.RawExpr, ...]", modifiers or ()),
            pos=start_of(name),
        )

    def _type(
        self, word: Token, name: str, modifiers: tuple[ast.RawExpr, ...] = ()
    ) -> ast.TypeName:
        return ast.TypeName(system_name(name), modifiers, pos=start_of(word))

    def type_int4(self, word: Token) -> ast.TypeName:
        return self._type(word, "int4")

    def type_int2(self, word: Token) -> ast.TypeName:
        return self._type(word, "int2")

    def type_int8(self, word: Token) -> ast.TypeName:
        return self._type(word, "int8")

    def type_float4(self, word: Token) -> ast.TypeName:
        return self._type(word, "float4")

    def type_float8(self, word: Token) -> ast.TypeName:
        return self._type(word, "float8")

    def type_float(self, word: Token, precision: Token | None) -> ast.TypeName:
        if precision is None:
            return self._type(word, "float8")
        bits = int(precision)
        if bits < 1:
            raise InvalidParameterValue(
                "precision for type float must be at least 1 bit", position=start_of(precision)
            )
        if bits > 53:
            raise InvalidParameterValue(
                "precision for type float must be less than 54 bits", position=start_of(precision)
            )
        return self._type(word, "float4" if bits <= 24 else "float8")

    def type_numeric(self, word: Token, modifiers: tuple[ast.RawExpr, ...] | None) -> ast.TypeName:
        return self._type(word, "numeric", modifiers or ())

    def type_bool(self, word: Token) -> ast.TypeName:
        return self._type(word, "bool")

    def type_json(self, word: Token) -> ast.TypeName:
        return self._type(word, "json")

    def type_bit(self, word: Token, length: tuple[ast.RawExpr, ...] | None) -> ast.TypeName:
        return self._type(word, "bit", length or (ast.Constant("integer", "1"),))

    def type_varbit(self, word: Token, length: tuple[ast.RawExpr, ...] | None) -> ast.TypeName:
        return self._type(word, "varbit", length or ())

    def character_type(self, *words: Token | None) -> tuple[Token, bool]:
        present = [word for word in words if word is not None]
        return present[0], present[-1].type in ("VARYING", "VARCHAR")

    def type_character(self, kind: tuple[Token, bool], length: Token | None) -> ast.TypeName:
        word, is_varying = kind
        modifiers = () if length is None else (integer_constant(length),)
        if is_varying:
            return self._type(word, "varchar", modifiers)
        return self._type(word, "bpchar", modifiers or (ast.Constant("integer", "1"),))

    def time_zone(self, word: Token, *rest: Token) -> bool:
        return word.type == "WITH_LA"

    def _datetime(
        self, word: Token, name: str, precision: Token | None, with_zone: bool | None
    ) -> ast.TypeName:
        modifiers = () if precision is None else (integer_constant(precision),)
        return self._type(word, f"{name}tz" if with_zone else name, modifiers)

    def type_timestamp(
        self, word: Token, precision: Token | None, with_zone: bool | None
    ) -> ast.TypeName:
        return self._datetime(word, "timestamp", precision, with_zone)

    def type_time(
        self, word: Token, precision: Token | None, with_zone: bool | None
    ) -> ast.TypeName:
        return self._datetime(word, "time", precision, with_zone)

    def interval_second(self, word: Token, *rest: Token) -> tuple[Token, ...]:
        return (word, *rest)

    def interval_fields(self, *words: Token | tuple[Token, ...]) -> tuple[ast.RawExpr, ...]:
        """Return the modifiers of `DAY TO SECOND(3)`: a mask of fields and, if given, the
        precision.
        """
        flat = [w for word in words for w in (word if isinstance(word, tuple) else (word,))]
        names = [str(word) for word in flat if word.type not in ("TO", "LPAR", "RPAR", "ICONST")]
        first, last = _INTERVAL_ORDER.index(names[0]), _INTERVAL_ORDER.index(names[-1])
        mask = sum(1 << INTERVAL_BITS[field] for field in _INTERVAL_ORDER[first : last + 1])
        precision = [word for word in flat if word.type == "ICONST"]
        mask_constant = ast.Constant("integer", str(mask), pos=start_of(flat[0]))
        return (mask_constant, *map(integer_constant, precision))

    def interval_type(self, word: Token, fields: tuple[ast.RawExpr, ...] | None) -> ast.TypeName:
        return self._type(word, "interval", fields or ())

    def interval_type_precision(self, word: Token, precision: Token) -> ast.TypeName:
        full_range = ast.Constant("integer", str(INTERVAL_FULL_RANGE))
        return self._type(word, "interval", (full_range, integer_constant(precision)))

    # -- names

    def any_name(self, *parts: Token) -> tuple[Token, ...]:
        return parts

    def any_name_list(self, *names: tuple[Token, ...]) -> tuple[tuple[Token, ...], ...]:
        return names

    def role_name(self, name: Token) -> Token:
        if name == "none":
            raise ReservedName('role name "none" is reserved', position=start_of(name))
        return name

    def name_list(self, *names: Token) -> tuple[Token, ...]:
        return names

    def qualified_name(
        self, name: Token, indirection: tuple[ast.Subscript | Token, ...] | None
    ) -> ast.RangeVar:
        """Return the relation `catalog.schema.name` (makeRangeVarFromQualifiedName in gram.y)."""
        return relation_name((name, *names_only(indirection or ())))

    def qualified_name_list(self, *names: ast.RangeVar) -> tuple[ast.RangeVar, ...]:
        return names
