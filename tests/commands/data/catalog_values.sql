-- columns of catalogs that are never NULL
create table p1 (a int);
create table p2 () inherits (p1);
create table pt (a int, b text, c text collate "C", d date) partition by range (b, a, c, d);
create table pt1 partition of pt for values from ('a', 1, 'a', '2020-01-01') to ('b', 1, 'a', '2020-01-01');
create table pl (a varchar(5)) partition by list (a);
select inhrelid::regclass, inhparent::regclass, inhseqno, inhdetachpending from pg_inherits where inhparent in ('p1'::regclass, 'pt'::regclass) order by inhrelid;
select partrelid::regclass, partnatts, partattrs, partcollation from pg_partitioned_table order by partrelid;
select p.oid::regprocedure, l.lanname, p.provariadic, p.pronargdefaults from pg_proc p join pg_language l on l.oid = p.prolang where p.oid < 10000 and p.proname in ('lower', 'age', 'lpad', 'concat', 'make_interval', 'jsonb_set', 'format', 'overlaps') order by p.oid;
create function f(int) returns int language sql as 'select 1';
create function g(int) returns int language plpgsql as 'begin return 1; end';
select p.proname, l.lanname, p.provariadic, p.pronargdefaults from pg_proc p join pg_language l on l.oid = p.prolang where p.pronamespace = 'public'::regnamespace order by 1;
select lanname, lanispl, lanpltrusted from pg_language order by 1;
