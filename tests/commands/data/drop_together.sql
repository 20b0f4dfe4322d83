-- Tables that are dropped together
create table r1 (a int primary key);
create table r2 (a int references r1, b int);
alter table r1 add foreign key (a) references r1;
drop table r1;
drop table r1, r2;
create table r1 (a int primary key);
create table r2 (a int references r1, b int) partition by list (b);
create table r21 partition of r2 for values in (1);
drop table r21, r1;
drop table r2, r1;
create schema s;
create table s.r1 (a int primary key);
create table s.r2 (a int references s.r1);
create table r3 (a int references s.r1);
drop schema s cascade;
drop table r3;
