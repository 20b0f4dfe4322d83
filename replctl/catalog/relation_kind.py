"""Name the letters that pg_class and pg_constraint have for relations and constraints.

Each member is the letter itself, so that it goes into the catalog, and comes from it, unchanged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


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


TABLE_KINDS = (RelKind.TABLE, RelKind.PARTITIONED_TABLE)
INDEX_KINDS = (RelKind.INDEX, RelKind.PARTITIONED_INDEX)
VIEW_KINDS = (RelKind.VIEW, RelKind.MATERIALIZED_VIEW)
#: The kinds of relations that have a Delta table of their own.
WITH_DELTA_TABLE = (RelKind.TABLE, RelKind.MATERIALIZED_VIEW)
#: The kinds of relations whose rows are in Delta tables, their own or those of partitions.
WITH_ROWS = (*TABLE_KINDS, RelKind.MATERIALIZED_VIEW)
#: The kinds of relations that SELECT can read, sequences apart.
READABLE = (*TABLE_KINDS, *VIEW_KINDS)


class RelPersistence(StrEnum):
    """The lifetime of a relation's rows (pg_class.relpersistence)."""

    PERMANENT = "p"
    UNLOGGED = "u"
    TEMPORARY = "t"


class ConstraintKind(StrEnum):
    """The kind of a constraint (pg_constraint.contype)."""

    CHECK = "c"
    FOREIGN_KEY = "f"
    NOT_NULL = "n"  # only of domains
    PRIMARY_KEY = "p"
    UNIQUE = "u"


#: The kinds of constraints that an index enforces.
INDEX_CONSTRAINTS = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)


class _Clause(StrEnum):
    """A letter that stands for words of SQL, such as SET NULL.  The member is named SET_NULL."""

    @classmethod
    def named(cls, clause: str) -> Self:
        """Return the member for its clause in lower case: `set null`."""
        return cls[clause.upper().replace(" ", "_")]

    @property
    def clause(self) -> str:
        """Return the clause in upper case: `SET NULL`."""
        return self.name.replace("_", " ")


class DependencyType(StrEnum):
    """The kind of an object's dependency on another object (pg_depend.deptype)."""

    NONE = ""  # not at all: a sequence that no column owns
    NORMAL = "n"
    AUTO = "a"  # serial columns and OWNED BY
    INTERNAL = "i"  # identity columns


class PartitionStrategy(_Clause):
    """The method by which a table is partitioned (pg_partitioned_table.partstrat)."""

    RANGE = "r"
    LIST = "l"
    HASH = "h"


class Identity(_Clause):
    """The kind of an identity column (pg_attribute.attidentity)."""

    NONE = ""
    ALWAYS = "a"
    BY_DEFAULT = "d"


class Generated(StrEnum):
    """The kind of a generated column (pg_attribute.attgenerated)."""

    NONE = ""
    STORED = "s"


class ForeignKeyAction(_Clause):
    """The effect of DELETE or UPDATE of a referenced row on the rows that refer to it
    (pg_constraint.confdeltype, confupdtype).
    """

    NO_ACTION = "a"
    RESTRICT = "r"
    CASCADE = "c"
    SET_NULL = "n"
    SET_DEFAULT = "d"

    @property
    def changes_rows(self) -> bool:
        """Return whether the action changes the rows that refer to a deleted or updated row."""
        return self not in (ForeignKeyAction.NO_ACTION, ForeignKeyAction.RESTRICT)


class ForeignKeyMatch(StrEnum):
    """The effect of NULL in a part of a foreign key's value (pg_constraint.confmatchtype)."""

    FULL = "f"
    SIMPLE = "s"


class ReplicaIdentity(StrEnum):
    """The columns that identify a relation's old rows for subscribers (pg_class.relreplident)."""

    DEFAULT = "d"
    NOTHING = "n"
    FULL = "f"
    INDEX = "i"
