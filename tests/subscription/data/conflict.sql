-- What stops a subscription: the report in the server's log, and what is applied before it
\c pub;
create table t (id int primary key, a int, b int, c text);
create publication p for table t;
\c sub;
create table t (id int primary key, a int not null default 0, b int constraint b_small check (b < 100), c text);
create unique index t_a_b on t (a, b);
create unique index t_c on t (c);
insert into t values (1, 1, 1, 'one');
create subscription s connection 'host=localhost dbname=pub' publication p with (copy_data = false);
\sync;
-- The primary key; what precedes the transaction is applied, nothing of it
\c pub;
insert into t values (10, 10, 10, 'ten');
begin;
insert into t values (11, 11, 11, 'elv');
insert into t values (1, 2, 2, 'two');
commit;
insert into t values (12, 12, 12, 'twl');
\sync;
\c sub;
select * from t order by id;
select apply_error_count > 0, sync_error_count, stats_reset from pg_stat_subscription_stats;
\sync;
alter subscription s disable;
alter subscription s skip (lsn = :finish_lsn);
alter subscription s enable;
\sync;
select * from t order by id;
select subskiplsn from pg_subscription;
-- A unique index; the row is corrected at the subscriber
\c pub;
insert into t values (20, 1, 1, 'x');
\sync;
\c sub;
update t set a = 5 where id = 1;
-- Several keys at once
\c pub;
insert into t values (12, 5, 1, 'one');
insert into t values (21, 5, 1, 'ten');
\sync;
\c sub;
delete from t where id = 1;
\sync;
delete from t where id = 10;
-- UPDATE and DELETE of rows that are missing, an UPDATE onto a key that exists
\c pub;
update t set c = 'new' where id = 11;
delete from t where id = 11;
update t set id = 13 where id = 12;
\sync;
\c sub;
insert into t values (14, 14, 14, 'xiv');
\c pub;
update t set id = 14 where id = 13;
\sync;
\c sub;
update t set id = 15 where id = 14;
-- A violation that a later transaction of the same run makes good stops at its own transaction
\c pub;
insert into t values (30, 30, 30, 'a');
insert into t values (31, 31, 200, 'b');
update t set b = 31 where id = 31;
\sync;
\c sub;
select * from t order by id;
alter table t drop constraint b_small;
\sync;
select * from t order by id;
