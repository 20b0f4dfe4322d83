select proname, oid, procost, prorows, proparallel, proleakproof, prosecdef, provolatile from pg_proc where proname in ('abs', 'random', 'now', 'generate_series', 'unnest', 'nextval', 'pg_get_viewdef', 'int4eq', 'pg_sleep') order by 2;
create function f () returns int language sql as 'select 1';
select procost, prorows, proparallel, proleakproof, prosecdef from pg_proc where proname = 'f';
select distinct proparallel, proleakproof from pg_proc where proname like 'int4%' order by 1, 2;
