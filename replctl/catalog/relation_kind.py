"""Name the letters that pg_class and pg_constraint have for kinds of relations and constraints.

Each member is the letter itself, so that it goes into the catalog, and comes from it, unchanged.
"""

from __future__ import annotations

from enum import StrEnum


class RelKind(StrEnum):
    """The kind of a relation (pg_class.relkind)."""

    TABLE = "r"
    PARTITIONED_TABLE = "p"
    INDEX = "i"
    PARTITIONED_INDEX = "I"
    SEQUENCE = "S"
    VIEW = "v"
    MATERIALIZED_VIEW = "m"
    COMPOSITE_TYPE = "c"
    FOREIGN_TABLE = "f"

    @property
    def plural(self) -> str:
        """Return the word for relations of the kind in errors (errdetail_relkind_not_supported in
        catalog/pg_class.c).
        """
        return _PLURAL[self]


_PLURAL = {
    RelKind.TABLE: "tables",
    RelKind.INDEX: "indexes",
    RelKind.SEQUENCE: "sequences",
    RelKind.VIEW: "views",
    RelKind.MATERIALIZED_VIEW: "materialized views",
    RelKind.COMPOSITE_TYPE: "composite types",
    RelKind.FOREIGN_TABLE: "foreign tables",
    RelKind.PARTITIONED_TABLE: "partitioned tables",
    RelKind.PARTITIONED_INDEX: "partitioned indexes",
}


class RelPersistence(StrEnum):
    """How long the rows of a relation last (pg_class.relpersistence)."""

    PERMANENT = "p"
    UNLOGGED = "u"
    TEMPORARY = "t"


class ConstraintKind(StrEnum):
    """The kind of a constraint (pg_constraint.contype)."""

    CHECK = "c"
    FOREIGN_KEY = "f"
    PRIMARY_KEY = "p"
    UNIQUE = "u"


class ReplicaIdentity(StrEnum):
    """Which columns identify a relation's old rows for subscribers (pg_class.relreplident)."""

    DEFAULT = "d"
    NOTHING = "n"
    FULL = "f"
    INDEX = "i"
