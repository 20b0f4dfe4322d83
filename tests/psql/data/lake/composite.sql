SET datestyle = 'ISO';
SET timezone = 'UTC';
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b text, m mood);
CREATE TABLE t (id int PRIMARY KEY, c pair DEFAULT '(9,,)');
COPY t FROM stdin;
1	(1,"a b",ok)
2	( 2,"x\\\\y""z",sad)
3	\N
4	(,,)
\.
COPY t (id) FROM stdin;
5
\.
COPY t FROM stdin (FORMAT csv);
6,"(6,""q"",)"
7,
\.
COPY t FROM stdin;
8	(1,a)
\.
COPY t FROM stdin;
8	(1,a,glad)
\.
COPY t FROM stdin (ON_ERROR ignore);
8	(1,a,glad)
9	(9,n,ok)
\.
COPY t TO stdout;
COPY t TO stdout (FORMAT csv, HEADER);
COPY (SELECT id, (c).b, c FROM t WHERE (c).m = 'ok') TO stdout;
SELECT * FROM t;
\d t
SET datestyle = 'German';
SET timezone = 'Europe/Zurich';
CREATE TYPE moment AS (t timestamptz, d date);
CREATE TABLE m (id int, c moment);
INSERT INTO m VALUES (1, '("01.02.2024 12:00:00",03.04.2024)');
COPY m FROM stdin;
2	("05.06.2024 12:00:00",07.08.2024)
\.
SELECT * FROM t WHERE id = 1;
SET datestyle = 'ISO';
SET timezone = 'UTC';
SELECT * FROM m;
DROP TABLE t, m;
DROP TYPE pair, mood, moment;
