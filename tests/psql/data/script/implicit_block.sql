-- The statements of one query string are a transaction block, without a warning.
SELECT 1\; SET TRANSACTION READ ONLY\; SHOW transaction_read_only;
SET LOCAL search_path = x\; SHOW search_path;
SHOW search_path;
SET LOCAL search_path = x;
SET TRANSACTION READ ONLY;
