"""COPY FROM: a file's rows, written as those of INSERT are (copyfrom.c)."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from replctl.adt.fold import simplified
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Column, Relation, get_relation
from replctl.catalog.pg_policy import is_row_security_active
from replctl.catalog.pg_sequence import sequences_of
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    BadCopyFileFormat,
    FeatureNotSupported,
    InternalError,
    InvalidColumnReference,
    PostgresError,
    SerializationFailure,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.context import ExprContext
from replctl.lake.delta_rules import with_delta_columns
from replctl.lake.file_access import check_writable
from replctl.lake.repeat import repeated
from replctl.lake.target import inserted_into
from replctl.lake.waiting import when_free
from replctl.parser import ast
from replctl.query.analyze import QueryAnalyzer, relation_entry
from replctl.query.copy import column_numbers, copied_relation, file_error
from replctl.query.copy_options import CopyFormat, copy_format
from replctl.query.copy_parse import DEFAULT, Default, Field, FieldReader, LineReader
from replctl.query.lake import LakeDialect
from replctl.query.next_value import check_defaults, with_columns
from replctl.query.permission import check_change
from replctl.query.range_table import FromScope
from replctl.query.sql import QueryWriter
from replctl.query.write import plan_of, written
from replctl.record import dataclass
from replctl.result import Result
from replctl.session import Session
from replctl.spark import LocalRows, StagedColumn

if TYPE_CHECKING:
    from replctl.spark.outcome import Problem

#: So many lines are read before the catalog is asked for what their values mean.
_CHUNK = 5000
_MAX_SHOWN = 100  # bytes of a line or value in a CONTEXT
_VARNO = 1  # of the table in WHERE
_KIND_WORDS = {"v": "view", "m": "materialized view", "S": "sequence"}


@dataclass(frozen=True, slots=True)
class _Column:
    """A column that COPY fills.

    Attributes:
        is_given: the file has it.
        default: what it has where the file does not say; None: NULL.
        sequences: by OID, the number of the column of the rows that has values of that sequence.
    """

    column: Column
    is_given: bool
    default: nodes.Expr | None
    sequences: dict[int, int]
    never_null: bool = False  # FORCE_NOT_NULL
    may_be_null: bool = False  # FORCE_NULL

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a statement says.

    Attributes:
        given: the columns that the file has, in its order.
        stored: those that rows have in the end, but for generated ones.
    """

    relation: Relation
    format: CopyFormat
    given: tuple[_Column, ...]
    stored: tuple[_Column, ...]
    where: nodes.Expr | None

    @property
    def staged(self) -> list[StagedColumn]:
        """The columns of the rows as they are read: place, values, defaults, sequences."""
        columns = [StagedColumn("place", "int8")]
        for item in self.given:
            column = item.column
            columns.append(StagedColumn(f"w{column.attnum}", column.type, column.typmod))
            if self.has_markers(item):
                columns.append(StagedColumn(f"d{column.attnum}", "bool"))
        numbers = [number for item in self.stored for number in item.sequences.values()]
        return columns + [StagedColumn(f"c{number}", "int8") for number in numbers]

    def has_markers(self, item: _Column) -> bool:
        """Whether the file may say that a value is to be the default."""
        return self.format.default is not None and item.default is not None


@dataclass
class _Rows:
    """Rows that were read.

    Attributes:
        numbers: of their lines.
        lines: the lines, joined by NUL, one piece for each chunk.
        count: how many rows there are.
        has_nulls: attnums of given columns that a row has NULL in.
        error: what ended the reading early.
        skipped: how many rows ON_ERROR has left out.
    """

    local: LocalRows
    numbers: array[int] = field(default_factory=lambda: array("q"))
    lines: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    has_nulls: set[int] = field(default_factory=set)
    error: PostgresError | None = None
    skipped: int = 0

    def add_lines(self, numbers: Sequence[int], lines: Sequence[str]) -> None:
        self.starts.append(len(self.numbers))
        self.numbers.extend(numbers)
        self.lines.append("\0".join(lines))

    def line(self, place: int) -> str:
        """The line of a row."""
        chunk = max(i for i, start in enumerate(self.starts) if start <= place)
        return self.lines[chunk].split("\0")[place - self.starts[chunk]]


def copy_from(session: Session, statement: ast.Copy) -> Result:
    """Add a file's rows to a table.

    Raises:
        PostgresError: something is wrong with the statement or the file, or the table does not
            take a row; nothing is written.
    """
    with session.read() as catalog:
        plan = _plan(session, catalog, statement)
    with _opened(session, statement) as data:
        _check_kind(plan.relation)
        rows = _read(session, plan, data)
        for _piece in data:  # what follows an end-of-copy marker means nothing
            pass
    if rows.skipped:
        shown = "1 row was" if rows.skipped == 1 else f"{rows.skipped} rows were"
        session.notice(f"{shown} skipped due to data type incompatibility")
    if rows.error is not None and not _may_fail(plan, rows):
        raise rows.error
    count = 0
    if rows.numbers:
        count = when_free(session, lambda: repeated(lambda: _write(session, plan, rows)))
    return Result(f"COPY {count}")


