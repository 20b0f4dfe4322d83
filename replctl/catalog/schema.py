"""The catalog's tables, with PostgreSQL's catalog and column names where PostgreSQL has them.

Three kinds:

* *versioned* tables hold what DDL defines.  A row is never overwritten: it carries the transactions
that
  made and that removed it (`xmin`, `xmax`; 0 for none), as PostgreSQL's heap rows do.  So a block's
  changes are its own until it commits, and decoding sees the definitions that were in force at each
  commit.
* *shared* versioned tables belong to the cluster, the others to one database (`dbid`).
* the rest is state that only moves on: the log, slots, origins, what is known of storage.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

#: The revision of the catalog that this program reads and writes.  Change it with every change of
#: this file (date, then a letter): programs of another revision then refuse the catalog.
REVISION = "20261126p"

metadata = MetaData()


def _versioned(
    name: str, *columns: Column[Any], shared: bool = False, key: tuple[str, ...] = ("oid",)
) -> Table:
    """A table whose rows have versions; `key` names one object among the visible rows."""
    scope = [] if shared else [Column("dbid", Integer, nullable=False)]
    life = [
        Column("xmin", Integer, nullable=False),
        Column("xmax", Integer, nullable=False, server_default="0"),
    ]
    table = Table(
        name, metadata, *scope, *columns, *life, info={"versioned": True, "shared": shared}
    )
    Index(f"{name}_key_index", *(table.c[column] for column in key), table.c.xmax)
    return table


def _oid(name: str = "oid") -> Column[int]:
    return Column(name, Integer, nullable=False)


def _text(name: str, *, nullable: bool = False, default: str | None = None) -> Column[str]:
    return Column(name, Text, nullable=nullable, server_default=default)


def _int(name: str, *, nullable: bool = False, default: int | None = None) -> Column[int]:
    return Column(
        name,
        BigInteger,
        nullable=nullable,
        server_default=None if default is None else str(default),
    )


def _bool(name: str, *, default: bool = False) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default="1" if default else "0")


# -- the cluster -----------------------------------------------------------------------------

#: One row. `is_in_recovery` tells a standby; `promoted_to` is the home of the standby that has
#: taken this cluster's place.
pg_control = Table(
    "pg_control",
    metadata,
    _int("system_identifier"),
    _text("signing_key"),  # of the marks of commits (lake/commit_mark.py), in hexadecimal
    _int("next_xid"),
    _int("next_oid"),
    _int("insert_lsn"),
    _int("timeline", default=1),
    _bool("is_in_recovery"),
    _text("promoted_to", nullable=True),
    _text("home"),  # the directory where the cluster is; elsewhere it is a copy, or was moved
    # Where relative locations of tables begin: a standby's are its primary's; NULL: at home
    _text("table_home", nullable=True),
    _text("revision", nullable=True),  # as alembic has it, for programs that have it open
    _int("trimmed_lsn", default=0),  # commits up to it may be gone (commit_digest.py)
)

pg_authid = _versioned(
    "pg_authid",
    _oid(),
    _text("rolname"),
    _bool("rolsuper"),
    _bool("rolinherit", default=True),
    _bool("rolcreaterole"),
    _bool("rolcreatedb"),
    _bool("rolcanlogin"),
    _bool("rolreplication"),
    _bool("rolbypassrls"),
    _int("rolconnlimit", default=-1),
    _text("rolpassword", nullable=True),
    _text("rolvaliduntil", nullable=True),
    shared=True,
)

pg_auth_members = _versioned(
    "pg_auth_members",
    _oid(),
    _oid("roleid"),
    _oid("member"),
    _oid("grantor"),
    _bool("admin_option"),
    _bool("inherit_option", default=True),
    _bool("set_option", default=True),
    shared=True,
)

#: Access lists are stored in a form of their own (acl.py).
pg_database = _versioned(
    "pg_database",
    _oid(),
    _text("datname"),
    _oid("datdba"),
    _text("datacl", nullable=True),
    shared=True,
)

#: What ALTER ROLE and ALTER DATABASE say of settings, `name=value` in JSON; 0 is every database, or
#: every role.
pg_db_role_setting = _versioned(
    "pg_db_role_setting",
    _oid("setdatabase"),
    _oid("setrole"),
    _text("setconfig"),
    shared=True,
    key=("setdatabase", "setrole"),
)

# -- objects of a database -------------------------------------------------------------------

pg_namespace = _versioned(
    "pg_namespace", _oid(), _text("nspname"), _oid("nspowner"), _text("nspacl", nullable=True)
)

pg_class = _versioned(
    "pg_class",
    _oid(),
    _text("relname"),
    _oid("relnamespace"),
    _oid("reltype"),
    _oid("relowner"),
    _text("relkind"),
    _text("relpersistence", default="p"),
    _text("relreplident", default="d"),
    _bool("relispopulated", default=True),
    _bool("relispartition"),
    _text("relpartbound", nullable=True),
    _bool("relrowsecurity"),
    _bool("relforcerowsecurity"),
    _text("reloptions", nullable=True),
    _text("relacl", nullable=True),
)
Index("pg_class_name_index", pg_class.c.relname, pg_class.c.relnamespace)

pg_attribute = _versioned(
    "pg_attribute",
    _oid("attrelid"),
    _int("attnum"),
    _text("attname"),
    _oid("atttypid"),
    _int("atttypmod", default=-1),
    _int("attndims", default=0),
    _oid("attcollation"),
    _bool("attnotnull"),
    _bool("atthasdef"),
    _text("attidentity", default=""),
    _text("attgenerated", default=""),
    _bool("attisdropped"),
    _bool("attislocal", default=True),
    _int("attinhcount", default=0),
    _text("attmissingval", nullable=True),
    _int("attfilenode", default=0),
    _text("attacl", nullable=True),
    key=("attrelid", "attnum"),
)

pg_attrdef = _versioned(
    "pg_attrdef", _oid(), _oid("adrelid"), _int("adnum"), _text("adbin"), key=("adrelid", "adnum")
)

pg_index = _versioned(
    "pg_index",
    _oid("indexrelid"),
    _oid("indrelid"),
    _int("indnkeyatts"),
    _bool("indisunique"),
    _bool("indisprimary"),
    _bool("indisreplident"),
    _bool("indnullsnotdistinct"),
    _text("indkey"),
    _text("indexprs", nullable=True),
    _text("indpred", nullable=True),
    key=("indexrelid",),
)
Index("pg_index_indrelid_index", pg_index.c.indrelid)

pg_constraint = _versioned(
    "pg_constraint",
    _oid(),
    _text("conname"),
    _oid("connamespace"),
    _text("contype"),
    _oid("conrelid"),
    _oid("conindid"),
    _oid("conparentid"),
    _oid("confrelid"),
    _text("confupdtype", default=" "),
    _text("confdeltype", default=" "),
    _text("confmatchtype", default=" "),
    _text("conkey", nullable=True),
    _text("confkey", nullable=True),
    _text("conbin", nullable=True),
    _bool("convalidated", default=True),
    _bool("conenforced", default=True),
    _bool("connoinherit"),
    _bool("conislocal", default=True),
    _int("coninhcount", default=0),
)
Index("pg_constraint_conrelid_index", pg_constraint.c.conrelid)
Index("pg_constraint_confrelid_index", pg_constraint.c.confrelid)

#: The last columns are the rows of pg_depend that concern the sequence (pg_sequence.py).
pg_sequence = _versioned(
    "pg_sequence",
    _oid("seqrelid"),
    _oid("seqtypid"),
    _int("seqstart"),
    _int("seqincrement"),
    _int("seqmax"),
    _int("seqmin"),
    _int("seqcache"),
    _bool("seqcycle"),
    _oid("ownerrelid"),
    _int("ownerattnum"),
    _text("ownership", default=""),
    key=("seqrelid",),
)
Index("pg_sequence_ownerrelid_index", pg_sequence.c.ownerrelid)

pg_inherits = _versioned(
    "pg_inherits",
    _oid("inhrelid"),
    _oid("inhparent"),
    _int("inhseqno"),
    key=("inhrelid", "inhparent"),
)
Index("pg_inherits_inhparent_index", pg_inherits.c.inhparent)

pg_partitioned_table = _versioned(
    "pg_partitioned_table",
    _oid("partrelid"),
    _text("partstrat"),
    _text("partattrs"),
    _text("partexprs", nullable=True),
    key=("partrelid",),
)

pg_type = _versioned(
    "pg_type",
    _oid(),
    _text("typname"),
    _oid("typnamespace"),
    _oid("typowner"),
    _text("typtype"),
    _text("typcategory"),
    _oid("typrelid"),
    _oid("typelem"),
    _oid("typarray"),
    _oid("typbasetype"),
    _text("typacl", nullable=True),
)
Index("pg_type_name_index", pg_type.c.typname)

pg_enum = _versioned(
    "pg_enum", _oid(), _oid("enumtypid"), Column("enumsortorder", Double), _text("enumlabel")
)
Index("pg_enum_enumtypid_index", pg_enum.c.enumtypid)

pg_proc = _versioned(
    "pg_proc",
    _oid(),
    _text("proname"),
    _oid("pronamespace"),
    _oid("proowner"),
    _text("prolang"),
    _text("prokind", default="f"),
    _text("provolatile"),
    _bool("proisstrict"),
    _bool("proretset"),
    _oid("prorettype"),
    _text("proargtypes"),
    _text("proargnames", nullable=True),
    _text("prosrc"),
    _text("proacl", nullable=True),
)
Index("pg_proc_name_index", pg_proc.c.proname)

pg_operator = _versioned(
    "pg_operator",
    _oid(),
    _text("oprname"),
    _oid("oprnamespace"),
    _oid("oprowner"),
    _oid("oprleft"),
    _oid("oprright"),
    _oid("oprresult"),
    _oid("oprcode"),
)
Index("pg_operator_name_index", pg_operator.c.oprname)

#: Collations that users made of built-in ones; `collsource` is whose copy it is.
pg_collation = _versioned(
    "pg_collation",
    _oid(),
    _text("collname"),
    _oid("collnamespace"),
    _oid("collowner"),
    _text("collsource"),
)

#: What a view or a materialized view selects: a query tree (query/stored.py).
pg_rewrite = _versioned(
    "pg_rewrite", _oid(), _text("rulename"), _oid("ev_class"), _text("ev_action")
)
Index("pg_rewrite_ev_class_index", pg_rewrite.c.ev_class)

#: What ALTER DEFAULT PRIVILEGES says: access lists that new objects get; namespace 0 is everywhere.
pg_default_acl = _versioned(
    "pg_default_acl",
    _oid(),
    _oid("defaclrole"),
    _oid("defaclnamespace"),
    _text("defaclobjtype"),
    _text("defaclacl"),
)

#: Expressions are stored as those of tables are, with query trees in them (query/stored.py).
pg_policy = _versioned(
    "pg_policy",
    _oid(),
    _text("polname"),
    _oid("polrelid"),
    _text("polcmd"),
    _bool("polpermissive", default=True),
    _text("polroles"),  # OIDs in JSON, 0 for PUBLIC
    _text("polqual", nullable=True),
    _text("polwithcheck", nullable=True),
)
Index("pg_policy_polrelid_index", pg_policy.c.polrelid)

_COMMENT_KEY = ("objoid", "classoid", "objsubid")
pg_description = _versioned(
    "pg_description",
    _oid("objoid"),
    _oid("classoid"),
    _int("objsubid", default=0),
    _text("description"),
    key=_COMMENT_KEY,
)
pg_shdescription = _versioned(
    "pg_shdescription",
    _oid("objoid"),
    _oid("classoid"),
    _text("description"),
    shared=True,
    key=_COMMENT_KEY[:2],
)

# -- publications and subscriptions ----------------------------------------------------------

pg_publication = _versioned(
    "pg_publication",
    _oid(),
    _text("pubname"),
    _oid("pubowner"),
    _bool("puballtables"),
    _bool("pubinsert"),
    _bool("pubupdate"),
    _bool("pubdelete"),
    _bool("pubtruncate"),
    _bool("pubviaroot"),
)
Index("pg_publication_name_index", pg_publication.c.pubname)

pg_publication_rel = _versioned(
    "pg_publication_rel",
    _oid(),
    _oid("prpubid"),
    _oid("prrelid"),
    _text("prqual", nullable=True),
    _text("prattrs", nullable=True),
)
Index("pg_publication_rel_prpubid_index", pg_publication_rel.c.prpubid)
Index("pg_publication_rel_prrelid_index", pg_publication_rel.c.prrelid)

pg_publication_namespace = _versioned(
    "pg_publication_namespace", _oid(), _oid("pnpubid"), _oid("pnnspid")
)

pg_subscription = _versioned(
    "pg_subscription",
    _oid(),
    _oid("subdbid"),
    _int("subskiplsn", default=0),
    _text("subname"),
    _oid("subowner"),
    _bool("subenabled"),
    _bool("subbinary"),
    _text("substream", default="f"),
    _text("subtwophasestate", default="d"),
    _bool("subdisableonerr"),
    _bool("subpasswordrequired", default=True),
    _bool("subrunasowner"),
    _bool("subfailover"),
    _text("subconninfo"),
    _text("subslotname", nullable=True),
    _text("subsynccommit", default="off"),
    _text("subpublications"),
    _text("suborigin", default="any"),
    _text("subresync", default="manual"),  # replctl's own, as what follows
    _int("subresyncmaxdelete", default=10),  # percentage of a table's rows
    shared=True,
)

pg_subscription_rel = Table(
    "pg_subscription_rel",
    metadata,
    _int("srsubid"),
    _int("srrelid"),
    _text("srsubstate"),
    _int("srsublsn", nullable=True),
    _text("srsubdigest", nullable=True),  # of the publisher's commit there (commit_digest.py)
    _text("snapshot", nullable=True),  # the copy that state d has begun: LSN and versions, as JSON
    _text("method"),  # what the copy does to the rows that are there: append, replace, reconcile
    _text("deletion", nullable=True),  # what a reconcile was told to delete: scope, all, none
    _text("definition", nullable=True),  # filters and columns when it was copied last, as JSON
    _text("applied_filters", nullable=True),  # that its rows have passed since then, as JSON
    _int("owned_since", nullable=True),  # the LSN since which all rows are the subscription's
    _text("fault", nullable=True),  # what another program did: the table must be refreshed
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
    _int("apply_error_count", default=0),
    _int("sync_error_count", default=0),
    _int("stats_reset", nullable=True),
    _int("confl_insert_exists", default=0),
    _int("confl_update_origin_differs", default=0),
    _int("confl_update_exists", default=0),
    _int("confl_update_missing", default=0),
    _int("confl_delete_origin_differs", default=0),
    _int("confl_delete_missing", default=0),
    _int("confl_multiple_unique_conflicts", default=0),
)

# -- the log ---------------------------------------------------------------------------------

#: Transactions: `status` is i(n progress) or c(ommitted); `commit_lsn` and `commit_time` come with
#: the commit. An aborted transaction leaves no row, unless it has yet to be undone.
pg_xact = Table(
    "pg_xact",
    metadata,
    Column("xid", Integer, primary_key=True),
    _int("dbid"),
    _text("status"),
    _text("backend", nullable=True),  # the process that it is in progress in (Cluster.backend)
    _int("block_xid", nullable=True),  # the block that it is, or is a savepoint of; else NULL
    _int("commit_lsn", nullable=True),
    _int("commit_time", nullable=True),  # microseconds since 1970, UTC
    _text("origin", nullable=True),  # name of the replication origin that the changes came from
    _int("origin_lsn", nullable=True),
    _bool("changes_catalog"),
    _text("digest", nullable=True),  # of the commit and all before it (commit_digest.py)
)
Index("pg_xact_commit_lsn_index", pg_xact.c.commit_lsn)

#: The commit log: one row for each Delta version of a relation, and for each TRUNCATE.  `action` is
#: change, truncate (`detail`: JSON of its options), or none for a version that changes no row.
pg_wal = Table(
    "pg_wal",
    metadata,
    Column("lsn", BigInteger, primary_key=True, autoincrement=False),
    _int("xid"),
    _int("dbid"),
    _int("relid"),
    _int("version", nullable=True),
    _text("action"),
    _text("detail", nullable=True),
    _text("digest", nullable=True),  # SHA-256 of the version's file in Delta's log
    _text("file_state", nullable=True),  # what that file's number, size and time were then
    _text("mark", nullable=True),  # nonce and number of a commit of replctl's own
)
Index("pg_wal_relid_index", pg_wal.c.relid, pg_wal.c.version)
Index("pg_wal_xid_index", pg_wal.c.xid)

#: The tables that a transaction in progress writes.  If its process dies, its versions after
#: `version` are undone, or when `is_whole` (they are all that the transaction does) taken for
#: committed.
intent = Table(
    "intent",
    metadata,
    _int("xid"),
    _int("relid"),
    _int("version", nullable=True),  # the table's version before; NULL: there was no table
    _bool("is_whole"),
    _int("began"),  # microseconds since 1970
)
Index("intent_key_index", intent.c.xid, intent.c.relid, unique=True)

#: What the marks of replctl's commits to Delta tables bear (commit_nonce.py).
commit_nonce = Table(
    "commit_nonce",
    metadata,
    Column("nonce", Text, primary_key=True),
    _int("relid"),
    _int("xid"),
    _int("made"),  # microseconds since 1970
)

#: Locks of blocks that are open (lock.py): what they have changed, or rely on.
object_lock = Table(
    "object_lock",
    metadata,
    _int("xid"),
    _text("name"),
    _int("mode"),
)
Index("object_lock_xid_index", object_lock.c.xid)

#: Blocks that wait for others.
lock_wait = Table(
    "lock_wait",
    metadata,
    _int("xid"),
    _int("holder"),
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
    _int("dbid"),
    _text("location"),
    _bool("is_adopted"),
    _bool("is_made"),
    _bool("has_location"),
    Column("was_empty", Boolean, nullable=True),
    _bool("has_foreign"),
    _int("taken_over", nullable=True),
    # Commits with unknown marks of this cluster are another writer's, at the next look
    _bool("accepts_marks"),
    _bool("is_read_only"),  # it belongs to the cluster that this one is a copy of
    _text("table_id", nullable=True),  # metaData.id of the newest version in the log
    _bool("has_row_ids"),  # its rows have them (delta.enableRowTracking)
)

#: The columns of a Delta table: a name once given stays, whatever DDL does to the relation's
#: column. `since_version` is the Delta version from which the column has its own values, NULL if it
#: is not there yet.
#: Others may rename a column: `name` is then the newest, `physical_name` that in files (NULL: the
#: same), and `renamed_version` the last version that renamed the column, dropped it or put it back.
#: A column whose type has changed has another column for each type: `attnum` is then the number
#: that pg_attribute.attfilenode says instead of its own; those before it say whose they were
#: (`owner`), and which type they have.
storage_column = Table(
    "storage_column",
    metadata,
    _int("relid"),
    _int("attnum"),
    _text("name"),
    _int("since_version", nullable=True),
    _text("physical_name", nullable=True),
    _int("renamed_version", nullable=True),
    _bool("is_dropped"),  # others have dropped it
    _int("owner", nullable=True),
    _int("atttypid", nullable=True),
    _int("atttypmod", nullable=True),
)
Index("storage_column_key_index", storage_column.c.relid, storage_column.c.attnum, unique=True)

#: Whose a schema of temporary relations is (Session.key); the row may be there without the schema.
temporary_namespace = Table(
    "temporary_namespace",
    metadata,
    Column("nspid", Integer, primary_key=True, autoincrement=False),
    _text("owner"),
)

#: How far sequences have come: no transaction takes that back.
sequence_state = Table(
    "sequence_state",
    metadata,
    Column("relid", Integer, primary_key=True, autoincrement=False),
    _int("last_value"),
    _bool("is_called"),
)

# -- slots, origins, apply -------------------------------------------------------------------

pg_replication_slots = Table(
    "pg_replication_slots",
    metadata,
    Column("slot_name", Text, primary_key=True),
    _text("plugin"),
    _text("slot_type", default="logical"),
    _int("datoid"),
    _bool("temporary"),
    _int("active_pid", nullable=True),
    _int("restart_lsn"),
    _int("confirmed_flush_lsn"),
    _int("applied_lsn", default=0),  # what its subscription has said to have applied
    _bool("two_phase"),
    _bool("failover"),
    _bool("synced"),
    _text("invalidation_reason", nullable=True),
    _int("inactive_since", nullable=True),
    _text("standby_home", nullable=True),  # of a physical slot: the cluster that follows by it
    _text("owner", nullable=True),  # the session (Session.key) that a temporary slot goes with
    _text("publications", nullable=True),  # what its reader subscribes to, as JSON
    _text("retention", nullable=True),  # owners of adopted tables: lost, unreserved (wal_status)
)

#: What SQL has read from slots.
pg_stat_replication_slots = Table(
    "pg_stat_replication_slots",
    metadata,
    Column("slot_name", Text, primary_key=True),
    _int("total_txns"),
    _int("total_bytes"),
    _int("stats_reset"),  # microseconds since 1970
)

pg_replication_origin = Table(
    "pg_replication_origin",
    metadata,
    Column("roident", Integer, primary_key=True),
    _text("roname"),
    _int("remote_lsn", default=0),
    _text("remote_digest", nullable=True),  # of the remote commit there; NULL: not known
    _int("local_lsn", default=0),
    _text("owner", nullable=True),  # the session that has it set up
)
Index("pg_replication_origin_name_index", pg_replication_origin.c.roname, unique=True)

#: A batch of changes that an applier has begun to write: enough to finish it after a crash.  The
#: subscription's apply has `relid` 0, the synchronization of one table that table's.
apply_batch = Table(
    "apply_batch",
    metadata,
    _int("subid"),
    _int("relid", default=0),
    _int("from_lsn"),
    _int("to_lsn"),
    _text("to_digest", nullable=True),  # of the publisher's commit there (commit_digest.py)
    _int("xid"),
    _text("targets"),  # JSON: for each target relation its version before and its step number
)
Index("apply_batch_key_index", apply_batch.c.subid, apply_batch.c.relid, unique=True)

#: The last step that a subscription has taken in a table: with the table, Delta's transaction
#: identifier.
apply_step = Table(
    "apply_step",
    metadata,
    _int("subid"),
    _int("relid"),
    _int("step"),
    _int("written", nullable=True),  # the newest step whose write is in the log
)
Index("apply_step_key_index", apply_step.c.subid, apply_step.c.relid, unique=True)

#: Who is at work (catalog/worker.py): for each subscription its apply worker (`relid` 0) and its
#: table synchronization workers.
logical_worker = Table(
    "logical_worker",
    metadata,
    Column("subid", Integer, primary_key=True),
    Column("relid", Integer, primary_key=True),
    _text("backend"),  # the process (Cluster.backend); the row counts while that lives
    _bool("is_held"),
    _int("received_lsn", nullable=True),
    _int("last_msg_time"),
)

#: Those that replication slots are read by.
walsender = Table(
    "walsender",
    metadata,
    Column("slot_name", Text, primary_key=True),
    _text("client"),  # the subscription: system identifier of its cluster and OID
    _text("backend"),
    _bool("is_held"),
    _text("application_name"),
    _int("usesysid"),
    _int("backend_start"),
    _text("state"),
    _int("reply_time"),
)

#: When `replctl verify` has found a table of a subscription equal to what is published, last.
table_verification = Table(
    "table_verification",
    metadata,
    Column("subid", Integer, primary_key=True),
    Column("relid", Integer, primary_key=True),
    _int("time"),  # microseconds since 1970, UTC
    _int("lsn"),  # the publisher's position at which it was compared
)

#: What has stopped a subscription in its last attempt; the next one that succeeds removes it.
subscription_error = Table(
    "subscription_error",
    metadata,
    Column("subid", Integer, primary_key=True),
    _int("time"),
    _text("sqlstate"),
    _text("message"),  # with DETAIL and CONTEXT, as it was reported
)
