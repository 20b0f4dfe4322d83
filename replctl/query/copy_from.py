"""COPY FROM: add a file's rows to a table, like INSERT (copyfrom.c)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from replctl import spark
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.relation_kind import RelKind
from replctl.errors import WrongObjectType
from replctl.expr import nodes
from replctl.functions.function_context import function_context
from replctl.functions.settings_form import computable, in_form
from replctl.lake.delta_rules import with_delta_columns
from replctl.lake.retry import repeated
from replctl.lake.target import inserted_into
from replctl.lake.waiting import when_free
from replctl.parser import ast
from replctl.query.copy_relation import file_error
from replctl.query.lake import LakeDialect
from replctl.query.sql import QueryWriter
from replctl.query.write import as_planned, plan_of, written
from replctl.result import Result
from replctl.session import Session
from replctl.spark import SparkQuery

if TYPE_CHECKING:
    from replctl.spark import Outcome, Problem, Target
from replctl.query.copy_plan import COPY_VARNO, CopyPlan, copy_plan, not_to_kind
from replctl.query.copy_read import CopiedRows, CopyPlace, read_rows

_KIND_WORDS = {
    RelKind.VIEW: "view",
    RelKind.MATERIALIZED_VIEW: "materialized view",
    RelKind.SEQUENCE: "sequence",
}


def copy_from(session: Session, statement: ast.Copy) -> Result:
    """Add a file's rows to a table.

    Raises:
        PostgresError: the statement or the file is wrong, or the table refuses a row. COPY then
            writes nothing.
    """
    with session.read() as catalog:
        plan = copy_plan(session, catalog, statement)
    with _opened(session, statement) as data:
        _check_kind(plan.relation)
        rows = read_rows(session, plan, data)
        for _piece in data:  # data after an end-of-copy marker is ignored
            pass
    if rows.error is not None and not _may_fail(plan, rows):
        raise rows.error
    count = 0
    if rows.numbers:
        count = when_free(session, lambda: repeated(lambda: _write(session, plan, rows)))
    if rows.skipped:
        shown = "1 row was" if rows.skipped == 1 else f"{rows.skipped} rows were"
        session.notice(f"{shown} skipped due to data type incompatibility")
    return Result(f"COPY {count}")


def _check_kind(relation: Relation) -> None:
    """Check the kind of relation. Like CopyFrom, the caller does this after the client has started
    to send data."""
    word = _KIND_WORDS.get(relation.kind)
    if word is not None:
        raise not_to_kind(word, relation.name)


@contextmanager
def _opened(session: Session, statement: ast.Copy) -> Iterator[Iterator[bytes]]:
    """Yield the file, or the client's data, in pieces that end with newlines."""
    if statement.file is None:
        yield session.on_copy_in()
        return
    path = os.path.join(session.cluster.path, statement.file)
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        if os.path.isdir(path):
            raise WrongObjectType(f'"{statement.file}" is a directory') from None
        raise file_error(statement.file, error, is_from=True) from error
    with file:
        yield iter(file)


# ---------------------------------------------------------------------------------------------
# Writing


def _may_fail(plan: CopyPlan, rows: CopiedRows) -> bool:
    """Return whether the table may refuse a row because of its values."""
    relation = plan.relation
    if not rows.numbers:
        return False
    given = {item.column.attnum for item in plan.given}
    return (
        plan.where is not None
        or bool(relation.checks())
        or relation.is_partitioned
        or relation.is_partition
        or any(
            column.not_null and (column.attnum not in given or column.attnum in rows.has_nulls)
            for column in relation.columns
        )
    )


def _write(session: Session, plan: CopyPlan, rows: CopiedRows) -> int:
    """Write the rows that satisfy WHERE, and return their number."""
    with session.read() as catalog:
        relation = get_relation(catalog, plan.relation.oid)
        relation = None if relation is None else with_delta_columns(relation)
        relation = as_planned(relation, plan.relation)
        supplied = frozenset(item.column.name for item in plan.given)
        table_plan = replace(plan_of(catalog, relation), supplied=supplied, only_adds=True)
        source = _source(plan, LakeDialect(function_context(session, catalog)))
    with (
        written(session, [table_plan]) as (table,),
        _proposed(session, inserted_into(table.target, supplied), rows, source) as outcome,
    ):

        def context(problem: Problem) -> str:
            place = CopyPlace(plan.relation.name, rows.numbers[problem.position])
            if problem.kind not in ("key", "unique"):  # indexes are checked for many rows at once
                place.line = rows.line(problem.position)
            return place.context

        table.check_rows(outcome, (), context)
        if rows.error is not None:
            raise rows.error
        table.check(outcome, context=context)
        return table.write(outcome)


@contextmanager
def _proposed(
    session: Session, target: Target, rows: CopiedRows, source: str | None
) -> Iterator[Outcome]:
    """Yield the outcome of the rows.

    Args:
        source: see `_source`.
    """
    engine = session.engine()
    if source is None:
        with spark.jobs.inserted_values(engine, target, rows.local, "place") as outcome:
            yield outcome
        return
    with (
        rows.local.view(engine) as view,
        spark.jobs.inserted(
            engine, target, SparkQuery(source.format(view=view)), "place"
        ) as outcome,
    ):
        yield outcome


def _source(plan: CopyPlan, dialect: LakeDialect) -> str | None:
    """Return SQL of the rows to write, with the columns place and w<attnum>. The SQL reads the
    file's rows from the placeholder `{view}`. Return None if they are just the file's rows.
    """
    if plan.where is None and all(
        item.is_given and not plan.has_markers(item) for item in plan.stored
    ):
        return None
    writer = QueryWriter(dialect)
    values, columns = ["place"], ["place"]
    for item in plan.stored:
        column = item.column
        default = item.default or nodes.Const(column.type, None, column.typmod, column.collation)
        name = value = f"w{column.attnum}"
        if not item.is_given or plan.has_markers(item):
            default = computable(dialect.context.session, dialect.context.environment, default)
            value = dialect.expr(default, writer.write)
        if item.is_given and plan.has_markers(item):
            value = f"if(d{column.attnum}, {value}, {name})"
        values.append(f"{value} AS {name}")
        columns.append(name)
    text = f"SELECT {', '.join(values)} FROM "
    text = text.replace("{", "{{").replace("}", "}}") + "{view}"
    if plan.where is None:
        return text
    where = in_form(dialect.context.session, plan.where)
    condition = dialect.condition(where, writer.write).replace("{", "{{").replace("}", "}}")
    named = ", ".join(f"w{item.column.attnum} AS c{item.column.attnum}" for item in plan.stored)
    return (
        f"SELECT {', '.join(columns)} FROM (SELECT *, {named} FROM ({text})) AS r{COPY_VARNO}"
        f" WHERE {condition}"
    )