# ---------------------------------------------------------------------------------------------
# The statement


def _plan(session: Session, catalog: Catalog, statement: ast.Copy) -> _Plan:
    context = session.function_context(catalog)
    analyzer = QueryAnalyzer(context.environment, session.transaction_start)
    assert statement.relation is not None
    relation = copied_relation(analyzer, statement.relation)
    if not isinstance(relation, Relation):
        kind = "view" if relation.kind == "v" else None
        if kind is not None:
            raise _not_to(kind, relation.name)
        raise WrongObjectType(f'permission denied: "{relation.name}" is a system catalog')
    check_writable(catalog, [relation])
    relation = with_delta_columns(relation)
    where = _where(analyzer, relation, statement)
    numbers = column_numbers(relation, statement.columns)
    privileges = context.environment.privileges
    check_change(privileges, relation, "a", numbers, None)
    if is_row_security_active(privileges, relation, session.setting("row_security")):
        raise FeatureNotSupported(
            "COPY FROM not supported with row-level security",
            hint="Use INSERT statements instead.",
        )
    format_ = copy_format(statement.options, is_from=True)
    forced = {
        name: set(numbers)
        if chosen == "*"
        else set(column_numbers(relation, chosen, numbers, name.upper()))
        for name, chosen in (
            ("force_not_null", format_.force_not_null),
            ("force_null", format_.force_null),
        )
        if chosen
    }
    stored, next_number = [], 1
    for column in relation.columns:
        if column.generated:
            continue
        default = None if column.default is None else simplified(column.default)
        is_given = column.attnum in numbers
        is_used = not is_given or format_.default is not None
        if is_used:
            check_defaults(privileges, [column])
        oids = sequences_of(default) if default is not None and is_used else []
        sequences = {oid: number for number, oid in enumerate(dict.fromkeys(oids), next_number)}
        next_number += len(sequences)
        stored.append(
            _Column(
                column,
                is_given,
                default,
                sequences,
                column.attnum in forced.get("force_not_null", ()),
                column.attnum in forced.get("force_null", ()),
            )
        )
    by_number = {item.column.attnum: item for item in stored}
    given = tuple(by_number[number] for number in numbers)
    return _Plan(relation, format_, given, tuple(stored), where)


def _where(analyzer: QueryAnalyzer, relation: Relation, statement: ast.Copy) -> nodes.Expr | None:
    if statement.where is None:
        return None
    entry = relation_entry(analyzer.environment, relation, _VARNO, None)
    scope = FromScope((entry,), entry.columns)
    inner = analyzer.analyzer(scope, ExprContext.COPY_WHERE)
    condition = analyzer.finished(inner.boolean(statement.where, "WHERE"))
    for node in nodes.walk(condition):
        if not isinstance(node, nodes.Var):
            continue
        if node.attnum <= 0:
            raise FeatureNotSupported(
                "system columns and whole rows are not supported in COPY FROM WHERE conditions"
            )
        column = relation.column_at(node.attnum)
        if column.generated:
            raise InvalidColumnReference(
                "generated columns are not supported in COPY FROM WHERE conditions",
                detail=f'Column "{column.name}" is a generated column.',
            )
    return condition


def _check_kind(relation: Relation) -> None:
    """Only now, when the client sends its data already (CopyFrom)."""
    word = _KIND_WORDS.get(relation.kind)
    if word is not None:
        raise _not_to(word, relation.name)


def _not_to(word: str, name: str) -> WrongObjectType:
    hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger."
    return WrongObjectType(f'cannot copy to {word} "{name}"', hint=hint if word == "view" else None)


@contextmanager
def _opened(session: Session, statement: ast.Copy) -> Iterator[Iterator[bytes]]:
    """The file, or what the client sends, in pieces that end with newlines."""
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
# Reading


def _read(session: Session, plan: _Plan, data: Iterator[bytes]) -> _Rows:
    """All rows of a file, or those up to the first that is wrong."""
    rows = _Rows(LocalRows(plan.staged))
    lines, split = LineReader(data, plan.format), FieldReader(plan.format)
    if plan.format.header != "no":
        _read_header(plan, lines, split)
    for chunk, failure in _chunks(plan.relation, lines):
        if chunk:
            with session.read() as catalog:
                _add(session, catalog, plan, split, chunk, rows)
        rows.error = rows.error or failure
        if rows.error is not None:
            break
    return rows


