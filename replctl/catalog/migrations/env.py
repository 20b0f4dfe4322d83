"""Run by alembic: upgrades a catalog over the connection that cluster.py hands in."""

from alembic import context

from replctl.catalog.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
