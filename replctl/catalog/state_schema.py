"""Define the catalog's tables without versions: the cluster's counters, the log, locks, facts about
storage, slots, origins and the progress of subscriptions.

The tables for definitions made by DDL are in schema.py.  A change of this file must also change
`schema.REVISION`.
"""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    FromClause,
    Index,
    Integer,
    Table,
    Text,
)

from replctl.catalog.schema_table import BOOLEAN, boolean, integer, metadata, text

# -- the cluster -----------------------------------------------------------------------------

#: One row.  `is_in_recovery`: the cluster is a standby.  `promoted_to`: the home of the standby
#: that has replaced this cluster.
pg_control = Table(
    "pg_control",
    metadata,
    integer("system_identifier"),
    text("signing_key"),  # the key for marks of commits (lake/commit_mark.py), in hexadecimal
    integer("next_xid"),
    integer("next_oid"),
    integer("insert_lsn"),
    integer("timeline", default=1),
    boolean("is_in_recovery"),
    text("promoted_to", nullable=True),
    text("home"),  # the cluster's directory; a cluster opened elsewhere is a copy, or was moved
    # Directory for relative table locations: for a standby its primary's home; NULL: this home
    text("table_home", nullable=True),
    text("revision", nullable=True),  # alembic's revision; programs with an open catalog check it
    integer("trimmed_lsn", default=0),  # commits up to it may be gone (commit_digest.py)
    text("base_digest", nullable=True),  # the commit before the last additions (commit_digest.py)
)

# -- subscriptions ---------------------------------------------------------------------------

pg_subscription_rel = Table(
    "pg_subscription_rel",
    metadata,
    integer("srsubid"),
    integer("srrelid"),
    text("srsubstate"),
    integer("srsublsn", nullable=True),
    text("srsubdigest", nullable=True),  # digest of the publisher's commit there (commit_digest.py)
    text("snapshot", nullable=True),  # the copy of state d: LSN and versions, as JSON
    text("method"),  # the copy's effect on existing rows: append, replace, reconcile
    text("deletion", nullable=True),  # the rows that a reconcile may delete: scope, all, none
    text("definition", nullable=True),  # filters and columns at the last copy, as JSON
    text("applied_filters", nullable=True),  # filters of rows written since then, as JSON
    integer("owned_since", nullable=True),  # see SubscriptionRelation.owned_since
    text("fault", nullable=True),  # damage by another program; the table must be refreshed
    text("column_origins", nullable=True),  # JSON, by the attnums of columns (column_origin.py)
)
Index(
    "pg_subscription_rel_key_index",
    pg_subscription_rel.c.srsubid,
    pg_subscription_rel.c.srrelid,
    unique=True,
)

pg_stat_subscription_stats = Table(
    "pg_stat_subscription_stats",
    metadata,
    Column("subid", Integer, primary_key=True),
    integer("apply_error_count", default=0),
    integer("sync_error_count", default=0),
    integer("stats_reset", nullable=True),
    integer("confl_insert_exists", default=0),
    integer("confl_update_origin_differs", default=0),
    integer("confl_update_exists", default=0),
    integer("confl_update_missing", default=0),
    integer("confl_delete_origin_differs", default=0),
    integer("confl_delete_missing", default=0),
    integer("confl_multiple_unique_conflicts", default=0),
)


# -- the log ---------------------------------------------------------------------------------


class XactStatus(StrEnum):
    """The state of a transaction (pg_xact.status)."""

    IN_PROGRESS = "i"
    COMMITTED = "c"


#: Transactions: COMMIT sets `status`, `commit_lsn` and `commit_time`.  An aborted transaction has
#: no row, unless its changes must still be undone.
pg_xact = Table(
    "pg_xact",
    metadata,
    Column("xid", Integer, primary_key=True),
    integer("dbid"),
    text("status"),
    text("backend", nullable=True),  # the process of a transaction in progress (Cluster.backend)
    integer("block_xid", nullable=True),  # number of the block; also in rows of its savepoints
    integer("commit_lsn", nullable=True),
    integer("commit_time", nullable=True),  # microseconds since 1970, UTC
    text("origin", nullable=True),  # name of the replication origin that the changes came from
    integer("origin_lsn", nullable=True),
    boolean("changes_catalog"),
    integer("definitions_lsn", nullable=True),  # end of the log before a block changed definitions
    boolean("is_internal"),  # not the transaction of a statement
    text("digest", nullable=True),  # covers the commit and all before it (commit_digest.py)
)


def is_in_progress(xact: FromClause) -> ColumnElement[bool]:
    """Return the condition for transactions in progress among rows of pg_xact."""
    return xact.c.status == XactStatus.IN_PROGRESS


def is_committed(xact: FromClause) -> ColumnElement[bool]:
    """Return the condition for committed transactions among rows of pg_xact."""
    return xact.c.status == XactStatus.COMMITTED


Index("pg_xact_commit_lsn_index", pg_xact.c.commit_lsn)


