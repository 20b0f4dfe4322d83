CREATE ROLE of_parent;
CREATE ROLE of_both;
CREATE USER of_child;
GRANT of_parent, of_child TO of_both;
CREATE SCHEMA parents AUTHORIZATION of_parent;
CREATE SCHEMA children AUTHORIZATION of_child;
CREATE TABLE parents.p (a int, b int, c int NOT NULL, CONSTRAINT k CHECK (b > 0));
CREATE TABLE children.inherits () INHERITS (parents.p);
CREATE TABLE parents.local (a int, b int);
CREATE TABLE children.has_local (a int, b int, CONSTRAINT k CHECK (b > 0)) INHERITS (parents.local);
CREATE TABLE parents.parted (a int, b int, c int NOT NULL) PARTITION BY LIST (a);
CREATE TABLE children.part PARTITION OF parents.parted FOR VALUES IN (1);
CREATE TABLE parents.keyed (a int NOT NULL, b int) PARTITION BY LIST (a);
CREATE TABLE children.keyed_part PARTITION OF parents.keyed FOR VALUES IN (1);
CREATE TABLE parents.new_part (a int, b int, c int NOT NULL);
CREATE TABLE parents.referenced (a int PRIMARY KEY);
CREATE TABLE public.alone (a int);
CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 1';
REVOKE EXECUTE ON FUNCTION g() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION g() TO of_both;
CREATE TABLE parents.by_text (a text) PARTITION BY LIST (a);
ALTER TABLE parents.by_text OWNER TO of_parent;
ALTER TABLE parents.p OWNER TO of_parent;
ALTER TABLE parents.local OWNER TO of_parent;
ALTER TABLE parents.parted OWNER TO of_parent;
ALTER TABLE parents.keyed OWNER TO of_parent;
ALTER TABLE parents.new_part OWNER TO of_parent;
ALTER TABLE parents.referenced OWNER TO of_parent;
ALTER TABLE public.alone OWNER TO of_parent;
ALTER TABLE children.inherits OWNER TO of_child;
ALTER TABLE children.has_local OWNER TO of_child;
ALTER TABLE children.part OWNER TO of_child;
ALTER TABLE children.keyed_part OWNER TO of_child;
---
ALTER TABLE parents.p ADD COLUMN d int
ALTER TABLE parents.p ADD COLUMN d int CHECK (d > 0)
ALTER TABLE ONLY parents.p ADD COLUMN d int
ALTER TABLE parents.p DROP COLUMN b
ALTER TABLE ONLY parents.p DROP COLUMN b
ALTER TABLE parents.p RENAME COLUMN b TO d
ALTER TABLE parents.p RENAME CONSTRAINT k TO l
ALTER TABLE parents.p DROP CONSTRAINT k
ALTER TABLE ONLY parents.p DROP CONSTRAINT k
ALTER TABLE parents.p ADD CHECK (a > 0)
ALTER TABLE parents.p ADD CHECK (a > 0) NO INHERIT
ALTER TABLE parents.p ALTER COLUMN b TYPE bigint
ALTER TABLE parents.p ALTER COLUMN b SET DEFAULT 1
ALTER TABLE parents.p ALTER COLUMN b DROP DEFAULT
ALTER TABLE ONLY parents.p ALTER COLUMN b SET DEFAULT 1
ALTER TABLE parents.p ALTER COLUMN b SET NOT NULL
ALTER TABLE parents.p ALTER COLUMN c SET NOT NULL
ALTER TABLE parents.p ALTER COLUMN c DROP NOT NULL
ALTER TABLE ONLY parents.p ALTER COLUMN c DROP NOT NULL
ALTER TABLE parents.p ALTER COLUMN b SET STATISTICS 5
ALTER TABLE parents.p ALTER COLUMN b SET STORAGE PLAIN
ALTER TABLE parents.p ALTER COLUMN b SET (n_distinct = 5)
ALTER TABLE parents.p ADD PRIMARY KEY (a)
ALTER TABLE parents.p REPLICA IDENTITY FULL
ALTER TABLE parents.local ADD COLUMN d int
ALTER TABLE parents.local DROP COLUMN b
ALTER TABLE parents.local ADD CONSTRAINT k CHECK (b > 0)
ALTER TABLE parents.parted ADD COLUMN d int
ALTER TABLE parents.parted DROP COLUMN b
ALTER TABLE parents.parted RENAME COLUMN b TO d
ALTER TABLE parents.parted ALTER COLUMN b TYPE bigint
ALTER TABLE parents.parted ALTER COLUMN b SET DEFAULT 1
ALTER TABLE parents.parted ALTER COLUMN b SET NOT NULL
ALTER TABLE ONLY parents.parted ALTER COLUMN b SET NOT NULL
ALTER TABLE parents.parted ALTER COLUMN c SET NOT NULL
ALTER TABLE parents.parted ALTER COLUMN c ADD GENERATED ALWAYS AS IDENTITY
ALTER TABLE parents.parted ADD CHECK (b > 0)
ALTER TABLE parents.parted ADD PRIMARY KEY (a)
ALTER TABLE parents.parted ADD UNIQUE (a)
ALTER TABLE parents.parted ADD FOREIGN KEY (b) REFERENCES parents.referenced
ALTER TABLE parents.parted REPLICA IDENTITY FULL
ALTER TABLE parents.parted ENABLE ROW LEVEL SECURITY
ALTER TABLE parents.parted ATTACH PARTITION parents.new_part FOR VALUES IN (2)
ALTER TABLE parents.parted ATTACH PARTITION children.has_local FOR VALUES IN (2)
CREATE TABLE parents.bound PARTITION OF parents.keyed FOR VALUES IN (g())
CREATE TABLE parents.bound PARTITION OF parents.by_text FOR VALUES IN (pg_reload_conf()::text)
CREATE TABLE parents.bound PARTITION OF parents.by_text FOR VALUES IN (version())
ALTER TABLE parents.parted DETACH PARTITION children.part
ALTER TABLE parents.keyed ADD PRIMARY KEY (a)
CREATE INDEX ON parents.parted (b)
CREATE UNIQUE INDEX ON parents.parted (a)
CREATE INDEX ON ONLY parents.parted (b)
CREATE INDEX ON public.alone (a)
ALTER TABLE public.alone ADD UNIQUE (a)
TRUNCATE parents.parted
DROP TABLE parents.parted
DROP TABLE parents.p CASCADE
