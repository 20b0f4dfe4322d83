"""Define the catalog's versioned tables, with PostgreSQL's names where they exist.

The tables store the definitions that DDL makes.  A row is never overwritten.  Like a row of
PostgreSQL's heap it has the numbers of the transactions that created and removed it (`xmin`,
`xmax`; 0 for none).  So others do not see the changes of a transaction block before its commit, and
decoding sees the definitions at each commit. *Shared* tables belong to the cluster, the others to
one database (`dbid`).

State without versions is in state_schema.py: the log, slots, origins and facts about storage.
"""

from __future__ import annotations

from sqlalchemy import Column, Double, Index

from replctl.catalog.schema_table import boolean, integer, oid, real, text, versioned

#: The revision of the catalog that this program reads and writes.  Change it with every change of
#: this file or state_schema.py (date, then a letter): programs of another revision then refuse the
#: catalog.
REVISION = "20261130c"

pg_authid = versioned(
    "pg_authid",
    oid(),
    text("rolname"),
    boolean("rolsuper"),
    boolean("rolinherit", default=True),
    boolean("rolcreaterole"),
    boolean("rolcreatedb"),
    boolean("rolcanlogin"),
    boolean("rolreplication"),
    boolean("rolbypassrls"),
    integer("rolconnlimit", default=-1),
    text("rolpassword", nullable=True),
    text("rolvaliduntil", nullable=True),
    shared=True,
)

pg_auth_members = versioned(
    "pg_auth_members",
    oid(),
    oid("roleid"),
    oid("member"),
    oid("grantor"),
    boolean("admin_option"),
    boolean("inherit_option", default=True),
    boolean("set_option", default=True),
    shared=True,
)

#: The stored form of access lists is that of `encode_acl` (acl.py).
pg_database = versioned(
    "pg_database",
    oid(),
    text("datname"),
    oid("datdba"),
    boolean("datistemplate"),
    boolean("datallowconn", default=True),
    text("datacl", nullable=True),
    shared=True,
)

#: Settings of ALTER ROLE and ALTER DATABASE: `name=value` in JSON. OID 0 is every database or every
#: role.
pg_db_role_setting = versioned(
    "pg_db_role_setting",
    oid("setdatabase"),
    oid("setrole"),
    text("setconfig"),
    shared=True,
    key=("setdatabase", "setrole"),
)


# -- objects of a database -------------------------------------------------------------------

pg_namespace = versioned(
    "pg_namespace", oid(), text("nspname"), oid("nspowner"), text("nspacl", nullable=True)
)

pg_class = versioned(
    "pg_class",
    oid(),
    text("relname"),
    oid("relnamespace"),
    oid("reltype"),
    oid("relowner"),
    text("relkind"),
    text("relpersistence", default="p"),
    text("relreplident", default="d"),
    boolean("relispopulated", default=True),
    boolean("relispartition"),
    text("relpartbound", nullable=True),
    boolean("relrowsecurity"),
    boolean("relforcerowsecurity"),
    text("reloptions", nullable=True),
    text("relacl", nullable=True),
)
Index("pg_class_name_index", pg_class.c.relname, pg_class.c.relnamespace)


pg_attribute = versioned(
    "pg_attribute",
    oid("attrelid"),
    integer("attnum"),
    text("attname"),
    oid("atttypid"),
    integer("atttypmod", default=-1),
    integer("attndims", default=0),
    oid("attcollation"),
    boolean("attnotnull"),
    boolean("atthasdef"),
    text("attidentity", default=""),
    text("attgenerated", default=""),
    boolean("attisdropped"),
    boolean("attislocal", default=True),
    integer("attinhcount", default=0),
    text("attmissingval", nullable=True),
    integer("attfilenode", default=0),
    text("attfieldnames", nullable=True),  # see Column.field_names
    text("attstorage", default=""),  # '' for the type's default
    text("attcompression", default=""),
    integer("attstattarget", nullable=True),
    text("attoptions", nullable=True),
    text("attacl", nullable=True),
    key=("attrelid", "attnum"),
)

pg_attrdef = versioned(
    "pg_attrdef", oid(), oid("adrelid"), integer("adnum"), text("adbin"), key=("adrelid", "adnum")
)

