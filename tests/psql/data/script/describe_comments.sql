-- \dd prints equal rows once.
CREATE TABLE t (a int CONSTRAINT ck CHECK (a > 0));
COMMENT ON CONSTRAINT ck ON t IS 'a check';
CREATE TABLE t2 (LIKE t INCLUDING ALL);
CREATE TABLE t3 (a int CONSTRAINT ck CHECK (a > 0));
COMMENT ON CONSTRAINT ck ON t3 IS 'another';
\dd
\dd ck
DROP TABLE t, t2, t3;