#: The commit log: one row for each Delta version of a relation, for each TRUNCATE and for each
#: message.  `action`: see pg_wal.py.  `detail`: the options of a TRUNCATE, or a message, as JSON.
pg_wal = Table(
    "pg_wal",
    metadata,
    Column("lsn", BigInteger, primary_key=True, autoincrement=False),
    integer("xid"),
    integer("dbid"),
    integer("relid"),
    integer("version", nullable=True),
    text("action"),
    text("detail", nullable=True),
    text("digest", nullable=True),  # SHA-256 of the version's file in Delta's log
    text("file_state", nullable=True),  # the file's number, size and time when it was read
    text("mark", nullable=True),  # nonce and number of replctl's commit; NULL: another program's
)
Index("pg_wal_relid_index", pg_wal.c.relid, pg_wal.c.version)
Index("pg_wal_xid_index", pg_wal.c.xid)


#: The tables that a transaction in progress writes.  If its process dies, the next process that
#: uses the tables undoes the versions after `version`.  If `is_whole`, a version there is the
#: complete transaction, and that process commits it instead.
intent = Table(
    "intent",
    metadata,
    integer("xid"),
    integer("relid"),
    integer("version", nullable=True),  # the table's version before the transaction; NULL: no table
    boolean("is_whole"),
    integer("began"),  # microseconds since 1970
)
Index("intent_key_index", intent.c.xid, intent.c.relid, unique=True)


#: The nonces in marks of replctl's commits to Delta tables (commit_nonce.py).
commit_nonce = Table(
    "commit_nonce",
    metadata,
    Column("nonce", Text, primary_key=True),
    integer("relid"),
    integer("xid"),
    integer("made"),  # microseconds since 1970
)

#: Locks of open transaction blocks on objects that they have changed or depend on (lock.py).
object_lock = Table(
    "object_lock",
    metadata,
    integer("xid"),
    text("name"),
    integer("mode"),
)
Index("object_lock_xid_index", object_lock.c.xid)


#: Transaction blocks that wait for others.
lock_wait = Table(
    "lock_wait",
    metadata,
    integer("xid"),
    integer("holder"),
)


# -- storage ---------------------------------------------------------------------------------

#: A relation's Delta table.  `is_made`: the table exists.  `has_location`: the user chose the
#: location (LOCATION), which is not below base/. `was_empty`: the directory was empty before
#: replctl created the table there; NULL: replctl has not begun to create it.  `has_foreign`:
#: another program has committed to the table.  `taken_over`: the last time when a process finished
#: or undid the writes of a dead process (microseconds since 1970).
storage_table = Table(
    "storage_table",
    metadata,
    Column("relid", Integer, primary_key=True),
    integer("dbid"),
    text("location"),
    boolean("is_adopted"),
    boolean("is_made"),
    boolean("has_location"),
    Column("was_empty", BOOLEAN, nullable=True),
    boolean("has_foreign"),
    integer("taken_over", nullable=True),
    # At the next read, commits with unknown marks of this cluster count as another writer's
    boolean("accepts_marks"),
    boolean("is_read_only"),  # this cluster is a copy, and the table belongs to the original
    text("table_id", nullable=True),  # metaData.id of the newest version in the log
    boolean("has_row_ids"),  # its rows have row ids (delta.enableRowTracking)
)

#: Tables that replctl has registered in the catalogs of Spark: the name there, and the location of
#: the name.  The row of a dropped relation stays until replctl has removed the name from Spark's
#: catalog.
spark_registration = Table(
    "spark_registration",
    metadata,
    Column("relid", Integer, primary_key=True, autoincrement=False),
    text("name"),
    text("location"),
)

#: The columns of a Delta table.  A column keeps its name in the Delta table, even if DDL renames
#: the relation's column.  `since_version` is the Delta version since which the column exists; NULL:
#: it does not exist yet.  Other programs may rename a column.  Then `name` is the newest name,
#: `physical_name` the name in files (NULL: the same), and `renamed_version` the last version that
#: renamed, dropped or restored the column.  A relation's column whose type has changed has one
#: column here for each type.  Then `attnum` is the number in pg_attribute.attfilenode.  Columns of
#: former types have their type, and in `owner` the attnum of the relation's column.  Columns of
#: undone definitions also have `owner`.  Other columns with numbers below 0 belong to other
#: programs, or do not exist yet.
storage_column = Table(
    "storage_column",
    metadata,
    integer("relid"),
    integer("attnum"),
    text("name"),
    integer("since_version", nullable=True),
    text("physical_name", nullable=True),
    integer("renamed_version", nullable=True),
    boolean("is_dropped"),  # the table no longer has it
    boolean("is_followed"),  # the relation's column is dropped and restored with it
    boolean("is_void"),  # the relation lacks it only because its type is void
    text("former_identities", nullable=True),  # JSON (StorageColumn.former_identities)
    integer("owner", nullable=True),
    integer("atttypid", nullable=True),
    integer("atttypmod", nullable=True),
)
Index("storage_column_key_index", storage_column.c.relid, storage_column.c.attnum, unique=True)


