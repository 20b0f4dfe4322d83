"""The catalog's tables whose rows only move on, without versions: the cluster's counters, the log,
locks, what is known of storage, slots, origins and the progress of subscriptions.

What DDL defines is in schema.py.  A change of this file must also change `schema.REVISION`.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text

from replctl.catalog.schema_table import boolean, integer, metadata, text

# -- the cluster -----------------------------------------------------------------------------

#: One row. `is_in_recovery` tells a standby; `promoted_to` is the home of the standby that has
#: taken this cluster's place.
pg_control = Table(
    "pg_control",
    metadata,
    integer("system_identifier"),
    text("signing_key"),  # of the marks of commits (lake/commit_mark.py), in hexadecimal
    integer("next_xid"),
    integer("next_oid"),
    integer("insert_lsn"),
    integer("timeline", default=1),
    boolean("is_in_recovery"),
    text("promoted_to", nullable=True),
    text("home"),  # the directory where the cluster is; elsewhere it is a copy, or was moved
    # Where relative locations of tables begin: a standby's are its primary's; NULL: at home
    text("table_home", nullable=True),
    text("revision", nullable=True),  # as alembic has it, for programs that have it open
    integer("trimmed_lsn", default=0),  # commits up to it may be gone (commit_digest.py)
)

# -- subscriptions ---------------------------------------------------------------------------

pg_subscription_rel = Table(
    "pg_subscription_rel",
    metadata,
    integer("srsubid"),
    integer("srrelid"),
    text("srsubstate"),
    integer("srsublsn", nullable=True),
    text("srsubdigest", nullable=True),  # of the publisher's commit there (commit_digest.py)
    text("snapshot", nullable=True),  # the copy that state d has begun: LSN and versions, as JSON
    text("method"),  # what the copy does to the rows that are there: append, replace, reconcile
    text("deletion", nullable=True),  # what a reconcile was told to delete: scope, all, none
    text("definition", nullable=True),  # filters and columns when it was copied last, as JSON
    text("applied_filters", nullable=True),  # that its rows have passed since then, as JSON
    integer("owned_since", nullable=True),  # the LSN since which all rows are the subscription's
    text("fault", nullable=True),  # what another program did: the table must be refreshed
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

#: Transactions: `status` is i(n progress) or c(ommitted); `commit_lsn` and `commit_time` come with
#: the commit. An aborted transaction leaves no row, unless it has yet to be undone.
pg_xact = Table(
    "pg_xact",
    metadata,
    Column("xid", Integer, primary_key=True),
    integer("dbid"),
    text("status"),
    text("backend", nullable=True),  # the process that it is in progress in (Cluster.backend)
    integer("block_xid", nullable=True),  # the block that it is, or is a savepoint of; else NULL
    integer("commit_lsn", nullable=True),
    integer("commit_time", nullable=True),  # microseconds since 1970, UTC
    text("origin", nullable=True),  # name of the replication origin that the changes came from
    integer("origin_lsn", nullable=True),
    boolean("changes_catalog"),
    text("digest", nullable=True),  # of the commit and all before it (commit_digest.py)
)
Index("pg_xact_commit_lsn_index", pg_xact.c.commit_lsn)


#: The commit log: one row for each Delta version of a relation, and for each TRUNCATE.  `action` is
#: change, truncate (`detail`: JSON of its options), or none for a version that changes no row.
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
    text("file_state", nullable=True),  # what that file's number, size and time were then
    text("mark", nullable=True),  # nonce and number of a commit of replctl's own
)
Index("pg_wal_relid_index", pg_wal.c.relid, pg_wal.c.version)
Index("pg_wal_xid_index", pg_wal.c.xid)


#: The tables that a transaction in progress writes.  If its process dies, its versions after
#: `version` are undone, or when `is_whole` (they are all that the transaction does) taken for
#: committed.
intent = Table(
    "intent",
    metadata,
    integer("xid"),
    integer("relid"),
    integer("version", nullable=True),  # the table's version before; NULL: there was no table
    boolean("is_whole"),
    integer("began"),  # microseconds since 1970
)
Index("intent_key_index", intent.c.xid, intent.c.relid, unique=True)


#: What the marks of replctl's commits to Delta tables bear (commit_nonce.py).
commit_nonce = Table(
    "commit_nonce",
    metadata,
    Column("nonce", Text, primary_key=True),
    integer("relid"),
    integer("xid"),
    integer("made"),  # microseconds since 1970
)

#: Locks of blocks that are open (lock.py): what they have changed, or rely on.
object_lock = Table(
    "object_lock",
    metadata,
    integer("xid"),
    text("name"),
    integer("mode"),
)
Index("object_lock_xid_index", object_lock.c.xid)


#: Blocks that wait for others.
lock_wait = Table(
    "lock_wait",
    metadata,
    integer("xid"),
    integer("holder"),
)


# -- storage ---------------------------------------------------------------------------------

#: Where a relation's Delta table lies; `is_made` tells whether it exists yet.  `has_location`: the
#: place is the user's (LOCATION), not one below base/.  `was_empty` tells whether the directory was
#: empty when replctl made the table there; NULL: replctl has not begun to make it.  `has_foreign`:
#: another program has committed to it.  `taken_over`: when somebody last went on with, or undid,
#: what a dead process had begun to write (microseconds since 1970).
storage_table = Table(
    "storage_table",
    metadata,
    Column("relid", Integer, primary_key=True),
    integer("dbid"),
    text("location"),
    boolean("is_adopted"),
    boolean("is_made"),
    boolean("has_location"),
    Column("was_empty", Boolean, nullable=True),
    boolean("has_foreign"),
    integer("taken_over", nullable=True),
    # Commits with unknown marks of this cluster are another writer's, at the next look
    boolean("accepts_marks"),
    boolean("is_read_only"),  # it belongs to the cluster that this one is a copy of
    text("table_id", nullable=True),  # metaData.id of the newest version in the log
    boolean("has_row_ids"),  # its rows have them (delta.enableRowTracking)
)

#: The columns of a Delta table: a name once given stays, whatever DDL does to the relation's
#: column. `since_version` is the Delta version from which the column has its own values, NULL if it
#: is not there yet.
#: Others may rename a column: `name` is then the newest, `physical_name` that in files (NULL: the
#: same), and `renamed_version` the last version that renamed the column, dropped it or put it back.
#: A column whose type has changed has another column for each type: `attnum` is then the number
#: that pg_attribute.attfilenode says instead of its own; those before it say whose they were
#: (`owner`), and which type they have. A column of a definition that was taken back says whose it
#: was, too; others below 0 are not replctl's, or are not there yet.
storage_column = Table(
    "storage_column",
    metadata,
    integer("relid"),
    integer("attnum"),
    text("name"),
    integer("since_version", nullable=True),
    text("physical_name", nullable=True),
    integer("renamed_version", nullable=True),
    boolean("is_dropped"),  # the table does not have it any more
    integer("owner", nullable=True),
    integer("atttypid", nullable=True),
    integer("atttypmod", nullable=True),
)
Index("storage_column_key_index", storage_column.c.relid, storage_column.c.attnum, unique=True)


#: Whose a schema of temporary relations is (Session.key); the row may be there without the schema.
temporary_namespace = Table(
    "temporary_namespace",
    metadata,
    Column("nspid", Integer, primary_key=True, autoincrement=False),
    text("owner"),
)

#: How far sequences have come (pg_sequence.node): no transaction takes that back.
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
    integer("applied_lsn", default=0),  # what its subscription has said to have applied
    boolean("two_phase"),
    boolean("failover"),
    boolean("synced"),
    text("invalidation_reason", nullable=True),
    integer("inactive_since", nullable=True),
    text("standby_home", nullable=True),  # of a physical slot: the cluster that follows by it
    text("owner", nullable=True),  # the session (Session.key) that a temporary slot goes with
    text("publications", nullable=True),  # what its reader subscribes to, as JSON
    text("retention", nullable=True),  # owners of adopted tables: lost, unreserved (wal_status)
)

#: What SQL has read from slots.
pg_stat_replication_slots = Table(
    "pg_stat_replication_slots",
    metadata,
    Column("slot_name", Text, primary_key=True),
    integer("total_txns"),
    integer("total_bytes"),
    integer("stats_reset"),  # microseconds since 1970
)

pg_replication_origin = Table(
    "pg_replication_origin",
    metadata,
    Column("roident", Integer, primary_key=True),
    text("roname"),
    integer("remote_lsn", default=0),
    text("remote_digest", nullable=True),  # of the remote commit there; NULL: not known
    integer("local_lsn", default=0),
    text("owner", nullable=True),  # the session that has it set up
)
Index("pg_replication_origin_name_index", pg_replication_origin.c.roname, unique=True)


#: A batch of changes that an applier has begun to write: enough to finish it after a crash.  The
#: subscription's apply has `relid` 0, the synchronization of one table that table's.
apply_batch = Table(
    "apply_batch",
    metadata,
    integer("subid"),
    integer("relid", default=0),
    integer("from_lsn"),
    integer("to_lsn"),
    text("to_digest", nullable=True),  # of the publisher's commit there (commit_digest.py)
    integer("xid"),
    text("targets"),  # JSON: for each target relation its version before and its step number
)
Index("apply_batch_key_index", apply_batch.c.subid, apply_batch.c.relid, unique=True)


#: The last step that a subscription has taken in a table: with the table, Delta's transaction
#: identifier.
apply_step = Table(
    "apply_step",
    metadata,
    integer("subid"),
    integer("relid"),
    integer("step"),
    integer("written", nullable=True),  # the newest step whose write is in the log
)
Index("apply_step_key_index", apply_step.c.subid, apply_step.c.relid, unique=True)


#: Who is at work (catalog/worker.py): for each subscription its apply worker (`relid` 0) and its
#: table synchronization workers.
logical_worker = Table(
    "logical_worker",
    metadata,
    Column("subid", Integer, primary_key=True),
    Column("relid", Integer, primary_key=True),
    text("backend"),  # the process (Cluster.backend); the row counts while that lives
    boolean("is_held"),
    integer("received_lsn", nullable=True),
    integer("last_msg_time"),
)

#: Those that replication slots are read by.
walsender = Table(
    "walsender",
    metadata,
    Column("slot_name", Text, primary_key=True),
    text("client"),  # the subscription: system identifier of its cluster and OID
    text("backend"),
    boolean("is_held"),
    text("application_name"),
    integer("usesysid"),
    integer("backend_start"),
    text("state"),
    integer("reply_time"),
)

#: When `replctl verify` has found a table of a subscription equal to what is published, last.
table_verification = Table(
    "table_verification",
    metadata,
    Column("subid", Integer, primary_key=True),
    Column("relid", Integer, primary_key=True),
    integer("time"),  # microseconds since 1970, UTC
    integer("lsn"),  # the publisher's position at which it was compared
)

#: What has stopped a subscription in its last attempt; the next one that succeeds removes it.
subscription_error = Table(
    "subscription_error",
    metadata,
    Column("subid", Integer, primary_key=True),
    integer("time"),
    text("sqlstate"),
    text("message"),  # with DETAIL and CONTEXT, as it was reported
)
