-- PostgreSQL looks at the kind of a relation first.
CREATE PUBLICATION bad FOR TABLE information_schema.tables;
CREATE PUBLICATION bad FOR TABLE pg_tables;
CREATE PUBLICATION bad FOR TABLE pg_class;
CREATE PUBLICATION bad FOR TABLE pg_stat_activity (pid);
