--
-- PostgreSQL database dump
--

\restrict GJFRVRtzLRN1096iJDjlyW1nxWQ2eMLNf5aaApMl6VSDg9DluL8ip17wezNd2W9

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: archive; Type: SCHEMA; Schema: -; Owner: postgres
--

CREATE SCHEMA archive;


ALTER SCHEMA archive OWNER TO postgres;

--
-- Name: shop; Type: SCHEMA; Schema: -; Owner: shop_owner
--

CREATE SCHEMA shop;


ALTER SCHEMA shop OWNER TO shop_owner;

--
-- Name: SCHEMA shop; Type: COMMENT; Schema: -; Owner: shop_owner
--

COMMENT ON SCHEMA shop IS 'the shop''s tables';


--
-- Name: order_state; Type: TYPE; Schema: shop; Owner: shop_owner
--

CREATE TYPE shop.order_state AS ENUM (
    'new',
    'paid',
    'sent',
    'it''s lost'
);


ALTER TYPE shop.order_state OWNER TO shop_owner;

--
-- Name: TYPE order_state; Type: COMMENT; Schema: shop; Owner: shop_owner
--

COMMENT ON TYPE shop.order_state IS 'where an order stands';


--
-- Name: double(integer); Type: FUNCTION; Schema: shop; Owner: postgres
--

CREATE FUNCTION shop.double(i integer) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT i * 2 $$;


ALTER FUNCTION shop.double(i integer) OWNER TO postgres;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: base; Type: TABLE; Schema: archive; Owner: postgres
--

CREATE TABLE archive.base (
    a integer,
    b text
);


ALTER TABLE archive.base OWNER TO postgres;

--
-- Name: child; Type: TABLE; Schema: archive; Owner: postgres
--

CREATE TABLE archive.child (
    c integer
)
INHERITS (archive.base);


ALTER TABLE archive.child OWNER TO postgres;

--
-- Name: item; Type: TABLE; Schema: archive; Owner: postgres
--

CREATE TABLE archive.item (
    order_id bigint NOT NULL,
    order_day date NOT NULL,
    line smallint NOT NULL,
    product_id integer,
    quantity integer DEFAULT 1 NOT NULL,
    CONSTRAINT item_quantity_check CHECK ((quantity > 0))
);


ALTER TABLE archive.item OWNER TO postgres;

--
-- Name: CONSTRAINT item_quantity_check ON item; Type: COMMENT; Schema: archive; Owner: postgres
--

COMMENT ON CONSTRAINT item_quantity_check ON archive.item IS 'something at least';


--
-- Name: scratch; Type: TABLE; Schema: archive; Owner: postgres
--

CREATE UNLOGGED TABLE archive.scratch (
    a integer
);


ALTER TABLE archive.scratch OWNER TO postgres;

--
-- Name: bill_number; Type: SEQUENCE; Schema: shop; Owner: shop_owner
--

CREATE SEQUENCE shop.bill_number
    AS integer
    START WITH 5
    INCREMENT BY 1
    MINVALUE 5
    MAXVALUE 100000
    CACHE 1
    CYCLE;


ALTER TABLE shop.bill_number OWNER TO shop_owner;

--
-- Name: product; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.product (
    id integer NOT NULL,
    sku uuid DEFAULT gen_random_uuid() NOT NULL,
    title text NOT NULL COLLATE pg_catalog."C",
    price double precision,
    picture bytea,
    weight real,
    available boolean DEFAULT true,
    size int4range,
    CONSTRAINT product_price_check CHECK ((price > (0)::double precision))
);
ALTER TABLE ONLY shop.product ALTER COLUMN title SET STATISTICS 500;
ALTER TABLE ONLY shop.product ALTER COLUMN title SET COMPRESSION pglz;
ALTER TABLE ONLY shop.product ALTER COLUMN price SET (n_distinct=100);
ALTER TABLE ONLY shop.product ALTER COLUMN picture SET STORAGE EXTERNAL;


ALTER TABLE shop.product OWNER TO postgres;

--
-- Name: cheap; Type: VIEW; Schema: shop; Owner: postgres
--

CREATE VIEW shop.cheap WITH (security_barrier='true') AS
 SELECT product.id,
    product.title,
    product.price
   FROM shop.product
  WHERE (product.price < (10)::double precision);


ALTER TABLE shop.cheap OWNER TO postgres;

--
-- Name: customer; Type: TABLE; Schema: shop; Owner: shop_owner
--

