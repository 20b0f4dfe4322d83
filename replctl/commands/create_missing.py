"""The tables that a subscription needs and its database does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from replctl.catalog.pg_class import find_relation_oid
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_type import find_type
from replctl.catalog.transaction import Catalog
from replctl.replication.table_definition import TableDefinition, schema_statement
from replctl.session import Session


def missing_statements(
    session: Session,
    definitions: Sequence[TableDefinition],
    target: Callable[[tuple[str, str]], tuple[str, str]],
    table_options: str = "",
) -> list[str]:
    """Return the statements that make the schemas, types and tables that the session's database
    lacks, each without its semicolon.

    A type that is there is taken to be the published one.

    Args:
        definitions: of published tables.
        target: gives the schema and name of a table here, from those of the published one.
        table_options: storage parameters of new tables, as in WITH (...); "" for none.
    """
    with session.read() as catalog:
        return list(_missing(catalog, definitions, target, table_options))


def _missing(
    catalog: Catalog,
    definitions: Sequence[TableDefinition],
    target: Callable[[tuple[str, str]], tuple[str, str]],
    table_options: str,
) -> Iterator[str]:
    made: set[tuple[str, ...]] = set()

    def schema_of(name: str) -> Iterator[str]:
        if find_schema(catalog, name) is None and (name,) not in made:
            made.add((name,))
            yield schema_statement(name)

    for definition in definitions:
        schema, name = target((definition.schema, definition.name))
        oid = find_schema(catalog, schema)
        if oid is not None and find_relation_oid(catalog, name, oid) is not None:
            continue
        for type_ in definition.types:
            oid = find_schema(catalog, type_.schema)
            is_there = oid is not None and find_type(catalog, oid, type_.name) is not None
            if not is_there and (type_.schema, type_.name) not in made:
                made.add((type_.schema, type_.name))
                yield from schema_of(type_.schema)
                yield from type_.statements
        yield from schema_of(schema)
        yield from definition.statements(schema, name, table_options)
