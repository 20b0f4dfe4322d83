"""ALTER INDEX ... ATTACH PARTITION (ATExecAttachPartitionIdx in tablecmds.c)."""

from __future__ import annotations

from replctl.catalog.pg_class import Index, Relation, index_table_oid
from replctl.catalog.relation_kind import INDEX_KINDS, RelKind
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.find_relation import find_relation
from replctl.commands.index import adopt_index, constraint_of, is_alike
from replctl.errors import InvalidObjectDefinition, ObjectNotInPrerequisiteState, WrongObjectType
from replctl.parser import ast
from replctl.session import Session


def attach_index(session: Session, statement: ast.AttachIndex) -> str:
    """Attach an index of a partition to an index of the partitioned table.

    Raises:
        WrongObjectType: one of the relations is not such an index.
        InvalidObjectDefinition, ObjectNotInPrerequisiteState: the two indexes do not fit together.
    """
    return carry_out(session, lambda ddl: _attach(ddl, statement))


def _attach(ddl: Ddl, statement: ast.AttachIndex) -> str:
    above, below = _relation(ddl, statement.relation), _relation(ddl, statement.partition)
    ddl.privileges.check_relation_owner(above)
    if above.kind != RelKind.PARTITIONED_INDEX:
        raise WrongObjectType(
            f'ALTER action ATTACH PARTITION cannot be performed on relation "{above.name}"',
            detail=f"This operation is not supported for {above.kind.plural}.",
        )
    if below.kind not in INDEX_KINDS:
        raise InvalidObjectDefinition(f'"{below.name}" is not an index')
    ddl.privileges.check_relation_owner(below)
    parent, index = table_and_index(ddl, above)
    partition, own = table_and_index(ddl, below)
    if own.parent_oid == index.oid:
        return "ALTER INDEX"
    head = f'cannot attach index "{own.name}" as a partition of index "{index.name}"'
    if any(other.parent_oid == index.oid for other in partition.indexes):
        raise ObjectNotInPrerequisiteState(
            head,
            detail=f'Another index is already attached for partition "{partition.name}".',
        )
    if own.parent_oid:
        raise ObjectNotInPrerequisiteState(
            head, detail=f'Index "{own.name}" is already attached to another index.'
        )
    if not partition.is_partition or parent.oid not in partition.parents:
        raise ObjectNotInPrerequisiteState(
            head,
            detail=f'Index "{own.name}" is not an index on any partition of table "{parent.name}".',
        )
    if not is_alike(parent, index, partition, own):
        raise InvalidObjectDefinition(head, detail="The index definitions do not match.")
    needed = constraint_of(parent, index)
    found = constraint_of(partition, own)
    if needed is not None and (found is None or found.kind != needed.kind):
        raise InvalidObjectDefinition(
            head,
            detail=f'The index "{index.name}" belongs to a constraint in table "{parent.name}" but'
            f' no constraint exists for index "{own.name}".',
        )
    adopt_index(ddl, partition, own, index, parent)
    return "ALTER INDEX"


def _relation(ddl: Ddl, name: ast.RangeVar) -> Relation:
    parts = (name.name,) if name.schema is None else (name.schema, name.name)
    found = find_relation(ddl, parts)
    assert found is not None
    return found


def table_and_index(ddl: Ddl, relation: Relation) -> tuple[Relation, Index]:
    """Return an index, given as a relation, and its table."""
    table = ddl.relation(index_table_oid(ddl.catalog, relation.oid))
    return table, next(index for index in table.indexes if index.oid == relation.oid)