CREATE TABLE shop.customer (
    id bigint NOT NULL,
    email text NOT NULL,
    name character varying(80) DEFAULT 'nobody'::character varying,
    country character(2),
    balance numeric(12,2) DEFAULT 0.00 NOT NULL,
    tags text[] DEFAULT '{}'::text[],
    profile jsonb,
    full_name text GENERATED ALWAYS AS (((((name)::text || ' <'::text) || email) || '>'::text)) STORED,
    created timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT customer_balance_check CHECK ((balance >= ('-1000'::integer)::numeric)),
    CONSTRAINT customer_email_has_at CHECK ((email ~~ '%@%'::text))
);


ALTER TABLE shop.customer OWNER TO shop_owner;

--
-- Name: TABLE customer; Type: COMMENT; Schema: shop; Owner: shop_owner
--

COMMENT ON TABLE shop.customer IS 'who buys';


--
-- Name: COLUMN customer.email; Type: COMMENT; Schema: shop; Owner: shop_owner
--

COMMENT ON COLUMN shop.customer.email IS 'where bills go';


--
-- Name: customer_id_seq; Type: SEQUENCE; Schema: shop; Owner: shop_owner
--

ALTER TABLE shop.customer ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME shop.customer_id_seq
    START WITH 100
    INCREMENT BY 10
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: event; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.event (
    id integer,
    payload jsonb
)
PARTITION BY HASH (id);


ALTER TABLE shop.event OWNER TO postgres;

--
-- Name: event_0; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.event_0 (
    id integer,
    payload jsonb
);


ALTER TABLE shop.event_0 OWNER TO postgres;

--
-- Name: event_1; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.event_1 (
    id integer,
    payload jsonb
);


ALTER TABLE shop.event_1 OWNER TO postgres;

--
-- Name: item; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.item (
    order_id bigint NOT NULL,
    order_day date NOT NULL,
    line smallint NOT NULL,
    product_id integer,
    quantity integer DEFAULT 1 NOT NULL,
    CONSTRAINT item_quantity_check CHECK ((quantity > 0))
);


ALTER TABLE shop.item OWNER TO postgres;

--
-- Name: CONSTRAINT item_quantity_check ON item; Type: COMMENT; Schema: shop; Owner: postgres
--

COMMENT ON CONSTRAINT item_quantity_check ON shop.item IS 'something at least';


--
-- Name: orders; Type: TABLE; Schema: shop; Owner: shop_owner
--

CREATE TABLE shop.orders (
    id bigint NOT NULL,
    customer_id bigint NOT NULL,
    state shop.order_state DEFAULT 'new'::shop.order_state NOT NULL,
    day date DEFAULT CURRENT_DATE NOT NULL,
    note text
)
PARTITION BY RANGE (day);


ALTER TABLE shop.orders OWNER TO shop_owner;

--
-- Name: open_orders; Type: VIEW; Schema: shop; Owner: shop_owner
--

CREATE VIEW shop.open_orders AS
 SELECT o.id,
    o.day,
    c.email,
    count(i.line) AS lines
   FROM ((shop.orders o
     JOIN shop.customer c ON ((c.id = o.customer_id)))
     LEFT JOIN shop.item i ON (((i.order_id = o.id) AND (i.order_day = o.day))))
  WHERE (o.state = 'new'::shop.order_state)
  GROUP BY o.id, o.day, c.email;


ALTER TABLE shop.open_orders OWNER TO shop_owner;

--
-- Name: VIEW open_orders; Type: COMMENT; Schema: shop; Owner: shop_owner
--

COMMENT ON VIEW shop.open_orders IS 'not paid yet';


--
-- Name: orders_id_seq; Type: SEQUENCE; Schema: shop; Owner: shop_owner
--

CREATE SEQUENCE shop.orders_id_seq
    START WITH 1000
    INCREMENT BY 5
    NO MINVALUE
    NO MAXVALUE
    CACHE 20;


ALTER TABLE shop.orders_id_seq OWNER TO shop_owner;

--
-- Name: orders_id_seq; Type: SEQUENCE OWNED BY; Schema: shop; Owner: shop_owner
--

ALTER SEQUENCE shop.orders_id_seq OWNED BY shop.orders.id;


--
-- Name: orders_2024; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.orders_2024 (
    id bigint DEFAULT nextval('shop.orders_id_seq'::regclass) NOT NULL,
    customer_id bigint NOT NULL,
    state shop.order_state DEFAULT 'new'::shop.order_state NOT NULL,
    day date DEFAULT CURRENT_DATE NOT NULL,
    note text
);


