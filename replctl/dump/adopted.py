"""Tables that were there before, in a dump: replctl takes the Delta table again, PostgreSQL makes a
table of its own."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.pg_class import Constraint, Relation
from replctl.catalog.ruleutils import constraint_definition, get_expr
from replctl.dump.source import Source, full_name
from replctl.types.quote import quote_identifier, quote_string

#: Tells psql, and replctl, which of the two it is talking to.
QUESTION = "SELECT pg_catalog.version() LIKE '%(replctl)%' AS is_replctl \\gset\n"
IF_REPLCTL, ELSE, END = "\\if :is_replctl\n", "\\else\n", "\\endif\n"


def is_adopted(table: Relation) -> bool:
    """Whether a table is a Delta table that was there before it."""
    return table.storage is not None and table.storage.is_adopted


def adopting(source: Source, table: Relation, checks: Sequence[Constraint], text: str) -> str:
    """CREATE TABLE ... USING delta LOCATION for replctl, beside CREATE TABLE for PostgreSQL.

    Args:
        text: CREATE TABLE.
    """
    if not is_adopted(table):
        return text
    assert table.storage is not None
    location = quote_string(table.storage.location)
    name = full_name(table)
    own = f"CREATE TABLE {name} USING delta LOCATION {location};\n"
    live = {column.attnum: column for column in table.columns}
    for attnum, stored in sorted(table.storage.columns.items()):
        old = quote_identifier(stored.name)
        if attnum not in live:
            own += f"ALTER TABLE ONLY {name} DROP COLUMN {old};\n"
        elif stored.name != live[attnum].name:
            new = quote_identifier(live[attnum].name)
            own += f"ALTER TABLE ONLY {name} RENAME COLUMN {old} TO {new};\n"
    for column in table.columns:
        action = f"ALTER TABLE ONLY {name} ALTER COLUMN {quote_identifier(column.name)}"
        if column.default is not None:
            expr = get_expr(source.environment, table, column.default)
            own += f"{action} SET DEFAULT {expr};\n"
        if column.not_null:
            own += f"{action} SET NOT NULL;\n"
    for check in checks:
        definition = constraint_definition(source.environment, table, check)
        constraint = quote_identifier(check.name)
        own += f"ALTER TABLE {name} ADD CONSTRAINT {constraint} {definition};\n"
    comment = f"-- The table is the Delta table at {location}: replctl reads it there.\n"
    return f"{comment.replace(chr(10), ' ').rstrip()}\n{IF_REPLCTL}{own}{ELSE}{text}{END}"
