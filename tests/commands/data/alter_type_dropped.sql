-- A statement that drops a column and changes its type
create table t (a int, b int, c int);
alter table t alter a type bigint, drop column a;
alter table t drop column if exists a, alter a type bigint using b;
alter table t alter a type bigint using b, drop column b;
create table parent (a int, b int);
create table child (c int) inherits (parent);
alter table parent drop column a, alter a type bigint;
create table pa (k int, v int) partition by list (k);
create table pa1 partition of pa default;
alter table pa alter v type bigint, drop column v;
create type pair as (a int, b int);
alter type pair drop attribute a, alter attribute a type bigint;
alter type pair drop attribute a, add attribute a text;
select attrelid::regclass, attname, atttypid::regtype from pg_attribute where attrelid in ('t'::regclass, 'parent'::regclass, 'child'::regclass, 'pa1'::regclass, 'pair'::regclass) and attnum > 0 and not attisdropped order by attrelid::regclass::text, attnum;
