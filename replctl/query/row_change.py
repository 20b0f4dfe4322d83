"""The change that a statement makes to existing rows, and SQL of the rows with their new values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from replctl.catalog.pg_class import Relation
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes
from replctl.expr.nextval_call import NumberedCalls
from replctl.functions.function_context import function_context
from replctl.lake.catalog_name import check_names
from replctl.lake.delta_rules import append_only_error
from replctl.lake.target import generating_columns
from replctl.query.lake import changing_query
from replctl.query.row_policy import POLICY_VARNO, RowCheck
from replctl.query.sequence_values import check_unconditional, with_call_columns
from replctl.query.sql import QueryWriter
from replctl.query.tree import FromNode, FromTable, Output, Query
from replctl.query.write import Plan
from replctl.record import dataclass
from replctl.replication.replica_identity import check_replica_identity
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.spark import NEXT_VALUE, SparkQuery, Target, TargetColumn, reading

#: The varno of the table that a statement changes.
TARGET = POLICY_VARNO
#: The name of the proposed row in ON CONFLICT DO UPDATE.
EXCLUDED_NAME = "excluded"


@dataclass(frozen=True, slots=True)
class RowChange:
    """The effect of a statement on the rows of one table.

    Attributes:
        from_, where: the other items of FROM, and the condition for the affected rows.
        values: the new values of an UPDATE, by attnum.
        conditions, checks: the policies' conditions for the old rows, and for the new rows.
        is_volatile: equal rows may get different values.
    """

    plan: Plan
    from_: tuple[FromNode, ...]
    where: nodes.Expr | None
    values: dict[int, nodes.Expr]
    conditions: tuple[nodes.Expr, ...] = ()
    checks: tuple[RowCheck, ...] = ()
    is_volatile: bool = False
    returning: tuple[Output, ...] = ()

    @property
    def reading_query(self) -> Query:
        """Return a query that reads the same columns as the change.  An assignment to a part of a
        column does not count as reading the rest of it.
        """
        values = (Output("", nodes.transform(e, _without_old)) for e in self.values.values())
        return Query((*values, *self.returning), self.from_, self.where)


def _without_old(node: nodes.Node) -> nodes.Node | None:
    """Return an assignment to a part of a column as if the column were NULL before."""
    match node:
        case nodes.SubscriptingRef(arg=nodes.Var(type=type_), assigned=nodes.Node()):
            return replace(node, arg=nodes.Const(type_, None))
    return None


def changed_columns(target: Target, assigned: Collection[int]) -> set[int]:
    """Return the assigned columns, and the generated columns that use them.  A partition's own
    expression also uses the partition keys, because an update may move a row to the partition.
    """
    changed = set(assigned)
    for column in target.columns:
        generated = column.generated
        if generated is not None and not generating_columns(generated).isdisjoint(assigned):
            changed.add(column.attnum)
    for leaf in target.leaves:
        keys = {attnum for rule in leaf.rules for attnum in rule.keys}
        for attnum, expr in leaf.generated:
            if not (keys | generating_columns(expr)).isdisjoint(assigned):
                changed.add(attnum)
    return changed


def tableoid_sql(target: Target, leaf: str) -> str:
    """Return SQL of the tableoid of a row.

    Args:
        leaf: SQL of the index of its leaf partition.
    """
    whens = (f"WHEN {number} THEN {item.relid}L" for number, item in enumerate(target.leaves))
    return f"CASE {leaf} {' '.join(whens)} END"


def check_changeable(catalog: Catalog, relation: Relation, command: str) -> None:
    """Check that a table's publications and its Delta table allow a change of existing rows.

    Args:
        command: `update` or `delete`.

    Raises:
        PostgresError: see `check_replica_identity` and `append_only_error`.
    """
    check_replica_identity(catalog, relation, command)
    error = append_only_error(relation, Action.UPDATE if command == "update" else Action.DELETE)
    if error is not None:
        raise error


def needs_old_rows(change: RowChange, target: Target) -> bool:
    """Return whether foreign keys refer to columns that are not part of the target's key."""
    return any(
        not set(constraint.ref_columns) <= set(target.key)
        for _other, constraint, _reference in change.plan.referenced_by
    )


def affected_rows(
    session: Session,
    change: RowChange,
    target: Target,
    rows: SparkQuery,
    place: Sequence[str],
    *,
    is_update: bool,
) -> SparkQuery:
    """Return a query for the affected rows, with the columns of `place`, c<attnum> (the old values)
    and w<attnum> (the new values).

    Args:
        rows: a query for the rows that may be affected.
        place: the names of columns that identify a row and order the rows.
    """
    with session.read() as catalog:
        context = function_context(session, catalog)
        table = FromTable(TARGET, change.plan.relation)
        outputs = tuple(_output(target_column, change) for target_column in _new(target, is_update))
        query = Query(outputs, (table, *change.from_), change.where)
        query, dialect = changing_query(context, query, rows, change.conditions)
        writer = QueryWriter(dialect)
        calls = NumberedCalls(NEXT_VALUE, TARGET)
        columns = [f"r{TARGET}.{name}" for name in place]
        columns += [f"r{TARGET}.c{column.attnum} AS c{column.attnum}" for column in target.columns]
        for output, column in zip(query.outputs, _new(target, is_update), strict=True):
            check_unconditional(output.expr)
            value = dialect.expr(calls.with_columns(output.expr), writer.write)
            columns.append(f"{value} AS w{column.attnum}")
        source = writer.source(query)
        if calls.sequences:
            chosen = reading(f"SELECT r{TARGET}.*{source}", *dialect.read)
            chosen = with_call_columns(session, context, calls, chosen, ", ".join(place))
            source = f" FROM ({chosen}) r{TARGET}"
        text = f"SELECT {', '.join(columns)}{source}"
    check_names(session, context.read_tables)
    if change.from_:  # change a row once, even if several rows join it
        once = f"row_number() OVER (PARTITION BY {', '.join(place)} ORDER BY 1) AS occurrence"
        text = f"SELECT * FROM (SELECT *, {once} FROM ({text})) WHERE occurrence = 1"
    return reading(text, *dialect.read)


def _new(target: Target, is_update: bool) -> list[TargetColumn]:
    """Return the columns whose new values the query for the affected rows must compute."""
    return [column for column in target.columns if is_update and column.generated is None]


def _output(column: TargetColumn, change: RowChange) -> Output:
    same = nodes.Var(column.attnum, column.type, column.typmod, varno=TARGET)
    return Output(column.name, change.values.get(column.attnum, same))
