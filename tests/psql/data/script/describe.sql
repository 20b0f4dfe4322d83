CREATE SCHEMA d_one;
CREATE TABLE d_plain (a int PRIMARY KEY, "B c" text NOT NULL, c varchar(10) COLLATE "C" DEFAULT 'x', d numeric(10,2), e timestamptz, f int[], UNIQUE ("B c", d));
CREATE TABLE d_one.d_other (id bigint, note jsonb, CHECK (id > 0));
CREATE TABLE d_reference (a int REFERENCES d_plain (a), b int GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE d_parent (a int, b text);
CREATE TABLE d_child (c int) INHERITS (d_parent);
CREATE TABLE d_child2 () INHERITS (d_parent, d_child);
CREATE TABLE d_parted (a int NOT NULL, b text, PRIMARY KEY (a)) PARTITION BY RANGE (a);
CREATE TABLE d_part1 PARTITION OF d_parted FOR VALUES FROM (1) TO (10);
CREATE TABLE d_part2 PARTITION OF d_parted FOR VALUES FROM (10) TO (MAXVALUE) PARTITION BY LIST (a);
CREATE TABLE d_part3 PARTITION OF d_part2 FOR VALUES IN (11, 12, NULL);
CREATE TABLE d_default PARTITION OF d_parted DEFAULT;
CREATE TABLE d_empty (a int) PARTITION BY HASH (a);
CREATE PUBLICATION d_pub FOR TABLE d_plain (a, "B c") WHERE (a > 5), d_parted WHERE (a <> 3) WITH (publish_via_partition_root = true);
CREATE PUBLICATION d_schema FOR TABLES IN SCHEMA d_one;
CREATE PUBLICATION d_none WITH (publish = 'insert');
CREATE PUBLICATION "D quoted" FOR ALL TABLES;
\d d_plain
\d+ d_plain
\d d_one.d_other
\d d_one.*
\d d_reference
\d+ d_parent
\d d_parent
\d+ d_child2
\d d_child
\d d_parted
\d+ d_parted
\d+ d_part1
\d+ d_part2
\d d_part3
\d+ d_default
\d d_empty
\d+ d_empty
\dt
\dt d_p*
\dt d_part?
\dt *.d_o*
\dt "D_*"
\dt D_PLAIN
\dt d_one.
\dt nothing.*
\dt no.such.table
\dt postgres.d_one.*
\dt a.b.c.d
\dt d_(plain|child)
\dt d_plain;
\di
\dn d_*
\dn+ d_one
\dRp
\dRp d_*
\dRp nothing
\dRp a.b
\dRp+
\dRp+ d_pub
\dRp+ nothing
\dRp "D quoted"
\dRs
\dt nothing
\d nothing
\dp d_part*
\x
\d d_empty
\dRp+ d_none
\dt d_empty
\x
\a
\dRp+ d_pub
\a
\t
\dRp+ d_pub
\dn d_one
\t
\pset null '(null)'
\dp d_plain
\pset title 'Mine'
\dRp d_none
DROP PUBLICATION d_pub, d_schema, d_none, "D quoted";
DROP TABLE d_reference;
DROP TABLE d_parted, d_empty;
DROP TABLE d_child2;
DROP TABLE d_child;
DROP TABLE d_parent, d_one.d_other, d_plain;
DROP SCHEMA d_one;
-- predicates
CREATE TABLE partial (a int, b text);
CREATE UNIQUE INDEX partial_a ON partial (a) WHERE a > 5 AND b IS NOT NULL;
\d partial
\d partial_a
DROP TABLE partial;
