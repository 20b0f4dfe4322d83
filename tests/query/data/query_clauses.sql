create table w (a int, b int, n numeric(6,2), v varchar(5));
insert into w values (1, 1, 1.5, 'a'), (2, 1, 2.5, 'b'), (4, 1, 3, 'c'), (5, 2, 4, 'd');
select a, sum(a) over w2 as x, count(*) over (w1) as y, sum(a) over (w1 order by a rows '1' preceding) as z, sum(a) over (order by a range 1 preceding) as r from w window w1 as (partition by b), w2 as (w1 order by a desc) order by a;
create view v as select a, sum(n) over w2 as x, sum(n) over (order by n range between '0.5' preceding and 1 following) as y from w window w1 as (partition by b), w2 as (w1 order by a);
select * from v order by a;
with recursive t(a, n) as (select a, 1 from w where a = 1 union all select w.a, t.n + 1 from t join w on w.a = t.a + 1) select * from t order by n;
with recursive t(a, n) as (select a, 1 from w union all select w.a, t.n + 1.5 from t join w on w.a = t.a + 1) select * from t order by n;
with recursive t(a) as (select a from w union all select count(*)::int from t) select * from t;
with recursive u as (select a from t where a > 1), t as (select a from w) select * from u order by a;
