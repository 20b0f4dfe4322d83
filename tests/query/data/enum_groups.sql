-- GROUP BY, DISTINCT and set operations over enums of other subqueries
create type mood as enum ('sad', 'ok', 'happy');
create table w (i int, m mood, a mood[]);
insert into w values (1, 'sad', '{ok}'), (2, 'happy', '{sad,happy}'), (3, 'ok', null), (4, 'happy', '{ok}');
select count(*) from (select x, count(*) from (select distinct m from w) q (x) group by x) r;
select x, n from (select x, count(*) as n from (select distinct coalesce(m, 'ok') from w) q (x) group by x) r order by x;
select x from ((select m from w except select m from w where i = 1) union select 'ok'::mood) q (x) order by x desc;
select x from ((select m from w except all select m from w where i = 2) union all select 'ok'::mood) q (x) order by x;
select x from ((select a from w except select a from w where i = 1) union select '{sad}'::mood[]) q (x) where x is not null order by x::text;
select x, y from ((select m, i from w except all select m, i from w where i = 1) union select 'ok'::mood, 1) q (x, y) order by x, y;
select distinct nullif(coalesce(q.x, w.m), 'ok') is null from (select distinct greatest(m, 'ok') from w) q (x) right join w on true order by 1;
