CREATE SCHEMA pattern;
CREATE TABLE pattern.ft (id int, i2 smallint, i4 int, i8 bigint, n numeric, n2 numeric(10,2), f4 real,
  f8 double precision, b boolean, t text, v varchar(20), c char(5), d date, tm time, ts timestamp,
  tz timestamptz, iv interval, u uuid, by bytea, j json, jb jsonb, ia int[], ta text[]);
