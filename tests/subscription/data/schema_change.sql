-- Columns that come and go at either end, between the changes of one run and between runs
\c pub;
create table t (id int primary key, a int);
create publication p for table t;
\c sub;
create table t (id int primary key, a int);
create subscription s connection 'host=localhost dbname=pub' publication p;
\sync;
-- Added at the publisher, in the middle of a run
\c pub;
insert into t values (1, 1);
alter table t add b int, add c text default 'c';
insert into t values (2, 2, 2, 'two');
update t set a = 10 where id = 1;
\sync;
\c sub;
select * from t order by id;
alter table t add c varchar(10);
\sync;
alter table t add b bigint, add x int not null default 7;
-- Dropped at the publisher: the subscriber's column stays
\c pub;
insert into t values (3, 3, 3, 'three');
alter table t drop b;
insert into t values (4, 4, 'four');
update t set a = 30 where id = 3;
-- Renamed there, too
alter table t rename a to aa;
insert into t values (5, 5, 'five');
\sync;
\c sub;
select id, a, b, c, x from t order by id;
alter table t rename a to aa;
\sync;
select id, aa, b, c, x from t order by id;
-- Dropped at the subscriber, and only later no longer sent
alter table t drop c;
\c pub;
insert into t values (6, 6, 'six');
alter table t drop c;
insert into t values (7, 7);
\sync;
\c sub;
alter table t add c text;
alter table t alter x drop default;
\sync;
alter table t alter x set default 8;
-- Dropped and added again with another type, and a key of another kind
\c pub;
alter table t drop aa;
alter table t add aa text;
insert into t values (8, 'eight');
\sync;
\c sub;
alter table t drop aa;
alter table t add aa text;
\sync;
select id, aa, b, c, x from t order by id;
drop table t;
\c pub;
insert into t values (9, 'nine');
\sync;
\c sub;
create table t (id int primary key, aa text);
\sync;
select * from t order by id;
alter subscription s refresh publication;
\sync;
select * from t order by id;
