-- Queries again and again; without their titles, which tell the time.
\watch c=1 0
\t
SELECT 1 AS x \watch 0 x
SELECT 1 AS x \watch -1
SELECT 1 AS x \watch x
SELECT 1 AS x \watch i=0.01 c=2
SELECT 1 AS x \watch c=2 i=0.01 c=3
SELECT 1 AS x \watch c=0
SELECT 1 AS x \watch m=0
SELECT 1 AS x \watch m=x
SELECT 1 AS x \watch m=1 m=2
SELECT 1 AS x \watch foo=1
SELECT 1 AS x \watch c=
SELECT 1 AS x \watch i= c=1
SELECT 1 AS x \watch count=1 interval=0 min_rows=1
SELECT 1 AS x WHERE false \watch m=1 i=0.01
CREATE TABLE w (a int) \watch c=2 0
SELECT 1 AS x \; SELECT 2 AS y \watch c=1 0
\x
SELECT 1 AS x \watch c=1 0
\x
COPY (SELECT 1) TO STDOUT \watch c=2 0
SELECT 2 AS previous;
\watch c=1 0
DROP TABLE w;
