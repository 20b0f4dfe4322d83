-- \drg, \dd and \password.
CREATE ROLE drg_a;
CREATE ROLE drg_b;
CREATE ROLE drg_c LOGIN;
GRANT drg_a TO drg_b;
GRANT drg_a TO drg_c WITH ADMIN OPTION;
GRANT drg_b TO drg_c WITH INHERIT FALSE, SET FALSE;
GRANT pg_read_all_data TO drg_c;
\drg
\drg drg_a
\drg drg_c
\drg nope
\drg+
\drg a.b
\drgS drg_*
CREATE TABLE t (a int CONSTRAINT ck CHECK (a > 0));
COMMENT ON CONSTRAINT ck ON t IS 'a check';
COMMENT ON TABLE t IS 'table';
\dd
\dd ck
\dd nope
\ddS ck
\dd public.c*
\dd nope.c*
\dd+
DROP TABLE t;
DROP ROLE drg_c;
DROP ROLE drg_b;
DROP ROLE drg_a;
