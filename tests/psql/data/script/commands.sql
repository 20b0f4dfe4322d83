\echo a  'b  c' "d e" :nope
\echo -n no newline
\echo
\echo -n
\echo 'it''s' \\ SELECT 1 AS one;
\qecho to the output
\set x 'a' b 'c d'
\echo :x :'x' :"x" :{?x} :{?y}
\set y :x e
\echo :y
\unset x
\echo :x
\if true
\echo taken
SELECT 1 AS taken;
\else
\echo not taken
SELECT 2 AS not_taken;
\invalid_but_skipped
\if true
\echo nested
\endif
\endif
\if false
\echo no
\elif yes
\echo elif
\elif 1
\echo no
\else
\echo no
\endif
SELECT
\if 1
1
\else
2
\endif
AS chosen;
SELECT 1 \; SELECT 2 AS two;
SELECT 3 AS three \g
\g
SELECT 4 AS four, NULL AS none \gx
SELECT 'SELECT 5 AS five' UNION ALL SELECT 'SELECT 6 AS six' \gexec
SELECT 1 AS a, 'x' AS b \g (format=csv tuples_only=on)
SELECT 7 AS seven \g | cat
\p
\r
\p
SELECT 1
\p
\r
SELECT 'in
two lines' AS t, '(' AS paren;
SELECT $$dollar;
$$ AS d; SELECT 2 AS second;
-- a comment; with a semicolon
SELECT /* block; */ 3 AS three -- trailing
;
\x
SELECT 1 AS a, 'b' AS b;
\x auto
\x off
\t
SELECT 1 AS a;
\t off
\a
SELECT 1 AS a, NULL AS b;
\f ;
\pset null '(null)'
SELECT 1 AS a, NULL AS b;
\a
\pset border 2
\pset title 'A title'
SELECT 1 AS a, NULL AS b;
\C
\pset footer off
SELECT 1 AS a, 'left' AS b;
\pset footer on
\pset format csv
SELECT 1 AS a, 'x,y' AS b;
\pset format aligned
\H
\H
\T attributes
\T
\pset recordsep_zero
\pset recordsep '\n'
\pset fieldsep_zero
\pset fieldsep
\pset csv_fieldsep ';'
\pset csv_fieldsep 'ab'
\pset numericlocale
\pset columns 70
\pset expanded maybe
\timing on
\timing off
\encoding
\setenv REPLCTL_TEST hello
\getenv greeting REPLCTL_TEST
\echo :greeting
\! echo shell
\set status `exit 3`
\echo `echo back` and `echo tick`
\set ECHO queries
SELECT 8 AS eight;
\echo not echoed
\set ECHO errors
SELECT nine;
\set ECHO none
\set QUIET on
\x
\set QUIET off
\q
SELECT 'not reached';
