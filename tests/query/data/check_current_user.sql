-- CHECK constraints with the role or a setting of the session
create role reg_check_writer superuser;
create table reg_check (
    id int primary key,
    who text default current_user,
    check (current_user = 'reg_check_writer' and current_setting('work_mem') <> '')
);
insert into reg_check values (1);
set role reg_check_writer;
insert into reg_check values (1), (2);
update reg_check set id = 3 where id = 2;
table reg_check order by id;
alter table reg_check add constraint by_writer check (session_user <> current_user);
alter table reg_check add constraint by_other check (current_user = 'other');
alter table reg_check alter who type name using current_user;
table reg_check order by id;
reset role;
update reg_check set id = 4 where id = 3;
drop table reg_check;
drop role reg_check_writer;