#: The session (Session.key) of each schema for temporary relations.  A row may exist without its
#: schema.
temporary_namespace = Table(
    "temporary_namespace",
    metadata,
    Column("nspid", Integer, primary_key=True, autoincrement=False),
    text("owner"),
)

#: The current values of sequences, by pg_sequence.node.  ROLLBACK does not revert them.
sequence_state = Table(
    "sequence_state",
    metadata,
    Column("node", Integer, primary_key=True, autoincrement=False),
    integer("last_value"),
    boolean("is_called"),
)


# -- slots, origins, apply -------------------------------------------------------------------

pg_replication_slots = Table(
    "pg_replication_slots",
    metadata,
    Column("slot_name", Text, primary_key=True),
    text("plugin"),
    text("slot_type", default="logical"),
    integer("datoid"),
    boolean("temporary"),
    integer("active_pid", nullable=True),
    integer("restart_lsn"),
    integer("confirmed_flush_lsn"),
    integer("applied_lsn", default=0),  # the position that the subscription has reported as applied
    boolean("two_phase"),
    boolean("failover"),
    boolean("synced"),
    text("invalidation_reason", nullable=True),
    integer("inactive_since", nullable=True),
    text("standby_home", nullable=True),  # the directory of a physical slot's standby
    text("owner", nullable=True),  # the session (Session.key) of a temporary slot
    text("publications", nullable=True),  # the publications that the reader uses, as JSON
    text("retention", nullable=True),  # ReplicationSlot.retention: lost, unreserved
)

#: Counters of the changes that SQL functions have read from slots.
pg_stat_replication_slots = Table(
    "pg_stat_replication_slots",
    metadata,
    Column("slot_name", Text, primary_key=True),
    integer("total_txns"),
    integer("total_bytes"),
    integer("stats_reset", nullable=True),  # microseconds since 1970
)

pg_replication_origin = Table(
    "pg_replication_origin",
    metadata,
    Column("roident", Integer, primary_key=True),
    text("roname"),
    integer("remote_lsn", default=0),
    text("remote_digest", nullable=True),  # digest of the remote commit there; NULL: unknown
    integer("local_lsn", default=0),
    # The targets have followed the changes of definitions up to this LSN of the remote log.  It can
    # be ahead of remote_lsn: a commit can change definitions and rows.
    integer("schema_lsn", default=0),
    text("owner", nullable=True),  # the session that has set the origin up
)
Index("pg_replication_origin_name_index", pg_replication_origin.c.roname, unique=True)


#: A batch of changes that an apply worker has begun to write, with the data to finish it after a
#: crash.  `relid` is 0 for the subscription's apply, else the table that is being synchronized.
apply_batch = Table(
    "apply_batch",
    metadata,
    integer("subid"),
    integer("relid", default=0),
    integer("from_lsn"),
    integer("to_lsn"),
    text("to_digest", nullable=True),  # digest of the publisher's commit there (commit_digest.py)
    integer("xid"),
    # JSON, by target relation: version before the write, and step number; or a list of such
    # objects, one for each stage of the batch
    text("targets"),
)
Index("apply_batch_key_index", apply_batch.c.subid, apply_batch.c.relid, unique=True)


#: The newest step of a subscription in a table.  Subscription and table form the
#: application ID of the write in Delta's log, and the step is its version.
apply_step = Table(
    "apply_step",
    metadata,
    integer("subid"),
    integer("relid"),
    integer("step"),
    integer("written", nullable=True),  # the newest step in the log
)
Index("apply_step_key_index", apply_step.c.subid, apply_step.c.relid, unique=True)


#: Workers (catalog/worker.py): for each subscription its apply worker (`relid` 0) and its table
#: synchronization workers.
logical_worker = Table(
    "logical_worker",
    metadata,
    Column("subid", Integer, primary_key=True),
    Column("relid", Integer, primary_key=True),
    text("backend"),  # the process (Cluster.backend); the row is valid while the process lives
    boolean("is_held"),
    integer("received_lsn", nullable=True),
    integer("last_msg_time"),
)

#: The readers of replication slots.
walsender = Table(
    "walsender",
    metadata,
    Column("slot_name", Text, primary_key=True),
    text("client"),  # the subscription: its cluster's system identifier, and its OID
    text("backend"),
    boolean("is_held"),
    text("application_name"),
    integer("usesysid"),
    integer("backend_start"),
    text("state"),
    integer("reply_time"),
)

#: The last time when `replctl verify` found a table of a subscription equal to the published table.
table_verification = Table(
    "table_verification",
    metadata,
    Column("subid", Integer, primary_key=True),
    Column("relid", Integer, primary_key=True),
    integer("time"),  # microseconds since 1970, UTC
    integer("lsn"),  # the compared position in the publisher's log
)

#: The error of a subscription's last attempt.  The next successful attempt removes it.
subscription_error = Table(
    "subscription_error",
    metadata,
    Column("subid", Integer, primary_key=True),
    integer("time"),
    text("sqlstate"),
    text("message"),  # with DETAIL and CONTEXT, as reported
    boolean("stops_apply"),  # not only the copy of a table
)
