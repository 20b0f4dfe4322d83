-- Policies in \d and \dp
create role reg_psql_policy_a;
create role reg_psql_policy_b;
create table psql_policies (id int primary key, owner name, level int);
create table psql_cleared (id int);
create policy plain on psql_policies using (owner = current_user);
\d psql_policies
alter table psql_policies enable row level security;
create policy "Strict one" on psql_policies as restrictive for update to reg_psql_policy_b, reg_psql_policy_a using (level < 3 and id > 0) with check (level < 2);
create policy inserted on psql_policies for insert to reg_psql_policy_a with check (exists (select 1 from psql_cleared c where c.id = level));
\d psql_policies
\d+ psql_policies
\dp psql_policies
alter table psql_policies force row level security;
\d psql_policies
drop policy plain on psql_policies;
drop policy "Strict one" on psql_policies;
drop policy inserted on psql_policies;
\d psql_policies
alter table psql_policies no force row level security;
\d psql_policies
\dp psql_policies
drop table psql_policies, psql_cleared;
drop role reg_psql_policy_a, reg_psql_policy_b;
