-- Errors inside the CHECK of a domain end COPY, even with ON_ERROR ignore. A CHECK that is false skips the row.
\set SHOW_CONTEXT always
CREATE DOMAIN tens AS int CHECK (10 / VALUE > 1);
CREATE DOMAIN digits AS text CHECK (VALUE::int > 0);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN above AS int CHECK ((VALUE - 5)::positive > 1);
CREATE TYPE pair AS (x tens, y int);
CREATE TABLE t (a tens, b digits, c digits[], d pair, e above);
COPY t (a) FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY verbose);
20
x
\.
COPY t (a) FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY verbose);
20
0
5
\.
COPY t (b) FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY verbose);
-1
abc
\.
COPY t (c) FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY verbose);
{1,-1}
{1,abc}
\.
COPY t (d) FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY verbose);
(20,1)
(x,1)
(0,1)
\.
COPY t (e) FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY verbose);
6
5
\.
