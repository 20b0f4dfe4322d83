"""The catalog: one SQLite file a cluster, rows in and out, no rules."""
