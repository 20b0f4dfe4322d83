-- Implicit casts that pretty output does not print, but whose operands keep their parentheses
create domain positive as int check (value > 0);
create table t (a int, b text, n numeric generated always as (a * 2) stored, f float8 generated always as (-a) stored, v varchar generated always as (b || 'x') stored, p positive generated always as (a + 1) stored, w numeric(10,2) generated always as (a * 2) stored, c int default 1 + 2, i int8 generated always as (coalesce(a, 1)) stored, q int8[] generated always as (array[a] || 1) stored);
select attname, pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid = 't'::regclass order by adnum;
