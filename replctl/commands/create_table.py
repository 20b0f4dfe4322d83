"""CREATE TABLE: a table in the cluster's storage, one at a location, or one in Spark's catalogs."""

from __future__ import annotations

from replctl.commands.own_table import create_own_table
from replctl.parser import ast
from replctl.session import Session


def create_table(session: Session, statement: ast.CreateTable) -> str:
    """Create a table, a partitioned table, or a partition.

    Raises:
        PostgresError: PostgreSQL refuses the definition.
        FeatureNotSupported: replctl does not support a part of the definition.
    """
    if statement.catalog_table is not None:
        from replctl.commands.table_location import adopt_by_name  # few tables need it

        return adopt_by_name(session, statement)
    if statement.location is not None:
        from replctl.commands.table_location import create_table_at

        return create_table_at(session, statement)
    return create_own_table(session, statement)
