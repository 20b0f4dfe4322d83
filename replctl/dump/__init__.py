"""Dump a database as SQL text that restores it (pg_dump)."""
