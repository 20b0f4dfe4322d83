"""CHECK, PRIMARY KEY and UNIQUE: read the constraints of a statement, and add them to a table.

Sources: transformIndexConstraints() in parse_utilcmd.c, AddRelationNewConstraints() in heap.c.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from replctl.catalog.heap import insert_constraint, update_constraint
from replctl.catalog.pg_class import Constraint, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.relation_kind import ConstraintKind
from replctl.commands.ddl import Ddl, require_rows
from replctl.commands.index import IndexDraft
from replctl.commands.naming import check_tablespace, constraint_name
from replctl.commands.table_expression import check_expression
from replctl.errors import (
    CheckViolation,
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidObjectDefinition,
    InvalidTableDefinition,
    UndefinedColumn,
)
from replctl.expr import nodes
from replctl.functions.function_context import function_context
from replctl.functions.session_value import with_session_values
from replctl.functions.settings_form import computable
from replctl.parser import ast
from replctl.record import dataclass
from replctl.spark import to_sql
from replctl.types.builtin import system_columns


@dataclass(frozen=True, slots=True)
class ConstraintDrafts:
    """The constraints of a statement, sorted by kind."""

    checks: tuple[ast.Constraint, ...]
    indexes: tuple[IndexDraft, ...]
    foreign_keys: tuple[ast.Constraint, ...]


def sorted_constraints(
    table: str,
    constraints: Sequence[ast.Constraint],
    column_names: Collection[str],
    *,
    is_adopted: bool = False,
) -> ConstraintDrafts:
    """Sort constraints by kind.  Combine equal indexes, and put the primary key first.

    Args:
        column_names: the columns that keys may name.
        is_adopted: the table is an adopted Delta table.

    Raises:
        InvalidTableDefinition: there are two primary keys.
        UndefinedColumn, DuplicateColumn: a key names a missing column, or names a column twice.
        FeatureNotSupported: a kind of constraint is not supported.
    """
    checks, foreign_keys = [], []
    primary: list[IndexDraft] = []
    unique: list[IndexDraft] = []
    for constraint in constraints:
        _refuse(constraint)
        if constraint.not_enforced and not is_adopted:
            raise FeatureNotSupported(
                "NOT ENFORCED is only supported where a table is adopted",
                hint="Use CREATE TABLE ... (PRIMARY KEY (...) NOT ENFORCED) USING delta LOCATION.",
                position=constraint.pos,
            )
        match constraint.kind:
            case "check":
                checks.append(constraint)
            case "foreign":
                foreign_keys.append(constraint)
            case "primary":
                if primary:
                    raise InvalidTableDefinition(
                        f'multiple primary keys for table "{table}" are not allowed',
                        position=constraint.pos,
                    )
                primary.append(_index_draft(constraint, column_names, ConstraintKind.PRIMARY_KEY))
            case "unique":
                unique.append(_index_draft(constraint, column_names, ConstraintKind.UNIQUE))
            case _:
                raise AssertionError(f"{constraint.kind} is no constraint of a table")
    drafts: list[IndexDraft] = []
    for draft in primary + unique:
        alike = next((i for i, other in enumerate(drafts) if _is_alike(other, draft)), None)
        if alike is None:
            drafts.append(draft)
        elif drafts[alike].name is None:
            drafts[alike] = replace(drafts[alike], name=draft.name)
    return ConstraintDrafts(tuple(checks), tuple(drafts), tuple(foreign_keys))


def _refuse(constraint: ast.Constraint) -> None:
    if constraint.kind == "exclusion":
        raise FeatureNotSupported(
            "exclusion constraints are not supported", position=constraint.pos
        )
    if constraint.initially_deferred:
        raise FeatureNotSupported(
            "INITIALLY DEFERRED constraints are not supported", position=constraint.pos
        )
    if constraint.options:
        raise FeatureNotSupported(
            "storage parameters of constraints are not supported", position=constraint.pos
        )


def check_key_distinct(constraint: ast.Constraint, names: Sequence[str]) -> None:
    """Check that no column appears twice in a key (transformIndexConstraint).

    Raises:
        DuplicateColumn: a column appears twice.
    """
    what = "primary key" if constraint.kind == "primary" else "unique"
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DuplicateColumn(
                f'column "{name}" appears twice in {what} constraint', position=constraint.pos
            )


def _index_draft(
    constraint: ast.Constraint, column_names: Collection[str], kind: ConstraintKind
) -> IndexDraft:
    check_tablespace(constraint.tablespace)
    for i, name in enumerate(constraint.columns):
        if name not in column_names and name not in system_columns():
            raise UndefinedColumn(
                f'column "{name}" named in key does not exist', position=constraint.pos
            )
        check_key_distinct(constraint, constraint.columns[: i + 1])
    for name in constraint.including:
        if name not in column_names and name not in system_columns():
            raise UndefinedColumn(
                f'column "{name}" named in key does not exist', position=constraint.pos
            )
    return IndexDraft(
        constraint.name,
        constraint.columns,
        kind,
        is_unique=True,
        including=constraint.including,
        nulls_not_distinct=constraint.nulls_not_distinct,
        is_enforced=not constraint.not_enforced,
        is_deferrable=constraint.deferrable,
    )


def _is_alike(one: IndexDraft, other: IndexDraft) -> bool:
    return replace(one, name=None, kind=None) == replace(other, name=None, kind=None)


# ---------------------------------------------------------------------------------------------
# CHECK


def add_checks(
    ddl: Ddl,
    relation: Relation,
    constraints: Sequence[ast.Constraint],
    *,
    merges: bool,
    is_local: bool = True,
) -> list[Constraint]:
    """Add CHECK constraints to one table.

    Args:
        merges: merge a CHECK with an existing one of the same name and condition.

    Returns:
        The new and the merged constraints.

    Raises:
        DuplicateObject: a name is taken.
        PostgresError: a condition is wrong.
    """
    names: set[str] = set()
    added = []
    for raw in constraints:
        assert raw.expr is not None
        expr = check_expression(ddl.environment, relation, raw.expr, ddl.now)
        name = raw.name
        if name is None:
            attnums = _key_of_check(expr)
            only = [_column_name(relation, attnums[0])] if len(attnums) == 1 and attnums[0] else []
            name = constraint_name(
                ddl.catalog, relation.name, relation.schema_oid, only, "check", names
            )
        elif name in names:
            raise DuplicateObject(f'check constraint "{name}" already exists')
        names.add(name)
        added.append(
            add_check(
                ddl,
                relation,
                Constraint(
                    0,
                    name,
                    ConstraintKind.CHECK,
                    check=expr,
                    is_local=is_local,
                    no_inherit=raw.no_inherit,
                ),
                merges=merges,
            )
        )
    return added


def add_check(ddl: Ddl, relation: Relation, check: Constraint, *, merges: bool) -> Constraint:
    """Add a CHECK to one table, or merge it with the existing one of that name
    (MergeWithExistingConstraint).

    Args:
        check: the constraint.  Its OID is ignored.  `is_local` is true if the table itself declares
            it, `inherited_count` is the number of parents that have it.

    Raises:
        DuplicateObject: another constraint has the name.
        InvalidObjectDefinition: one of the two constraints is NO INHERIT.
    """
    assert check.check is not None
    if check.no_inherit and relation.is_partitioned:
        raise InvalidTableDefinition(
            f'cannot add NO INHERIT constraint to partitioned table "{relation.name}"'
        )
    existing = next((c for c in relation.constraints if c.name == check.name), None)
    if existing is not None:
        if not merges or existing.check != check.check:
            raise DuplicateObject(
                f'constraint "{check.name}" for relation "{relation.name}" already exists'
            )
        for conflicting, what in ((existing, "non-inherited"), (check, "inherited")):
            if conflicting.no_inherit:
                raise InvalidObjectDefinition(
                    f'constraint "{check.name}" conflicts with {what} constraint on relation'
                    f' "{relation.name}"'
                )
        ddl.notice(f'merging constraint "{check.name}" with inherited definition')
        if check.is_local:
            merged = replace(existing, is_local=True)
        elif relation.is_partition:
            merged = replace(existing, is_local=False, inherited_count=1)
        else:
            merged = replace(existing, inherited_count=existing.inherited_count + 1)
        update_constraint(ddl.catalog, merged)
        return merged
    made = replace(check, oid=ddl.catalog.new_oid(), columns=_key_of_check(check.check))
    insert_constraint(ddl.catalog, relation, made)
    require_check(ddl, relation, made)
    return made


def _key_of_check(expr: nodes.Expr) -> tuple[int, ...]:
    """Return the attnums of the columns in the condition of a CHECK in the order of their first
    use.  System columns have negative numbers, and 0 stands for the whole row.
    """
    found = (node.attnum for node in nodes.walk(expr) if isinstance(node, nodes.Var))
    return tuple(dict.fromkeys(found))


def _column_name(relation: Relation, attnum: int) -> str:
    if attnum > 0:
        return relation.column_at(attnum).name
    return next(name for name, (number, _type) in system_columns().items() if number == attnum)


def require_check(ddl: Ddl, relation: Relation, constraint: Constraint) -> None:
    """Require that all rows of a table satisfy a CHECK."""
    assert constraint.check is not None
    violated = ""
    if ddl.has_rows(relation):
        check = computable(ddl.session, ddl.environment, constraint.check)
        check = with_session_values(function_context(ddl.session, ddl.catalog), check)
        violated = f"NOT {to_sql(check, lambda v: f'c{v.attnum}').text}"
    require_rows(
        ddl,
        relation,
        violated,
        lambda: CheckViolation(
            f'check constraint "{constraint.name}" of relation "{relation.name}" is violated by'
            " some"
            " row",
            constraint=constraint.name,
            table=relation.relation_name,
        ),
    )


def add_check_below(ddl: Ddl, relation: Relation, check: Constraint) -> None:
    """Add a new CHECK of a table to its children.  If a child has the CHECK, merge the two."""
    if check.no_inherit:
        return
    for oid in children_of(ddl.catalog, relation.oid):
        child = ddl.own_child(oid)
        mine = renumbered_check(check, relation, child)
        had = any(constraint.name == check.name for constraint in child.constraints)
        made = add_check(ddl, child, replace(mine, is_local=False, inherited_count=1), merges=True)
        if not had:
            add_check_below(ddl, child, made)


def renumbered_check(constraint: Constraint, source: Relation, target: Relation) -> Constraint:
    """Return a CHECK of one table for another table that has columns of the same names."""
    assert constraint.check is not None
    attnums = {}
    for column in source.columns:
        found = target.column(column.name)
        if found is not None:
            attnums[column.attnum] = found.attnum
    return replace(constraint, check=nodes.renumber(constraint.check, attnums))
