-- A day at the shop: rows move into the north's filter, within it, and out of it.
\c shop
INSERT INTO orders VALUES (104, 1, 'north', 42.00, 'open'), (105, 2, 'south', 3.00, 'open');
UPDATE orders SET state = 'paid' WHERE id = 101;
UPDATE orders SET region = 'north' WHERE id = 102;
UPDATE orders SET region = 'south' WHERE id = 103;
DELETE FROM orders WHERE id = 105;
\sync