def _chunks(
    relation: Relation, lines: LineReader
) -> Iterator[tuple[list[tuple[int, str]], PostgresError | None]]:
    """Lines with their numbers, some at a time; and why there are no more, unless it is the end."""
    chunk: list[tuple[int, str]] = []
    failure = None
    try:
        for line in lines:
            chunk.append((lines.number, line))
            if len(chunk) == _CHUNK:
                yield chunk, None
                chunk = []
    except PostgresError as error:
        error.context = f"COPY {relation.name}, line {lines.number}"
        failure = error
    yield chunk, failure


def _read_header(plan: _Plan, lines: LineReader, split: FieldReader) -> None:
    """Pass over the first line, whose names have to be those of the columns with HEADER MATCH."""
    place = _Place(plan.relation.name)
    with place.told():
        place.number = 1
        place.line = lines.header()
        if plan.format.header != "match":
            return
        fields = split.fields(place.line)
        if len(fields) != len(plan.given):
            raise BadCopyFileFormat(
                f"wrong number of fields in header line: got {len(fields)},"
                f" expected {len(plan.given)}"
            )
        for number, (name, item) in enumerate(zip(fields, plan.given, strict=True), start=1):
            if name == item.name:
                continue
            shown = f'null value ("{plan.format.null}")' if name is None else f'"{name}"'
            raise BadCopyFileFormat(
                f"column name mismatch in header line field {number}: got {shown},"
                f' expected "{item.name}"'
            )


