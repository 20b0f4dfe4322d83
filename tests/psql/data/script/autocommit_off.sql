-- With AUTOCOMMIT off, psql sends BEGIN before a statement, unless it would fail in a block.
CREATE TABLE autocommit_t (a int);
\set AUTOCOMMIT off
DISCARD ALL;
discard /* a /* nested */ comment */ all;
ROLLBACK;
-- a comment
CREATE DATABASE autocommit_d;
/* -- */ DROP -- a comment
  DATABASE autocommit_d;
ALTER SYSTEM SET my.own = 1;
ALTER SYSTEM RESET my.own;
CREATE UNIQUE INDEX CONCURRENTLY autocommit_i ON autocommit_t (a);
DROP INDEX CONCURRENTLY autocommit_i;
ROLLBACK;
/* c */ BEGIN READ ONLY;
COMMIT;
ABORT;
DISCARD PLANS;
DISCARD ALL;
ROLLBACK;
CREATE INDEX autocommit_i ON autocommit_t (a);
ROLLBACK;
DROP INDEX autocommit_i;
ROLLBACK;
SELECT 1;
COMMIT;
"begin";
COMMIT;
\set AUTOCOMMIT on
DROP TABLE autocommit_t;
