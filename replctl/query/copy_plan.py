"""The plan of a COPY FROM statement: the file's columns, and the values of all other columns."""

from __future__ import annotations

from replctl.adt.fold import simplified
from replctl.catalog.acl import Privilege
from replctl.catalog.native_column import EXPRESSIONS, VALUES, check_not_native
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_policy import is_row_security_active
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported, InvalidColumnReference, WrongObjectType
from replctl.expr import nodes
from replctl.expr.context import ExprContext
from replctl.expr.nextval_call import NumberedCalls
from replctl.expr.user_type import without_user_types
from replctl.functions.function_context import function_context
from replctl.lake.delta_rules import with_delta_columns
from replctl.lake.file_access import check_writable
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.copy_options import CopyFormat, copy_format
from replctl.query.copy_relation import column_numbers, copied_relation
from replctl.query.permission import check_change
from replctl.query.range_table import FromScope, relation_entry
from replctl.query.sequence_values import check_defaults
from replctl.query.settings_rewrite import in_form
from replctl.record import dataclass
from replctl.session import Session
from replctl.spark import StagedColumn

COPY_VARNO = 1  # varno of the table in WHERE


@dataclass(frozen=True, slots=True)
class CopiedColumn:
    """A column that COPY fills.

    Attributes:
        is_given: the file has this column.
        default: the value for rows without a value in the file; None means NULL.  Numbered columns
            replace the calls of nextval() in this expression.
        sequences: the numbers of these columns, each with the OID of its sequence.
    """

    column: Column
    is_given: bool
    default: nodes.Expr | None
    sequences: tuple[tuple[int, int], ...]
    never_null: bool = False  # FORCE_NOT_NULL
    may_be_null: bool = False  # FORCE_NULL

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """The plan of a COPY FROM statement.

    Attributes:
        given: the columns of the file, in the file's order.
        stored: all columns of the table except generated ones.
    """

    relation: Relation
    format: CopyFormat
    given: tuple[CopiedColumn, ...]
    stored: tuple[CopiedColumn, ...]
    where: nodes.Expr | None

    @property
    def staged(self) -> list[StagedColumn]:
        """Return the columns of the rows that COPY has read.

        The first one is `place`.  For each column of the file, the value follows, and a flag for
        its default if one is needed.  The values of sequences come last.
        """
        columns = [StagedColumn("place", "int8")]
        for item in self.given:
            column = item.column
            columns.append(StagedColumn(f"w{column.attnum}", column.type, column.typmod))
            if self.has_markers(item):
                columns.append(StagedColumn(f"d{column.attnum}", "bool"))
        numbers = [number for item in self.stored for number, _oid in item.sequences]
        return columns + [StagedColumn(f"c{number}", "int8") for number in numbers]

    def has_markers(self, item: CopiedColumn) -> bool:
        """Return whether the file may contain the marker for this column's default."""
        return self.format.default is not None and item.default is not None


def copy_plan(session: Session, catalog: Catalog, statement: ast.Copy) -> CopyPlan:
    """Return the plan of a COPY FROM statement for its table and columns.

    Raises:
        PostgresError: the statement is wrong, or the role lacks a privilege.
    """
    context = function_context(session, catalog)
    analyzer = QueryAnalyzer(context.environment, session.transaction_start)
    assert statement.relation is not None
    relation = copied_relation(analyzer, statement.relation)
    if not isinstance(relation, Relation):
        kind = "view" if relation.kind == RelKind.VIEW else None
        if kind is not None:
            raise not_to_kind(kind, relation.name)
        raise WrongObjectType(f'permission denied: "{relation.name}" is a system catalog')
    check_writable(catalog, [relation])
    relation = with_delta_columns(relation)
    where = _where(analyzer, relation, statement)
    numbers = column_numbers(relation, statement.columns)
    privileges = context.environment.privileges
    check_change(privileges, relation, Privilege.INSERT, numbers, None)
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
    stored, calls = [], NumberedCalls(1)
    check_not_native(relation, VALUES, numbers)
    for column in relation.columns:
        if column.generated:
            continue
        # Like PostgreSQL, do not check a domain's NOT NULL for a column that the file lacks.
        is_given = column.attnum in numbers
        is_used = not is_given or format_.default is not None
        default = None
        if is_used and column.has_default:
            in_form(session, column.filling)  # folding would hide casts to text
            default = simplified(column.filling)
        if is_used:
            check_defaults(privileges, [column])
        known = len(calls.sequences)
        if default is not None:
            default = calls.with_columns(default)
        sequences = tuple(zip(calls.numbers, calls.sequences, strict=True))[known:]
        stored.append(
            CopiedColumn(
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
    return CopyPlan(relation, format_, given, tuple(stored), where)


def _where(analyzer: QueryAnalyzer, relation: Relation, statement: ast.Copy) -> nodes.Expr | None:
    if statement.where is None:
        return None
    entry = relation_entry(analyzer.environment, relation, COPY_VARNO, None)
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
        check_not_native(relation, EXPRESSIONS, [column.attnum])
        if column.generated:
            raise InvalidColumnReference(
                "generated columns are not supported in COPY FROM WHERE conditions",
                detail=f'Column "{column.name}" is a generated column.',
            )
    result: nodes.Expr = without_user_types(analyzer.environment, condition)
    return result


def not_to_kind(word: str, name: str) -> WrongObjectType:
    """Return the error of COPY into a relation that cannot have rows."""
    hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger."
    return WrongObjectType(f'cannot copy to {word} "{name}"', hint=hint if word == "view" else None)
