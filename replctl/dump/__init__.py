"""A database as SQL text, from which it can be made again (pg_dump)."""