ALTER TABLE shop.orders_2024 OWNER TO postgres;

--
-- Name: orders_2025; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.orders_2025 (
    id bigint DEFAULT nextval('shop.orders_id_seq'::regclass) NOT NULL,
    customer_id bigint NOT NULL,
    state shop.order_state DEFAULT 'new'::shop.order_state NOT NULL,
    day date DEFAULT CURRENT_DATE NOT NULL,
    note text
);


ALTER TABLE shop.orders_2025 OWNER TO postgres;

--
-- Name: orders_rest; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.orders_rest (
    id bigint DEFAULT nextval('shop.orders_id_seq'::regclass) NOT NULL,
    customer_id bigint NOT NULL,
    state shop.order_state DEFAULT 'new'::shop.order_state NOT NULL,
    day date DEFAULT CURRENT_DATE NOT NULL,
    note text
);


ALTER TABLE shop.orders_rest OWNER TO postgres;

--
-- Name: product_id_seq; Type: SEQUENCE; Schema: shop; Owner: postgres
--

CREATE SEQUENCE shop.product_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE shop.product_id_seq OWNER TO postgres;

--
-- Name: product_id_seq; Type: SEQUENCE OWNED BY; Schema: shop; Owner: postgres
--

ALTER SEQUENCE shop.product_id_seq OWNED BY shop.product.id;


--
-- Name: sales; Type: MATERIALIZED VIEW; Schema: shop; Owner: postgres
--

CREATE MATERIALIZED VIEW shop.sales AS
 SELECT item.product_id,
    sum(item.quantity) AS sold
   FROM shop.item
  GROUP BY item.product_id
  WITH NO DATA;


ALTER TABLE shop.sales OWNER TO postgres;

--
-- Name: shipment; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.shipment (
    id integer NOT NULL,
    state shop.order_state NOT NULL,
    order_id bigint,
    order_day date,
    weight numeric
)
PARTITION BY LIST (state);


ALTER TABLE shop.shipment OWNER TO postgres;

--
-- Name: shipment_done; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.shipment_done (
    id integer NOT NULL,
    state shop.order_state NOT NULL,
    order_id bigint,
    order_day date,
    weight numeric
);


ALTER TABLE shop.shipment_done OWNER TO postgres;

--
-- Name: shipment_id_seq; Type: SEQUENCE; Schema: shop; Owner: postgres
--

ALTER TABLE shop.shipment ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME shop.shipment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: shipment_open; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.shipment_open (
    id integer NOT NULL,
    state shop.order_state NOT NULL,
    order_id bigint,
    order_day date,
    weight numeric
);


ALTER TABLE shop.shipment_open OWNER TO postgres;

--
-- Name: event_0; Type: TABLE ATTACH; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.event ATTACH PARTITION shop.event_0 FOR VALUES WITH (modulus 2, remainder 0);


--
-- Name: event_1; Type: TABLE ATTACH; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.event ATTACH PARTITION shop.event_1 FOR VALUES WITH (modulus 2, remainder 1);


--
-- Name: orders_2024; Type: TABLE ATTACH; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.orders ATTACH PARTITION shop.orders_2024 FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');


--
-- Name: orders_2025; Type: TABLE ATTACH; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.orders ATTACH PARTITION shop.orders_2025 FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');


--
-- Name: orders_rest; Type: TABLE ATTACH; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.orders ATTACH PARTITION shop.orders_rest DEFAULT;


--
-- Name: shipment_done; Type: TABLE ATTACH; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.shipment ATTACH PARTITION shop.shipment_done FOR VALUES IN ('sent', 'it''s lost');


--
-- Name: shipment_open; Type: TABLE ATTACH; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.shipment ATTACH PARTITION shop.shipment_open FOR VALUES IN ('new', 'paid');


--
-- Name: orders id; Type: DEFAULT; Schema: shop; Owner: shop_owner
--

ALTER TABLE ONLY shop.orders ALTER COLUMN id SET DEFAULT nextval('shop.orders_id_seq'::regclass);


--
-- Name: product id; Type: DEFAULT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.product ALTER COLUMN id SET DEFAULT nextval('shop.product_id_seq'::regclass);


--
-- Name: item item_pkey; Type: CONSTRAINT; Schema: archive; Owner: postgres
--

