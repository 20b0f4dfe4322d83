"""TRUNCATE: empty tables together, with one entry in the log."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.pg_sequence import owned_sequences, restart_sequence
from replctl.catalog.relation_kind import TABLE_KINDS, RelKind
from replctl.catalog.transaction import Catalog
from replctl.errors import InsufficientPrivilege, WrongObjectType
from replctl.lake.delta_rules import append_only_error
from replctl.lake.small_definition import remove_rows
from replctl.lake.table_write import writing
from replctl.lake.truncation import check_truncatable, referencing
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.open_relation import open_relation
from replctl.query.write import modified_relation
from replctl.replication.update_transformation import Action
from replctl.result import Result
from replctl.session import Session


def truncate(session: Session, statement: ast.Truncate) -> Result:
    """Empty tables, their partitions and their children (ExecuteTruncate).

    Raises:
        FeatureNotSupported: a foreign key of another table refers to one of the tables; or a
            sequence would restart in a transaction block.
        InsufficientPrivilege: the role may not empty one of the tables, also of those that CASCADE
            adds, or does not own a sequence that would restart.
    """
    with session.read() as catalog:
        analyzer = QueryAnalyzer(session.environment(catalog))
        named = [
            (_table(analyzer, replace(name, pos=-1)), name.inherit) for name in statement.relations
        ]
        relations = _with_descendants(catalog, named)
        privileges = analyzer.environment.privileges
        for relation, _inherit in named:
            privileges.check_relation(relation, Privilege.TRUNCATE)
        if statement.cascade:
            relations = _with_referencing(session, catalog, relations, privileges)
        else:
            check_truncatable(catalog, relations)
        if statement.restart_identity:
            for sequence in _sequences_of(catalog, relations):
                privileges.check_relation_owner(sequence)
    empty(session, relations.values(), statement)
    if statement.restart_identity:
        _restart_sequences(session, relations)
    return Result("TRUNCATE TABLE")


def empty(
    session: Session, relations: Collection[Relation], statement: ast.Truncate | None = None
) -> None:
    """Remove all rows of tables in one transaction.  The log gets an entry for each of `relations`,
    even for partitioned tables, although they have no rows of their own.
    """
    leaves = [relation for relation in relations if not relation.is_partitioned]
    detail: dict[str, object] = {
        "cascade": statement is not None and statement.cascade,
        "restart_identity": statement is not None and statement.restart_identity,
    }
    for leaf in leaves:
        if (error := append_only_error(leaf, Action.TRUNCATE)) is not None:
            raise error
    with writing(session, leaves, is_whole=False) as writer:
        for oid, leaf in writer.relations.items():
            if leaf.storage is not None and leaf.storage.is_made:
                with writer.commit_to(oid, truncates=True, may_be_nothing=True) as note:
                    remove_rows(session, leaf.storage.location, note)
        for relation in relations:
            writer.truncations[relation.oid] = detail


def _table(analyzer: QueryAnalyzer, name: ast.RangeVar) -> Relation:
    try:
        relation = open_relation(analyzer.environment, name, or_sequence=True)
    except WrongObjectType as error:
        raise WrongObjectType(f'"{name.name}" is not a table') from error
    if RelKind(relation.kind) not in TABLE_KINDS:
        raise WrongObjectType(f'"{relation.name}" is not a table')
    if not isinstance(relation, Relation):
        raise InsufficientPrivilege(f'permission denied: "{relation.name}" is a system catalog')
    return modified_relation(analyzer, name)


def _sequences_of(catalog: Catalog, relids: Collection[int]) -> list[Relation]:
    oids = [sequence.relid for relid in relids for sequence in owned_sequences(catalog, relid)]
    return list(load_relations(catalog, oids).values())


def _restart_sequences(session: Session, relids: Collection[int]) -> None:
    """Restart the sequences that the tables own (RESTART IDENTITY)."""
    with session.write(changes_definitions=False) as catalog:
        for relid in relids:
            for sequence in owned_sequences(catalog, relid):
                restart_sequence(catalog, sequence, in_block=session.block is not None)


def _with_descendants(
    catalog: Catalog, named: Sequence[tuple[Relation, bool]]
) -> dict[int, Relation]:
    result: dict[int, Relation] = {}
    for relation, inherit in named:
        if relation.is_partitioned and not inherit:
            raise WrongObjectType(
                "cannot truncate only a partitioned table",
                hint="Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions"
                " directly.",
            )
        oids = descendants_of(catalog, relation.oid) if inherit else [relation.oid]
        loaded = load_relations(catalog, oids)
        result |= {oid: loaded[oid] for oid in oids if oid not in result}
    return result


def _with_referencing(
    session: Session, catalog: Catalog, relations: dict[int, Relation], privileges: Privileges
) -> dict[int, Relation]:
    """Return `relations` and all tables that refer to them by foreign keys, directly or indirectly
    (TRUNCATE ... CASCADE).

    Raises:
        InsufficientPrivilege: the role may not empty one of these tables.
    """
    result = dict(relations)
    while True:
        found = {
            other.oid: other for others in referencing(catalog, result).values() for other in others
        }
        if not found:
            return result
        # A partition has the foreign key, too; a child of an inheritance tree does not
        added = _with_descendants(
            catalog, [(other, other.is_partitioned) for other in found.values()]
        )
        for oid, other in added.items():
            if oid not in result:
                session.notice(f'truncate cascades to table "{other.name}"')
                privileges.check_relation(other, Privilege.TRUNCATE)
        result = added | result
