-- A publication whose name is in DROP PUBLICATION twice
create publication p;
create publication q;
drop publication p, p;
drop publication q, nope, q;
drop publication if exists nope, q, p, q, nope;
select count(*) from pg_publication;
