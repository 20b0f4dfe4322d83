"""CREATE DOMAIN, ALTER DOMAIN (typecmds.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.heap import delete_constraint
from replctl.catalog.pg_class import Column, Relation, load_relations, relation_oids
from replctl.catalog.pg_domain import (
    Domain,
    DomainConstraint,
    domain_bases,
    get_domain,
    insert_domain_constraint,
    set_default,
    set_not_null,
    update_domain_constraint,
)
from replctl.catalog.pg_type import insert_type, type_oid, type_schema_oid
from replctl.catalog.relation_kind import WITH_DELTA_TABLE
from replctl.catalog.ruleutils import domain_default
from replctl.commands.column_definition import column_collation
from replctl.commands.ddl import Ddl, carry_out, require_rows, without_position
from replctl.commands.find_object import find_type_of_name
from replctl.commands.naming import constraint_name, creation_schema
from replctl.commands.table_expression import depends_on_session
from replctl.commands.type import check_type_owner, take_type_name
from replctl.errors import (
    CheckViolation,
    DatatypeMismatch,
    DuplicateObject,
    FeatureNotSupported,
    InternalError,
    InvalidObjectDefinition,
    NotNullViolation,
    SqlSyntaxError,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.collate import assign_collations
from replctl.expr.context import ExprContext
from replctl.expr.environment import Routine
from replctl.expr.refused_dependency import check_dependencies
from replctl.expr.scope import RelationScope
from replctl.expr.type_facts import TypeFacts
from replctl.expr.type_names import split_name, type_of
from replctl.expr.user_type import about_value, base_type, without_user_types
from replctl.functions.settings_form import in_form
from replctl.parser import ast
from replctl.session import Session
from replctl.spark import to_sql
from replctl.types.builtin import FIRST_USER_OID, collations
from replctl.types.type_kind import TypeKind

_IMPOSSIBLE = {
    "unique": "unique",
    "primary": "primary key",
    "exclusion": "exclusion",
    "foreign": "foreign key",
}
#: PostgreSQL's numbers (ConstrType) of constraints that DefineDomain() does not recognize.
_UNRECOGNIZED = {"identity": 3, "generated": 4}
_NO_SCOPE = RelationScope("", (), "")


def create_domain(session: Session, statement: ast.CreateDomain) -> str:
    """Create a domain.

    Raises:
        DuplicateObject: a type of that name already exists.
        PostgresError: the base type, the default or a constraint is wrong.
    """
    return carry_out(session, lambda ddl: _create(ddl, statement))


def _create(ddl: Ddl, statement: ast.CreateDomain) -> str:
    environment, definition = ddl.environment, statement.definition
    schema_name, name = split_name(environment, statement.names)
    place = creation_schema(environment, schema_name, name)
    take_type_name(ddl, place, name)
    assert definition.type_name is not None
    with without_position():
        base, typmod = type_of(environment, definition.type_name)
        if base.kind == TypeKind.PSEUDO:
            shown = environment.format_type(base.name)
            raise DatatypeMismatch(f'"{shown}" is not a valid base type for a domain')
        environment.privileges.check_type(base.oid, environment.format_type(base.name))
        collation = column_collation(environment, definition.collation, base)
        _check_base(ddl, base.name)
        default, not_null, rest = _declared(ddl, name, definition, base.name, typmod)
    made = insert_type(
        ddl.catalog, name, place.oid, ddl.session.role_oid, kind=TypeKind.DOMAIN,
        typbasetype=base.oid, typtypmod=typmod, typcategory=base.category, typnotnull=not_null,
        typcollation=collations().get(collation or "", 0),
        typndims=len(definition.type_name.array_bounds),
    )  # fmt: skip
    _set_default(ddl, made, default)
    for raw in rest:
        with without_position():
            _add_constraint(ddl, made, raw)
    return "CREATE DOMAIN"


def _check_base(ddl: Ddl, name: str) -> None:
    """Check that replctl can store values of a domain over this type.

    Raises:
        FeatureNotSupported: replctl cannot store them.
    """
    base = ddl.environment.type(base_type(ddl.environment, name)[0])
    element = base if base.element is None else ddl.environment.type(base.element)
    if element.kind == TypeKind.COMPOSITE:
        shown = ddl.environment.format_type(name)
        raise FeatureNotSupported(f"domains over type {shown} are not supported")


def _declared(
    ddl: Ddl, name: str, definition: ast.ColumnDef, base: str, typmod: int
) -> tuple[nodes.Expr | None, bool, list[ast.Constraint]]:
    """Return the default, a flag that forbids NULL, and the constraints of CREATE DOMAIN."""
    is_domain = ddl.environment.type(base).kind == TypeKind.DOMAIN
    default = get_domain(ddl.catalog, base).default if is_domain else None  # inherited
    has_default = False
    not_null: bool | None = None
    rest = []
    for raw in definition.constraints:
        if raw.deferrable or raw.initially_deferred:
            raise FeatureNotSupported(
                "specifying constraint deferrability not supported for domains"
            )
        match raw.kind:
            case "default":
                if has_default:
                    raise SqlSyntaxError("multiple default expressions")
                assert raw.expr is not None
                has_default = True
                default = _default(ddl, name, base, typmod, raw.expr)
            case "not_null" | "null" as kind:
                if not_null is not None and not_null != (kind == "not_null"):
                    raise SqlSyntaxError("conflicting NULL/NOT NULL constraints")
                not_null = kind == "not_null"
                if kind == "not_null":
                    rest.append(raw)
            case "check":
                if raw.no_inherit:
                    raise InvalidObjectDefinition(
                        "check constraints for domains cannot be marked NO INHERIT"
                    )
                rest.append(raw)
            case kind if kind in _UNRECOGNIZED:
                raise InternalError(f"unrecognized constraint subtype: {_UNRECOGNIZED[kind]}")
            case kind:
                raise SqlSyntaxError(f"{_IMPOSSIBLE[kind]} constraints not possible for domains")
    return default, bool(not_null), rest


def _default(ddl: Ddl, name: str, base: str, typmod: int, raw: ast.RawExpr) -> nodes.Expr | None:
    """Return the expression of DEFAULT; None for DEFAULT NULL, which means no default."""
    analyzer = Analyzer(ddl.environment, _NO_SCOPE, ExprContext.DEFAULT, now=ddl.now)
    expr = analyzer.coerce_for_assignment(
        analyzer.expr(raw), base, typmod, name, -1, "default expression"
    )
    expr = assign_collations(ddl.environment, expr)
    check_dependencies(expr)
    return None if isinstance(expr, nodes.Const) and expr.value is None else expr


def _set_default(ddl: Ddl, domain: str, default: nodes.Expr | None) -> None:
    text = None if default is None else domain_default(ddl.environment, default)
    set_default(ddl.catalog, domain, default, text)


# ---------------------------------------------------------------------------------------------
# Constraints


def _add_constraint(ddl: Ddl, domain: str, raw: ast.Constraint) -> DomainConstraint:
    """Add a constraint to a domain without checking values (domainAddCheckConstraint)."""
    own, type_ = get_domain(ddl.catalog, domain), ddl.environment.type(domain)
    place = type_schema_oid(ddl.catalog, domain)
    name = raw.name
    if name is not None and any(item.name == name for item in own.constraints):
        raise DuplicateObject(f'constraint "{name}" for domain "{type_.sql_name}" already exists')
    if name is None:
        label = "not_null" if raw.expr is None else "check"
        name = constraint_name(ddl.catalog, type_.sql_name, place, [], label)
    check = None if raw.expr is None else _check(ddl, own, raw.expr)
    made = DomainConstraint(ddl.catalog.new_oid(), name, check, not raw.skip_validation)
    insert_domain_constraint(ddl.catalog, domain, place, made)
    return made


def _check(ddl: Ddl, domain: Domain, raw: ast.RawExpr) -> nodes.Expr:
    collation = ddl.environment.type(domain.name).collation
    value = nodes.Param(nodes.VALUE, domain.base, domain.typmod, collation)
    environment = ddl.environment.within(Routine("", (("value", value),)))
    analyzer = Analyzer(environment, _NO_SCOPE, ExprContext.CHECK, now=ddl.now)
    expr = assign_collations(environment, analyzer.boolean(raw, "CHECK"))
    check_dependencies(expr)
    for node in nodes.walk(expr):
        if getattr(node, "function_oid", 0) >= FIRST_USER_OID:
            raise FeatureNotSupported("user-defined functions in domains are not supported")
        if getattr(node, "operator_oid", 0) >= FIRST_USER_OID:
            raise FeatureNotSupported("user-defined operators in domains are not supported")
    if depends_on_session(environment, expr):  # engines check values outside the session
        raise FeatureNotSupported(
            "functions that are not immutable are not supported in CHECK of domains"
        )
    return expr


def alter_domain(session: Session, statement: ast.AlterDomain) -> str:
    """Change a domain's default or constraints.

    Raises:
        UndefinedObject: there is no such domain or constraint.
        WrongObjectType: the type is not a domain.
        CheckViolation, NotNullViolation: a column has a value that a new constraint forbids.
    """
    return carry_out(session, lambda ddl: _alter(ddl, statement))


def _alter(ddl: Ddl, statement: ast.AlterDomain) -> str:
    domain = owned_domain(ddl, statement.names)
    match statement.action:
        case "set default" | "drop default":
            default = None
            if statement.expr is not None:
                name = ddl.environment.type(domain.name).sql_name
                with without_position():
                    default = _default(ddl, name, domain.base, domain.typmod, statement.expr)
            _set_default(ddl, domain.name, default)
        case "set not null":
            _forbid_null(ddl, domain, ast.Constraint("not_null"))
        case "drop not null":
            _drop(ddl, domain, [item for item in domain.constraints if item.check is None])
        case "add constraint":
            assert statement.constraint is not None
            _add(ddl, domain, statement.constraint)
        case "drop constraint":
            _drop_named(ddl, domain, statement)
        case "validate constraint":
            _validate(ddl, domain, statement.name)
    return "ALTER DOMAIN"


def owned_domain(ddl: Ddl, names: tuple[str, ...]) -> Domain:
    """Return a domain that the current role may change (checkDomainOwner).

    Raises:
        UndefinedObject, WrongObjectType: there is no such domain.
        InsufficientPrivilege: another role owns the domain.
    """
    type_ = find_type_of_name(ddl, names)
    if type_.is_builtin or type_.kind != TypeKind.DOMAIN:
        raise WrongObjectType(f"{ddl.environment.format_type(type_.name)} is not a domain")
    check_type_owner(ddl, type_)
    return get_domain(ddl.catalog, type_.name)


def _forbid_null(ddl: Ddl, domain: Domain, raw: ast.Constraint) -> None:
    if domain.not_null:
        return
    for relation, column in columns_of_domain(ddl, domain.name):
        _require(
            ddl,
            relation,
            f"c{column.attnum} IS NULL",
            NotNullViolation(
                f'column "{column.name}" of table "{relation.name}" contains null values',
                table=relation.relation_name,
                column=column.name,
            ),
        )
    _add_constraint(ddl, domain.name, raw)
    set_not_null(ddl.catalog, domain.name, True)


def _add(ddl: Ddl, domain: Domain, raw: ast.Constraint) -> None:
    if raw.kind == "not_null":
        _forbid_null(ddl, domain, raw)
        return
    with without_position():
        made = _add_constraint(ddl, domain.name, raw)
    if made.is_validated:
        _require_check(ddl, domain, made)


def _require_check(ddl: Ddl, domain: Domain, constraint: DomainConstraint) -> None:
    """Require that the values of all columns of a domain satisfy a CHECK
    (validateDomainCheckConstraint).
    """
    assert constraint.check is not None
    for relation, column in columns_of_domain(ddl, domain.name):
        value = nodes.Var(column.attnum, column.type, column.typmod, column.collation)
        plain = without_user_types(ddl.environment, constraint.check)
        condition = in_form(ddl.session, about_value(plain, value))
        violated = to_sql(condition, lambda var: f"c{var.attnum}").text
        _require(
            ddl,
            relation,
            f"NOT {violated}",
            CheckViolation(
                f'column "{column.name}" of table "{relation.name}" contains values that violate'
                " the new constraint",
                table=relation.relation_name,
                column=column.name,
            ),
        )


def _require(
    ddl: Ddl, relation: Relation, violated: str, error: CheckViolation | NotNullViolation
) -> None:
    require_rows(ddl, relation, violated, lambda: error)


def columns_of_domain(ddl: Ddl, name: str) -> list[tuple[Relation, Column]]:
    """Return the columns whose type is a domain, or another domain over it, in PostgreSQL's order
    (get_rels_with_domain).

    Raises:
        FeatureNotSupported: a column has arrays or rows with values of one of these domains.
    """
    tables = load_relations(ddl.catalog, relation_oids(ddl.catalog, WITH_DELTA_TABLE))
    found: dict[int, set[int]] = {}
    _collect_columns(ddl, name, tables, found)
    return [
        (tables[oid], tables[oid].column_at(attnum))
        for oid, attnums in found.items()
        for attnum in sorted(attnums)
    ]


def _collect_columns(
    ddl: Ddl, name: str, tables: dict[int, Relation], found: dict[int, set[int]]
) -> None:
    over = [d for d in domain_bases(ddl.catalog) if get_domain(ddl.catalog, d).base == name]
    domains = {type_oid(domain): domain for domain in over}
    for oid in sorted([*domains, *tables]):
        if oid in domains:
            _collect_columns(ddl, domains[oid], tables, found)
            continue
        _check_no_part(ddl, name, tables[oid])
        attnums = {column.attnum for column in tables[oid].columns if column.domain == name}
        if attnums:
            found.setdefault(oid, set()).update(attnums)


def _check_no_part(ddl: Ddl, name: str, relation: Relation) -> None:
    """Check that no column has a domain's values in arrays or rows."""
    types = TypeFacts(ddl.environment)
    for column in relation.columns:
        if name in types.contained(types.base(column.declared_type)):
            raise FeatureNotSupported(
                f'cannot alter type "{ddl.environment.type(name).sql_name}" because column'
                f' "{relation.name}.{column.name}" uses it'
            )


