"""Name the letters that pg_type and pg_cast have for kinds and properties of types and casts.

Each member is the letter itself, so that it goes into the catalog, and comes from it, unchanged.
"""

from __future__ import annotations

from enum import StrEnum


class TypeKind(StrEnum):
    """The kind of a type (pg_type.typtype)."""

    BASE = "b"
    COMPOSITE = "c"  # also the row type of a table
    DOMAIN = "d"
    ENUM = "e"
    MULTIRANGE = "m"
    PSEUDO = "p"
    RANGE = "r"

    @property
    def has_operator_classes(self) -> bool:
        """Return whether all types of the kind share operator classes, such as those of anyenum."""
        return self in (TypeKind.ENUM, TypeKind.RANGE, TypeKind.MULTIRANGE)


class TypeCategory(StrEnum):
    """The category of a type, which decides between candidates for a call (pg_type.typcategory)."""

    ARRAY = "A"
    BOOLEAN = "B"
    COMPOSITE = "C"
    DATETIME = "D"
    ENUM = "E"
    GEOMETRIC = "G"
    NETWORK = "I"
    NUMERIC = "N"
    PSEUDOTYPE = "P"
    RANGE = "R"
    STRING = "S"
    TIMESPAN = "T"
    USER = "U"
    BITSTRING = "V"
    UNKNOWN = "X"
    INTERNAL = "Z"


class TypeAlign(StrEnum):
    """The alignment of a type's values in a row (pg_type.typalign)."""

    CHAR = "c"
    SHORT = "s"
    INT = "i"
    DOUBLE = "d"


class TypeStorage(StrEnum):
    """The way in which PostgreSQL stores large values of a type or a column (pg_type.typstorage,
    pg_attribute.attstorage).
    """

    PLAIN = "p"
    EXTERNAL = "e"
    EXTENDED = "x"
    MAIN = "m"


class ToastCompression(StrEnum):
    """The method by which PostgreSQL compresses large values (pg_attribute.attcompression)."""

    PGLZ = "p"
    LZ4 = "l"


class CoercionCode(StrEnum):
    """The contexts in which PostgreSQL applies a cast that is not written (pg_cast.castcontext)."""

    IMPLICIT = "i"
    ASSIGNMENT = "a"
    EXPLICIT = "e"  # only where it is written


class CastMethod(StrEnum):
    """The method by which a cast converts a value (pg_cast.castmethod)."""

    FUNCTION = "f"
    BINARY = "b"  # the stored values of both types are the same
    INOUT = "i"  # with the output function of one type and the input function of the other
