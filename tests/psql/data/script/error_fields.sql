\set VERBOSITY verbose
CREATE SCHEMA s;
CREATE DOMAIN d AS int NOT NULL CHECK (value > 0);
CREATE DOMAIN s.e AS text CONSTRAINT short CHECK (length(value) < 3);
CREATE DOMAIN "S|%" AS d CONSTRAINT "a|b" CHECK (value < 9);
SELECT null::d;
SELECT 0::d;
SELECT 'long'::s.e;
\errverbose
SET search_path = s;
SELECT 'long'::e;
SELECT 0::public.d;
RESET search_path;
SELECT 10::"S|%";
SELECT 0::"S|%";
\errverbose
SELECT x::d FROM (VALUES (1), (0)) v(x);
SELECT nope;
\set VERBOSITY default
SELECT 0::d;
\errverbose
