-- what fails in a block takes back no more than itself
\set ON_ERROR_ROLLBACK on
BEGIN;
CREATE TABLE kept (a int);
SELECT 1/0;
SAVEPOINT a;
CREATE TABLE gone (a int);
ROLLBACK TO a;
RELEASE a;
CREATE TABLE kept (a int);
COMMIT AND CHAIN;
SELECT 1/0;
COMMIT;
\dt
\set ON_ERROR_ROLLBACK interactive
BEGIN;
SELECT 1/0;
COMMIT;
DROP TABLE kept;
