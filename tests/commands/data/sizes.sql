create table t (a int primary key);
create view v as select 1;
create sequence s;
select pg_relation_size('t'), pg_table_size('t'), pg_total_relation_size('v'), pg_indexes_size('v'), pg_relation_size('v'), pg_relation_size('t', 'fsm'), pg_relation_size(null);
select pg_relation_size(1), pg_table_size(1), pg_indexes_size(1), pg_database_size(99999999::oid);
select pg_relation_size('t', 'nope');
select pg_relation_size('nope');
select pg_database_size('nope');
select relname, pg_size_pretty(pg_relation_size(oid)) from pg_class where relname = 't';
