"""INSERT: add defaults to rows, check them, and append them to their tables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import compress

from replctl import spark
from replctl.adt.fold import simplified
from replctl.catalog.acl import Privilege
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.native_column import EXPRESSIONS, VALUES, check_not_native, native_refused
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.relation_kind import Identity
from replctl.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    GeneratedAlways,
    SqlSyntaxError,
)
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.context import ExprContext
from replctl.expr.environment import Environment
from replctl.expr.error_location import expr_location, raw_location
from replctl.expr.nextval_call import NumberedCalls
from replctl.expr.user_type import without_user_types
from replctl.functions.function_context import function_context
from replctl.functions.settings_form import computable
from replctl.lake.catalog_name import check_names
from replctl.lake.target import inserted_into
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.assigned_column import AssignedColumn, AssignedValues, assigned_column
from replctl.query.catalog_part import with_answers
from replctl.query.early_call import CallsFirst, call_early, check_called
from replctl.query.lake import LakeDialect
from replctl.query.on_conflict import conflict_action, resolved
from replctl.query.permission import check_change, check_conditions, check_query, used_columns
from replctl.query.query_rewrite import rewritten
from replctl.query.range_table import FromScope
from replctl.query.returning import returned, returned_rows, returning_of
from replctl.query.row_policy import POLICY_VARNO, changed_rows
from replctl.query.sequence_values import (
    check_defaults,
    check_unconditional,
    with_call_columns,
    with_sequence_values,
)
from replctl.query.session_calls import divided
from replctl.query.sql import QueryWriter
from replctl.query.tree import Output, Query, transform
from replctl.query.with_check import check_new_rows
from replctl.query.write import modified_relation, plan_of, written
from replctl.record import dataclass
from replctl.result import Result
from replctl.session import Session
from replctl.spark import NEXT_VALUE, LocalRows, Outcome, SparkQuery, StagedColumn, Target, reading
from replctl.types.delta_type import is_native


@dataclass(frozen=True, slots=True)
class _Listed:
    """The analyzed rows of VALUES or DEFAULT VALUES.

    Attributes:
        targets: the columns for which the statement has a value or DEFAULT.
        rows: the values of each row by attnum, without defaults.
    """

    targets: Sequence[AssignedColumn]
    rows: list[dict[int, nodes.Expr]]

    @property
    def assigned(self) -> set[int]:
        """The attnums of the columns that have a value, instead of DEFAULT, in any row."""
        return {attnum for row in self.rows for attnum in row}


@dataclass(frozen=True, slots=True)
class _Selected:
    """The analyzed query of an INSERT.

    Attributes:
        targets: the columns for which the statement has a value or DEFAULT.
        query: the query as it stands in the statement.
        exprs: an expression for each column of the query, converted to the types of the targets.
        given: the number of the query's column for an attnum; other columns get their defaults.
    """

    targets: Sequence[AssignedColumn]
    query: Query
    exprs: Sequence[nodes.Expr]
    given: dict[int, int]

    @property
    def assigned(self) -> set[int]:
        """The attnums of the columns that have a value, instead of DEFAULT."""
        return set(self.given)


@dataclass(frozen=True, slots=True)
class _NewRows:
    """Rows to insert.

    Attributes:
        texts: the canonical texts of the rows if all values are constants, else None.
        query: a query for the rows, with the columns w<attnum>, if `texts` is None.
        assigned: names of the columns that have a value, instead of DEFAULT, in the statement.
    """

    columns: tuple[Column, ...]
    texts: list[list[str | None]] | None
    query: SparkQuery
    assigned: frozenset[str] = frozenset()


def insert(session: Session, statement: ast.Insert) -> Result:
    """Add rows to a table.

    Raises:
        PostgresError: the statement is wrong, or the table refuses a row.
    """
    _refuse(statement)
    try:
        return _insert(session, statement)
    except CallsFirst as first:  # some functions must run before the rows are read
        call_early(session, first)
        return _insert(session, statement)


def _insert(session: Session, statement: ast.Insert) -> Result:
    with session.read() as catalog:
        context = replace(function_context(session, catalog), evaluated=session.early_calls)
        analyzer = QueryAnalyzer(context.environment, session.transaction_start)
        relation = modified_relation(analyzer, statement.relation)
        plan = plan_of(catalog, relation)
        source = _analyzed(session, analyzer, relation, statement)
        action = conflict_action(session, catalog, analyzer, plan, statement)
        outputs = returning_of(analyzer, relation, statement) if statement.returning else ()
        _check_permitted(context.environment, relation, source, outputs)
        rows = _new_rows(session, analyzer, relation, source, LakeDialect(context))
        supplied = frozenset(target.column.name for target in source.targets) | action.assigned
        plan = replace(plan, supplied=supplied, only_adds=action.update is None)
        _conditions, checks = changed_rows(
            context.environment.privileges,
            relation,
            Privilege.INSERT,
            session.setting("row_security"),
            reads=action.is_named or POLICY_VARNO in used_columns(Query(outputs)),
        )
        check_conditions(context.environment, [check.condition for check in checks])
    check_names(session, context.read_tables)
    with (
        written(session, [plan]) as (table,),
        _proposed(session, inserted_into(table.target, rows.assigned), rows) as proposed,
    ):
        check_new_rows(session, relation, proposed, checks)
        with resolved(session, table, proposed, action) as outcome:
            action.check_written(table, outcome)
            shown = returned_rows(session, relation, outcome, outputs)
            count = table.write(outcome, changes_keys=action.changes_keys(outcome))
    return returned(f"INSERT 0 {count}", outputs, shown)


def _check_permitted(
    environment: CatalogEnvironment,
    relation: Relation,
    source: _Listed | _Selected,
    outputs: Sequence[Output],
) -> None:
    """Check that the current role may write the columns that the statement supplies, and read the
    columns of RETURNING and of the query.

    Raises:
        InsufficientPrivilege: a privilege is missing.
    """
    returned_columns = Query(tuple(outputs))
    read = used_columns(returned_columns).get(POLICY_VARNO)
    attnums = [target.column.attnum for target in source.targets]
    check_change(environment.privileges, relation, Privilege.INSERT, attnums, read)
    if read is not None:
        check_not_native(relation, EXPRESSIONS, read)
    if isinstance(source, _Selected):
        check_query(environment, source.query)
    check_query(environment, returned_columns)


def fill(session: Session, relation: Relation, query: Query) -> int:
    """Add the rows of a query to a table with the same columns, and return their number.

    Raises:
        PostgresError: the query fails.
    """
    with session.read() as catalog:
        plan = replace(plan_of(catalog, relation), only_adds=True)
        context = function_context(session, catalog)
        query = rewritten(context, query)
        text = _named(relation.columns, query, LakeDialect(context))
        rows = _NewRows(relation.columns, None, text)
    check_names(session, context.read_tables)
    with (
        written(session, [plan]) as (table,),
        _proposed(session, table.target, rows) as outcome,
    ):
        table.check(outcome)
        return table.write(outcome)


def _proposed(session: Session, target: Target, rows: _NewRows) -> AbstractContextManager[Outcome]:
    """Yield the outcome of an INSERT of rows."""
    if rows.texts is None:
        return spark.jobs.inserted(session.engine(), target, rows.query)
    given = LocalRows([StagedColumn(f"w{c.attnum}", c.type, c.typmod) for c in rows.columns])
    given.add(rows.texts)
    return spark.jobs.inserted_values(session.engine(), target, given)


def _refuse(statement: ast.Insert) -> None:
    if statement.with_clause is not None:
        raise FeatureNotSupported("WITH before INSERT is not supported")


def _analyzed(
    session: Session, analyzer: QueryAnalyzer, relation: Relation, statement: ast.Insert
) -> _Listed | _Selected:
    """Analyze the rows to insert."""
    targets = _targets(relation, statement.columns)
    inner = analyzer.analyzer(FromScope(), ExprContext.INSERT)
    query = statement.query
    if query is None or (query.values and not query.order_by and query.limit is None):
        listed = _listed_rows(session, analyzer, inner, targets, statement)
        targets = targets[: 0 if query is None else len(query.values[0])]
        if listed is not None:
            _check_identity(relation, listed)
            return _Listed(targets, listed)
        assert query is not None
        is_given = [not isinstance(value, ast.SetToDefault) for value in query.values[0]]
        values = compress(query.values[0], is_given)
        query = ast.SelectStmt(tuple(ast.ResTarget(value) for value in values))
        selected = _selected(analyzer, inner, list(compress(targets, is_given)), statement, query)
        return replace(selected, targets=targets)
    return _selected(analyzer, inner, targets, statement, query)


def _selected(
    analyzer: QueryAnalyzer,
    inner: Analyzer,
    targets: Sequence[AssignedColumn],
    statement: ast.Insert,
    query: ast.SelectStmt,
) -> _Selected:
    tree = analyzer.query(query, keep_unknown=True)
    found = [output.expr for output in tree.outputs if not output.is_junk]
    _check_widths(len(found), targets, statement, query)
    targets = targets[: len(found)]
    exprs, given = _assigned_outputs(analyzer, inner, targets, found)
    for target in targets:
        _check_given(target.column, statement)
    given = {
        t.column.attnum: given[t.column.attnum]
        for t in targets
        if not _is_overridden(t.column, statement)
    }
    return _Selected(targets, tree, exprs, given)


def _new_rows(
    session: Session,
    analyzer: QueryAnalyzer,
    relation: Relation,
    source: _Listed | _Selected,
    dialect: LakeDialect,
) -> _NewRows:
    """Return the rows to insert, with a value for every column that is not generated."""
    stored = tuple(column for column in relation.columns if not column.generated)
    if isinstance(source, _Listed):
        rows = _filled_rows(session, stored, source.rows, dialect)
    else:
        tree = analyzer.with_outputs(source.query, source.exprs)
        tree = rewritten(dialect.context, tree)
        check_called(tree, dialect.context)
        query = _rows_query(session, dialect, tree, stored, source.given)
        rows = _NewRows(stored, None, query)
    return replace(rows, assigned=frozenset(c.name for c in stored if c.attnum in source.assigned))


def _assigned_outputs(
    analyzer: QueryAnalyzer,
    inner: Analyzer,
    targets: Sequence[AssignedColumn],
    found: Sequence[nodes.Expr],
) -> tuple[list[nodes.Expr], dict[int, int]]:
    """Return an expression for each column of a query, and the number of the expression by attnum.

    If the statement assigns several elements of a column, one expression has all of them, and the
    others are unused constants.
    """
    values = _assigned_values(analyzer, inner)
    for expr, target in zip(found, targets, strict=True):
        values.add(target, expr, expr_location(expr))
    numbers = {target.column.attnum: i for i, target in enumerate(targets, start=1)}
    of_number = {numbers[attnum]: value for attnum, value in values.finished().items()}
    unused = nodes.Const("int4", None)
    return [of_number.get(i, unused) for i in range(1, len(found) + 1)], numbers


def _assigned_values(analyzer: QueryAnalyzer, inner: Analyzer) -> AssignedValues:
    """Return the empty values of a new row, in which arrays are NULL before the first element is
    assigned.
    """
    return AssignedValues(
        analyzer,
        inner,
        lambda c: nodes.Const(c.declared_type, None, c.declared_typmod, c.collation),
    )


def _rows_query(
    session: Session,
    dialect: LakeDialect,
    tree: Query,
    stored: Sequence[Column],
    given: dict[int, int],
) -> SparkQuery:
    """Return a query for the rows to insert: w<attnum> is a column of the query, or the default.

    Args:
        given: the number of the query's column for an attnum; other columns get their defaults.
    """
    environment, writer = dialect.context.environment, QueryWriter(dialect)
    parts, calls = divided(tree, environment), NumberedCalls(NEXT_VALUE)
    values: dict[int, nodes.Expr] = {}
    if parts is not None:
        for number, expr in enumerate(parts.exprs, start=1):
            check_unconditional(expr)
            values[number] = calls.with_columns(expr)
        for oid in calls.sequences:
            environment.privileges.check_sequence(oid, (Privilege.USAGE, Privilege.UPDATE))
    missing = [c for c in stored if c.attnum not in given]
    check_defaults(environment.privileges, missing)
    fillings = {c.attnum: computable(session, environment, c.filling) for c in missing}
    defaults = {a: calls.with_columns(simplified(value)) for a, value in fillings.items()}
    source = reading(writer.write(tree if parts is None else parts.rows), *dialect.read)
    order = "monotonically_increasing_id()"
    source = with_call_columns(session, dialect.context, calls, source, order)

    def value(column: Column) -> str:
        number = given.get(column.attnum)
        expr = defaults[column.attnum] if number is None else values.get(number)
        return f"c{number}" if expr is None else dialect.expr(expr, writer.write)

    selected = ", ".join(f"{value(c)} AS w{c.attnum}" for c in stored)
    return reading(f"SELECT {selected or '1 AS w0'} FROM ({source})", *dialect.read)


def _listed_rows(
    session: Session,
    analyzer: QueryAnalyzer,
    inner: Analyzer,
    targets: Sequence[AssignedColumn],
    statement: ast.Insert,
) -> list[dict[int, nodes.Expr]] | None:
    """Return the values of VALUES or DEFAULT VALUES by attnum; None if a value calls a
    set-returning function, which may produce more rows.
    """
    raw_rows = ((),) if statement.query is None else statement.query.values
    context = ExprContext.VALUES if len(raw_rows) > 1 else ExprContext.VALUES_SINGLE
    rows, environment = [], analyzer.environment
    with inner.in_context(context):
        for raw_row in raw_rows:  # an earlier row fails first
            if len(raw_row) != len(raw_rows[0]):
                raise SqlSyntaxError(
                    "VALUES lists must all be the same length", position=raw_location(raw_row[0])
                )
            row = _values_row(analyzer, inner, targets, raw_row, statement)
            rows.append(
                {attnum: _folded(session, environment, value) for attnum, value in row.items()}
            )
    return None if inner.last_set is not None else rows


def _check_identity(relation: Relation, rows: Sequence[dict[int, nodes.Expr]]) -> None:
    """Check that all rows have values for an identity column of a Delta table, or none of them.

    Raises:
        FeatureNotSupported: some rows have values (0A000).
    """
    for column in relation.columns:
        if not column.identity or column.default is not None:
            continue
        if len({column.attnum in row for row in rows}) > 1:
            raise FeatureNotSupported(
                f'rows with and without a value for identity column "{column.name}" are not'
                " supported in one INSERT",
                detail=f'Column "{column.name}" is an identity column of the Delta table. In one'
                " commit, Delta assigns its values in all rows or in none.",
            )


def _filled_rows(
    session: Session,
    stored: tuple[Column, ...],
    rows: Sequence[dict[int, nodes.Expr]],
    dialect: LakeDialect,
) -> _NewRows:
    """Return the rows of VALUES with defaults for the columns that have no value."""
    fillings = {
        c.attnum: _folded(session, dialect.context.environment, c.filling)
        for c in stored
        if any(c.attnum not in values for values in rows)
    }
    with dialect.context.sequences.in_portions():
        full = [
            tuple(
                with_sequence_values(dialect.context, c, _checked(dialect, values[c.attnum]))
                for c in stored
            )
            for values in ({**fillings, **row} for row in rows)
        ]
    if not stored:
        return _NewRows(stored, None, SparkQuery(f"SELECT 1 AS w0 FROM range({len(rows)})"))
    if all(isinstance(value, nodes.Const) for row in full for value in row):
        texts = [[v.value for v in row if isinstance(v, nodes.Const)] for row in full]
        return _NewRows(stored, texts, SparkQuery(""))
    outputs = tuple(
        Output(c.name, nodes.Var(i, c.type, c.typmod, c.collation, 0))
        for i, c in enumerate(stored, start=1)
    )
    query = Query(outputs, values=tuple(full))
    check_query(dialect.context.environment, query)
    query = rewritten(dialect.context, query)
    check_called(query, dialect.context)
    return _NewRows(stored, None, _named(stored, query, dialect))


def _named(columns: Sequence[Column], query: Query, dialect: LakeDialect) -> SparkQuery:
    """Return a query whose columns are renamed from c1, c2, ... to w<attnum>."""
    names = ", ".join(f"c{i} AS w{c.attnum}" for i, c in enumerate(columns, start=1))
    query = with_answers(query, dialect.context)
    rows = QueryWriter(dialect).write(query)
    return reading(f"SELECT {names or '1 AS w0'} FROM ({rows})", *dialect.read)


def _targets(relation: Relation, raws: Sequence[ast.ResTarget]) -> list[AssignedColumn]:
    """Return the columns that an INSERT lists, or all columns if it lists none
    (checkInsertTargets)."""
    if not raws:
        return [AssignedColumn(column) for column in relation.columns]
    targets: list[AssignedColumn] = []
    for raw in raws:
        target = assigned_column(relation, raw)
        if any(
            other.column == target.column and not (other.indirection and target.indirection)
            for other in targets
        ):
            raise DuplicateColumn(f'column "{raw.name}" specified more than once', position=raw.pos)
        targets.append(target)
    return targets


def _values_row(
    analyzer: QueryAnalyzer,
    inner: Analyzer,
    targets: Sequence[AssignedColumn],
    raws: Sequence[ast.RawExpr],
    statement: ast.Insert,
) -> dict[int, nodes.Expr]:
    """Return the values of a VALUES row by attnum, converted to the types of their columns."""
    if statement.query is not None:
        _check_width(raws, targets, statement)
    values = _assigned_values(analyzer, inner)
    for raw, target in zip(raws, targets, strict=False):
        if isinstance(raw, ast.SetToDefault):
            target.check_default()
            continue
        _check_given(target.column, statement)
        values.add(target, inner.expr(raw), raw_location(raw))
    overridden = {t.column.attnum for t in targets if _is_overridden(t.column, statement)}
    return {a: v for a, v in values.finished().items() if a not in overridden}


def _folded(session: Session, environment: Environment, value: nodes.Expr) -> nodes.Expr:
    """Fold constants of a value.

    Raises:
        FeatureNotSupported: the value depends on a setting in an unsupported way (0A000).
    """
    if not isinstance(value, nodes.Const):
        computable(session, environment, value, transform)  # folding would hide casts to text
    return simplified(value)


def _checked(dialect: LakeDialect, value: nodes.Expr) -> nodes.Expr:
    """Return a value without user-defined types. This checks constants of domains."""
    plain: nodes.Expr = without_user_types(dialect.context.environment, value)
    return plain if plain is value else simplified(plain)


def _check_width(
    raws: Sequence[ast.RawExpr], columns: Sequence[AssignedColumn], statement: ast.Insert
) -> None:
    if len(raws) > len(columns):
        raise SqlSyntaxError(
            "INSERT has more expressions than target columns",
            position=raw_location(raws[len(columns)]),
        )
    if len(raws) < len(columns) and statement.columns:
        raise SqlSyntaxError(
            "INSERT has more target columns than expressions",
            position=statement.columns[len(raws)].pos,
        )


def _check_widths(
    width: int, columns: Sequence[AssignedColumn], statement: ast.Insert, query: ast.SelectStmt
) -> None:
    if width > len(columns):
        target = query.targets[len(columns)].value if len(query.targets) > len(columns) else None
        raise SqlSyntaxError(
            "INSERT has more expressions than target columns",
            position=-1 if target is None else raw_location(target),
        )
    if width < len(columns) and statement.columns:
        raise SqlSyntaxError(
            "INSERT has more target columns than expressions",
            position=statement.columns[width].pos,
        )


def _is_overridden(column: Column, statement: ast.Insert) -> bool:
    """Return whether OVERRIDING USER VALUE makes INSERT ignore the given value of a column."""
    return statement.overriding == "user" and bool(column.identity)


def _check_given(column: Column, statement: ast.Insert) -> None:
    """Check that a statement may set a column.

    Raises:
        GeneratedAlways: the column is generated (428C9).
        FeatureNotSupported: the column is native.
    """
    if is_native(column.type):
        raise native_refused(column, statement.relation.name, VALUES)
    message = f'cannot insert a non-DEFAULT value into column "{column.name}"'
    if column.generated:
        detail = f'Column "{column.name}" is a generated column.'
        raise GeneratedAlways(message, detail=detail)
    if column.identity == Identity.ALWAYS and column.default is None:
        raise GeneratedAlways(
            message,
            detail=f'Column "{column.name}" is an identity column of the Delta table, whose values'
            " Delta always assigns.",
        )
    if column.identity == Identity.ALWAYS and statement.overriding is None:
        raise GeneratedAlways(
            message,
            detail=f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
            hint="Use OVERRIDING SYSTEM VALUE to override.",
        )
