SELECT 1 \echo in the middle
+ 2;
SELECT 3
\echo between
;
\echo first \\ SELECT 4; \echo second \echo third \\ SELECT 5;
SELECT 6 \g
SELECT (7 \g
SELECT 8 \r
SELECT 9;
  \echo only this line
SELECT 10\echo attached
;
SELECT 'not a \command';
SELECT 11 \\ , 12;
-- \echo in a comment
SELECT 13 -- \echo here as well
;
