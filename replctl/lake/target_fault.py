"""Record faults of a subscription's targets: operations of other programs except DML, and copies of
other subscriptions that remove its rows.

After such an operation, rows that the subscription has applied may be missing, so later
changes may conflict with the table.  A fault is recorded in pg_subscription_rel together with the
version that causes it.  It stops the subscription until the table is copied or reconciled (ALTER
SUBSCRIPTION ... REFRESH TABLE).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from replctl.catalog.apply_step import written_steps
from replctl.catalog.pg_class import Column, Relation, load_relations
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.pg_subscription import (
    Subscription,
    is_copied_anywhere,
    note_fault,
    subscription_relations,
)
from replctl.catalog.transaction import Catalog
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_log import written_step
from replctl.lake.replacement import replacement, replacement_sentence
from replctl.replication.refresh_hint import offer_reconcile, refresh_hint

#: The beginning of faults that a copy of another subscription, or of another table, has caused.
_REMOVED = "Subscription"


def note_replacement(catalog: Catalog, relation: Relation, commit: DeltaCommit) -> None:
    """Record a fault if a commit of another program replaces all rows of a target."""
    assert relation.storage is not None
    relids = _tree_above(catalog, relation)
    if not is_copied_anywhere(catalog.connection, relids):
        return
    location = relation.storage.location
    what = replacement(location, commit)
    if what is not None:
        sentence = replacement_sentence(what, location, commit.version)
        note_fault(catalog.connection, relids, sentence)


def note_break(catalog: Catalog, relation: Relation, what: str) -> None:
    """Record a fault if a relation with a broken chain of versions is a target.

    Args:
        what: a sentence that says what happened to the table.
    """
    note_fault(catalog.connection, _tree_above(catalog, relation), what)


def note_lost_fields(
    catalog: Catalog, relation: Relation, changed: Iterable[Column], version: int
) -> None:
    """Record a fault if another program has dropped or renamed fields of STRUCTs in a target.  If
    it then adds fields with these names, their values are missing.

    Args:
        relation: the table before the change.
        changed: its changed columns in their new form.
    """
    names = [c.name for c in changed if _has_lost_fields(relation.column_at(c.attnum), c)]
    if names and relation.storage is not None:
        shown = ", ".join(f'"{name}"' for name in names)
        note_break(
            catalog,
            relation,
            f"Another program dropped or renamed fields of {shown} in version {version} of the"
            f' Delta table "{relation.storage.location}".',
        )


def _has_lost_fields(before: Column, after: Column) -> bool:
    if before.field_names is None:
        return False
    now = json.loads(after.field_names or "{}")
    return any(now.get(path) != name for path, name in json.loads(before.field_names).items())


def note_removal(
    catalog: Catalog, oid: int, relid: int, remover: Subscription, root: Relation
) -> None:
    """Record a fault for a table of a subscription, because a copy has removed its rows.

    Args:
        oid, relid: the subscription and the table that have lost rows.
        remover, root: the subscription and the table of the copy.
    """
    sentence = f'{_REMOVED} "{remover.name}" has removed them by REFRESH TABLE'
    note_fault(catalog.connection, [relid], f'{sentence} of table "{root.qualified_name}".', [oid])


def note_unread(
    catalog: Catalog, relation: Relation, system_identifier: int, sentence: str
) -> None:
    """Record a fault for each subscription whose last step is not in a target's log.  Versions of
    the table cannot be read, so only the steps can show that it has the subscription's rows.

    Args:
        sentence: the reason, as the beginning of a sentence.
    """
    assert relation.storage is not None
    location, relids = relation.storage.location, _tree_above(catalog, relation)
    if not is_copied_anywhere(catalog.connection, relids):
        return
    lost = []
    for oid, (written, taken) in written_steps(catalog.connection, relation.oid).items():
        found = written_step(location, application_of(system_identifier, oid, relation.oid))
        if not is_known_step(found, written, taken):
            lost.append(oid)
    note_fault(
        catalog.connection,
        relids,
        f"{sentence}, and the table does not have the subscription's last write.",
        lost,
    )


def is_known_step(found: int | None, written: int | None, taken: int) -> bool:
    """Return whether a table has the last step of a subscription.

    Args:
        found: the newest step in the table's log; None if there is none.
        written: the newest finished step; None if there is none.
        taken: the newest step that was begun, and may have been written.
    """
    if found is None:
        return written is None
    return (written or 0) <= found <= taken


def application_of(system_identifier: int, subscription_oid: int, relid: int) -> str:
    """Return Delta's application id for a subscription's writes into a table."""
    return f"replctl-{system_identifier}-{subscription_oid}-{relid}"


def check_faults(
    catalog: Catalog, subscription: Subscription, relids: Collection[int] | None = None
) -> None:
    """Check that no table to which a subscription applies changes has a fault.

    Args:
        relids: only these tables of pg_subscription_rel, if their rows are already copied; None:
            the tables that apply writes.

    Raises:
        ObjectNotInPrerequisiteState: a table has a fault (55000).
    """
    faulty = {
        member.relid: member.fault
        for member in subscription_relations(catalog, subscription.oid)
        if member.fault is not None
        and (
            member.state.is_applied
            if relids is None
            else member.relid in relids and member.state.is_copied
        )
    }
    for relid, relation in sorted(load_relations(catalog, faulty).items()):
        raise replaced_rows(subscription, relation, faulty[relid])


def replaced_rows(
    subscription: Subscription, relation: Relation, fault: str
) -> ObjectNotInPrerequisiteState:
    """Return the error about a table of a subscription with a fault (55000)."""
    is_removal = fault.startswith(_REMOVED)
    writer = "copy" if is_removal else "program"
    error = ObjectNotInPrerequisiteState(
        f'rows of target table "{relation.qualified_name}" were replaced by another {writer}',
        detail=fault,
    )
    if is_removal:  # the other rows are not this subscription's
        error.hint = refresh_hint(subscription, relation.relation_name, "delete = none")
    else:
        offer_reconcile(error, subscription, relation.relation_name)
    return error


def targets_of(catalog: Catalog, subscription: Subscription) -> Iterable[Relation]:
    """Return the tables to which a subscription applies changes."""
    members = subscription_relations(catalog, subscription.oid)
    applied = [member.relid for member in members if member.state.is_applied]
    return load_relations(catalog, applied).values()


def _tree_above(catalog: Catalog, relation: Relation) -> set[int]:
    return {relation.oid, *ancestors_of(catalog, relation.oid)}
