CREATE ROLE nobody;
CREATE ROLE no_set;
CREATE ROLE no_create;
CREATE ROLE giver;
CREATE ROLE dbmaker CREATEDB;
CREATE ROLE superuser SUPERUSER;
CREATE USER of_schema;
CREATE USER of_database;
CREATE USER of_publication;
CREATE USER of_all_tables;
CREATE USER of_schema_tables;
CREATE USER of_subscription;
CREATE USER of_passwordless;
CREATE USER of_function;
CREATE USER of_operator;
CREATE USER of_type;
CREATE USER of_domain;
CREATE USER of_composite;
CREATE USER of_table;
CREATE USER taker;
CREATE USER maker;
GRANT of_schema, of_database, of_publication, of_all_tables, of_schema_tables, of_subscription, of_passwordless, of_function, of_operator, of_type, of_domain, of_composite, of_table TO no_set, giver, dbmaker;
GRANT taker, maker TO no_set WITH SET FALSE;
GRANT taker, maker TO giver, dbmaker;
GRANT of_schema, of_subscription, taker TO no_create;
GRANT CREATE ON DATABASE postgres TO maker, of_publication, of_all_tables, of_schema_tables;
GRANT CREATE ON SCHEMA public TO maker;
CREATE SCHEMA s AUTHORIZATION of_schema;
CREATE DATABASE d OWNER of_database;
CREATE PUBLICATION p;
ALTER PUBLICATION p OWNER TO of_publication;
ALTER ROLE of_all_tables SUPERUSER;
CREATE PUBLICATION all_tables FOR ALL TABLES;
ALTER PUBLICATION all_tables OWNER TO of_all_tables;
ALTER ROLE of_all_tables NOSUPERUSER;
ALTER ROLE of_schema_tables SUPERUSER;
CREATE PUBLICATION schema_tables FOR TABLES IN SCHEMA s;
ALTER PUBLICATION schema_tables OWNER TO of_schema_tables;
ALTER ROLE of_schema_tables NOSUPERUSER;
CREATE SUBSCRIPTION sub CONNECTION 'dbname=d password=x' PUBLICATION p WITH (connect = false, slot_name = NONE);
ALTER SUBSCRIPTION sub OWNER TO of_subscription;
CREATE SUBSCRIPTION passwordless CONNECTION 'dbname=d' PUBLICATION p WITH (connect = false, slot_name = NONE, password_required = false);
ALTER SUBSCRIPTION passwordless OWNER TO of_passwordless;
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER FUNCTION f() OWNER TO of_function;
CREATE OPERATOR === (PROCEDURE = int4eq, LEFTARG = int, RIGHTARG = int);
ALTER OPERATOR === (int, int) OWNER TO of_operator;
CREATE TYPE mood AS ENUM ('sad');
ALTER TYPE mood OWNER TO of_type;
CREATE DOMAIN positive AS int;
ALTER DOMAIN positive OWNER TO of_domain;
CREATE TYPE pair AS (a int);
ALTER TYPE pair OWNER TO of_composite;
CREATE TABLE t (a int);
ALTER TABLE t OWNER TO of_table;
---
ALTER SCHEMA s OWNER TO taker
ALTER SCHEMA s OWNER TO maker
ALTER SCHEMA s OWNER TO of_schema
REASSIGN OWNED BY of_schema TO taker
REASSIGN OWNED BY of_schema TO maker
ALTER DATABASE d OWNER TO taker
ALTER DATABASE d OWNER TO maker
ALTER DATABASE d OWNER TO of_database
REASSIGN OWNED BY of_database TO taker
REASSIGN OWNED BY of_database TO maker
ALTER PUBLICATION p OWNER TO taker
ALTER PUBLICATION p OWNER TO maker
ALTER PUBLICATION p OWNER TO of_publication
REASSIGN OWNED BY of_publication TO taker
REASSIGN OWNED BY of_publication TO maker
ALTER PUBLICATION all_tables OWNER TO taker
ALTER PUBLICATION all_tables OWNER TO maker
ALTER PUBLICATION all_tables OWNER TO of_all_tables
REASSIGN OWNED BY of_all_tables TO taker
REASSIGN OWNED BY of_all_tables TO maker
ALTER PUBLICATION schema_tables OWNER TO taker
ALTER PUBLICATION schema_tables OWNER TO maker
ALTER PUBLICATION schema_tables OWNER TO of_schema_tables
REASSIGN OWNED BY of_schema_tables TO taker
REASSIGN OWNED BY of_schema_tables TO maker
ALTER SUBSCRIPTION sub OWNER TO taker
ALTER SUBSCRIPTION sub OWNER TO maker
ALTER SUBSCRIPTION sub OWNER TO of_subscription
REASSIGN OWNED BY of_subscription TO taker
REASSIGN OWNED BY of_subscription TO maker
ALTER SUBSCRIPTION passwordless OWNER TO taker
ALTER SUBSCRIPTION passwordless OWNER TO maker
ALTER SUBSCRIPTION passwordless OWNER TO of_passwordless
REASSIGN OWNED BY of_passwordless TO taker
REASSIGN OWNED BY of_passwordless TO maker
ALTER FUNCTION f() OWNER TO taker
ALTER FUNCTION f() OWNER TO maker
ALTER FUNCTION f() OWNER TO of_function
REASSIGN OWNED BY of_function TO taker
REASSIGN OWNED BY of_function TO maker
ALTER OPERATOR === (int, int) OWNER TO taker
ALTER OPERATOR === (int, int) OWNER TO maker
ALTER OPERATOR === (int, int) OWNER TO of_operator
REASSIGN OWNED BY of_operator TO taker
REASSIGN OWNED BY of_operator TO maker
ALTER TYPE mood OWNER TO taker
ALTER TYPE mood OWNER TO maker
ALTER TYPE mood OWNER TO of_type
REASSIGN OWNED BY of_type TO taker
REASSIGN OWNED BY of_type TO maker
ALTER DOMAIN positive OWNER TO taker
ALTER DOMAIN positive OWNER TO maker
ALTER DOMAIN positive OWNER TO of_domain
REASSIGN OWNED BY of_domain TO taker
REASSIGN OWNED BY of_domain TO maker
ALTER TYPE pair OWNER TO taker
ALTER TYPE pair OWNER TO maker
ALTER TYPE pair OWNER TO of_composite
REASSIGN OWNED BY of_composite TO taker
REASSIGN OWNED BY of_composite TO maker
ALTER TABLE t OWNER TO taker
ALTER TABLE t OWNER TO maker
ALTER TABLE t OWNER TO of_table
REASSIGN OWNED BY of_table TO taker
REASSIGN OWNED BY of_table TO maker
REASSIGN OWNED BY of_schema TO of_schema
REASSIGN OWNED BY of_table, of_publication, of_type TO taker
