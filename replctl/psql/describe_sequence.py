"""Run `\\d` for a sequence: print its parameters, and the column that owns it."""

from __future__ import annotations

from typing import Literal

from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_sequence import Sequence, get_sequence
from replctl.catalog.relation_kind import DependencyType
from replctl.psql.described import Described
from replctl.psql.print_content import Table
from replctl.types.quote import quote_identifier

_COLUMNS = ("Type", "Start", "Minimum", "Maximum", "Increment", "Cycles?", "Cache")
_ALIGNMENTS: tuple[Literal["l", "r"], ...] = ("l", "r", "r", "r", "r", "l", "r")


def described_sequence(target: Described, relation: Relation, title: str) -> Table:
    """Return the table that `\\d` prints for a sequence."""
    sequence = get_sequence(target.catalog, relation.oid)
    assert sequence is not None
    numbers = (sequence.start, sequence.minimum, sequence.maximum, sequence.increment)
    row = [
        target.environment.format_type(sequence.type),
        *map(str, numbers),
        "yes" if sequence.cycles else "no",
        str(sequence.cache),
    ]
    owner = _owner(target, sequence)
    return Table(_COLUMNS, [row], _ALIGNMENTS, title, [owner] if owner else [])


def _owner(target: Described, sequence: Sequence) -> str:
    table = get_relation(target.catalog, sequence.owner_relid)
    if table is None:
        return ""
    column = quote_identifier(table.column_at(sequence.owner_attnum).name)
    is_identity = sequence.ownership == DependencyType.INTERNAL
    word = "Sequence for identity column" if is_identity else "Owned by"
    return f"{word}: {table.quoted_name}.{column}"