ALTER TABLE ONLY archive.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (order_id, order_day, line);


--
-- Name: customer customer_email_key; Type: CONSTRAINT; Schema: shop; Owner: shop_owner
--

ALTER TABLE ONLY shop.customer
    ADD CONSTRAINT customer_email_key UNIQUE (email);


--
-- Name: customer customer_pkey; Type: CONSTRAINT; Schema: shop; Owner: shop_owner
--

ALTER TABLE ONLY shop.customer
    ADD CONSTRAINT customer_pkey PRIMARY KEY (id);


--
-- Name: item item_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (order_id, order_day, line);


--
-- Name: orders orders_pkey; Type: CONSTRAINT; Schema: shop; Owner: shop_owner
--

ALTER TABLE ONLY shop.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id, day);


--
-- Name: orders_2024 orders_2024_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.orders_2024
    ADD CONSTRAINT orders_2024_pkey PRIMARY KEY (id, day);


--
-- Name: orders_2025 orders_2025_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.orders_2025
    ADD CONSTRAINT orders_2025_pkey PRIMARY KEY (id, day);


--
-- Name: orders_rest orders_rest_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.orders_rest
    ADD CONSTRAINT orders_rest_pkey PRIMARY KEY (id, day);


--
-- Name: product product_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.product
    ADD CONSTRAINT product_pkey PRIMARY KEY (id);


--
-- Name: product product_sku_key; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.product
    ADD CONSTRAINT product_sku_key UNIQUE (sku);

ALTER TABLE ONLY shop.product REPLICA IDENTITY USING INDEX product_sku_key;


--
-- Name: product product_title_weight_key; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.product
    ADD CONSTRAINT product_title_weight_key UNIQUE NULLS NOT DISTINCT (title, weight);


--
-- Name: shipment shipment_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.shipment
    ADD CONSTRAINT shipment_pkey PRIMARY KEY (id, state);


--
-- Name: shipment_done shipment_done_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.shipment_done
    ADD CONSTRAINT shipment_done_pkey PRIMARY KEY (id, state);


--
-- Name: shipment_open shipment_open_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.shipment_open
    ADD CONSTRAINT shipment_open_pkey PRIMARY KEY (id, state);


--
-- Name: orders_customer; Type: INDEX; Schema: shop; Owner: shop_owner
--

CREATE INDEX orders_customer ON ONLY shop.orders USING btree (customer_id);


--
-- Name: orders_2024_customer_id_idx; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX orders_2024_customer_id_idx ON shop.orders_2024 USING btree (customer_id);


--
-- Name: orders_2025_customer_id_idx; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX orders_2025_customer_id_idx ON shop.orders_2025 USING btree (customer_id);


--
-- Name: orders_rest_customer_id_idx; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX orders_rest_customer_id_idx ON shop.orders_rest USING btree (customer_id);


--
-- Name: product_id_hash; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX product_id_hash ON shop.product USING hash (id);


--
-- Name: product_price_idx2; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX product_price_idx2 ON shop.product USING btree (((price * (2)::double precision)), weight) WITH (fillfactor='70');


--
-- Name: product_price_partial; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX product_price_partial ON shop.product USING btree (price) INCLUDE (weight) WHERE available;


--
-- Name: product_sku_replica; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE UNIQUE INDEX product_sku_replica ON shop.product USING btree (sku, id);


--
-- Name: product_title_idx; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX product_title_idx ON shop.product USING btree (title DESC NULLS LAST);

ALTER TABLE shop.product CLUSTER ON product_title_idx;


--
-- Name: INDEX product_title_idx; Type: COMMENT; Schema: shop; Owner: postgres
--

COMMENT ON INDEX shop.product_title_idx IS 'titles, backwards';


--
-- Name: product_title_lower; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX product_title_lower ON shop.product USING btree (lower(title));


--
-- Name: product_title_pattern; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX product_title_pattern ON shop.product USING btree (title text_pattern_ops);


--
-- Name: sales_product; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE UNIQUE INDEX sales_product ON shop.sales USING btree (product_id);


--
-- Name: orders_2024_customer_id_idx; Type: INDEX ATTACH; Schema: shop; Owner: shop_owner
--

ALTER INDEX shop.orders_customer ATTACH PARTITION shop.orders_2024_customer_id_idx;


--
-- Name: orders_2024_pkey; Type: INDEX ATTACH; Schema: shop; Owner: shop_owner
--

