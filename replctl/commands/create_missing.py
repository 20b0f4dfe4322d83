"""Create the tables that a subscription needs but its database does not have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from replctl.catalog.pg_class import find_relation_oid
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_subscription import Subscription
from replctl.catalog.pg_type import find_type
from replctl.catalog.transaction import Catalog
from replctl.commands.naming import relation_name
from replctl.commands.subscription_options import SubscriptionOptions
from replctl.errors import PostgresError
from replctl.lake import block
from replctl.parser import ast
from replctl.parser.parse import parse_statement
from replctl.relation_name import RelationName
from replctl.replication.node import Publisher
from replctl.replication.table_definition import TableDefinition, schema_statement
from replctl.session import Session

#: A function that runs a statement in the open transaction.
RunStatement: TypeAlias = Callable[[ast.Statement], object]
#: The name and the columns of an index.
_Index: TypeAlias = tuple[str, tuple[str, ...]]


def missing_statements(
    session: Session,
    definitions: Sequence[TableDefinition],
    target: Callable[[RelationName], RelationName],
    table_options: str = "",
) -> list[str]:
    """Return the statements that create missing schemas, types and tables in the session's
    database, without semicolons.

    replctl assumes that an existing type of the same name equals the published type.

    Args:
        definitions: the definitions of published tables.
        target: a function that converts the name of a published table to the name of its target.
        table_options: storage parameters of new tables, in the form of WITH (...); "" for none.
    """
    with session.read() as catalog:
        return list(_missing(catalog, definitions, target, table_options))


def _missing(
    catalog: Catalog,
    definitions: Sequence[TableDefinition],
    target: Callable[[RelationName], RelationName],
    table_options: str,
) -> Iterator[str]:
    made: set[tuple[str, ...]] = set()
    relations = {tuple(target(definition.relation_name)) for definition in definitions}

    def schema_of(name: str) -> Iterator[str]:
        if find_schema(catalog, name) is None and (name,) not in made:
            made.add((name,))
            yield schema_statement(name)

    for definition in definitions:
        schema, name = target(definition.relation_name)
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
        taken = {other for place, other in relations if place == schema}
        own = _with_free_names(catalog, definition, RelationName(schema, name), taken)
        relations |= {(schema, index[0]) for index in (own.primary_key, own.identity) if index}
        yield from own.statements(schema, name, table_options)


def _with_free_names(
    catalog: Catalog, definition: TableDefinition, target: RelationName, taken: Collection[str]
) -> TableDefinition:
    """Return a definition whose primary key and identity index have free names in the schema of
    the target.  A target with the published name keeps the published names where they are free.

    Args:
        taken: names of relations that the earlier statements create in the schema.
    """
    oid = find_schema(catalog, target.schema) or 0
    is_same = target.name == definition.name

    def free(index: _Index | None, label: str, others: Collection[str]) -> _Index | None:
        if index is None:
            return None
        name, columns = index
        is_taken = name in others or find_relation_oid(catalog, name, oid) is not None
        if not is_same or is_taken:
            name = relation_name(catalog, target.name, oid, columns, label, others)
        return name, columns

    key = free(definition.primary_key, "pkey", taken)
    others = {*taken, *(() if key is None else key[:1])}
    return replace(definition, primary_key=key, identity=free(definition.identity, "idx", others))


@contextmanager
def creating_tables(
    session: Session,
    publisher: Publisher,
    subscription: Subscription,
    options: SubscriptionOptions,
    run: RunStatement,
) -> Iterator[None]:
    """Create a subscription's missing tables if `create_tables` is set.  Roll this back
    if the body of the `with` statement fails.

    Args:
        run: a function that runs a statement.

    Raises:
        PostgresError: the session's role may not create an object, or the object is not valid.
    """
    if not options.create_tables:
        yield
        return
    statements = missing_statements(
        session,
        publisher.tables.definitions(subscription.publications),
        subscription.table_map.target,
        options.table_options,
    )
    is_alone = session.block is None
    if is_alone:
        block.begin(session, is_implicit=True)
    try:
        for text in statements:
            carry_out_text(text, run)
        yield
        if is_alone:
            block.commit(session)
    except BaseException:
        if is_alone and session.block is not None:
            block.rollback(session)
        raise


def carry_out_text(text: str, run: RunStatement) -> None:
    """Run a statement that replctl has generated.

    Raises:
        PostgresError: the statement fails.  The CONTEXT of the error shows the statement.
    """
    try:
        run(parse_statement(text))
    except PostgresError as error:
        error.position = -1  # the user did not write the text that it refers to
        error.context = error.context or f'SQL statement "{text}"'
        raise
