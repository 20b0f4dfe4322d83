-- COPY of rows: what is written, what tables refuse, and what stands in files.
\set SHOW_CONTEXT always
CREATE TABLE t (id int PRIMARY KEY, b text NOT NULL, c numeric(5,2) DEFAULT 1.5,
    n int GENERATED ALWAYS AS IDENTITY, g int GENERATED ALWAYS AS (id + 1) STORED, CHECK (id < 100));
COPY t (id, b) FROM STDIN;
1	x
2	a\tb\\c\x41\101\n\303\244
\.
COPY t FROM STDIN CSV HEADER;
id,b,c,n
10,"he said ""x"", or
so",,77
11,"",3.14159,78
\.
COPY t (id, b, c) FROM STDIN (DEFAULT 'D') WHERE id % 2 = 0;
20	D not	D
21	odd	D
22	even	\N
\.
TABLE t;
COPY t FROM STDIN;
30	x	1	1
1	x	1	1
\.
COPY t (id, b) FROM STDIN;
30	x
31	y
30	z
\.
COPY t FROM STDIN;
30	x	1	1
31	\N	1	1
\.
COPY t FROM STDIN;
30	x	1	1
300	\N	1	1
\.
COPY t FROM STDIN;
30	x	1	1
300	y	1	1
31	x	y	1
\.
COPY t FROM STDIN;
30	x	1	1
31	x	y	1
300	y	1	1
\.
COPY t (id, b) FROM STDIN (ON_ERROR ignore);
50	fine
51
\.
COPY t (id, b) FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY verbose);
50	fine
x	wrong
51	fine
999999999999	wrong
\.
COPY t TO STDOUT;
COPY t (g, id) TO STDOUT;
COPY t (b, id) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE (b));
COPY (SELECT id, g FROM t WHERE id > 20 ORDER BY id DESC) TO STDOUT;
CREATE TABLE p (a int, b text) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
COPY p FROM STDIN;
1	x
2	y
1	z
\.
COPY p FROM STDIN;
1	x
3	y
\.
COPY p2 FROM STDIN;
1	x
\.
COPY p1 TO STDOUT;
CREATE TABLE f (a int REFERENCES t);
COPY f FROM STDIN;
1
\N
\.
COPY f FROM STDIN;
1
3
\.
CREATE TABLE types (b bool, d date, ts timestamptz, j jsonb, a int[], by bytea, iv interval, f float8);
SET timezone = 'UTC';
COPY types FROM STDIN;
t	2024-02-30	\N	\N	\N	\N	\N	\N
\.
COPY types FROM STDIN;
yes	Feb 29 2024	2024-01-01 12:00+02	{"b": 1,  "a": [1,2]}	{1,NULL,3}	\\xDEadbeef	1 day 02:00	1e3
\N	infinity	-infinity	null	{}	\\x	-1 mon	NaN
\.
COPY types TO STDOUT;
COPY types TO STDOUT CSV;
BEGIN;
COPY p FROM STDIN;
1	in a block
\.
COPY p1 TO STDOUT;
ROLLBACK;
COPY p1 TO STDOUT;
COPY p TO STDOUT;
COPY p1 (b) TO '/tmp/replctl_copy_test.txt';
CREATE TABLE lines (line text, place serial);
COPY lines (line) FROM '/tmp/replctl_copy_test.txt';
TABLE lines;
COPY t (b) TO '/tmp/replctl_copy_test.txt' (ENCODING 'latin1');
COPY lines (line) FROM '/tmp/replctl_copy_test.txt';
COPY lines (line) FROM '/tmp/replctl_copy_test.txt' (ENCODING 'latin1') WHERE line LIKE '%ä%';
SELECT line, place FROM lines ORDER BY place;
-- How lines end, and how the data do.
CREATE TABLE e (a text, b text);
\! printf 'a\tb\r\n\\\\\tc\r\n\\.\r\nd\te\r\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'x\ty\rz\\\rz\tw' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'f,"g\r\nh"\r\n"\\.",\r\ni,j\r\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt' CSV;
COPY e TO STDOUT CSV;
\! printf 'a\tb\nc\td\r\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'a\tb\r\nc\td\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'a\tb\rc\td\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'a\tb\r\nc\td\re\tf\r\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'a,b\nc,d\r\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt' CSV;
\! printf 'a,b\r\nc,d\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt' CSV;
\! printf 'a\tb\n\\.\r\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'a\tb\r\n\\.\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'a\tb\n\\.x\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'a\tb\nc\\.\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'a\tb\\0\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! printf 'a\tb\000\n' > /tmp/replctl_copy_test.txt
COPY e FROM '/tmp/replctl_copy_test.txt';
\! rm /tmp/replctl_copy_test.txt
CREATE ROLE copier;
GRANT ALL ON t TO copier;
SET ROLE copier;
COPY t (id, b) TO '/tmp/replctl_copy_test.txt';
COPY t (id, b) FROM '/tmp/replctl_copy_test.txt';
COPY p FROM STDIN;
COPY p1 TO STDOUT;
COPY (SELECT * FROM p) TO STDOUT;
COPY t (id) FROM STDIN;
x
\.
RESET ROLE;
GRANT pg_read_server_files TO copier;
SET ROLE copier;
COPY t (id, b) FROM '/tmp/replctl_copy_test.txt';
COPY t (id, b) TO '/tmp/replctl_copy_test.txt';
RESET ROLE;
DROP TABLE f;
DROP TABLE t, p, types, lines, e;
DROP ROLE copier;
