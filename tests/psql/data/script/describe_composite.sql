CREATE TYPE d_row AS (a int, "B c" text COLLATE "C", d numeric(10,2)[]);
CREATE TYPE d_none AS ();
CREATE SCHEMA d_types;
CREATE TYPE d_types.d_row AS (x date);
COMMENT ON COLUMN d_row.a IS 'the first';
ALTER TYPE d_row ALTER ATTRIBUTE a TYPE bigint;
\d d_row
\d+ d_row
\d d_none
\d *.d_row
\dt d_row
\d+ d_types.*
DROP SCHEMA d_types CASCADE;
DROP TYPE d_row, d_none;
