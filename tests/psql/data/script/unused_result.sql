-- A result that psql cannot use counts as an error without SQLSTATE.
\set QUIET on
SELECT 1 AS a, 2 AS b UNION SELECT 2, 3 \gset
\echo :ERROR :SQLSTATE :ROW_COUNT :LAST_ERROR_SQLSTATE :LAST_ERROR_MESSAGE
SELECT 1;
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 1 AS a WHERE false \gset
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 1 AS "1 bad" \gset
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 1 AS a \gset 1bad
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 1 AS "ECHO" \gset
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 1 AS a, 2 AS b \crosstabview
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 1 AS a, 2 AS b, 3 AS c \crosstabview nosuch
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 1 AS a \g /nosuch/file
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 'x' \gexec
\echo :ERROR :SQLSTATE :ROW_COUNT :LAST_ERROR_SQLSTATE :LAST_ERROR_MESSAGE
SELECT unnest(array['x', 'SELECT 1']) \gexec
\if :ERROR
\echo failed
\endif
SELECT 'SELECT 1', 'SELECT 2' \gexec
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 1 AS a, 2 AS b \; SELECT 3 AS a \gset
\echo :ERROR :SQLSTATE :ROW_COUNT :a
\copy (SELECT 1) TO '/nosuch/file'
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT nosuch \gdesc
\echo :ERROR :SQLSTATE :ROW_COUNT
\echo :LAST_ERROR_SQLSTATE :LAST_ERROR_MESSAGE
