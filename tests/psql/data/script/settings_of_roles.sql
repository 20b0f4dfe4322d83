-- Default privileges (\ddp) and settings of roles (\drds)
\drds
\drds reg_psql_s
\drds reg_psql_s postgres
create role reg_psql_s;
create role reg_psql_t;
create schema psql_s;
alter default privileges for role reg_psql_s grant select on tables to reg_psql_t;
alter default privileges for role reg_psql_s in schema psql_s grant all on sequences to reg_psql_t, public;
alter default privileges for role reg_psql_t revoke execute on functions from public;
\ddp
\ddp psql_*
\ddp reg_psql_t
\ddp nothing
alter role reg_psql_s set lock_timeout = '5s';
alter role reg_psql_s set search_path = psql_s, public;
alter role reg_psql_t in database postgres set lock_timeout = '6s';
alter role all in database postgres set lock_timeout = '7s';
\drds
\drds reg_psql_*
\drds reg_psql_* postgres
\drds * postgres
\drds nobody
drop owned by reg_psql_t;
drop owned by reg_psql_s;
drop role reg_psql_s;
drop role reg_psql_t;
alter role all in database postgres reset all;
drop schema psql_s;
\drds