ALTER INDEX shop.orders_pkey ATTACH PARTITION shop.orders_2024_pkey;


--
-- Name: orders_2025_customer_id_idx; Type: INDEX ATTACH; Schema: shop; Owner: shop_owner
--

ALTER INDEX shop.orders_customer ATTACH PARTITION shop.orders_2025_customer_id_idx;


--
-- Name: orders_2025_pkey; Type: INDEX ATTACH; Schema: shop; Owner: shop_owner
--

ALTER INDEX shop.orders_pkey ATTACH PARTITION shop.orders_2025_pkey;


--
-- Name: orders_rest_customer_id_idx; Type: INDEX ATTACH; Schema: shop; Owner: shop_owner
--

ALTER INDEX shop.orders_customer ATTACH PARTITION shop.orders_rest_customer_id_idx;


--
-- Name: orders_rest_pkey; Type: INDEX ATTACH; Schema: shop; Owner: shop_owner
--

ALTER INDEX shop.orders_pkey ATTACH PARTITION shop.orders_rest_pkey;


--
-- Name: shipment_done_pkey; Type: INDEX ATTACH; Schema: shop; Owner: postgres
--

ALTER INDEX shop.shipment_pkey ATTACH PARTITION shop.shipment_done_pkey;


--
-- Name: shipment_open_pkey; Type: INDEX ATTACH; Schema: shop; Owner: postgres
--

ALTER INDEX shop.shipment_pkey ATTACH PARTITION shop.shipment_open_pkey;


--
-- Name: item item_order_fkey; Type: FK CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.item
    ADD CONSTRAINT item_order_fkey FOREIGN KEY (order_id, order_day) REFERENCES shop.orders(id, day) ON DELETE CASCADE;


--
-- Name: item item_product_fkey; Type: FK CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.item
    ADD CONSTRAINT item_product_fkey FOREIGN KEY (product_id) REFERENCES shop.product(id) ON UPDATE SET NULL ON DELETE SET DEFAULT DEFERRABLE;


--
-- Name: orders orders_customer_id_fkey; Type: FK CONSTRAINT; Schema: shop; Owner: shop_owner
--

ALTER TABLE shop.orders
    ADD CONSTRAINT orders_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES shop.customer(id) ON UPDATE CASCADE ON DELETE CASCADE;


--
-- Name: shipment shipment_order_id_order_day_fkey; Type: FK CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE shop.shipment
    ADD CONSTRAINT shipment_order_id_order_day_fkey FOREIGN KEY (order_id, order_day) REFERENCES shop.orders(id, day) ON DELETE SET NULL;


--
-- Name: customer; Type: ROW SECURITY; Schema: shop; Owner: shop_owner
--

ALTER TABLE shop.customer ENABLE ROW LEVEL SECURITY;

--
-- Name: customer readers; Type: POLICY; Schema: shop; Owner: shop_owner
--

CREATE POLICY readers ON shop.customer AS RESTRICTIVE FOR SELECT TO shop_reader USING ((balance >= (0)::numeric));


--
-- Name: customer tenant; Type: POLICY; Schema: shop; Owner: shop_owner
--

CREATE POLICY tenant ON shop.customer TO shop_tenant USING ((country = 'DE'::bpchar)) WITH CHECK ((balance >= (0)::numeric));


--
-- Name: pub_all; Type: PUBLICATION; Schema: -; Owner: postgres
--

CREATE PUBLICATION pub_all FOR ALL TABLES WITH (publish = 'insert, update');


ALTER PUBLICATION pub_all OWNER TO postgres;

--
-- Name: pub_schema; Type: PUBLICATION; Schema: -; Owner: postgres
--

CREATE PUBLICATION pub_schema WITH (publish = 'insert, update, delete, truncate');


ALTER PUBLICATION pub_schema OWNER TO postgres;

--
-- Name: pub_some; Type: PUBLICATION; Schema: -; Owner: postgres
--

CREATE PUBLICATION pub_some WITH (publish = 'insert, update, delete, truncate', publish_via_partition_root = true);


ALTER PUBLICATION pub_some OWNER TO postgres;

--
-- Name: PUBLICATION pub_some; Type: COMMENT; Schema: -; Owner: postgres
--

COMMENT ON PUBLICATION pub_some IS 'for the office in Berlin';


--
-- Name: pub_some customer; Type: PUBLICATION TABLE; Schema: shop; Owner: postgres
--

