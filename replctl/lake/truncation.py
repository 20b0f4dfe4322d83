"""Check for obstacles to TRUNCATE, by a statement or by replication."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from replctl.catalog.foreign_key import foreign_keys_to
from replctl.catalog.pg_class import Relation
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported


def referencing(catalog: Catalog, relations: Collection[int]) -> dict[int, list[Relation]]:
    """Return, for the OID of each of these tables, the other tables that refer to it or to a
    partitioned table above it."""
    result: dict[int, list[Relation]] = {}
    for oid in relations:
        others = {other.oid: other for other, _key in foreign_keys_to(catalog, oid)}
        result[oid] = [other for other in others.values() if other.oid not in relations]
    return result


def check_truncatable(catalog: Catalog, relations: Mapping[int, Relation]) -> None:
    """Check that tables may be emptied together (heap_truncate_check_FKs).

    Args:
        relations: the tables by OID, with their descendants.

    Raises:
        FeatureNotSupported: another table refers to one of them.
    """
    for oid, others in referencing(catalog, relations).items():
        for other in others:
            raise FeatureNotSupported(
                "cannot truncate a table referenced in a foreign key constraint",
                detail=f'Table "{other.name}" references "{relations[oid].name}".',
                hint=f'Truncate table "{other.name}" at the same time, or use TRUNCATE ...'
                f" CASCADE.",
            )
