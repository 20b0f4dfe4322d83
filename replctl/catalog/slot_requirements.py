"""Check the settings that slots require (slot.c, logical.c)."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from replctl.catalog import state_schema
from replctl.catalog.pg_replication_slots import ReplicationSlot, create_slot, validate_slot_name
from replctl.catalog.transaction import insert_lsn
from replctl.catalog.wal_level import Setting, check_for_decoding, check_for_slots
from replctl.errors import (
    ConfigurationLimitExceeded,
    FeatureNotSupported,
    ObjectNotInPrerequisiteState,
)


def check_slot_requirements(setting: Setting) -> None:
    """Check that the settings allow replication slots (CheckSlotRequirements).

    Raises:
        ObjectNotInPrerequisiteState: max_replication_slots or wal_level is too low (55000).
    """
    if int(setting("max_replication_slots")) == 0:
        raise ObjectNotInPrerequisiteState(
            'replication slots can only be used if "max_replication_slots" > 0'
        )
    check_for_slots(setting)


def check_decoding_requirements(setting: Setting) -> None:
    """Check that the settings allow logical decoding (CheckLogicalDecodingRequirements).

    Raises:
        ObjectNotInPrerequisiteState: max_replication_slots or wal_level is too low (55000).
    """
    check_slot_requirements(setting)
    check_for_decoding(setting)


def create_slot_at_end(
    connection: Connection,
    setting: Setting,
    name: str,
    plugin: str,
    database_oid: int,
    *,
    two_phase: bool = False,
    failover: bool = False,
    owner: str | None = None,
) -> ReplicationSlot:
    """Create a slot at the end of the log.  A slot with an owner (Session.key) is temporary.

    Raises:
        FeatureNotSupported: a temporary slot cannot have failover.
        PostgresError: see `create_slot_within_limits`.
    """
    lsn = insert_lsn(connection)
    slot = ReplicationSlot(
        name,
        plugin,
        database_oid,
        lsn,
        lsn,
        two_phase=two_phase,
        failover=failover,
        owner=owner,
    )
    create_slot_within_limits(connection, slot, setting)
    return slot


def create_slot_within_limits(
    connection: Connection, slot: ReplicationSlot, setting: Setting
) -> None:
    """Add a slot, and check all limits.

    Raises:
        ObjectNotInPrerequisiteState: see `check_decoding_requirements`.
        InvalidName: the name is not valid.
        FeatureNotSupported: a temporary slot cannot have failover.
        DuplicateObject: a slot of that name exists (42710).
        ConfigurationLimitExceeded: there are already max_replication_slots slots (53400).
    """
    if slot.is_logical:
        check_decoding_requirements(setting)
    else:
        check_slot_requirements(setting)
    validate_slot_name(slot.name)
    if slot.temporary and slot.failover:
        raise FeatureNotSupported("cannot enable failover for a temporary replication slot")
    create_slot(connection, slot)
    count = connection.execute(select(func.count()).select_from(state_schema.pg_replication_slots))
    if int(count.scalar_one()) > int(setting("max_replication_slots")):
        raise ConfigurationLimitExceeded(
            "all replication slots are in use",
            hint='Free one or increase "max_replication_slots".',
        )
