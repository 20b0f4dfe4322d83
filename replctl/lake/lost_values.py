"""Let sequences continue after the values that they have given since a backup of the catalog.

The catalog has the state of sequences.  So a restored catalog, or a standby, gives values again
that rows have.  The statistics of the rows' files say which values those are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from replctl.catalog import pg_sequence
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_database import current_database
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.transaction import Catalog
from replctl.lake.delta_actions import counted_rows, outermost_value
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_files import changed_bodies
from replctl.lake.delta_log import read_actions
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class FoundSequence:
    """A sequence that may have given values that the catalog does not know.

    Attributes:
        database: the name of the sequence's database.
        name: the sequence's name, with its schema.
        value: the value after which the sequence continues; None if nobody knows the lost values.
    """

    database: str
    name: str
    value: int | None


def advance_sequences(
    catalog: Catalog,
    commits: Mapping[int, Sequence[DeltaCommit]],
    unknown: Collection[int],
) -> list[FoundSequence]:
    """Let the sequences of a database continue after the values in lost commits.

    A sequence that no column owns stays, because its values may be in any column.  Commits of other
    writers say nothing about sequences, because only replctl takes values from them.

    Args:
        commits: the commits of each table that the catalog lacked, by OID.
        unknown: OIDs of tables whose new rows are unknown.

    Returns:
        the sequences that were set, and those that may give values again; none if no table has
        lost commits of this cluster.
    """
    own = {
        oid: [commit for commit in lost if commit.changes_data and commit.mark is not None]
        for oid, lost in commits.items()
    }
    changed = {oid for oid, lost in own.items() if lost}
    if not (changed or unknown):
        return []
    sequences = pg_sequence.list_sequences(catalog)
    relations = load_relations(catalog, [sequence.relid for sequence in sequences])
    database = current_database(catalog)
    found = []
    for sequence in sequences:
        name = relations[sequence.relid].qualified_name
        tables = descendants_of(catalog, sequence.owner_relid) if sequence.owner_relid else []
        lost = {oid: own[oid] for oid in tables if oid in changed}
        is_known = bool(tables) and not set(tables).intersection(unknown)
        values = _given(catalog, sequence, lost) if is_known else None
        if values is None:
            found.append(FoundSequence(database, name, None))
        elif values:
            value = max(values) if sequence.increment > 0 else min(values)
            if pg_sequence.advance_sequence(catalog, sequence, value):
                found.append(FoundSequence(database, name, value))
    return found


def _given(
    catalog: Catalog,
    sequence: pg_sequence.Sequence,
    commits: Mapping[int, Sequence[DeltaCommit]],
) -> list[int] | None:
    """Return values that a sequence has given to rows of commits, among them the last one; None if
    they are unknown.  A row that had its value from a user may have a value after which the
    sequence cannot continue: then they are unknown, too.

    Args:
        commits: the commits of the owning table and of its partitions, by OID.
    """
    tables = load_relations(catalog, [sequence.owner_relid, *commits])
    column = tables[sequence.owner_relid].column_at(sequence.owner_attnum).name
    greatest = sequence.increment > 0
    found = []
    for oid, lost in commits.items():
        values = _outermost_values(tables[oid], column, lost, greatest=greatest)
        if values is None:
            return None
        found += values
    next_values = [value + sequence.increment for value in found]
    are_valid = all(
        sequence.minimum <= value <= sequence.maximum for value in (*found, *next_values)
    )
    return found if are_valid and not (sequence.cycles and found) else None


def _outermost_values(
    table: Relation, column: str, commits: Sequence[DeltaCommit], *, greatest: bool
) -> list[int] | None:
    """Return the outermost value of a column in each new file of a table; None if the statistics
    of a file lack it.
    """
    assert table.storage is not None
    attnum = next(c.attnum for c in table.columns if c.name == column)
    stored = table.storage.columns[attnum]
    name = stored.physical_name or stored.name
    values = []
    for commit in commits:
        for body in changed_bodies(read_actions(table.storage.location, commit.version), ("add",)):
            value = outermost_value(body, name, greatest=greatest)
            if value is not None:
                values.append(value)
            elif counted_rows(body) != 0:
                return None
    return values
