"""The catalog's tables without versions: the cluster's counters, the log, locks, facts about
storage, slots, origins and the progress of subscriptions.

Definitions of DDL are in schema.py.  A change of this file must also change `schema.REVISION`.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text

from replctl.catalog.schema_table import boolean, integer, metadata, text

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
    text("home"),  # the cluster's directory; if it is elsewhere, it is a copy, or was moved
    # Base of relative table locations: a standby uses its primary's home; NULL: this home
    text("table_home", nullable=True),
    text("revision", nullable=True),  # alembic's revision, for programs with an open catalog
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
    text("srsubdigest", nullable=True),  # digest of the publisher's commit there (commit_digest.py)
    text("snapshot", nullable=True),  # the copy of state d: LSN and versions, as JSON
    text("method"),  # the copy's effect on existing rows: append, replace, reconcile
    text("deletion", nullable=True),  # the rows that a reconcile may delete: scope, all, none
    text("definition", nullable=True),  # filters and columns at the last copy, as JSON
    text("applied_filters", nullable=True),  # filters of rows written since then, as JSON
    integer("owned_since", nullable=True),  # the LSN since which all rows are the subscription's
    text("fault", nullable=True),  # damage by another program: the table must be refreshed
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

#: Transactions: `status` is i(n progress) or c(ommitted); COMMIT sets `commit_lsn` and
#: `commit_time`.  An aborted transaction leaves no row, unless it must still be undone.
pg_xact = Table(
    "pg_xact",
    metadata,
    Column("xid", Integer, primary_key=True),
    integer("dbid"),
    text("status"),
    text("backend", nullable=True),  # the process of a transaction in progress (Cluster.backend)
    integer("block_xid", nullable=True),  # of the block and its savepoints
    integer("commit_lsn", nullable=True),
    integer("commit_time", nullable=True),  # microseconds since 1970, UTC
    text("origin", nullable=True),  # name of the replication origin that the changes came from
    integer("origin_lsn", nullable=True),
    boolean("changes_catalog"),
    boolean("is_internal"),  # no statement has made it
    text("digest", nullable=True),  # covers the commit and all before it (commit_digest.py)
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
    text("file_state", nullable=True),  # that file's number, size and time then
    text("mark", nullable=True),  # nonce and number of a commit by replctl
)
Index("pg_wal_relid_index", pg_wal.c.relid, pg_wal.c.version)
Index("pg_wal_xid_index", pg_wal.c.xid)


#: The tables that a transaction in progress writes.  If its process dies, its versions after
#: `version` are undone, or accepted as committed if `is_whole` (they are all that the transaction
#: does).
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


#: The nonces in marks of replctl's commits to Delta tables (commit_nonce.py).
commit_nonce = Table(
    "commit_nonce",
    metadata,
    Column("nonce", Text, primary_key=True),
    integer("relid"),
    integer("xid"),
    integer("made"),  # microseconds since 1970
)

#: Locks of open blocks on objects that they have changed or rely on (lock.py).
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

#: A relation's Delta table.  `is_made`: it exists.  `has_location`: the user chose the place
#: (LOCATION), which is not below base/.  `was_empty`: the directory was empty when replctl created
#: the table there; NULL: replctl has not begun.  `has_foreign`: another program has committed to
#: it.  `taken_over`: the last time when a process finished or undid the writes of a dead process
#: (microseconds since 1970).
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
    # At the next read, commits with unknown marks of this cluster count as another writer's
    boolean("accepts_marks"),
    boolean("is_read_only"),  # it belongs to the original of this copied cluster
    text("table_id", nullable=True),  # metaData.id of the newest version in the log
    boolean("has_row_ids"),  # its rows have row ids (delta.enableRowTracking)
)

#: Tables that replctl has registered in the catalogs of Spark, with the name and the location to
#: which it leads.  A row stays when the relation is dropped, until the name is taken out of there.
spark_registration = Table(
    "spark_registration",
    metadata,
    Column("relid", Integer, primary_key=True, autoincrement=False),
    text("name"),
    text("location"),
)

#: The columns of a Delta table.  A name, once given, stays, even if DDL renames the relation's
#: column.  `since_version` is the Delta version from which the column has its own values; NULL: it
#: does not exist yet.
#: Others may rename a column: then `name` is the newest name, `physical_name` the name in files
#: (NULL: the same), and `renamed_version` the last version that renamed, dropped or restored the
#: column.
#: A column whose type has changed has one column for each type.  `attnum` is then the number in
#: pg_attribute.attfilenode; former columns have `owner`, the attnum of the relation's column, and
#: their type.  Columns of undone definitions also have `owner`.  Other columns below 0 are not
#: replctl's, or do not exist yet.
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
    boolean("is_followed"),  # the relation's column was dropped with it, and comes back with it
    integer("owner", nullable=True),
    integer("atttypid", nullable=True),
    integer("atttypmod", nullable=True),
)
Index("storage_column_key_index", storage_column.c.relid, storage_column.c.attnum, unique=True)


#: The sessions (Session.key) of schemas for temporary relations; a row may exist without the
#: schema.
temporary_namespace = Table(
    "temporary_namespace",
    metadata,
    Column("nspid", Integer, primary_key=True, autoincrement=False),
    text("owner"),
)

#: The current values of sequences (pg_sequence.node), which ROLLBACK does not revert.
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
    integer("applied_lsn", default=0),  # the position that its subscription has reported as applied
    boolean("two_phase"),
    boolean("failover"),
    boolean("synced"),
    text("invalidation_reason", nullable=True),
    integer("inactive_since", nullable=True),
    text("standby_home", nullable=True),  # the standby's cluster of a physical slot
    text("owner", nullable=True),  # the session (Session.key) of a temporary slot
    text("publications", nullable=True),  # its reader's publications, as JSON
    text("retention", nullable=True),  # owners of adopted tables: lost, unreserved (wal_status)
)

#: Counters of what SQL functions have read from slots.
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
    text("remote_digest", nullable=True),  # digest of the remote commit there; NULL: unknown
    integer("local_lsn", default=0),
    text("owner", nullable=True),  # the session that has set it up
)
Index("pg_replication_origin_name_index", pg_replication_origin.c.roname, unique=True)


#: A batch of changes that an applier has begun to write, with all that is needed to finish it after
#: a crash.  `relid` is 0 for the subscription's apply, else the table in synchronization.
apply_batch = Table(
    "apply_batch",
    metadata,
    integer("subid"),
    integer("relid", default=0),
    integer("from_lsn"),
    integer("to_lsn"),
    text("to_digest", nullable=True),  # digest of the publisher's commit there (commit_digest.py)
    integer("xid"),
    text("targets"),  # JSON: version before and step number, by target relation
)
Index("apply_batch_key_index", apply_batch.c.subid, apply_batch.c.relid, unique=True)


#: The last step of a subscription in a table; together with the table it is Delta's transaction
#: identifier.
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
    text("backend"),  # the process (Cluster.backend); the row is valid while it lives
    boolean("is_held"),
    integer("received_lsn", nullable=True),
    integer("last_msg_time"),
)

#: The readers of replication slots.
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

#: The last time when `replctl verify` found a table of a subscription equal to the published one.
table_verification = Table(
    "table_verification",
    metadata,
    Column("subid", Integer, primary_key=True),
    Column("relid", Integer, primary_key=True),
    integer("time"),  # microseconds since 1970, UTC
    integer("lsn"),  # the compared position of the publisher
)

#: The error of a subscription's last attempt; the next successful attempt removes it.
subscription_error = Table(
    "subscription_error",
    metadata,
    Column("subid", Integer, primary_key=True),
    integer("time"),
    text("sqlstate"),
    text("message"),  # with DETAIL and CONTEXT, as reported
)
