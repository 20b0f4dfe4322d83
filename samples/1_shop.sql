-- The shop: a retailer's customers and orders, and its publications.
CREATE DATABASE shop;
\c shop

CREATE TABLE customers (
    id     int PRIMARY KEY,
    name   text NOT NULL,
    email  text,
    region text NOT NULL
);
CREATE TABLE orders (
    id       bigint,
    customer int NOT NULL REFERENCES customers,
    region   text,
    amount   numeric(10,2) NOT NULL CHECK (amount >= 0),
    state    text DEFAULT 'open',
    PRIMARY KEY (id, region)
);
CREATE TABLE visits (day date, page text, hits int) PARTITION BY RANGE (day);
CREATE TABLE visits_2025 PARTITION OF visits FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE visits_2026 PARTITION OF visits FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');

INSERT INTO customers VALUES
    (1, 'Ada',    'ada@example.org',    'north'),
    (2, 'Blaise', 'blaise@example.org', 'south'),
    (3, 'Chen',   'chen@example.org',   'north');
INSERT INTO orders VALUES
    (101, 1, 'north', 19.90, DEFAULT),
    (102, 2, 'south', 250.00, 'paid'),
    (103, 3, 'north', 7.50, 'paid');
INSERT INTO visits VALUES ('2025-12-31', '/', 7), ('2026-01-01', '/', 9), ('2026-01-02', '/sale', 4);

-- The north gets its own orders, and its own customers without their addresses.
CREATE PUBLICATION north FOR TABLE
    orders WHERE (region = 'north'),
    customers (id, name, region) WHERE (region = 'north')
    WITH (publish = 'insert, update, delete');
ALTER TABLE customers REPLICA IDENTITY DEFAULT;
-- Everybody gets the visits as one table, without its partitions.
CREATE PUBLICATION traffic FOR TABLE visits WITH (publish_via_partition_root = true);
