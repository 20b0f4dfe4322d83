CREATE SCHEMA s;
CREATE FUNCTION is_even(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION lower(int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT NULL';
CREATE FUNCTION upper(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT NULL';
CREATE FUNCTION s.hid(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION f(a int, b text DEFAULT 'x') RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION f(a int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION f2(a int, b text DEFAULT 'x', c int DEFAULT 1) RETURNS boolean LANGUAGE sql IMMUTABLE
  AS 'SELECT true';
CREATE FUNCTION vf(VARIADIC int[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION vf2(text, VARIADIC text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION va(VARIADIC anyarray) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION g(anyelement, anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION gc(anycompatible, anycompatible) RETURNS anycompatible LANGUAGE sql IMMUTABLE
  AS 'SELECT $1';
CREATE FUNCTION ga(anyarray) RETURNS anyelement LANGUAGE sql IMMUTABLE AS 'SELECT $1[1]';
CREATE FUNCTION gca(anycompatiblearray, anycompatible) RETURNS anycompatiblearray LANGUAGE sql IMMUTABLE
  AS 'SELECT $1';
CREATE FUNCTION gn(anynonarray) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION ge(anyenum) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION gr(anyrange, anyelement) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION gcr(anycompatiblerange, anycompatible) RETURNS boolean LANGUAGE sql IMMUTABLE
  AS 'SELECT true';
CREATE FUNCTION gm(anymultirange) RETURNS anyrange LANGUAGE sql IMMUTABLE AS 'SELECT NULL';
CREATE PROCEDURE pr(int) LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION srf(int) RETURNS SETOF int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION "Odd Name"(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION "select"(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR === (FUNCTION = int4eq, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR s.=== (FUNCTION = int8eq, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR = (FUNCTION = int48eq, LEFTARG = int, RIGHTARG = bigint);
CREATE OPERATOR s.+ (FUNCTION = int4pl, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR @#@ (FUNCTION = int4um, RIGHTARG = int);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE s.hue AS ENUM ('red', 'it''s');
CREATE DOMAIN dom AS int CHECK (VALUE > 0);
CREATE DOMAIN domv AS varchar(5);
CREATE DOMAIN domt AS text COLLATE "C";
CREATE DOMAIN doma AS int[];
CREATE DOMAIN s.domd AS dom;
CREATE TYPE comp AS (a int, b text, m mood);
CREATE DOMAIN domc AS comp;
CREATE FUNCTION cf(comp) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION a(comp) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION zz(comp) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION mkcast(mood) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE CAST (mood AS int) WITH FUNCTION mkcast(mood) AS ASSIGNMENT;
CREATE CAST (mood AS text) WITH INOUT AS IMPLICIT;
CREATE TABLE "U t" (x int);
CREATE TABLE pattern.ut (id int, i8 bigint, t text, m mood, h s.hue, d dom, dv domv, dt domt, da doma,
  dd s.domd, c comp, dc domc, ma mood[], ca comp[], v varchar(10), vc text COLLATE "C",
  vp varchar COLLATE "POSIX", "Q c" int, "user" int, r int4range, mr int4multirange, ia int[]);
