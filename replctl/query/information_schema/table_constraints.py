"""information_schema: constraints, with their columns and tables."""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Constraint, Relation, get_relation
from replctl.catalog.relation_kind import (
    INDEX_CONSTRAINTS,
    TABLE_KINDS,
    ConstraintKind,
    ForeignKeyMatch,
)
from replctl.catalog.ruleutils import domain_check, get_expr
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema.columns import domain_place
from replctl.query.information_schema.domains import domains
from replctl.query.information_schema.visibility import (
    COLUMN_RIGHTS,
    TABLE_RIGHTS,
    Row,
    has_any,
    place,
    relations,
    visible,
    yes_or_no,
)

_KINDS = {
    ConstraintKind.CHECK: "CHECK",
    ConstraintKind.FOREIGN_KEY: "FOREIGN KEY",
    ConstraintKind.PRIMARY_KEY: "PRIMARY KEY",
    ConstraintKind.UNIQUE: "UNIQUE",
}
#: Privileges that make constraints visible: SELECT alone does not.
_RIGHTS = tuple(right for right in TABLE_RIGHTS if right != Privilege.SELECT)
_COLUMN_RIGHTS = tuple(right for right in COLUMN_RIGHTS if right != Privilege.SELECT)


def _name(context: FunctionContext, schema: str, name: str, prefix: str = "constraint") -> Row:
    return {
        f"{prefix}_catalog": context.environment.database,
        f"{prefix}_schema": schema,
        f"{prefix}_name": name,
    }


def _not_null_names(relation: Relation) -> Iterator[tuple[str, str]]:
    """Yield a name for each NOT NULL constraint, and its column. information_schema counts these
    constraints as CHECK constraints."""
    for column in relation.columns:
        if column.not_null:
            yield f"{relation.schema_oid}_{relation.oid}_{column.attnum}_not_null", column.name


def _table_constraints(context: FunctionContext) -> Iterator[Row]:
    for relation in visible(context, TABLE_KINDS, _RIGHTS, _COLUMN_RIGHTS):
        common = {"is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES"}
        for constraint in relation.constraints:
            row = {
                **_name(context, relation.schema, constraint.name),
                **place(context, relation),
                "constraint_type": _KINDS[constraint.kind],
                **common,
                "is_deferrable": yes_or_no(constraint.is_deferrable),
                "enforced": yes_or_no(constraint.is_enforced),
            }
            if constraint.kind == ConstraintKind.UNIQUE:
                index = next(i for i in relation.indexes if i.oid == constraint.index_oid)
                row["nulls_distinct"] = yes_or_no(not index.nulls_not_distinct)
            yield row
        for name, _column in _not_null_names(relation):
            yield {
                **_name(context, relation.schema, name),
                **place(context, relation),
                "constraint_type": "CHECK",
                **common,
            }


def _check_constraints(context: FunctionContext) -> Iterator[Row]:
    yield from _domain_checks(context)
    privileges = context.environment.privileges
    for relation in relations(context, TABLE_KINDS):
        if not privileges.acts_for(relation.owner):
            continue
        for constraint in relation.checks():
            assert constraint.check is not None
            clause = get_expr(context.environment, relation, constraint.check)
            yield {
                **_name(context, relation.schema, constraint.name),
                "check_clause": clause,
            }
        for name, column in _not_null_names(relation):
            yield {
                **_name(context, relation.schema, name),
                "check_clause": f"{column} IS NOT NULL",
            }


def _domain_checks(context: FunctionContext) -> Iterator[Row]:
    for domain in domains(context, owned=True):
        place_ = domain_place(context, domain.name)["domain_schema"]
        for constraint in domain.constraints:
            clause = "VALUE IS NOT NULL"
            if constraint.check is not None:
                clause = domain_check(context.environment, constraint.check)
            yield {**_name(context, place_, constraint.name), "check_clause": clause}


