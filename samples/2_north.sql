-- The northern branch: tables of its own, and a subscription.
CREATE DATABASE north;
\c north

CREATE TABLE customers (id int PRIMARY KEY, name text, region text, notes text DEFAULT 'none yet');
CREATE TABLE orders (id bigint, customer int, region text, amount numeric(10,2), state text,
                     PRIMARY KEY (id, region));
CREATE TABLE visits (day date, page text, hits int);

CREATE SUBSCRIPTION from_shop CONNECTION 'host=localhost dbname=shop' PUBLICATION north, traffic;
\sync
SELECT * FROM customers ORDER BY id;
SELECT * FROM orders ORDER BY id;
SELECT * FROM visits ORDER BY day;
