CREATE ROLE nobody;
CREATE ROLE reader;
CREATE ROLE a_reader;
CREATE ROLE inserter;
CREATE ROLE updater;
CREATE ROLE deleter;
CREATE ROLE truncator;
CREATE ROLE referencer;
CREATE ROLE maintainer;
CREATE ROLE creator;
CREATE ROLE replicator REPLICATION;
CREATE ROLE owner;
CREATE ROLE superuser SUPERUSER;
CREATE TABLE t (a int PRIMARY KEY, b int, secret text);
CREATE TABLE other (id int NOT NULL, s text);
CREATE TABLE part (a int NOT NULL, b int) PARTITION BY LIST (a);
CREATE TABLE plain (id int);
CREATE SEQUENCE s;
CREATE VIEW v AS SELECT a, b FROM t;
CREATE VIEW i WITH (security_invoker = true) AS SELECT a, b FROM t;
CREATE MATERIALIZED VIEW m AS SELECT a FROM t WITH NO DATA;
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TYPE mood AS ENUM ('sad', 'ok');
REVOKE USAGE ON TYPE mood FROM PUBLIC;
CREATE SCHEMA hidden;
CREATE TABLE hidden.h (a int);
CREATE PUBLICATION p FOR TABLE t;
CREATE DATABASE d;
GRANT SELECT ON t, v, i, m, s TO reader;
GRANT SELECT (a) ON t TO a_reader;
GRANT INSERT ON t TO inserter;
GRANT UPDATE ON t, s TO updater;
GRANT DELETE ON t TO deleter;
GRANT TRUNCATE ON t TO truncator;
GRANT REFERENCES ON t TO referencer;
GRANT MAINTAIN ON t, m TO maintainer;
GRANT CREATE, USAGE ON SCHEMA public TO creator;
GRANT CREATE ON SCHEMA public TO owner;
GRANT CREATE ON DATABASE postgres TO owner;
ALTER TABLE t OWNER TO owner;
ALTER TABLE other OWNER TO owner;
ALTER TABLE part OWNER TO owner;
ALTER TABLE plain OWNER TO owner;
ALTER SEQUENCE s OWNER TO owner;
ALTER VIEW v OWNER TO owner;
ALTER VIEW i OWNER TO owner;
ALTER MATERIALIZED VIEW m OWNER TO owner;
ALTER FUNCTION f() OWNER TO owner;
ALTER TYPE mood OWNER TO owner;
ALTER PUBLICATION p OWNER TO owner;
---
SELECT a FROM t
SELECT b FROM t
SELECT * FROM t
SELECT count(*) FROM t
SELECT a FROM v
SELECT a FROM i
SELECT a FROM hidden.h
SELECT 1 WHERE EXISTS (SELECT secret FROM t)
WITH w AS (SELECT b FROM t) SELECT 1 FROM w
INSERT INTO t VALUES (1)
INSERT INTO t (a) SELECT id FROM plain
UPDATE t SET b = 1
UPDATE t SET b = a
UPDATE t SET b = 1 WHERE a = 1
DELETE FROM t
DELETE FROM t WHERE a = 1
TRUNCATE t
CREATE TABLE new (x int)
CREATE TABLE new AS SELECT a FROM t
CREATE TABLE new AS SELECT b FROM t WITH NO DATA
CREATE TABLE new (LIKE t)
CREATE TABLE new (LIKE other INCLUDING ALL)
CREATE TABLE new (x mood)
CREATE TABLE new (x mood[])
CREATE TABLE new (x int REFERENCES t)
CREATE TABLE new () INHERITS (plain)
CREATE TABLE new PARTITION OF part FOR VALUES IN (1)
CREATE TABLE new (x int CHECK (x > f()))
CREATE VIEW new AS SELECT secret FROM t
CREATE MATERIALIZED VIEW new AS SELECT b FROM t
CREATE MATERIALIZED VIEW new AS SELECT rolpassword FROM pg_authid
CREATE MATERIALIZED VIEW new AS SELECT b FROM t WITH NO DATA
REFRESH MATERIALIZED VIEW m
REFRESH MATERIALIZED VIEW m WITH NO DATA
DROP MATERIALIZED VIEW m
ALTER TABLE part ATTACH PARTITION other FOR VALUES IN (1)
ALTER TABLE other INHERIT plain
ALTER TABLE t ADD COLUMN c int
ALTER TABLE t ADD COLUMN c mood
ALTER TABLE t ALTER COLUMN b TYPE bigint
ALTER TABLE t REPLICA IDENTITY FULL
ALTER TABLE t ENABLE ROW LEVEL SECURITY
ALTER TABLE t RENAME TO u
ALTER TABLE t SET SCHEMA hidden
ALTER TABLE t OWNER TO nobody
DROP TABLE t CASCADE
COMMENT ON TABLE t IS 'x'
CREATE INDEX x ON t (b)
CREATE POLICY y ON t USING (a > 1)
CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 2'
CREATE FUNCTION g(mood) RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE FUNCTION g() RETURNS mood LANGUAGE sql AS 'SELECT NULL::mood'
DROP FUNCTION f()
CREATE TYPE another AS ENUM ('x')
DROP TYPE mood CASCADE
ALTER TYPE mood RENAME TO moods
CREATE SCHEMA new
CREATE TABLE hidden.new (a int)
DROP SCHEMA hidden CASCADE
CREATE SEQUENCE new
SELECT nextval('s')
SELECT setval('s', 1)
SELECT last_value FROM s
DROP SEQUENCE s
GRANT SELECT ON t TO nobody
REVOKE SELECT ON t FROM reader
CREATE ROLE another
ALTER ROLE nobody SUPERUSER
ALTER ROLE nobody CREATEROLE
GRANT superuser TO nobody
DROP ROLE nobody
SET SESSION AUTHORIZATION superuser
SELECT * FROM pg_authid
SELECT rolname FROM pg_roles
SELECT * FROM pg_shadow
SELECT subconninfo FROM pg_subscription
SELECT subname FROM pg_subscription
SELECT count(*) FROM pg_subscription
SELECT * FROM pg_subscription
SELECT * FROM pg_user_mapping
SELECT count(*) FROM pg_statistic
SELECT * FROM pg_statistic_ext_data
SELECT * FROM pg_file_settings
SELECT * FROM pg_hba_file_rules
SELECT * FROM pg_ident_file_mappings
SELECT * FROM pg_replication_origin_status
SELECT * FROM pg_replication_origin
SELECT * FROM pg_replication_slots
SELECT * FROM pg_stat_replication
SELECT * FROM pg_stat_subscription
SELECT * FROM pg_stat_subscription_stats
SELECT * FROM pg_stat_replication_slots
SELECT * FROM pg_stat_activity
SELECT * FROM pg_publication
SELECT * FROM pg_publication_tables
SELECT * FROM pg_settings
SELECT * FROM pg_largeobject
SHOW data_directory
SHOW config_file
SHOW hba_file
SHOW work_mem
SHOW ALL
SELECT current_setting('data_directory')
SELECT current_setting('data_directory', true)
SET work_mem = 1024
SET log_statement = 'all'
SELECT pg_switch_wal()
SELECT pg_log_standby_snapshot()
SELECT pg_reload_conf()
SELECT pg_current_wal_lsn()
SELECT pg_replication_origin_create('o')
SELECT pg_replication_origin_session_is_setup()
SELECT * FROM pg_show_replication_origin_status()
SELECT pg_create_logical_replication_slot('x', 'test_decoding', true)
SELECT pg_drop_replication_slot('none')
SELECT pg_stat_reset()
SELECT pg_stat_reset_subscription_stats(NULL)
SELECT pg_stat_reset_replication_slot(NULL)
SELECT pg_read_file('postgresql.conf')
SELECT pg_ls_dir('.')
SELECT count(pg_ls_dir('.'))
SELECT has_table_privilege('t', 'SELECT')
SELECT pg_get_viewdef('v'::regclass)
COPY t TO STDOUT
COPY t (a) TO STDOUT
COPY (SELECT b FROM t) TO STDOUT
COPY t FROM '/nowhere/replctl_never_read'
CREATE PUBLICATION q FOR TABLE t
CREATE PUBLICATION q
CREATE PUBLICATION q FOR ALL TABLES
CREATE PUBLICATION q FOR TABLES IN SCHEMA public
ALTER PUBLICATION p ADD TABLE other
ALTER PUBLICATION p SET (publish = 'insert')
ALTER PUBLICATION p RENAME TO q
ALTER PUBLICATION p OWNER TO nobody
DROP PUBLICATION p
CREATE SUBSCRIPTION z CONNECTION 'dbname=d' PUBLICATION p WITH (connect = false)
CREATE SUBSCRIPTION z CONNECTION 'dbname=d password=x' PUBLICATION p WITH (connect = false)
ALTER DATABASE d RENAME TO e
ALTER DATABASE d OWNER TO nobody
