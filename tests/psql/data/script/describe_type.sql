create schema s;
create type mood as enum ('sad', 'ok', 'happy');
create type s.ct as (a int, b text);
create type two as (m mood[]);
create domain pos as int check (value > 0);
create domain "Odd d" as text;
create table t (id int);
comment on type mood is 'how';
comment on type pos is 'plus';
grant usage on type mood to public;
revoke usage on type pos from public;
create type empty as enum ();
\dT
\dT+
\dT mood
\dT+ mood
\dT s.*
\dT+ s.*
\dT t
\dT _mood
\dT mood[]
\dT int
\dT integer
\dT+ "char"
\dTS int4
\dTS+ int4
\dT pg_catalog.bool
\dT nope
\dT *.nope
\dT a.b.c.d
\dT+ "Odd*"
\dTx mood
\dT+x mood
\dTSx bool
\dT _*
\dT pg_*.*int?
\dTS+ "char"
\dT INT
\dT decimal
\dT float8[]
\dTS _record
\dTS record[]
set search_path = s, public;
\dT ct
select obj_description('int4'::regtype, 'pg_type');
reset search_path;
create type "x[]" as enum ('a');
\dT+ x*
drop schema s cascade;
drop table t;
drop type two, mood, empty, "x[]";
drop domain pos, "Odd d";
