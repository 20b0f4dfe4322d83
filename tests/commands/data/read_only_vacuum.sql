-- VACUUM and ANALYZE may run in a read-only transaction, but VACUUM not in a block.
CREATE TABLE t (a int);
BEGIN READ ONLY;
VACUUM t;
ROLLBACK;
BEGIN READ ONLY;
ANALYZE t;
ROLLBACK;
SET default_transaction_read_only = on;
VACUUM t;
ANALYZE t;