def _referential_constraints(context: FunctionContext) -> Iterator[Row]:
    for relation in visible(context, TABLE_KINDS, _RIGHTS, _COLUMN_RIGHTS):
        for constraint in relation.foreign_keys():
            referenced = get_relation(context.catalog, constraint.ref_relid)
            assert referenced is not None
            unique = _referenced_key(referenced, constraint)
            found = {} if unique is None else _name(
                context, referenced.schema, unique.name, "unique_constraint"
            )  # fmt: skip
            yield {
                **_name(context, relation.schema, constraint.name),
                **found,
                "match_option": "FULL" if constraint.match == ForeignKeyMatch.FULL else "NONE",
                "update_rule": constraint.on_update.clause,
                "delete_rule": constraint.on_delete.clause,
            }


def _referenced_key(referenced: Relation, constraint: Constraint) -> Constraint | None:
    """Return the constraint of the key that a foreign key refers to: it has the same columns, in
    any order. None if the key is an index without a constraint."""
    columns = sorted(constraint.ref_columns)
    for index in sorted(referenced.indexes, key=lambda item: not item.is_primary):
        if index.is_plain_unique and sorted(index.key) == columns:
            return next((c for c in referenced.constraints if c.index_oid == index.oid), None)
    return None


def _key_columns(relation: Relation, constraint: Constraint) -> tuple[int, ...]:
    if constraint.kind in INDEX_CONSTRAINTS:
        return next(i for i in relation.indexes if i.oid == constraint.index_oid).key
    return constraint.columns if constraint.kind == ConstraintKind.FOREIGN_KEY else ()


def _key_column_usage(context: FunctionContext) -> Iterator[Row]:
    privileges = context.environment.privileges
    for relation in relations(context, TABLE_KINDS):
        for constraint in relation.constraints:
            for place_, attnum in enumerate(_key_columns(relation, constraint), start=1):
                if not has_any(privileges, relation, (), COLUMN_RIGHTS, [attnum]):
                    continue
                yield {
                    **_name(context, relation.schema, constraint.name),
                    **place(context, relation),
                    "column_name": relation.column_at(attnum).name,
                    "ordinal_position": place_,
                    "position_in_unique_constraint": _position(context, constraint, place_),
                }


def _position(context: FunctionContext, constraint: Constraint, place_: int) -> int | None:
    if constraint.kind != ConstraintKind.FOREIGN_KEY:
        return None
    referenced = get_relation(context.catalog, constraint.ref_relid)
    assert referenced is not None
    unique = _referenced_key(referenced, constraint)
    if unique is None:
        return None
    return _key_columns(referenced, unique).index(constraint.ref_columns[place_ - 1]) + 1


def _used(
    context: FunctionContext, privileges: Privileges
) -> Iterator[tuple[Relation, Constraint, Relation, tuple[int, ...]]]:
    """Yield each constraint with its relation, and with the table and columns that it uses. The
    current role owns that table; for a foreign key, it is the referenced table."""
    for relation in relations(context, TABLE_KINDS):
        for constraint in relation.constraints:
            table, columns = relation, _key_columns(relation, constraint)
            if constraint.kind == ConstraintKind.FOREIGN_KEY:
                referenced = get_relation(context.catalog, constraint.ref_relid)
                assert referenced is not None
                table, columns = referenced, constraint.ref_columns
            elif constraint.check is not None:
                found = {n.attnum for n in nodes.walk(constraint.check) if isinstance(n, nodes.Var)}
                columns = tuple(sorted(attnum for attnum in found if attnum > 0))
            if privileges.acts_for(table.owner):
                yield relation, constraint, table, columns


def _constraint_column_usage(context: FunctionContext) -> Iterator[Row]:
    for relation, constraint, table, columns in _used(context, context.environment.privileges):
        for attnum in columns:
            yield {
                **place(context, table),
                "column_name": table.column_at(attnum).name,
                **_name(context, relation.schema, constraint.name),
            }


def _constraint_table_usage(context: FunctionContext) -> Iterator[Row]:
    for relation, constraint, table, _columns in _used(context, context.environment.privileges):
        if constraint.kind != ConstraintKind.CHECK:
            yield {
                **place(context, table),
                **_name(context, relation.schema, constraint.name),
            }


VIEWS = {
    "table_constraints": _table_constraints,
    "check_constraints": _check_constraints,
    "referential_constraints": _referential_constraints,
    "key_column_usage": _key_column_usage,
    "constraint_column_usage": _constraint_column_usage,
    "constraint_table_usage": _constraint_table_usage,
}
