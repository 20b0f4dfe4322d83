alter schema pg_catalog rename to x;
select length('a'), 1 + 1;
create domain d as text;
create table t (a d, b int);
select count(*) from pg_class where relname = 't';
select 'text'::regtype::oid, 'pg_class'::regclass::oid;
