-- ALTER TYPE ... ALTER ATTRIBUTE needs no cast between the types: a composite type has no values
create type ct as (a int, b text);
alter type ct alter attribute b type int;
alter type ct alter attribute a type point, alter attribute b set data type json;
alter type ct alter attribute a type varchar(5) collate "C" cascade;
alter type ct alter attribute nope type int;
select attname, format_type(atttypid, atttypmod), attcollation::regcollation from pg_attribute where attrelid = 'ct'::regclass order by attnum;
create table t (c ct);
alter type ct alter attribute b type int;
