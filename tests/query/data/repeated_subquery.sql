create table w (id int primary key, x int);
insert into w values (1, 10), (2, 2), (3, 20), (4, null);
create table v (x int);
insert into v values (1), (2), (null);
set replctl.small_table_rows = 0;
select id, (x / id > (select max(x) from v)) is null, nullif(x in (select x from v), id = 2), nullif((select max(x) from v), x) from w order by id;
