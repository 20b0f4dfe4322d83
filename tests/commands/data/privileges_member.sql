CREATE ROLE nobody;
CREATE ROLE owner;
CREATE ROLE member;
CREATE ROLE not_inheriting;
CREATE ROLE not_setting;
CREATE ROLE admin_only;
CREATE ROLE deep_not_inheriting;
CREATE ROLE rolemaker CREATEROLE;
CREATE ROLE admin_maker CREATEROLE;
CREATE ROLE lazy_reader;
CREATE ROLE writer;
CREATE ROLE maintainer;
CREATE ROLE db_owner;
CREATE ROLE grantor;
CREATE ROLE grantee;
CREATE ROLE a_reader;
CREATE ROLE a_inserter;
CREATE ROLE a_updater;
CREATE ROLE a_referencer;
CREATE ROLE view_reader;
CREATE ROLE secured_reader;
CREATE ROLE subscriber;
CREATE ROLE superuser SUPERUSER;
GRANT owner TO member;
GRANT owner TO not_inheriting WITH INHERIT FALSE;
GRANT owner TO not_setting WITH SET FALSE;
GRANT owner TO admin_only WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;
GRANT owner TO admin_maker WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;
GRANT pg_read_all_data TO lazy_reader WITH INHERIT FALSE;
GRANT pg_write_all_data TO writer;
GRANT pg_maintain TO maintainer;
GRANT pg_create_subscription TO subscriber;
GRANT CREATE ON DATABASE postgres TO owner, subscriber;
GRANT CREATE ON SCHEMA public TO owner, grantor, a_referencer, view_reader;
CREATE TABLE t (a int PRIMARY KEY, b int, secret text);
CREATE TABLE refs (x int);
CREATE TABLE of_grantor (x int);
CREATE TABLE of_referencer (x int);
CREATE TABLE secured (a int, b int);
CREATE TABLE lookup (a int);
CREATE SEQUENCE s;
CREATE SCHEMA os;
CREATE TABLE os.o (a int);
CREATE VIEW v AS SELECT a, b FROM t;
CREATE VIEW i WITH (security_invoker = true) AS SELECT a, b FROM t;
CREATE VIEW outer_i AS SELECT a FROM i;
CREATE VIEW invoker_v WITH (security_invoker = true) AS SELECT a FROM v;
CREATE MATERIALIZED VIEW m AS SELECT a FROM t WITH NO DATA;
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION g(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
REVOKE EXECUTE ON FUNCTION g(int) FROM PUBLIC;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
REVOKE USAGE ON TYPE mood FROM PUBLIC;
CREATE INDEX t_b ON t (b);
CREATE PUBLICATION p FOR TABLE t;
CREATE PUBLICATION pa FOR ALL TABLES;
CREATE PUBLICATION ps FOR TABLES IN SCHEMA os;
CREATE SUBSCRIPTION sub CONNECTION 'dbname=d password=x' PUBLICATION p WITH (connect = false, slot_name = NONE);
CREATE SUBSCRIPTION passwordless CONNECTION 'dbname=d' PUBLICATION p WITH (connect = false, slot_name = NONE, password_required = false);
CREATE DATABASE d;
ALTER TABLE t OWNER TO owner;
ALTER TABLE refs OWNER TO owner;
ALTER TABLE lookup OWNER TO owner;
ALTER TABLE secured OWNER TO owner;
ALTER TABLE of_grantor OWNER TO grantor;
ALTER TABLE of_referencer OWNER TO a_referencer;
ALTER SEQUENCE s OWNER TO owner;
ALTER SCHEMA os OWNER TO owner;
ALTER TABLE os.o OWNER TO owner;
ALTER VIEW v OWNER TO owner;
ALTER VIEW i OWNER TO owner;
ALTER VIEW outer_i OWNER TO view_reader;
ALTER VIEW invoker_v OWNER TO owner;
ALTER MATERIALIZED VIEW m OWNER TO owner;
ALTER FUNCTION f() OWNER TO owner;
ALTER FUNCTION g(int) OWNER TO owner;
ALTER TYPE mood OWNER TO owner;
ALTER DOMAIN positive OWNER TO owner;
ALTER PUBLICATION p OWNER TO owner;
ALTER SUBSCRIPTION sub OWNER TO subscriber;
GRANT SELECT, INSERT ON t TO grantor WITH GRANT OPTION;
GRANT UPDATE (a) ON t TO grantor WITH GRANT OPTION;
SET ROLE grantor;
GRANT SELECT ON t TO grantee WITH GRANT OPTION;
GRANT UPDATE (a) ON t TO grantee;
RESET ROLE;
GRANT SELECT (a) ON t TO a_reader;
GRANT INSERT (a) ON t TO a_inserter;
GRANT UPDATE (a), SELECT (a) ON t TO a_updater;
GRANT REFERENCES (a) ON t TO a_referencer;
GRANT SELECT ON v, i, outer_i, invoker_v TO view_reader, a_reader;
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY readers ON secured FOR SELECT TO secured_reader USING (a IN (SELECT a FROM lookup));
CREATE POLICY writers ON secured FOR INSERT WITH CHECK (b > 0);
GRANT SELECT, INSERT ON secured TO secured_reader, a_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE owner GRANT SELECT ON TABLES TO nobody;
ALTER DATABASE postgres OWNER TO db_owner;
---
SELECT FROM t
SELECT count(*) FROM t WHERE b = 1
SELECT a FROM t ORDER BY secret
SELECT t1.a FROM t t1 JOIN t t2 ON t1.b = t2.a
SELECT a FROM outer_i
SELECT a FROM invoker_v
SELECT * FROM m
SELECT a FROM os.o
SELECT setval('s', 3)
SELECT f()
SELECT g(1)
SELECT 'ok'::mood
SELECT 1::positive
INSERT INTO t (a) VALUES (1)
INSERT INTO t (a, b) VALUES (1, 2)
INSERT INTO t (a) VALUES (1) RETURNING a
INSERT INTO t (a) VALUES (1) RETURNING b
INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING
INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING
INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2
INSERT INTO t (a) SELECT a FROM lookup
UPDATE t SET a = a + 1
UPDATE t SET a = 1 WHERE b = 1
UPDATE t SET a = 1 RETURNING a
UPDATE t SET a = x FROM refs
DELETE FROM t USING refs WHERE a = x
ANALYZE t
CREATE TABLE public.new (a int)
CREATE TABLE os.new (a int)
CREATE TABLE of_mood (a mood)
CREATE TABLE of_positive (a positive)
CREATE TABLE child () INHERITS (t)
CREATE TABLE referring (x int REFERENCES t (a))
ALTER TABLE of_referencer ADD FOREIGN KEY (x) REFERENCES t (a)
ALTER TABLE refs ADD FOREIGN KEY (x) REFERENCES t (a)
CREATE VIEW w AS SELECT * FROM t
CREATE SEQUENCE owned OWNED BY t.b
CREATE SCHEMA mine
CREATE SCHEMA AUTHORIZATION owner
CREATE SCHEMA theirs AUTHORIZATION nobody
CREATE PUBLICATION q FOR TABLES IN SCHEMA os
ALTER PUBLICATION p DROP TABLE t
ALTER PUBLICATION p SET TABLE t (a)
ALTER PUBLICATION p ADD TABLES IN SCHEMA os
ALTER PUBLICATION p ADD TABLE of_grantor
ALTER PUBLICATION pa SET (publish = 'insert')
ALTER PUBLICATION ps DROP TABLES IN SCHEMA os
ALTER PUBLICATION p RENAME TO renamed
ALTER PUBLICATION p OWNER TO member
ALTER PUBLICATION p OWNER TO owner
COMMENT ON PUBLICATION pa IS 'x'
ALTER SUBSCRIPTION sub SET (streaming = off)
ALTER SUBSCRIPTION sub SET PUBLICATION q WITH (refresh = false)
ALTER SUBSCRIPTION sub RENAME TO renamed
ALTER SUBSCRIPTION sub OWNER TO owner
ALTER SUBSCRIPTION passwordless DISABLE
ALTER SUBSCRIPTION passwordless OWNER TO subscriber
DROP SUBSCRIPTION passwordless
COMMENT ON SUBSCRIPTION sub IS 'x'
ALTER TABLE t OWNER TO member
ALTER TABLE t OWNER TO owner
ALTER TABLE os.o OWNER TO member
ALTER TABLE of_grantor INHERIT refs
ALTER SEQUENCE s OWNED BY t.b
ALTER SCHEMA os RENAME TO oo
ALTER SCHEMA os OWNER TO member
ALTER SCHEMA public OWNER TO owner
ALTER TYPE mood ADD VALUE 'new'
CREATE OR REPLACE VIEW v AS SELECT a, b FROM t
ALTER POLICY readers ON secured USING (true)
CREATE POLICY more ON secured
DROP POLICY writers ON secured
DROP TABLE t
DROP TABLE os.o
DROP VIEW outer_i
DROP SCHEMA os
DROP SCHEMA os CASCADE
DROP SCHEMA public CASCADE
COMMENT ON SCHEMA os IS 'x'
COMMENT ON SCHEMA public IS 'x'
COMMENT ON DATABASE postgres IS 'x'
COMMENT ON ROLE owner IS 'x'
COMMENT ON ROLE superuser IS 'x'
COMMENT ON TYPE mood IS 'x'
GRANT SELECT ON t TO nobody WITH GRANT OPTION
GRANT SELECT (a) ON t TO nobody
GRANT UPDATE (a) ON t TO nobody
GRANT UPDATE (a, b) ON t TO nobody
GRANT INSERT, DELETE ON t TO nobody
GRANT ALL ON t TO nobody
GRANT SELECT ON v TO nobody
GRANT USAGE ON SCHEMA os TO nobody
GRANT CREATE ON SCHEMA public TO nobody
GRANT CONNECT ON DATABASE postgres TO nobody
GRANT EXECUTE ON FUNCTION g(int) TO nobody
GRANT USAGE ON TYPE mood TO nobody
GRANT SELECT ON ALL TABLES IN SCHEMA os TO nobody
GRANT SELECT ON t TO nobody GRANTED BY owner
REVOKE SELECT ON t FROM grantee
REVOKE SELECT ON t FROM grantee CASCADE
REVOKE GRANT OPTION FOR SELECT ON t FROM grantor
REVOKE GRANT OPTION FOR SELECT ON t FROM grantor CASCADE
REVOKE SELECT ON t FROM grantor
REVOKE SELECT ON t FROM grantor CASCADE
REVOKE UPDATE (a) ON t FROM grantor
REVOKE UPDATE (a) ON t FROM grantee
REVOKE ALL ON t FROM nobody
REVOKE EXECUTE ON FUNCTION f() FROM PUBLIC
REVOKE USAGE ON SCHEMA public FROM PUBLIC
GRANT owner TO nobody
GRANT owner TO nobody WITH ADMIN OPTION
GRANT owner TO nobody GRANTED BY owner
GRANT owner TO nobody GRANTED BY admin_only
GRANT member TO nobody
GRANT nobody TO owner
REVOKE owner FROM member
REVOKE ADMIN OPTION FOR owner FROM admin_only
REVOKE INHERIT OPTION FOR owner FROM member
REVOKE pg_maintain FROM maintainer
REVOKE owner FROM member GRANTED BY superuser
CREATE ROLE made
CREATE ROLE made ROLE nobody
CREATE ROLE made ADMIN owner
CREATE ROLE made IN ROLE owner
CREATE ROLE made IN ROLE nobody
CREATE ROLE made CREATEDB
CREATE ROLE made CREATEROLE
CREATE ROLE made PASSWORD 'x' LOGIN
ALTER ROLE owner LOGIN
ALTER ROLE owner PASSWORD 'x'
ALTER ROLE owner CREATEDB
ALTER ROLE owner RENAME TO renamed
ALTER ROLE owner SET work_mem = 100
ALTER ROLE owner IN DATABASE postgres SET work_mem = 100
ALTER ROLE owner SET log_statement = 'all'
ALTER ROLE owner SET session_replication_role = replica
ALTER ROLE owner RESET ALL
ALTER ROLE CURRENT_USER SET work_mem = 100
ALTER ROLE CURRENT_USER SET log_statement = 'all'
ALTER ROLE CURRENT_USER PASSWORD 'x'
ALTER ROLE CURRENT_USER CREATEDB
ALTER ROLE CURRENT_USER RENAME TO renamed
ALTER ROLE CURRENT_USER CONNECTION LIMIT 3
ALTER ROLE superuser SET work_mem = 100
ALTER GROUP owner ADD USER nobody
ALTER GROUP owner DROP USER member
ALTER DATABASE postgres SET work_mem = 100
ALTER DATABASE postgres SET log_statement = 'all'
ALTER DATABASE postgres RESET ALL
ALTER DATABASE postgres OWNER TO owner
ALTER DATABASE d OWNER TO owner
ALTER DATABASE postgres RENAME TO e
DROP ROLE owner
DROP ROLE grantee
DROP ROLE superuser
DROP ROLE CURRENT_USER
DROP OWNED BY owner
DROP OWNED BY grantee
DROP OWNED BY CURRENT_USER
REASSIGN OWNED BY owner TO member
REASSIGN OWNED BY owner TO nobody
REASSIGN OWNED BY grantor TO CURRENT_USER
ALTER DEFAULT PRIVILEGES FOR ROLE owner REVOKE SELECT ON TABLES FROM nobody
ALTER DEFAULT PRIVILEGES FOR ROLE owner IN SCHEMA os GRANT SELECT ON TABLES TO nobody
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT INSERT ON TABLES TO nobody
ALTER DEFAULT PRIVILEGES FOR ROLE nobody GRANT EXECUTE ON FUNCTIONS TO owner
SELECT 1 / pg_has_role('owner', 'USAGE')::int
SELECT 1 / pg_has_role('owner', 'MEMBER')::int
SELECT 1 / pg_has_role('owner', 'SET')::int
SELECT 1 / pg_has_role('owner', 'USAGE WITH ADMIN OPTION')::int
SELECT 1 / pg_has_role('pg_database_owner', 'USAGE')::int
SELECT 1 / pg_has_role('pg_read_all_data', 'USAGE')::int
SELECT 1 / has_table_privilege('t', 'SELECT WITH GRANT OPTION')::int
SELECT 1 / has_any_column_privilege('t', 'SELECT')::int
SELECT 1 / has_any_column_privilege('t', 'INSERT')::int
SELECT 1 / has_column_privilege('t', 'a', 'UPDATE WITH GRANT OPTION')::int
SELECT 1 / has_column_privilege('t', 'b', 'SELECT')::int
SELECT 1 / has_schema_privilege('public', 'CREATE')::int
SELECT 1 / has_schema_privilege('os', 'USAGE')::int
SELECT 1 / has_database_privilege('postgres', 'CREATE')::int
SELECT 1 / has_database_privilege('d', 'CONNECT')::int
SELECT 1 / has_function_privilege('g(int)', 'EXECUTE')::int
SELECT 1 / has_type_privilege('mood', 'USAGE')::int
SELECT 1 / has_sequence_privilege('s', 'USAGE')::int
SELECT 1 / row_security_active('secured')::int
SELECT 1 / has_parameter_privilege('log_statement', 'SET')::int
SELECT 1 / count(*) FROM information_schema.tables WHERE table_name = 't'
SELECT 1 / count(*) FROM information_schema.columns WHERE table_name = 't' AND column_name = 'b'
SELECT 1 / count(*) FROM information_schema.columns WHERE table_name = 't' AND column_name = 'a'
SELECT 1 / count(*) FROM information_schema.table_constraints WHERE table_name = 't'
SELECT 1 / count(*) FROM information_schema.table_privileges WHERE table_name = 't'
SELECT 1 / count(*) FROM information_schema.column_privileges WHERE table_name = 't' AND column_name = 'a'
SELECT 1 / count(*) FROM information_schema.schemata WHERE schema_name = 'os'
SELECT 1 / count(*) FROM information_schema.views WHERE table_name = 'v' AND view_definition IS NOT NULL
SELECT 1 / count(*) FROM information_schema.sequences WHERE sequence_name = 's'
SELECT 1 / count(*) FROM information_schema.routines WHERE routine_name = 'g'
SELECT 1 / count(*) FROM information_schema.domains WHERE domain_name = 'positive'
SELECT 1 / count(*) FROM information_schema.check_constraints
SELECT 1 / count(*) FROM information_schema.enabled_roles WHERE role_name = 'owner'
SELECT 1 / count(*) FROM information_schema.applicable_roles WHERE role_name = 'owner'
SELECT 1 / count(*) FROM information_schema.administrable_role_authorizations WHERE role_name = 'owner'
SELECT 1 / count(*) FROM information_schema.view_table_usage WHERE table_name = 't'
SELECT 1 / count(*) FROM information_schema.key_column_usage WHERE table_name = 't'
SELECT 1 / count(*) FROM pg_policies
SELECT 1 / count(*) FROM pg_sequences WHERE last_value IS NULL AND sequencename = 's'
SELECT 1 / count(*) FROM pg_settings WHERE name = 'config_file'
SELECT pg_database_size('d')
SELECT 'os.o'::regclass
SELECT * FROM pg_get_publication_tables('p')
SELECT pg_create_logical_replication_slot('slot', 'pgoutput')
CREATE SUBSCRIPTION sub CONNECTION 'wrong' PUBLICATION p, p WITH (connect = false)
CREATE SUBSCRIPTION sub CONNECTION 'dbname=x' PUBLICATION p WITH (connect = false, password_required = false)
CREATE SUBSCRIPTION free CONNECTION 'wrong' PUBLICATION p, p WITH (connect = false)
CREATE SUBSCRIPTION free CONNECTION 'dbname=x' PUBLICATION p, p WITH (connect = false)
CREATE SUBSCRIPTION free CONNECTION 'dbname=x password=y' PUBLICATION p, p WITH (connect = false)
