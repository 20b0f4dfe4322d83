CREATE ROLE nobody;
CREATE ROLE replicator REPLICATION;
CREATE ROLE rolemaker CREATEROLE;
CREATE ROLE dbmaker CREATEDB;
CREATE ROLE bypasser BYPASSRLS;
CREATE ROLE monitor;
CREATE ROLE stats_reader;
CREATE ROLE settings_reader;
CREATE ROLE data_reader;
CREATE ROLE data_writer;
CREATE ROLE maintainer;
CREATE ROLE checkpointer;
CREATE ROLE signaller;
CREATE ROLE file_reader;
CREATE ROLE file_writer;
CREATE ROLE programmer;
CREATE ROLE subscriber;
CREATE ROLE publisher;
CREATE ROLE heir;
CREATE ROLE not_inheriting;
CREATE ROLE superuser SUPERUSER;
CREATE ROLE other;
CREATE USER promoted;
GRANT promoted TO rolemaker WITH ADMIN TRUE;
ALTER ROLE promoted SUPERUSER;
GRANT pg_monitor TO monitor;
GRANT pg_read_all_stats TO stats_reader;
GRANT pg_read_all_settings TO settings_reader;
GRANT pg_read_all_data TO data_reader;
GRANT pg_write_all_data TO data_writer;
GRANT pg_maintain TO maintainer;
GRANT pg_checkpoint TO checkpointer;
GRANT pg_signal_backend TO signaller;
GRANT pg_read_server_files TO file_reader;
GRANT pg_write_server_files TO file_writer;
GRANT pg_execute_server_program TO programmer;
GRANT pg_create_subscription TO subscriber;
GRANT data_reader TO heir;
GRANT other, data_reader TO not_inheriting WITH INHERIT FALSE;
GRANT CREATE ON DATABASE postgres TO subscriber, publisher;
GRANT CREATE ON SCHEMA public TO publisher;
CREATE TABLE t (a int PRIMARY KEY, b int);
CREATE TABLE mine (a int PRIMARY KEY);
ALTER TABLE mine OWNER TO publisher;
CREATE TABLE of_other (a int);
ALTER TABLE of_other OWNER TO other;
CREATE TABLE secured (a int);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON secured TO bypasser, publisher;
CREATE MATERIALIZED VIEW m AS SELECT a FROM t WITH NO DATA;
CREATE SEQUENCE s;
CREATE SCHEMA closed;
CREATE TABLE closed.c (a int);
CREATE VIEW v AS SELECT a FROM closed.c;
CREATE PUBLICATION p FOR TABLE t;
CREATE PUBLICATION own;
ALTER PUBLICATION own OWNER TO publisher;
CREATE SUBSCRIPTION sub CONNECTION 'dbname=d password=x' PUBLICATION p WITH (connect = false, slot_name = NONE);
CREATE SUBSCRIPTION of_subscriber CONNECTION 'dbname=d password=x' PUBLICATION p WITH (connect = false, slot_name = NONE);
ALTER SUBSCRIPTION of_subscriber OWNER TO subscriber;
CREATE DATABASE d;
SELECT pg_create_logical_replication_slot('slot', 'test_decoding');
SELECT pg_replication_origin_create('o');
---
SELECT * FROM t
SELECT * FROM closed.c
SELECT * FROM v
SELECT a FROM secured
SELECT last_value FROM s
SELECT nextval('s')
SELECT setval('s', 5)
INSERT INTO t VALUES (1)
INSERT INTO closed.c VALUES (1)
UPDATE t SET b = 1
UPDATE t SET b = 1 WHERE a = 1
DELETE FROM t
DELETE FROM t WHERE a = 1
TRUNCATE t
COPY t TO STDOUT
COPY secured TO STDOUT
REFRESH MATERIALIZED VIEW m
REFRESH MATERIALIZED VIEW m WITH NO DATA
LOCK TABLE t IN ACCESS EXCLUSIVE MODE
CREATE TABLE closed.new (a int)
ALTER TABLE t ADD COLUMN c int
DROP TABLE of_other
SET ROLE other
SET ROLE data_reader
SET SESSION AUTHORIZATION nobody
CHECKPOINT
CREATE ROLE x
CREATE ROLE x SUPERUSER
CREATE ROLE x CREATEDB
CREATE ROLE x REPLICATION
CREATE ROLE x BYPASSRLS
CREATE ROLE x IN ROLE other
ALTER ROLE nobody PASSWORD 'x'
ALTER ROLE nobody CREATEDB
ALTER ROLE nobody RENAME TO x
ALTER ROLE promoted RENAME TO x
ALTER ROLE promoted SET work_mem = 100
COMMENT ON ROLE promoted IS 'x'
DROP ROLE promoted
GRANT promoted TO nobody
ALTER ROLE nobody SET work_mem = 100
ALTER ROLE ALL SET work_mem = 100
DROP ROLE nobody
COMMENT ON ROLE nobody IS 'x'
GRANT other TO nobody
GRANT pg_monitor TO nobody
GRANT pg_read_all_data TO nobody
REVOKE pg_monitor FROM monitor
GRANT SELECT ON t TO nobody
REASSIGN OWNED BY other TO publisher
DROP OWNED BY other
ALTER DEFAULT PRIVILEGES FOR ROLE other GRANT SELECT ON TABLES TO nobody
ALTER DATABASE d RENAME TO e
ALTER DATABASE d OWNER TO dbmaker
ALTER DATABASE d SET work_mem = 100
COMMENT ON DATABASE d IS 'x'
CREATE PUBLICATION q
CREATE PUBLICATION q FOR TABLE mine
CREATE PUBLICATION q FOR TABLE t
CREATE PUBLICATION q FOR TABLE mine, t
CREATE PUBLICATION q FOR ALL TABLES
CREATE PUBLICATION q FOR TABLES IN SCHEMA closed
ALTER PUBLICATION own ADD TABLE mine
ALTER PUBLICATION own ADD TABLE t
ALTER PUBLICATION own SET TABLE t
ALTER PUBLICATION own ADD TABLES IN SCHEMA public
ALTER PUBLICATION p ADD TABLE mine
ALTER PUBLICATION p SET (publish = 'insert')
ALTER PUBLICATION own OWNER TO superuser
DROP PUBLICATION own
COMMENT ON PUBLICATION p IS 'x'
CREATE SUBSCRIPTION z CONNECTION 'dbname=d' PUBLICATION p WITH (connect = false)
CREATE SUBSCRIPTION z CONNECTION 'dbname=d password=x' PUBLICATION p WITH (connect = false)
CREATE SUBSCRIPTION z CONNECTION 'dbname=d password=x' PUBLICATION p WITH (connect = false, password_required = false)
ALTER SUBSCRIPTION sub DISABLE
ALTER SUBSCRIPTION sub CONNECTION 'dbname=d password=y'
ALTER SUBSCRIPTION sub SET (disable_on_error = true)
ALTER SUBSCRIPTION sub SKIP (lsn = '0/1000000')
ALTER SUBSCRIPTION of_subscriber CONNECTION 'dbname=d'
ALTER SUBSCRIPTION of_subscriber CONNECTION 'dbname=d password=y'
ALTER SUBSCRIPTION of_subscriber SET (password_required = false)
ALTER SUBSCRIPTION of_subscriber SET (run_as_owner = true)
ALTER SUBSCRIPTION of_subscriber OWNER TO superuser
ALTER SUBSCRIPTION of_subscriber OWNER TO nobody
ALTER SUBSCRIPTION of_subscriber RENAME TO renamed
ALTER SUBSCRIPTION of_subscriber ENABLE
DROP SUBSCRIPTION sub
DROP SUBSCRIPTION of_subscriber
SELECT pg_replication_slot_advance('none', '0/1')
SELECT * FROM pg_logical_slot_get_changes('none', NULL, NULL)
SELECT * FROM pg_logical_slot_peek_changes('none', NULL, NULL)
SELECT * FROM pg_logical_slot_get_binary_changes('none', NULL, NULL)
SELECT pg_drop_replication_slot('none')
SELECT pg_copy_logical_replication_slot('none', 'copy')
SELECT pg_create_logical_replication_slot('slot', 'test_decoding')
SELECT pg_create_physical_replication_slot('slot')
SELECT pg_sync_replication_slots()
SELECT * FROM pg_replication_slots
SELECT pg_switch_wal()
SELECT pg_create_restore_point('x')
SELECT pg_log_standby_snapshot()
SELECT pg_promote()
SELECT pg_wal_replay_pause()
SELECT pg_current_wal_lsn()
SELECT pg_logical_emit_message(false, 'x', 'y')
SELECT pg_replication_origin_create('x')
SELECT pg_replication_origin_advance('none', '0/1')
SELECT pg_replication_origin_oid('o')
SELECT pg_replication_origin_progress('o', false)
SELECT pg_replication_origin_session_is_setup()
SELECT * FROM pg_replication_origin_status
SELECT pg_stat_reset()
SELECT pg_stat_reset_shared('bgwriter')
SELECT pg_stat_reset_shared(NULL)
SELECT pg_stat_reset_slru(NULL)
SELECT pg_stat_reset_single_table_counters(1)
SELECT pg_stat_reset_single_function_counters(1)
SELECT pg_stat_reset_subscription_stats(NULL)
SELECT pg_stat_reset_subscription_stats(1)
SELECT pg_stat_reset_replication_slot(NULL)
SELECT pg_stat_reset_replication_slot('slot')
SELECT pg_reload_conf()
SELECT pg_rotate_logfile()
SELECT pg_current_logfile()
SELECT pg_read_file('PG_VERSION')
SELECT pg_read_binary_file('PG_VERSION')
SELECT pg_stat_file('PG_VERSION')
SELECT pg_ls_dir('.')
SELECT * FROM pg_ls_waldir()
SELECT lo_import('/nowhere')
SELECT lo_export(1, '/nowhere/replctl_never_made')
SELECT pg_read_file('/etc/passwd', 0, 1)
COPY t FROM '/nowhere/replctl_never_read'
COPY (SELECT 1) TO '/nowhere/replctl_never_made'
COPY (SELECT 1) TO 'relative'
COPY (SELECT 1) TO PROGRAM 'cat'
SELECT pg_cancel_backend(0)
SELECT pg_terminate_backend(0)
SELECT rolpassword FROM pg_authid
SELECT * FROM pg_shadow
SELECT subconninfo FROM pg_subscription
SELECT count(*) FROM pg_subscription
SELECT * FROM pg_user_mapping
SELECT * FROM pg_statistic
SELECT * FROM pg_stats
SELECT * FROM pg_hba_file_rules
SELECT * FROM pg_ident_file_mappings
SELECT * FROM pg_file_settings
SELECT * FROM pg_config
SELECT * FROM pg_shmem_allocations
SELECT * FROM pg_backend_memory_contexts
SELECT * FROM pg_stat_activity
SELECT * FROM pg_stat_replication
SELECT * FROM pg_stat_subscription
SELECT * FROM pg_stat_subscription_stats
SELECT * FROM pg_stat_replication_slots
SELECT * FROM pg_stat_wal_receiver
SELECT * FROM pg_stat_user_tables
SELECT * FROM pg_settings
SELECT 1 / count(*) FROM pg_settings WHERE name = 'data_directory'
SHOW data_directory
SHOW config_file
SHOW primary_conninfo
SELECT current_setting('hba_file')
SELECT pg_database_size('postgres')
SELECT pg_tablespace_size('pg_default')
SET log_statement = 'all'
SET session_replication_role = replica
SET work_mem = 100
SET row_security = off
SELECT has_table_privilege('t', 'SELECT')
SELECT 1 / has_table_privilege('t', 'SELECT')::int
SELECT 1 / has_table_privilege('t', 'INSERT')::int
SELECT 1 / has_table_privilege('t', 'MAINTAIN')::int
SELECT 1 / has_sequence_privilege('s', 'SELECT')::int
SELECT 1 / has_sequence_privilege('s', 'UPDATE')::int
SELECT 1 / has_schema_privilege('closed', 'USAGE')::int
SELECT 1 / has_function_privilege('pg_switch_wal()', 'EXECUTE')::int
SELECT 1 / has_function_privilege('pg_ls_waldir()', 'EXECUTE')::int
SELECT 1 / has_table_privilege('pg_authid', 'SELECT')::int
SELECT 1 / has_table_privilege('pg_shmem_allocations', 'SELECT')::int
SELECT 1 / has_column_privilege('pg_subscription', 'subconninfo', 'SELECT')::int
