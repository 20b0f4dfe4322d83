"""A subscriber's table while changes of a published relation are written into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_sequence import sequence_of_call, sequences_of
from replctl.expr import nodes
from replctl.lake.delta_log import applied_step, latest_version
from replctl.lake.target import check_updatable, replication_target
from replctl.lake.violation import violation
from replctl.replication.conflict import ReplicationConflict
from replctl.replication.node import RelationChanges, RemoteRelation, Rows
from replctl.session import Session
from replctl.spark import NEXT_VALUE, CommitNote, SentColumn, Target, UniqueKey

if TYPE_CHECKING:
    from replctl.spark.merge import LeafChange
    from replctl.spark.outcome import Outcome
    from replctl.spark.staging import Staged


@dataclass
class ReplicatedTable:
    """A table and the published relation that it has the name of.

    Attributes:
        session: the subscriber's database.
        relation: the table.
        family: the partition tree that it stands in.
        remote: the published relation.
        done: tables into which the batch is written already, each with its version before that.

    Raises:
        ObjectNotInPrerequisiteState: the table lacks a column that is sent (55000).
    """

    session: Session
    relation: Relation
    family: dict[int, Relation]
    remote: RemoteRelation
    done: Mapping[int, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.target = replication_target(self.relation, self.remote, self.family, self.done)
        self._sent = tuple(SentColumn(c.name, c.type, c.typmod) for c in self.remote.columns)

    def isolated_positions(self, changes: RelationChanges) -> set[int]:
        """The changes that have to be applied without those of other transactions."""
        if not self.target.key:
            return set(changes.positions)
        sent = [self.target.column(attnum).sent for attnum in self.target.key]
        if None in sent or not changes.positions:  # reported when they are applied
            return set()
        key = [position for position in sent if position is not None]
        rows, first, last = _staged(changes.rows), min(changes.positions), max(changes.positions)
        return self.session.engine().moving_positions(rows, key, first, last)

    @contextmanager
    def copied(self, rows: Rows) -> Iterator[TableOutcome]:
        """What an initial copy adds.

        Args:
            rows: the query of the rows to copy.

        Raises:
            ReplicationConflict: the table does not take a row.
        """
        engine = self.session.engine()
        target = self._with_taken_values(lambda: engine.count_rows(cast(str, rows)))
        with engine.copied(target, self._sent, cast(str, rows)) as outcome:
            self._check(outcome, self.target.unique)
            yield TableOutcome(self, outcome, engine.leaf_changes(outcome))

    @contextmanager
    def changed(self, changes: RelationChanges, first: int, last: int) -> Iterator[TableOutcome]:
        """What the changes at positions from `first` to `last` do.

        Raises:
            ReplicationConflict: one of them does not fit.
            ObjectNotInPrerequisiteState: rows to change cannot be found in the table (55000).
        """
        engine = self.session.engine()
        rows = _staged(changes.rows)
        with engine.converted(self.target, self._sent, rows, first, last) as converted:
            if engine.has_action(converted, "UD"):
                check_updatable(self.target, self.remote, self.relation)
            others = [k for k in self.target.unique if set(k.attnums) != set(self.target.key)]
            added = f"SELECT 1 FROM {converted.view} WHERE action = 'I'"
            target = self._with_taken_values(lambda: engine.count_rows(added))
            with engine.outcome(target, converted) as outcome:
                self._check(outcome, others)  # conflicts of the key are in the outcome
                yield TableOutcome(self, outcome, engine.leaf_changes(outcome))

    def _with_taken_values(self, count: Callable[[], int]) -> Target:
        """The target, with a value for each of `count()` new rows taken from the sequences in its
        defaults."""
        columns = []
        for column in self.target.columns:
            default = None if column.sent is not None else column.default
            for oid in () if default is None else sequences_of(default):
                with self.session.read() as catalog:
                    taken = self.session.sequences.take(catalog, oid, count())
                default = nodes.transform(default, _as_next_value)
                column = replace(column, default=default, taken=taken)
            columns.append(column)
        return replace(self.target, columns=tuple(columns))

    def _check(self, outcome: Outcome, keys: Sequence[UniqueKey]) -> None:
        problem = self.session.engine().first_problem(outcome, keys)
        if problem is not None:
            error = violation(self.relation, self.family, self.target, problem)
            message_type = "INSERT" if problem.kind == "key" else ""
            raise ReplicationConflict(
                problem.position, error, self.relation.qualified_name, message_type
            )


def _as_next_value(node: nodes.Node) -> nodes.Node | None:
    return None if sequence_of_call(node) is None else nodes.Var(NEXT_VALUE, "int8")


@dataclass(frozen=True)
class TableOutcome:
    """What is going to be written into a table: its leaves by their number."""

    table: ReplicatedTable
    outcome: Outcome
    leaf_changes: Sequence[LeafChange]

    @property
    def changed_leaves(self) -> list[int]:
        """The numbers of the leaves that change."""
        return [i for i, change in enumerate(self.leaf_changes) if not change.is_nothing]

    @property
    def changed_relids(self) -> set[int]:
        return {self.leaf_relid(number) for number in self.changed_leaves}

    @property
    def changes_keys(self) -> bool:
        """Whether images of its updates have to be paired by row."""
        return self.outcome.moves_keys or self.outcome.matching != "key"

    def leaf_relid(self, number: int) -> int:
        """The OID of a leaf."""
        return self.table.target.leaves[number].relid

    def write(self, number: int, relations: Mapping[int, Relation], note: CommitNote) -> None:
        """Write the rows of one leaf.

        Args:
            relations: the tables as they are now, with all their columns in storage.
        """
        table = self.table
        family = {**table.family, **relations}
        current = replication_target(family[table.relation.oid], table.remote, family)
        table.session.engine().write_leaf(
            self.outcome, number, current.leaves[number], self.leaf_changes[number], note
        )


def written_leaves(
    tables: Mapping[int, Relation],
    targets: Mapping[int, tuple[int | None, int]],
    application: Callable[[int], str],
) -> dict[int, int | None]:
    """Those of a batch's targets that it is written into, with their versions before.

    Args:
        targets: version before and step by OID.
        application: Delta's name for the writer of a table.
    """
    result: dict[int, int | None] = {}
    for relid, (version, step) in targets.items():
        storage = tables[relid].storage if relid in tables else None
        newest = None if storage is None else latest_version(storage.location)
        if storage is None or newest is None:
            continue
        versions = range(0 if version is None else version + 1, newest + 1)
        found = applied_step(storage.location, application(relid), versions)
        if found is not None and found >= step:
            result[relid] = version
    return result


def _staged(rows: Rows) -> Staged:
    """The changes that a publisher of ours has decoded."""
    return cast("Staged", rows)