ALTER PUBLICATION pub_some ADD TABLE ONLY shop.customer (id, email, country) WHERE ((country = 'DE'::bpchar));


--
-- Name: pub_some orders; Type: PUBLICATION TABLE; Schema: shop; Owner: postgres
--

ALTER PUBLICATION pub_some ADD TABLE ONLY shop.orders;


--
-- Name: pub_some product; Type: PUBLICATION TABLE; Schema: shop; Owner: postgres
--

ALTER PUBLICATION pub_some ADD TABLE ONLY shop.product WHERE ((available AND (price > (5)::double precision)));


--
-- Name: pub_schema archive; Type: PUBLICATION TABLES IN SCHEMA; Schema: archive; Owner: postgres
--

ALTER PUBLICATION pub_schema ADD TABLES IN SCHEMA archive;


--
-- Name: sub; Type: SUBSCRIPTION; Schema: -; Owner: postgres
--

CREATE SUBSCRIPTION sub CONNECTION 'host=127.0.0.1 dbname=nowhere' PUBLICATION other WITH (connect = false, slot_name = NONE, streaming = on);


ALTER SUBSCRIPTION sub OWNER TO postgres;

--
-- Name: SCHEMA shop; Type: ACL; Schema: -; Owner: shop_owner
--

GRANT USAGE ON SCHEMA shop TO shop_reader;


--
-- Name: FUNCTION double(i integer); Type: ACL; Schema: shop; Owner: postgres
--

REVOKE ALL ON FUNCTION shop.double(i integer) FROM PUBLIC;


--
-- Name: TABLE product; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.product TO shop_reader;


--
-- Name: TABLE cheap; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.cheap TO shop_reader;


--
-- Name: TABLE customer; Type: ACL; Schema: shop; Owner: shop_owner
--

GRANT SELECT ON TABLE shop.customer TO shop_reader;


--
-- Name: COLUMN customer.id; Type: ACL; Schema: shop; Owner: shop_owner
--

GRANT SELECT(id) ON TABLE shop.customer TO shop_tenant;


--
-- Name: COLUMN customer.email; Type: ACL; Schema: shop; Owner: shop_owner
--

GRANT SELECT(email) ON TABLE shop.customer TO shop_tenant;


--
-- Name: TABLE event; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.event TO shop_reader;


--
-- Name: TABLE event_0; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.event_0 TO shop_reader;


--
-- Name: TABLE event_1; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.event_1 TO shop_reader;


--
-- Name: TABLE item; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.item TO shop_reader;


--
-- Name: TABLE orders; Type: ACL; Schema: shop; Owner: shop_owner
--

GRANT SELECT ON TABLE shop.orders TO shop_reader;
GRANT INSERT ON TABLE shop.orders TO shop_tenant WITH GRANT OPTION;


--
-- Name: COLUMN orders.note; Type: ACL; Schema: shop; Owner: shop_owner
--

GRANT UPDATE(note) ON TABLE shop.orders TO shop_tenant WITH GRANT OPTION;


--
-- Name: TABLE open_orders; Type: ACL; Schema: shop; Owner: shop_owner
--

GRANT SELECT ON TABLE shop.open_orders TO shop_reader;


--
-- Name: SEQUENCE orders_id_seq; Type: ACL; Schema: shop; Owner: shop_owner
--

GRANT USAGE ON SEQUENCE shop.orders_id_seq TO shop_tenant;


--
-- Name: TABLE orders_2024; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.orders_2024 TO shop_reader;


--
-- Name: TABLE orders_2025; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.orders_2025 TO shop_reader;


--
-- Name: TABLE orders_rest; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.orders_rest TO shop_reader;


--
-- Name: TABLE sales; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.sales TO shop_reader;


--
-- Name: TABLE shipment; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.shipment TO shop_reader;


--
-- Name: TABLE shipment_done; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.shipment_done TO shop_reader;


--
-- Name: TABLE shipment_open; Type: ACL; Schema: shop; Owner: postgres
--

GRANT SELECT ON TABLE shop.shipment_open TO shop_reader;


--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: shop; Owner: shop_owner
--

ALTER DEFAULT PRIVILEGES FOR ROLE shop_owner IN SCHEMA shop GRANT SELECT ON TABLES  TO shop_reader;


--
-- PostgreSQL database dump complete
--

\unrestrict GJFRVRtzLRN1096iJDjlyW1nxWQ2eMLNf5aaApMl6VSDg9DluL8ip17wezNd2W9

