-- Show the publications, the subscription, and the orders of the north.
\c shop
\dRp+
\c north
\dRs
SELECT * FROM orders ORDER BY id;
