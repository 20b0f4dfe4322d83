"""Refuse tables whose log names files outside the table's directory, unless the relation's
option foreign_files allows it."""

from __future__ import annotations

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_database import current_database
from replctl.catalog.storage import FOREIGN_FILES
from replctl.catalog.transaction import Catalog
from replctl.errors import InsufficientPrivilege
from replctl.types.boolean import bool_in


class ForeignFiles(InsufficientPrivilege):
    """Raised if a table has files outside its directory, and its option foreign_files is off."""


def has_foreign_files(relation: Relation) -> bool:
    """Return whether the log of a table may name files outside the table's directory."""
    return bool_in(relation.options.get(FOREIGN_FILES, "false"))


def leads_out(relation: Relation, path: str, what: str, *, hint: str) -> ForeignFiles:
    """Return the error of a file outside a table's directory.

    Args:
        what: the part of the log that names the file, as text for the message.
        hint: the hint of the error.
    """
    return ForeignFiles(
        f'file "{path}" is outside the directory of table "{relation.qualified_name}"',
        detail=f"{what} names it.",
        hint=hint,
    )


def trust_hint(catalog: Catalog, relation: Relation) -> str:
    """Return the hint for reading a table whose log names files outside its directory."""
    assert relation.storage is not None
    if not relation.storage.is_adopted:
        place = f"delta.`{relation.storage.location}`"
        copy = f"INSERT OVERWRITE {place} TABLE {place}"
        return f"To copy the rows into the directory, use Spark: {copy}"
    name = relation.quoted_name
    return (
        "If the table is a shallow clone, or you trust its log for another reason: in"
        f' database "{current_database(catalog)}", use ALTER TABLE {name} SET'
        f" ({FOREIGN_FILES} = on);"
    )
