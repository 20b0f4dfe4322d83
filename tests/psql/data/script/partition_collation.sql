create table p (a text collate "C", n int) partition by list (a);
create table p1 partition of p for values in ('a', 'b');
create table p2 partition of p for values in ('c', null);
create table p3 partition of p for values in (null);
create table p4 partition of p default;
create table v (b varchar(10) collate "POSIX") partition by list (b);
create table v1 partition of v for values in ('x');
create table v2 partition of v for values in ('y', 'z');
create table v3 partition of v default;
create table r (a text collate "C", b varchar(5), c text collate "default", d int) partition by range (a, b, c, d);
create table r1 partition of r for values from ('a', 'b', 'c', 1) to ('a', 'b', 'd', maxvalue);
create table r2 partition of r for values from ('b', minvalue, minvalue, minvalue) to ('c', 'd', 'e', 5);
create table r3 partition of r default;
create table w (b varchar) partition by range (b);
create table w1 partition of w for values from ('a') to ('b');
create table w2 partition of w for values from ('b') to (maxvalue);
create table k (b bpchar(3) collate "C", c name) partition by range (b, c);
create table k1 partition of k for values from ('a', 'x') to ('b', 'y');
create table m (b name) partition by list (b);
create table m1 partition of m for values in ('a', 'b');
create table h (b text collate "C") partition by hash (b);
create table h1 partition of h for values with (modulus 2, remainder 0);
create domain dm as varchar(4) collate "C";
create table g (b dm) partition by list (b);
create table g1 partition of g for values in ('a', 'b');
create table e (b bool, d date) partition by range (b, d);
create table e1 partition of e for values from (false, '2024-01-01') to (true, '2024-01-02');
create table e2 partition of e default;
create table l (b varchar(3)) partition by list (b);
create table l1 partition of l for values in ('a');
create table l2 partition of l for values in ('b', 'c');
\d+ p1
\d+ p2
\d+ p3
\d+ p4
\d+ v1
\d+ v2
\d+ v3
\d+ r1
\d+ r2
\d+ r3
\d+ w1
\d+ w2
\d+ k1
\d+ m1
\d+ g1
\d+ e1
\d+ e2
\d+ l1
\d+ l2
