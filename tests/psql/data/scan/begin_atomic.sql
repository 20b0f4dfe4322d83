CREATE FUNCTION pg_temp.f(a int DEFAULT (1)) RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN a > 0 THEN 1 ELSE 2 END; END;
SELECT 1;
create or replace procedure pg_temp.p()
begin atomic
  select 1;
  begin;
  end;
end; SELECT 2;
CREATE TABLE begin; SELECT 3;
CREATE OR REPLACE VIEW begin; SELECT 4;
BEGIN; END; COMMIT;
CREATE FUNCTION pg_temp.g() RETURNS int RETURN (SELECT begin); SELECT 5;
CREATE /* FUNCTION */ FUNCTION "begin" begin; "end"; end; SELECT 6;
SELECT 7 \; CREATE FUNCTION f() BEGIN SELECT 8; END; SELECT 9;