pg_index = versioned(
    "pg_index",
    oid("indexrelid"),
    oid("indrelid"),
    integer("indnkeyatts"),
    boolean("indisunique"),
    boolean("indisprimary"),
    boolean("indisreplident"),
    boolean("indnullsnotdistinct"),
    boolean("indimmediate", default=True),
    boolean("indisclustered"),
    text("indam", default="btree"),
    text("indkeydetails", nullable=True),  # KeyDetail in JSON
    text("indkey"),
    text("indexprs", nullable=True),
    text("indpred", nullable=True),
    key=("indexrelid",),
)
Index("pg_index_indrelid_index", pg_index.c.indrelid)


pg_constraint = versioned(
    "pg_constraint",
    oid(),
    text("conname"),
    oid("connamespace"),
    text("contype"),
    oid("conrelid"),
    oid("contypid"),
    oid("conindid"),
    oid("conparentid"),
    oid("confrelid"),
    text("confupdtype", default=" "),
    text("confdeltype", default=" "),
    text("confmatchtype", default=" "),
    text("conkey", nullable=True),
    text("confkey", nullable=True),
    text("confdelsetcols", nullable=True),
    text("conbin", nullable=True),
    boolean("convalidated", default=True),
    boolean("conenforced", default=True),
    boolean("condeferrable"),
    boolean("connoinherit"),
    boolean("conislocal", default=True),
    integer("coninhcount", default=0),
)
Index("pg_constraint_conrelid_index", pg_constraint.c.conrelid)
Index("pg_constraint_contypid_index", pg_constraint.c.contypid)
Index("pg_constraint_confrelid_index", pg_constraint.c.confrelid)


#: The last columns hold the sequence's rows of pg_depend, and its filenode (pg_sequence.py).
pg_sequence = versioned(
    "pg_sequence",
    oid("seqrelid"),
    oid("seqtypid"),
    integer("seqstart"),
    integer("seqincrement"),
    integer("seqmax"),
    integer("seqmin"),
    integer("seqcache"),
    boolean("seqcycle"),
    oid("ownerrelid"),
    integer("ownerattnum"),
    text("ownership", default=""),
    oid("node"),
    key=("seqrelid",),
)
Index("pg_sequence_ownerrelid_index", pg_sequence.c.ownerrelid)


pg_inherits = versioned(
    "pg_inherits",
    oid("inhrelid"),
    oid("inhparent"),
    integer("inhseqno"),
    key=("inhrelid", "inhparent"),
)
Index("pg_inherits_inhparent_index", pg_inherits.c.inhparent)


pg_partitioned_table = versioned(
    "pg_partitioned_table",
    oid("partrelid"),
    text("partstrat"),
    text("partattrs"),
    text("partexprs", nullable=True),
    key=("partrelid",),
)

pg_type = versioned(
    "pg_type",
    oid(),
    text("typname"),
    oid("typnamespace"),
    oid("typowner"),
    text("typtype"),
    text("typcategory"),
    oid("typrelid"),
    oid("typelem"),
    oid("typarray"),
    boolean("typnotnull"),
    oid("typbasetype"),
    integer("typtypmod", default=-1),
    integer("typndims", default=0),
    oid("typcollation"),
    text("typdefaultbin", nullable=True),
    text("typdefault", nullable=True),
    text("typacl", nullable=True),
)
Index("pg_type_name_index", pg_type.c.typname)


pg_enum = versioned(
    "pg_enum", oid(), oid("enumtypid"), Column("enumsortorder", Double), text("enumlabel")
)
Index("pg_enum_enumtypid_index", pg_enum.c.enumtypid)


pg_proc = versioned(
    "pg_proc",
    oid(),
    text("proname"),
    oid("pronamespace"),
    oid("proowner"),
    text("prolang"),
    real("procost", default=100),
    real("prorows", default=0),
    text("prokind", default="f"),
    boolean("proleakproof"),
    text("provolatile"),
    text("proparallel", default="u"),
    boolean("proisstrict"),
    boolean("proretset"),
    oid("prorettype"),
    text("proargtypes"),
    text("proargnames", nullable=True),
    text("prosrc"),
    text("proacl", nullable=True),
)
Index("pg_proc_name_index", pg_proc.c.proname)


