"""Read the rows of a COPY FROM file: convert lines to values, and add the position to errors
(copyfromparse.c)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from functools import partial

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.transaction import Catalog
from replctl.errors import BadCopyFileFormat, FeatureNotSupported, InternalError, PostgresError
from replctl.expr.value_text import input_value
from replctl.query.copy_parse import DEFAULT, Default, Field, FieldReader, LineReader
from replctl.query.copy_plan import CopyPlan
from replctl.record import dataclass
from replctl.session import Session
from replctl.spark import LocalRows

#: Number of lines to read before a transaction on the catalog converts their values.
_CHUNK = 5000

_MAX_SHOWN = 100  # bytes of a line or value in a CONTEXT


@dataclass
class CopiedRows:
    """The rows that COPY has read from a file.

    Attributes:
        numbers: the line number of each row.
        lines: the lines of each chunk, joined by NUL.
        starts: the index of each chunk's first row.
        has_nulls: attnums of the file's columns in which at least one row has NULL.
        error: the error that ended the reading early.
        skipped: the number of rows skipped by ON_ERROR.
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
        """Return the line of the row with index `place`."""
        chunk = max(i for i, start in enumerate(self.starts) if start <= place)
        return self.lines[chunk].split("\0")[place - self.starts[chunk]]


def read_rows(session: Session, plan: CopyPlan, data: Iterator[bytes]) -> CopiedRows:
    """Return the rows of a file.  If a row is invalid, return the rows before it, and its error."""
    rows = CopiedRows(LocalRows(plan.staged))
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
    """Yield chunks of numbered lines, each with the error that ended the reading, if any."""
    chunk: list[tuple[int, str]] = []
    failure = None
    try:
        for line in lines:
            chunk.append((lines.number, line))
            if len(chunk) == _CHUNK:
                yield chunk, None
                chunk = []
    except PostgresError as error:  # the rows before it come first
        error.context = f"COPY {relation.name}, line {lines.number}"
        failure = error
    yield chunk, failure


def _read_header(plan: CopyPlan, lines: LineReader, split: FieldReader) -> None:
    """Skip the first line. With HEADER MATCH, its names must match the columns."""
    place = CopyPlace(plan.relation.name)
    with place.context_of_errors():
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
class CopyPlace:
    """The position of an error in a file (CopyFromErrorCallback)."""

    relation: str
    number: int = 0
    line: str | None = None
    column: str | None = None
    value: str | None = None

    @property
    def context(self) -> str:
        shown = f"COPY {self.relation}, line {self.number}"
        if self.column is not None:
            return f"{shown}, column {self.column}: {_quoted(self.value)}"
        return shown if self.line is None else f'{shown}: "{_shortened(self.line)}"'

    @contextmanager
    def context_of_errors(self) -> Iterator[None]:
        """Add the position to errors inside the `with` block."""
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
    plan: CopyPlan,
    split: FieldReader,
    chunk: Sequence[tuple[int, str]],
    rows: CopiedRows,
) -> None:
    """Convert a chunk of lines, up to the first invalid line, and add the rows to `rows`."""
    environment = session.environment(catalog)
    place = CopyPlace(plan.relation.name)
    values = _ValueReader(plan, environment, session.transaction_start, place)
    read: list[list[str | None]] = []
    kept: list[tuple[int, str]] = []
    for number, line in chunk:
        place.number, place.line, place.column = number, line, None
        try:
            with place.context_of_errors():
                row = values.row(split.fields(line) if plan.given or line else [])
        except _Skipped as skipped:  # with ON_ERROR ignore
            rows.skipped += 1
            if plan.format.tells_skipped:
                session.notice(str(skipped), context=f"COPY {plan.relation.name}")
            continue
        except PostgresError as error:  # the rows before it are checked first
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
    """Signals a row that ON_ERROR ignore skips; its text is the reason."""


class _ValueReader:
    """Converts a line's fields to a row.

    Attributes:
        has_nulls: attnums of columns in which at least one row has NULL.
    """

    def __init__(
        self, plan: CopyPlan, environment: CatalogEnvironment, now: datetime, place: CopyPlace
    ) -> None:
        self._plan = plan
        self._place = place
        self.has_nulls: set[int] = set()
        self._inputs: list[Callable[[str | None], str | None]] = [
            partial(_input, environment, item.column, now) for item in plan.given
        ]

    def row(self, fields: Sequence[Field]) -> list[str | None]:
        """Return the canonical texts of a line's fields. A column with a default marker also has a
        flag: `t` if the field requests the default, else `f`.

        Raises:
            _Skipped: the row must be skipped.
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
            row.append(self._value(number, value))
            if plan.has_markers(item):
                row.append("f")
        place.column = None
        return row

    def _value(self, number: int, value: str | None) -> str | None:
        try:
            return self._inputs[number](value)
        except (FeatureNotSupported, InternalError):
            raise
        except PostgresError as error:
            if error.is_hard or not self._plan.format.skips_errors:
                raise
            raise _Skipped(
                f"skipping row due to data type incompatibility at line {self._place.number}"
                f' for column "{self._place.column}": {_quoted(value)}'
            ) from None


def _quoted(value: str | None) -> str:
    return "null input" if value is None else f'"{_shortened(value)}"'


def _input(
    environment: CatalogEnvironment, column: Column, now: datetime, value: str | None
) -> str | None:
    type_ = environment.type(column.declared_type)
    if value is None:
        if column.domain:
            environment.check_domain(type_, None)
        return None
    return input_value(environment, type_, value, column.declared_typmod, now)


def _take_from_sequences(
    session: Session, catalog: Catalog, plan: CopyPlan, read: list[list[str | None]]
) -> None:
    """Add values of sequences to the rows whose defaults call nextval()."""
    names = [column.name for column in plan.staged]
    for item in plan.stored:
        for _number, oid in item.sequences:
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
