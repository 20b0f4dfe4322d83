SELECT 1 AS one;
SELECT foo;
SELECT 'a', foo, 'a long literal that makes the line wider than sixty columns', 'and then some more';
SELECT 'a long literal that makes the line wider than sixty columns', 'and then some more', foo;
SELECT 'a long literal that makes the line wider than sixty columns', 'x', foo, 'and then some more of it';
SELECT 1,
	foo, 2
  FROM pg_class;
SELECT '日本語日本語', foo;
SELECT '日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語', foo, '日本語日本語日本語日本語';
SELECT foo

;
\foo
\echo still here
\errverbose_
\if
\endif
\endif
\else
\elif true
\i does_not_exist.sql
\pset fee
\set AUTOCOMMIT fee
\set ON_ERROR_STOP maybe
\set VERBOSITY loud
\set 1-x y
\unset
\getenv x
\setenv a=b c
\cd /does/not/exist
\gset
SELECT 1 AS a UNION SELECT 2 \gset p_
SELECT 1 AS a WHERE false \gset p_
SELECT 5 AS "a b" \gset p_
SELECT 1 AS "ON_ERROR_STOP" \gset
SELECT 5 AS five, NULL AS nothing \gset p_
\echo :p_five :p_nothing
\echo one \foo two
\echo 'unterminated
\set VERBOSITY terse
SELECT foo;
\set VERBOSITY sqlstate
SELECT foo;
\set VERBOSITY default
\echo :LAST_ERROR_SQLSTATE :'LAST_ERROR_MESSAGE' :ERROR :SQLSTATE :ROW_COUNT
SELECT 1 WHERE false;
\echo :ERROR :SQLSTATE :ROW_COUNT
SELECT 1/0;
SELECT 1 +;
SELECT 'no semicolon', foo
