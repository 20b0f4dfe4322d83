"""Rebuild the constraints and indexes of columns whose types change, from their text
(RememberAllDependentForRebuilding and ATPostAlterTypeCleanup).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from replctl.catalog.heap import update_constraint, update_index
from replctl.catalog.pg_class import Constraint, Index, Relation
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.ruleutils import get_expr, index_definition
from replctl.commands.constraint import require_check
from replctl.commands.ddl import Ddl, without_position
from replctl.commands.dependency import references_to
from replctl.commands.foreign_key import check_key_types, require_references
from replctl.commands.index import require_not_null, require_unique, uses_column
from replctl.commands.index_key import check_sortable, index_key
from replctl.commands.table_expression import check_expression, columns_used, index_predicate
from replctl.parser import ast
from replctl.parser.parse import parse_expression, parse_statement


class Retyped:
    """The constraints and indexes of columns whose types one statement changes.

    Attributes:
        rewritten: OIDs of the tables whose rows have new values.
    """

    def __init__(self, ddl: Ddl) -> None:
        self._ddl = ddl
        self.rewritten: set[int] = set()
        self._columns: dict[int, list[int]] = defaultdict(list)
        self._checks: dict[int, tuple[int, str]] = {}  # OID -> table, text
        self._indexes: dict[int, tuple[int, str]] = {}
        self._foreign_keys: dict[int, tuple[int, int]] = {}  # OID -> table, referenced table

    def remember(self, relation: Relation, attnum: int) -> None:
        """Record the objects that must be rebuilt for a column.  Call this before the column
        changes.
        """
        ddl = self._ddl
        self._columns[relation.oid].append(attnum)
        for check in relation.checks():
            assert check.check is not None
            if attnum in columns_used(check.check):
                text = get_expr(ddl.environment, relation, check.check)
                self._checks.setdefault(check.oid, (relation.oid, text))
        for index in relation.indexes:
            if uses_column(index, attnum):
                text = index_definition(ddl.environment, relation, index)
                self._indexes.setdefault(index.oid, (relation.oid, text))
        for key in relation.foreign_keys():
            if attnum in key.columns:
                self._foreign_keys[key.oid] = (relation.oid, key.ref_relid)
        for other, _key in references_to(ddl, relation):
            for oid in descendants_of(ddl.catalog, other.oid):
                for key in ddl.relation(oid).foreign_keys():
                    if key.ref_relid == relation.oid and attnum in key.ref_columns:
                        self._foreign_keys[key.oid] = (oid, relation.oid)

    def rebuild(self) -> None:
        """Rebuild the recorded objects.  Call this after all columns have changed.

        Raises:
            PostgresError: an expression or an index is no longer valid, or a row violates a
                constraint.
        """
        ddl = self._ddl
        for oid, (relid, text) in self._indexes.items():
            self._renew_index(ddl.relation(relid), oid, text)
        for relid, attnums in self._columns.items():
            if relid in self.rewritten:
                relation = ddl.relation(relid)
                for column in (relation.column_at(attnum) for attnum in attnums):
                    if column.not_null:
                        require_not_null(ddl, relation, column)
        for oid, (relid, text) in self._checks.items():
            self._renew_check(ddl.relation(relid), oid, text)
        for oid, (relid, other_oid) in self._foreign_keys.items():
            relation, other = ddl.relation(relid), ddl.relation(other_oid)
            constraint = _constraint(relation, oid)
            check_key_types(ddl, relation, constraint, other)
            tree = {relid, *descendants_of(ddl.catalog, other_oid)}
            if tree & self.rewritten:
                require_references(ddl, relation, constraint, other)

    def _renew_index(self, relation: Relation, oid: int, text: str) -> None:
        ddl = self._ddl
        index: Index = next(index for index in relation.indexes if index.oid == oid)
        if index.predicate is not None:
            statement = parse_statement(text)
            assert isinstance(statement, ast.CreateIndex)
            assert statement.where is not None
            predicate = index_predicate(ddl.environment, relation, statement.where, ddl.now)
            index = replace(index, predicate=predicate)
            update_index(ddl.catalog, index)
        if index.exprs or index.details:
            statement = parse_statement(text)
            assert isinstance(statement, ast.CreateIndex)
            key = index_key(ddl, relation, statement)
            index = replace(index, exprs=key.exprs)
            update_index(ddl.catalog, index)
        for attnum in filter(None, index.key):
            column = relation.column_at(attnum)
            check_sortable(ddl, column.user_type or column.type, index.access_method)
        if index.is_unique and relation.oid in self.rewritten:
            require_unique(ddl, relation, index)

    def _renew_check(self, relation: Relation, oid: int, text: str) -> None:
        ddl = self._ddl
        with without_position():
            expr = check_expression(ddl.environment, relation, parse_expression(text), ddl.now)
        constraint = replace(_constraint(relation, oid), check=expr)
        update_constraint(ddl.catalog, constraint)
        if relation.oid in self.rewritten:
            require_check(ddl, relation, constraint)


def _constraint(relation: Relation, oid: int) -> Constraint:
    return next(constraint for constraint in relation.constraints if constraint.oid == oid)