pg_operator = versioned(
    "pg_operator",
    oid(),
    text("oprname"),
    oid("oprnamespace"),
    oid("oprowner"),
    oid("oprleft"),
    oid("oprright"),
    oid("oprresult"),
    oid("oprcode"),
)
Index("pg_operator_name_index", pg_operator.c.oprname)


#: User-defined copies of built-in collations; `collsource` is the original.
pg_collation = versioned(
    "pg_collation",
    oid(),
    text("collname"),
    oid("collnamespace"),
    oid("collowner"),
    text("collsource"),
)

#: The query of a view or a materialized view: a query tree (query/stored.py).
pg_rewrite = versioned("pg_rewrite", oid(), text("rulename"), oid("ev_class"), text("ev_action"))
Index("pg_rewrite_ev_class_index", pg_rewrite.c.ev_class)


#: Access lists of ALTER DEFAULT PRIVILEGES for new objects; namespace 0 is all schemas.
pg_default_acl = versioned(
    "pg_default_acl",
    oid(),
    oid("defaclrole"),
    oid("defaclnamespace"),
    text("defaclobjtype"),
    text("defaclacl"),
)

#: Conditions are stored expressions, which may contain query trees (query/stored.py).
pg_policy = versioned(
    "pg_policy",
    oid(),
    text("polname"),
    oid("polrelid"),
    text("polcmd"),
    boolean("polpermissive", default=True),
    text("polroles"),  # OIDs in JSON, 0 for PUBLIC
    text("polqual", nullable=True),
    text("polwithcheck", nullable=True),
)
Index("pg_policy_polrelid_index", pg_policy.c.polrelid)


_COMMENT_KEY = ("objoid", "classoid", "objsubid")

pg_description = versioned(
    "pg_description",
    oid("objoid"),
    oid("classoid"),
    integer("objsubid", default=0),
    text("description"),
    key=_COMMENT_KEY,
)

pg_shdescription = versioned(
    "pg_shdescription",
    oid("objoid"),
    oid("classoid"),
    text("description"),
    shared=True,
    key=_COMMENT_KEY[:2],
)


# -- publications and subscriptions ----------------------------------------------------------

pg_publication = versioned(
    "pg_publication",
    oid(),
    text("pubname"),
    oid("pubowner"),
    boolean("puballtables"),
    boolean("pubinsert"),
    boolean("pubupdate"),
    boolean("pubdelete"),
    boolean("pubtruncate"),
    boolean("pubviaroot"),
)
Index("pg_publication_name_index", pg_publication.c.pubname)


pg_publication_rel = versioned(
    "pg_publication_rel",
    oid(),
    oid("prpubid"),
    oid("prrelid"),
    text("prqual", nullable=True),
    text("prattrs", nullable=True),
)
Index("pg_publication_rel_prpubid_index", pg_publication_rel.c.prpubid)
Index("pg_publication_rel_prrelid_index", pg_publication_rel.c.prrelid)


pg_publication_namespace = versioned(
    "pg_publication_namespace", oid(), oid("pnpubid"), oid("pnnspid")
)

pg_subscription = versioned(
    "pg_subscription",
    oid(),
    oid("subdbid"),
    integer("subskiplsn", default=0),
    text("subname"),
    oid("subowner"),
    boolean("subenabled"),
    boolean("subbinary"),
    text("substream", default="f"),
    text("subtwophasestate", default="d"),
    boolean("subdisableonerr"),
    boolean("subpasswordrequired", default=True),
    boolean("subrunasowner"),
    boolean("subfailover"),
    text("subconninfo"),
    text("subslotname", nullable=True),
    text("subsynccommit", default="off"),
    text("subpublications"),
    text("suborigin", default="any"),
    text("subresync", default="manual"),  # this and the next columns are options of replctl
    integer("subresyncmaxdelete", default=10),  # maximum percentage of a table's rows
    text("subtablemap", default=""),
    boolean("subfollowschema"),
    shared=True,
)
