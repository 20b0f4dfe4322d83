-- What is published, and what the north has.
\c shop
\dRp+
\c north
\dRs
SELECT * FROM orders ORDER BY id;
