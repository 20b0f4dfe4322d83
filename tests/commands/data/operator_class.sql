create table by_varchar (a varchar(10) primary key, b varchar unique, c cidr, d varchar[], e regclass, f bit(3));
create index on by_varchar (c);
create index on by_varchar (d);
create index on by_varchar (e, f);
create table by_json (a json primary key);
create table by_point (a point unique);
create table p_list (a varchar(5)) partition by list (a);
create table p_hash (a varchar(5)) partition by hash (a);
create table p_range (a cidr) partition by range (a);
create table p_json (a json) partition by list (a);
create table p_hash_json (a json) partition by hash (a);


drop table by_varchar, p_list, p_hash, p_range;
