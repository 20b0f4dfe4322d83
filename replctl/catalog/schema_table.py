"""Build the catalog's tables: metadata, columns, and tables whose rows have versions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, Table, Text

metadata = MetaData()


class _Boolean(Boolean):
    """A Boolean without SQLAlchemy's hooks in the tables of its columns.  Their only use is to add
    CHECK constraints.  Registering them took a tenth of the time that the tables take.
    """

    inherit_cache = True

    def _set_parent(self, parent: object, **_options: object) -> None:
        pass


# Columns share these types, because objects of their own for 480 columns would take time
_INTEGER, _BIG_INTEGER = Integer(), BigInteger()
_TEXT, _FLOAT, BOOLEAN = Text(), Float(), _Boolean()


def versioned(
    name: str, *columns: Column[Any], shared: bool = False, key: tuple[str, ...] = ("oid",)
) -> Table:
    """Return a table whose rows have versions.  The columns `key` identify an object among visible
    rows.
    """
    scope = [] if shared else [Column("dbid", _INTEGER, nullable=False)]
    life = [
        Column("xmin", _INTEGER, nullable=False),
        Column("xmax", _INTEGER, nullable=False, server_default="0"),
    ]
    table = Table(
        name, metadata, *scope, *columns, *life, info={"versioned": True, "shared": shared}
    )
    Index(f"{name}_key_index", *(table.c[column] for column in key), table.c.xmax)
    return table


def oid(name: str = "oid") -> Column[int]:
    """Return a column with the OID of an object."""
    return Column(name, _INTEGER, nullable=False)


def text(name: str, *, nullable: bool = False, default: str | None = None) -> Column[str]:
    """Return a column of texts."""
    return Column(name, _TEXT, nullable=nullable, server_default=default)


def integer(name: str, *, nullable: bool = False, default: int | None = None) -> Column[int]:
    """Return a column of integers of 64 bits."""
    return Column(
        name,
        _BIG_INTEGER,
        nullable=nullable,
        server_default=None if default is None else str(default),
    )


def real(name: str, *, default: float) -> Column[float]:
    """Return a column of floating-point numbers."""
    return Column(name, _FLOAT, nullable=False, server_default=str(default))


def boolean(name: str, *, default: bool = False) -> Column[bool]:
    """Return a column of booleans."""
    return Column(name, BOOLEAN, nullable=False, server_default="1" if default else "0")
