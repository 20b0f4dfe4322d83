CREATE SCHEMA order_of_publications;
CREATE TABLE order_of_publications.t (a int PRIMARY KEY, b int);
CREATE PUBLICATION p2 FOR TABLE order_of_publications.t WHERE (b > 1), TABLES IN SCHEMA order_of_publications;
CREATE PUBLICATION p1 FOR TABLE order_of_publications.t WHERE (a < 1), TABLES IN SCHEMA order_of_publications;
CREATE PUBLICATION p3 FOR TABLE order_of_publications.t, TABLES IN SCHEMA order_of_publications;
CREATE PUBLICATION p4 FOR TABLE order_of_publications.t (a);
\d order_of_publications.t
DROP PUBLICATION p1, p2, p3, p4;
DROP SCHEMA order_of_publications CASCADE;