@dataclass
class _Place:
    """Where in a file a fault is (CopyFromErrorCallback)."""

    relation: str
    number: int = 0
    line: str | None = None
    column: str | None = None
    value: str | None = None

    @property
    def context(self) -> str:
        shown = f"COPY {self.relation}, line {self.number}"
        if self.column is not None:
            value = "null input" if self.value is None else f'"{_shortened(self.value)}"'
            return f"{shown}, column {self.column}: {value}"
        return shown if self.line is None else f'{shown}: "{_shortened(self.line)}"'

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors tell of the place."""
        try:
            yield
        except PostgresError as error:
            inner = "" if error.context is None else f"{error.context}\n"
            error.context = inner + self.context
            raise


def _shortened(text: str) -> str:
    data = text.encode("utf-8", "surrogateescape")
    if len(data) <= _MAX_SHOWN:
        return text
    return data[:_MAX_SHOWN].decode(errors="ignore") + "..."


def _add(
    session: Session,
    catalog: Catalog,
    plan: _Plan,
    split: FieldReader,
    chunk: Sequence[tuple[int, str]],
    rows: _Rows,
) -> None:
    """Read the values of lines, up to the first line that is wrong."""
    environment = session.environment(catalog)
    place = _Place(plan.relation.name)
    values = _ValueReader(plan, environment, session.transaction_start, place)
    read: list[list[str | None]] = []
    kept: list[tuple[int, str]] = []
    for number, line in chunk:
        place.number, place.line, place.column = number, line, None
        try:
            with place.told():
                row = values.row(split.fields(line) if plan.given or line else [])
        except _Skipped as skipped:
            rows.skipped += 1
            if plan.format.tells_skipped:
                session.notice(str(skipped), context=f"COPY {plan.relation.name}")
            continue
        except PostgresError as error:
            rows.error = error
            break
        read.append([str(len(rows.numbers) + len(read)), *row])
        kept.append((number, line))
    rows.has_nulls |= values.has_nulls
    _take_from_sequences(session, catalog, plan, read)
    if read:
        rows.local.add(read)
        rows.add_lines([number for number, _line in kept], [line for _number, line in kept])


class _Skipped(Exception):
    """A row that ON_ERROR ignore leaves out, and why."""


class _ValueReader:
    """What makes a row of a line's fields.

    Attributes:
        has_nulls: attnums of columns that a row has NULL in.
    """

    def __init__(
        self, plan: _Plan, environment: CatalogEnvironment, now: datetime, place: _Place
    ) -> None:
        self._plan = plan
        self._place = place
        self.has_nulls: set[int] = set()
        self._inputs: list[Callable[[str], str]] = [
            partial(_input, environment, item.column, now) for item in plan.given
        ]

    def row(self, fields: Sequence[Field]) -> list[str | None]:
        """Canonical texts, and whether each is to be the default where that may be.

        Raises:
            _Skipped: the row is to be left out.
        """
        plan, place = self._plan, self._place
        for item, field_ in zip(plan.given, fields, strict=False):
            if field_ is DEFAULT and item.default is None:
                raise BadCopyFileFormat(
                    "unexpected default marker in COPY data",
                    detail=f'Column "{item.name}" has no default value.',
                )
        if len(fields) > len(plan.given):
            raise BadCopyFileFormat("extra data after last expected column")
        row: list[str | None] = []
        for number, item in enumerate(plan.given):
            if number >= len(fields):
                place.column = None
                raise BadCopyFileFormat(f'missing data for column "{item.name}"')
            value = fields[number]
            if value is DEFAULT:
                row += [None, "t"]
                continue
            assert not isinstance(value, Default)
            if value is None and item.never_null:
                value = plan.format.null
            elif item.may_be_null and value == plan.format.null:
                value = None
            place.column, place.value = item.name, value
            if value is None:
                self.has_nulls.add(item.column.attnum)
                row.append(None)
            else:
                row.append(self._value(number, value))
            if plan.has_markers(item):
                row.append("f")
        place.column = None
        return row

    def _value(self, number: int, value: str) -> str:
        try:
            return self._inputs[number](value)
        except (FeatureNotSupported, InternalError):
            raise
        except PostgresError:
            if not self._plan.format.skips_errors:
                raise
            raise _Skipped(
                f"skipping row due to data type incompatibility at line {self._place.number}"
                f' for column "{self._place.column}": "{_shortened(value)}"'
            ) from None


def _input(environment: CatalogEnvironment, column: Column, now: datetime, value: str) -> str:
    return environment.input(environment.type(column.type), value, column.typmod, now)


def _take_from_sequences(
    session: Session, catalog: Catalog, plan: _Plan, read: list[list[str | None]]
) -> None:
    """Give rows the values of sequences that their defaults need."""
    names = [column.name for column in plan.staged]
    for item in plan.stored:
        for oid in item.sequences:
            needing = read
            if item.is_given:
                marker = names.index(f"d{item.column.attnum}")
                needing = [row for row in read if row[marker] == "t"]
            for row in read:
                row.append(None)
            for row, value in zip(
                needing, session.sequences.take(catalog, oid, len(needing)), strict=True
            ):
                row[-1] = str(value)


# ---------------------------------------------------------------------------------------------
# Writing


def _may_fail(plan: _Plan, rows: _Rows) -> bool:
    """Whether the table may refuse one of the rows for what is in it."""
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


def _write(session: Session, plan: _Plan, rows: _Rows) -> int:
    """Write the rows; how many there are behind WHERE."""
    with session.read() as catalog:
        relation = get_relation(catalog, plan.relation.oid)
        relation = None if relation is None else with_delta_columns(relation)
        if relation is None or _definition(relation) != _definition(plan.relation):
            raise SerializationFailure(
                f'relation "{plan.relation.name}" was changed by another session',
                hint="Repeat the statement.",
            )
        supplied = frozenset(item.column.name for item in plan.given)
        table_plan = replace(plan_of(catalog, relation), supplied=supplied)
        source = _source(plan, LakeDialect(session.function_context(catalog)))
    engine = session.engine()
    with (
        written(session, [table_plan]) as (table,),
        rows.local.view(engine) as view,
        engine.inserted(
            inserted_into(table.target, supplied), source.format(view=view), place="place"
        ) as outcome,
    ):

        def context(problem: Problem) -> str:
            place = _Place(plan.relation.name, rows.numbers[problem.position])
            if problem.kind not in ("key", "unique"):  # indexes are told of many rows at once
                place.line = rows.line(problem.position)
            return place.context

        table.check_rows(outcome, (), context)
        if rows.error is not None:
            raise rows.error
        table.check(outcome, context=context)
        return table.write(outcome)


def _definition(relation: Relation) -> Relation:
    return replace(relation, storage=None)


def _source(plan: _Plan, dialect: LakeDialect) -> str:
    """SQL of the rows to write: place, w<attnum>; of `{view}`, which has what was read."""
    writer = QueryWriter(dialect)
    values, columns = ["place"], ["place"]
    for item in plan.stored:
        column = item.column
        default = item.default or nodes.Const(column.type, None, column.typmod, column.collation)
        name = value = f"w{column.attnum}"
        if not item.is_given or plan.has_markers(item):
            value = dialect.expr(with_columns(default, item.sequences), writer.write)
        if item.is_given and plan.has_markers(item):
            value = f"if(d{column.attnum}, {value}, {name})"
        values.append(f"{value} AS {name}")
        columns.append(name)
    text = f"SELECT {', '.join(values)} FROM "
    text = text.replace("{", "{{").replace("}", "}}") + "{view}"
    if plan.where is None:
        return text
    condition = dialect.condition(plan.where, writer.write).replace("{", "{{").replace("}", "}}")
    named = ", ".join(f"w{item.column.attnum} AS c{item.column.attnum}" for item in plan.stored)
    return (
        f"SELECT {', '.join(columns)} FROM (SELECT *, {named} FROM ({text})) AS r{_VARNO}"
        f" WHERE {condition}"
    )
