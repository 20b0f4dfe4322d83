-- COPY into columns of domains; backslash dD.
\set SHOW_CONTEXT always
create domain posint as int check (value > 0);
create domain given as text not null check (value <> 'no');
create domain pos2 as posint default 6;
create table t (p posint, g given, d pos2);
COPY t FROM STDIN;
1	a	5
-1	b	5
\.
COPY t FROM STDIN;
1	\N	5
\.
COPY t FROM STDIN;
1	no	5
\.
COPY t (p) FROM STDIN;
1
\.
COPY t (p, g) FROM STDIN;
4	x
\N	y
\.
COPY t FROM STDIN WITH (on_error ignore, log_verbosity verbose);
5	a	5
-1	b	5
6	\N	7
7	c	8
\.
COPY t (p, g) FROM STDIN WHERE p > 2;
1	e
9	f
\.
select * from t order by g, p;
COPY (SELECT p, d FROM t ORDER BY d, p) TO STDOUT;
\dD pos*
\dD+ pos*
\d t
\d+ t
comment on domain pos2 is 'two';
grant usage on domain pos2 to public;
\dD+ pos2
\dD none
drop table t;
drop domain posint, given, pos2;
