-- \du of roles with limits.
CREATE ROLE limits_a LOGIN VALID UNTIL '2030-01-01 00:00:00+00';
CREATE ROLE limits_b LOGIN CONNECTION LIMIT 0;
CREATE ROLE limits_c LOGIN CONNECTION LIMIT 1 VALID UNTIL 'infinity';
CREATE ROLE limits_d LOGIN CONNECTION LIMIT 5;
CREATE ROLE limits_e CONNECTION LIMIT 5 VALID UNTIL 'infinity';
CREATE ROLE limits_f LOGIN;
\du limits*
\dg+ limits*
DROP ROLE limits_a, limits_b, limits_c, limits_d, limits_e, limits_f;
