\set VERBOSITY terse
CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE TABLE a.t (id int PRIMARY KEY, v int);
CREATE TABLE b.t (id int PRIMARY KEY, v int);
INSERT INTO a.t VALUES (1, 2) RETURNING a.t.id \gdesc
INSERT INTO a.t AS z VALUES (1, 2) RETURNING a.t.id \gdesc
INSERT INTO a.t VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = a.t.v + 1 RETURNING a.t.v \gdesc
UPDATE a.t SET v = b.t.v FROM b.t WHERE a.t.id = b.t.id RETURNING a.t.v AS one \gdesc
DELETE FROM a.t USING b.t WHERE a.t.id = b.t.id RETURNING 1 AS one \gdesc
DELETE FROM a.t USING a.t RETURNING 1 AS one \gdesc
