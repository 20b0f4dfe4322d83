"""Upgrade a catalog over the connection that cluster.py passes.  Alembic runs this file."""

from alembic import context

from replctl.catalog import schema, schema_table, state_schema  # noqa: F401  (they name the tables)

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema_table.metadata,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
