"""Facts about types for the analysis, by internal name (PostgreSQL's lsyscache.c)."""

from __future__ import annotations

from typing import Protocol

from replctl.expr.environment import Column, Environment, element_of
from replctl.types.builtin import Type
from replctl.types.type_kind import TypeCategory, TypeKind

#: The type of the bounds of each range type (pg_range).
_RANGE_SUBTYPES = {
    "int4range": "int4",
    "int8range": "int8",
    "numrange": "numeric",
    "daterange": "date",
    "tsrange": "timestamp",
    "tstzrange": "timestamptz",
}
#: The range type of each multirange type (pg_range).
_MULTIRANGES = {name.replace("range", "multirange"): name for name in _RANGE_SUBTYPES}


class TypeFacts:
    """The types of an environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def get(self, name: str) -> Type:
        """Return the row of a type in pg_type."""
        return self._environment.type(name)

    def category(self, name: str) -> TypeCategory:
        """Return the category of a type (typcategory)."""
        return self.get(name).category

    def base(self, name: str) -> str:
        """Return the innermost base type of a domain; return other types unchanged."""
        return self.base_and_typmod(name, -1)[0]

    def base_and_typmod(self, name: str, typmod: int) -> tuple[str, int]:
        """Return the innermost base type of a domain and its modifier; other types unchanged."""
        type_ = self.get(name)
        while type_.kind == TypeKind.DOMAIN:
            name, typmod = self._environment.domain_base(type_)
            type_ = self.get(name)
        return name, typmod

    def element(self, name: str) -> str | None:
        """Return the element type of a true array, int2vector or oidvector; None for other
        types.
        """
        return element_of(self.get(name))

    def base_element(self, name: str) -> str | None:
        """Return the element type of an array, or of a domain over an array."""
        return self.element(self.base(name))

    def array(self, name: str) -> str | None:
        """Return the array type whose elements have this type."""
        return self.get(name).array

    def is_array(self, name: str) -> bool:
        """Return whether a type is a true array."""
        return self.element(name) is not None

    def is_enum(self, name: str) -> bool:
        """Return whether a type is an enum."""
        return self.get(name).kind == TypeKind.ENUM

    def is_complex(self, name: str) -> bool:
        """Return whether a type is composite, or a domain over a composite type (ISCOMPLEX)."""
        return self.columns(name) is not None

    def is_row(self, name: str) -> bool:
        """Return whether values of a type are rows, with or without known columns
        (type_is_rowtype)."""
        return name == "record" or self.is_complex(name)

    def columns(self, name: str) -> tuple[Column, ...] | None:
        """Return the fields of a composite type or of a domain over one; None for other types."""
        type_ = self.get(self.base(name))
        return self._environment.columns(type_) if type_.kind == TypeKind.COMPOSITE else None

    def contained(self, name: str) -> frozenset[str]:
        """Return the types of a value and of all its parts: elements, fields and their parts."""
        type_ = self.get(name)
        inner = [column.type for column in self.columns(name) or ()]
        if type_.kind == TypeKind.DOMAIN:
            inner.append(self._environment.domain_base(type_)[0])
        element = element_of(type_)
        inner += [] if element is None else [element]
        return frozenset((name,)).union(*map(self.contained, inner))

    def range_subtype(self, name: str) -> str | None:
        """Return the type of a range's bounds."""
        return _RANGE_SUBTYPES.get(name)

    def multirange_range(self, name: str) -> str | None:
        """Return the range type of a multirange."""
        return _MULTIRANGES.get(name)

    def range_multirange(self, name: str) -> str | None:
        """Return the multirange type of a range type."""
        return next((multi for multi, range_ in _MULTIRANGES.items() if range_ == name), None)

    def collation(self, name: str) -> str | None:
        """Return the default collation of the type's values."""
        return self.get(name).collation

    def is_collatable(self, name: str) -> bool:
        """Return whether values of a type can have a collation."""
        return self.get(name).collation is not None

    def format(self, name: str) -> str:
        """Return the type's name in messages (format_type_be)."""
        return self._environment.format_type(name)


class ImplicitCasts(Protocol):
    """Finds out which types can be cast implicitly."""

    environment: Environment
    types: TypeFacts

    def can_coerce_implicitly(self, source: str, target: str) -> bool:
        """Return whether `source` can be cast to `target` implicitly."""
