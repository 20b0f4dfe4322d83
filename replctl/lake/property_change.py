"""Change Delta's properties of tables that replctl has made, in silent commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replctl import spark
from replctl.catalog.pg_class import Relation
from replctl.injection_point import injection_point
from replctl.lake.delta_log import latest_version
from replctl.lake.table_write import writing_locked
from replctl.lake.undo import storage_of
from replctl.session import Session


def change_properties(
    session: Session, relation: Relation, changed: Mapping[str, str], removed: Sequence[str]
) -> int | None:
    """Set and remove properties of a Delta table, and return its newest version afterwards.  The
    caller holds the relation's lock.

    Args:
        changed: the new values of properties, by name.
        removed: the names of the properties to remove.

    Raises:
        PostgresError: the table cannot be written.
    """
    with writing_locked(session, [relation.oid], is_whole=False) as writer:
        location = storage_of(writer.relations[relation.oid]).location
        engine = session.engine()
        if changed:
            with writer.commit_to(relation.oid, silent=True) as note:
                spark.jobs.set_properties(engine, location, changed, note)
            injection_point("properties.after-commit")
        if removed:
            with writer.commit_to(relation.oid, silent=True) as note:
                spark.jobs.unset_properties(engine, location, removed, note)
            injection_point("properties.after-commit")
        version = latest_version(location)
        writer.note_storage(relation.oid, [], version or 0)
    return version
