"""Fill new columns of tables with rows, if the value must be computed for each row: serial and
identity columns, volatile defaults, and stored generated columns (ATRewriteTable).

replctl fills all such columns of a statement together, row by row.  It fills the tables in the
order in which they got the columns.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace

from replctl.adt.fold import simplified
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_sequence import get_sequence
from replctl.commands.ddl import Ddl
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.nextval_call import NumberedCalls
from replctl.functions.function_context import function_context
from replctl.functions.session_value import with_session_values
from replctl.functions.settings_form import computable
from replctl.lake.rewrite import ColumnRewrite, NewSequence, TableRewrite, row_number_name
from replctl.lake.table_read import table_source
from replctl.query.sequence_values import check_defaults, check_unconditional
from replctl.record import dataclass
from replctl.spark import NEXT_VALUE, column_sql, stored_sql, to_sql


@dataclass
class _FilledTable:
    columns: list[ColumnRewrite] = field(default_factory=list)
    calls: NumberedCalls = field(default_factory=lambda: NumberedCalls(NEXT_VALUE))


class FilledColumns:
    """The new columns that a statement fills row by row."""

    def __init__(self, ddl: Ddl) -> None:
        self._ddl = ddl
        self._tables: dict[int, _FilledTable] = {}

    def add(self, relation: Relation, column: Column) -> tuple[str, int] | None:
        """Fill a new column from its default.

        Args:
            relation: the table, without the new column.

        Returns:
            The column's name in storage and the table's version that has it; None if the column is
            not written yet.

        Raises:
            InsufficientPrivilege: the role may not use a sequence.
            FeatureNotSupported: the table is adopted, or Spark cannot compute the default once for
                each row.
        """
        assert relation.storage is not None
        if not relation.storage.has_own_row_ids:
            raise FeatureNotSupported(
                "adding a column whose values are computed for each row is not supported for a"
                " Delta table that belongs to others"
            )
        check_defaults(self._ddl.privileges, [column])
        table = self._tables.setdefault(relation.oid, _FilledTable())
        value = self._value(relation, column, table)
        table.columns.append(
            ColumnRewrite(column.attnum, column.name, column.type, column.typmod, value)
        )
        made = self._ddl.made_columns(relation.oid, table.columns)
        return None if made is None else (made.names[column.attnum], made.version)

    def _value(self, relation: Relation, column: Column, table: _FilledTable) -> str:
        ddl = self._ddl
        assert column.default is not None
        expr = simplified(computable(ddl.session, ddl.environment, column.default))
        check_unconditional(expr)
        used = {node.attnum for node in nodes.walk(expr) if isinstance(node, nodes.Var)}
        if not used.isdisjoint(filled.attnum for filled in table.columns):
            raise FeatureNotSupported(
                "a generated column that uses a column added by the same statement is not supported"
            )
        context = function_context(ddl.session, ddl.catalog)
        expr = with_session_values(context, table.calls.with_columns(expr))
        source = table_source(relation)

        def name(var: nodes.Var) -> str:
            if var.attnum >= NEXT_VALUE:
                return row_number_name(var.attnum - NEXT_VALUE)
            return column_sql(source.column(var.attnum))

        value = to_sql(expr, name)
        return stored_sql(value, column.type, column.typmod)

    def finish(self) -> None:
        """Request the rewrites of the tables.  After all rewrites, advance the sequences that the
        statement created, so that they do not repeat a value.

        Raises:
            FeatureNotSupported: the statement also changes types of columns of the table.
        """
        ddl = self._ddl
        taken: Counter[int] = Counter()
        for relid, table in self._tables.items():
            if relid in ddl.retyped:
                raise FeatureNotSupported(
                    "ALTER COLUMN ... TYPE is not supported with ADD COLUMN of a column whose"
                    " values are computed for each row",
                )
            own = Counter(oid for oid in table.calls.sequences if oid in ddl.made)
            calls = tuple(
                self._new_sequence(oid, taken[oid]) if oid in own else oid
                for oid in table.calls.sequences
            )
            made = ddl.rewritten(TableRewrite(relid, tuple(table.columns), True, calls))
            if made is None and own:
                return  # the next table continues with the values after this table's
            if made is not None:
                taken.update({oid: count * made.rows for oid, count in own.items()})
        if not ddl.rewrites:
            for oid, count in taken.items():
                if count:
                    ddl.session.sequences.take_first(ddl.catalog, oid, count)

    def _new_sequence(self, oid: int, taken: int) -> NewSequence:
        sequence = get_sequence(self._ddl.catalog, oid)
        assert sequence is not None
        return NewSequence(self._ddl.relation(oid).name, replace(sequence, relid=0), taken)