def _drop_named(ddl: Ddl, domain: Domain, statement: ast.AlterDomain) -> None:
    found = [item for item in domain.constraints if item.name == statement.name]
    if not found:
        name = ddl.environment.type(domain.name).sql_name
        message = f'constraint "{statement.name}" of domain "{name}" does not exist'
        if not statement.missing_ok:
            raise UndefinedObject(message)
        ddl.notice(f"{message}, skipping")
    _drop(ddl, domain, found)


def _drop(ddl: Ddl, domain: Domain, constraints: Sequence[DomainConstraint]) -> None:
    for constraint in constraints:
        delete_constraint(ddl.catalog, constraint.oid)
        if constraint.check is None:
            set_not_null(ddl.catalog, domain.name, False)


def _validate(ddl: Ddl, domain: Domain, name: str) -> None:
    found = next((item for item in domain.constraints if item.name == name), None)
    shown = f'constraint "{name}" of domain "{ddl.environment.type(domain.name).sql_name}"'
    if found is None:
        raise UndefinedObject(f"{shown} does not exist")
    if found.check is None:
        raise WrongObjectType(f"{shown} is not a check constraint")
    if not found.is_validated:
        _require_check(ddl, domain, found)
        update_domain_constraint(ddl.catalog, replace(found, is_validated=True))


def named_constraint(ddl: Ddl, domain: str, name: str) -> DomainConstraint:
    """Return a constraint of a domain (get_domain_constraint_oid).

    Raises:
        UndefinedObject: the domain has no such constraint.
    """
    for constraint in get_domain(ddl.catalog, domain).constraints:
        if constraint.name == name:
            return constraint
    shown = ddl.environment.format_type(domain)
    raise UndefinedObject(f'constraint "{name}" for domain {shown} does not exist')


def rename_domain_constraint(ddl: Ddl, statement: ast.Rename) -> None:
    """Rename a constraint of a domain.

    Raises:
        UndefinedObject, WrongObjectType: there is no such domain or constraint.
        DuplicateObject: the domain has a constraint of the new name.
    """
    domain, new = owned_domain(ddl, statement.name), statement.new_name
    found = named_constraint(ddl, domain.name, statement.sub_name or "")
    if any(item.name == new for item in domain.constraints):
        shown = ddl.environment.format_type(domain.name)
        raise DuplicateObject(f'constraint "{new}" for domain {shown} already exists')
    update_domain_constraint(ddl.catalog, replace(found, name=new))
