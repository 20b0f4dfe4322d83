-- \copy, \crosstabview, \gdesc and what else sends the query buffer.
CREATE TABLE c (a int, b text);
\copy
\copy c
\copy c from
\copy c sideways 'x'
\copy c (a
\copy (select 1
\copy c from program true
\copy c from '/nonexistent/x'
\copy c to '/nonexistent/x'
\copy c from '/tmp'
\copy c to '/tmp'
\copy nosuch from stdin
\copy c from stdin
x	y
\.
\copy c (a, b) from stdin with (format csv)
x,y
\.
\copy "c"("a") from stdin
x
\.
\copy public . c from stdin csv
x
\.
\copy c from program 'printf "x\n"'
\copy c from program 'exit 3'
\copy binary c from stdin (format csv)
\copy (select 1, 'a)b', E'c\'(') to stdout
\copy (select 1 as "x y", 'a' as b) to stdout csv header;
\copy (values (1, 2)) to pstdout with delimiter '|'
\copy (select 1) to /tmp/replctl_slash_copy.txt
\copy (select 2) to '/tmp/replctl_slash_copy it''s.txt' csv
\! cat /tmp/replctl_slash_copy.txt "/tmp/replctl_slash_copy it's.txt"
\copy (select 'to a program') to program 'cat > /tmp/replctl_slash_copy.txt'
\! cat /tmp/replctl_slash_copy.txt
\! rm /tmp/replctl_slash_copy.txt "/tmp/replctl_slash_copy it's.txt"
\copy (select 1/0) to stdout
\copy (select 1) from stdin
\copy c to stdout (format xx)
\set ECHO queries
\copy (select 3) to stdout (header)
\set ECHO none
\set ECHO all
\o | cat >/dev/null
\copy (select 3) to stdout
\copy (select 4) to pstdout
\o
-- grids
SELECT * FROM (VALUES ('a', 'x', 1), ('a', 'y', 2), ('b', 'y', 3), ('b', NULL, NULL), (NULL, 'x', 4)) AS t (r, c, v) \crosstabview
\pset null '(null)'
SELECT * FROM (VALUES ('a', 'x', 1), ('a', 'y', 2), ('b', 'y', 3), ('b', NULL, NULL), (NULL, 'x', 4)) AS t (r, c, v) \crosstabview
SELECT * FROM (VALUES ('a', 'x', 1, 9), ('a', 'y', 2, -8), ('b', 'z', 3, 7)) AS t (r, c, v, s) \crosstabview r c v s
SELECT * FROM (VALUES ('a', 'x', 1, 9), ('a', 'y', 2, -8), ('b', 'z', 3, 7)) AS t (r, c, v, s) \crosstabview c 1 3
SELECT * FROM (VALUES ('a', 'x', 1, 9), ('a', 'y', 2, -8), ('b', 'z', 3, 7)) AS t (r, c, v, s) \crosstabview
SELECT * FROM (VALUES ('a', 'x', 1), ('a', 'x', 2)) AS t (r, c, v) \crosstabview
SELECT * FROM (VALUES (NULL, 'x', 1), (NULL, 'x', 2)) AS t (r, c, v) \crosstabview
SELECT 1, 2 \crosstabview
SELECT 1 AS a, 2 AS a, 3 AS b \crosstabview a b
SELECT 1 AS a, 2 AS "A", 3 AS b \crosstabview "A" A 3
SELECT 1, 2, 3 \crosstabview 1 1
SELECT 1, 2, 3 \crosstabview 0 1
SELECT 1, 2, 3 \crosstabview 4 1
SELECT 1, 2, 3 \crosstabview nope
SELECT 1, 2, 3 WHERE false \crosstabview
SELECT 1/0, 2, 3 \crosstabview
SET search_path = public \crosstabview
\pset null ''
\x
SELECT 1 AS r, 2 AS c, 3 AS v \crosstabview
\x
-- types of columns
SELECT 1 AS a, 'x' AS b, 1.5::numeric(10,2) AS c, 'y'::varchar(3), now(), NULL AS n, ARRAY[1,2] \gdesc
SELECT \gdesc
TABLE c \gdesc
CREATE TABLE d (a int) \gdesc
TABLE d;
SELECT nope \gdesc
SELECT 1 \; SELECT 2 \gdesc
SHOW search_path \gdesc
SELECT 1 + \gdesc
\gdesc
\x
SELECT 1 AS a \gdesc
\x
-- values as statements, results as variables
SELECT 'SELECT ' || x, CASE WHEN x > 1 THEN 'SELECT 1/0' END FROM generate_series(1, 2) AS x \gexec
SELECT 1 AS one, 'two' AS "Two" \gset p_
\echo :p_one :p_Two
SELECT 1 AS one WHERE false \gset
SELECT 1 AS one UNION ALL SELECT 2 \gset
SELECT NULL AS p_one \gset
\echo :p_one
SELECT 1 AS "bad name" \gset
SELECT 1 AS x \g (format=csv)
SELECT 1 AS x \g (format=unaligned tuples_only=on) | cat
\echo next
SELECT 1 AS x \g (nope=1)
SELECT 1 AS x \g (format=csv
SELECT 1 AS x \gx
SELECT 1 AS x \gx (null=x) | cat
\echo next
SELECT 1 AS x \g /nonexistent/x
CREATE TABLE e (a int) \g /nonexistent/x
\prompt
\w
\w /nonexistent/x
SELECT 1
\w | cat
\p
\r
DROP TABLE c, e;
