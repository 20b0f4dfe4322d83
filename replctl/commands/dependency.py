"""The dependencies of objects, and dropping with or without dependents (dependency.c).

This module handles only dependents that PostgreSQL reports.  Dropping a table also drops
its indexes, row type and publication memberships, without a report.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from replctl.catalog import schema
from replctl.catalog.composite_type import composite_of_type
from replctl.catalog.foreign_key import foreign_keys_to
from replctl.catalog.heap import (
    delete_constraint,
    delete_index,
    delete_relation,
    remove_column,
    update_column,
)
from replctl.catalog.pg_class import (
    Constraint,
    Relation,
    get_relation,
    index_table_oid,
    load_relations,
    relation_oids,
)
from replctl.catalog.pg_collation import delete_collation, list_collations
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.pg_namespace import delete_schema, schema_names
from replctl.catalog.pg_policy import delete_policies, list_policies
from replctl.catalog.pg_proc import delete_function, delete_operator, list_functions, list_operators
from replctl.catalog.pg_publication import (
    PublishedTable,
    delete_published_table,
    publications_by_oid,
    published_tables,
)
from replctl.catalog.pg_sequence import delete_sequence, owned_sequences
from replctl.catalog.pg_subscription import (
    RelState,
    delete_subscription_relation,
    get_subscription,
    subscription_relations,
    subscriptions_of_relation,
)
from replctl.catalog.pg_type import delete_type, type_name, type_oid
from replctl.catalog.relation_kind import INDEX_CONSTRAINTS, READABLE, ConstraintKind, RelKind
from replctl.catalog.transaction import Catalog
from replctl.commands.ddl import Ddl
from replctl.commands.file_layout import check_can_be_dropped
from replctl.commands.function import function_signature, operator_signature
from replctl.commands.index import constraint_of, uses_column
from replctl.commands.named_dependency import users_naming, users_with
from replctl.commands.object_address import Object, relation_object
from replctl.commands.table_expression import columns_used
from replctl.commands.type_dependency import check_attributes_unused, users_of_types
from replctl.commands.view_dependency import (
    policies_of_column,
    policies_of_relation,
    views_of_column,
    views_of_relation,
)
from replctl.errors import DependentObjectsStillExist, ObjectNotInPrerequisiteState
from replctl.expr import nodes
from replctl.expr.environment import user_collation
from replctl.expr.nextval_call import sequences_of
from replctl.expr.type_facts import TypeFacts
from replctl.record import dataclass
from replctl.types.quote import quote_qualified_identifier
from replctl.types.type_kind import TypeKind

_MAX_REPORTED = 100  # MAX_REPORTED_DEPS


@dataclass(frozen=True, slots=True)
class Dependent:
    """An object and the object that it depends on.  If `is_silent`, dropping the other object drops
    it even without CASCADE.
    """

    object: Object
    on: Object
    is_silent: bool = False


def drop_objects(
    ddl: Ddl, objects: Sequence[Object], behavior: Literal["restrict", "cascade"]
) -> None:
    """Drop objects, and with CASCADE all their dependents (performMultipleDeletions).

    Raises:
        DependentObjectsStillExist: there are dependents, and CASCADE was not given (2BP01).
        InvalidTableDefinition: the files of a table are partitioned or clustered by a column.
    """
    found: dict[Object, Dependent] = {}
    order: dict[Object, None] = {}
    for target in objects:
        if target not in order:
            _collect(ddl, target, set(objects), found, order)
            order[target] = None
    tables = {gone.oid for gone in order if gone.kind in ("table", "materialized view")}
    types = (type_name(gone.oid) for gone in order if gone.kind == "type")
    composites = (composite_of_type(ddl.catalog, name) for name in types)
    tables |= {composite.oid for composite in composites if composite is not None}
    in_order = [found[gone] for gone in reversed(order) if gone in found]
    loud = [
        dependent
        for dependent in in_order
        if not (dependent.is_silent or _is_part(ddl, dependent.object, tables))
    ]
    if loud and behavior == "restrict":
        if len(objects) == 1:
            head = f"cannot drop {describe(ddl, objects[0])} because other objects depend on it"
        else:
            head = "cannot drop desired object(s) because other objects depend on them"
        lines = [
            f"{describe(ddl, dependent.object)} depends on {describe(ddl, dependent.on)}"
            for dependent in loud
        ]
        raise DependentObjectsStillExist(
            head,
            detail=_listed(lines),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
    if len(loud) == 1:
        ddl.notice(f"drop cascades to {describe(ddl, loud[0].object)}")
    elif loud:
        lines = [f"drop cascades to {describe(ddl, dependent.object)}" for dependent in loud]
        ddl.notice(f"drop cascades to {len(loud)} other objects", detail=_listed(lines))
    _check_attributes(ddl, [gone for gone in order if gone not in objects], order)
    for gone in order:
        if gone.kind == "column" and gone.oid not in tables:
            check_can_be_dropped(ddl.relation(gone.oid), gone.number)
        _delete(ddl, gone)


def _check_attributes(ddl: Ddl, dependents: Collection[Object], order: Collection[Object]) -> None:
    """Check that no table has values of a composite type that loses an attribute because the
    attribute's type is dropped.  Only DROP ATTRIBUTE converts such values.
    """
    for gone in dependents:
        if gone.kind == "column":
            relation = ddl.relation(gone.oid)
            if relation.kind == RelKind.COMPOSITE_TYPE:
                check_attributes_unused(ddl, relation, order)


def _collect(
    ddl: Ddl,
    target: Object,
    objects: set[Object],
    found: dict[Object, Dependent],
    order: dict[Object, None],
) -> None:
    """Add the dependents of an object to `order`, the order of deletion: newer objects first, and
    dependents before the object on which they depend (findDependentObjects).  `found` gets the
    dependents that are not among `objects`, which the statement names.
    """
    dependents = sorted(_dependents(ddl, target), key=_age, reverse=True)
    for dependent in dependents:
        if dependent.object in objects:
            if dependent.object not in order:
                _collect(ddl, dependent.object, objects, found, order)
                order[dependent.object] = None
            continue
        known = found.get(dependent.object)
        if known is None:
            found[dependent.object] = dependent
            _collect(ddl, dependent.object, objects, found, order)
            order[dependent.object] = None
        elif dependent.is_silent and not known.is_silent:
            found[dependent.object] = dependent


def _age(dependent: Dependent) -> tuple[int, int]:
    """Return a sort key by the age of an object: its OID.  A default has the OID of its table here,
    but sorts after it, because it has its own, newer OID in PostgreSQL.
    """
    gone = dependent.object
    return gone.oid, gone.number if gone.kind == "default" else 0


def _is_part(ddl: Ddl, gone: Object, tables: Collection[int]) -> bool:
    """Return whether an object belongs to one of the tables, and is dropped with that table."""
    match gone.kind:
        case "column" | "default":
            return gone.oid in tables
        case "constraint":
            return _constraint(ddl, gone.oid)[0].oid in tables
        case "index":
            return indexed_relation(ddl, gone.oid).oid in tables
        case "policy":
            return next(p.relid for p in list_policies(ddl.catalog) if p.oid == gone.oid) in tables
        case _:
            return False


def _listed(lines: Sequence[str]) -> str:
    if len(lines) <= _MAX_REPORTED:
        return "\n".join(lines)
    rest = len(lines) - _MAX_REPORTED
    noun = "object" if rest == 1 else "objects"
    return "\n".join([*lines[:_MAX_REPORTED], f"and {rest} other {noun} (see server log for list)"])


# ---------------------------------------------------------------------------------------------
# Dependents of an object


def _dependents(ddl: Ddl, target: Object) -> Iterator[Dependent]:
    yield from _namers(ddl, target)
    match target.kind:
        case "schema":
            for made in _in_schema(ddl, target.oid):
                yield Dependent(made, target)
        case "table":
            relation = get_relation(ddl.catalog, target.oid)
            assert relation is not None
            for oid in children_of(ddl.catalog, target.oid):
                yield Dependent(Object("table", oid), target, ddl.relation(oid).is_partition)
            for other, constraint in references_to_rows(ddl, relation):
                if other.oid != relation.oid:
                    yield Dependent(Object("constraint", constraint.oid), target)
            for constraint in relation.foreign_keys():  # foreign keys between dropped tables
                yield Dependent(Object("constraint", constraint.oid), target, is_silent=True)
            yield from _named_indexes(ddl, relation, target)
            yield from _row_type(relation, target)
            yield from _owned(ddl, target)
            yield from _views(ddl, target, views_of_relation)
            yield from _policies(ddl, target, policies_of_relation(ddl.catalog, target.oid))
        case "view" | "materialized view":
            yield from _named_indexes(ddl, ddl.relation(target.oid), target)
            yield from _row_type(ddl.relation(target.oid), target)
            yield from _views(ddl, target, views_of_relation)
            yield from _policies(ddl, target, policies_of_relation(ddl.catalog, target.oid))
        case "column":
            yield from _users_of_column(ddl, ddl.relation(target.oid), target)
            yield from _owned(ddl, target)
            for view in views_of_column(ddl.catalog, target.oid, target.number):
                yield Dependent(relation_object(ddl.relation(view)), target)
            policies = policies_of_column(ddl.catalog, target.oid, target.number)
            yield from _policies(ddl, target, policies)
            if ddl.relation(target.oid).kind == RelKind.COMPOSITE_TYPE:
                for user in users_with(ddl, _selects_attribute(ddl, target)):
                    yield Dependent(user, target)
        case "sequence":
            yield from _views(ddl, target, views_of_relation)
            yield from _policies(ddl, target, policies_of_relation(ddl.catalog, target.oid))
        case "constraint":
            relation, constraint = _constraint(ddl, target.oid)
            if constraint.kind in INDEX_CONSTRAINTS:
                index = Object("index", constraint.index_oid)
                yield from _namers(ddl, index)
                for _other, reference in references_to(ddl, relation):
                    if reference.index_oid == constraint.index_oid:
                        yield Dependent(Object("constraint", reference.oid), index)
            for child_oid in children_of(ddl.catalog, relation.oid):
                for child in ddl.relation(child_oid).constraints:
                    if child.parent_oid == constraint.oid:
                        yield Dependent(Object("constraint", child.oid), target, is_silent=True)
        case "index":
            relation = indexed_relation(ddl, target.oid)
            for _other, reference in references_to(ddl, relation):
                if reference.index_oid == target.oid:
                    yield Dependent(Object("constraint", reference.oid), target)
            for child_oid in children_of(ddl.catalog, target.oid):
                yield Dependent(Object("index", child_oid), target, is_silent=True)
        case "type":
            yield from _users_of_type(ddl, type_name(target.oid), target)
        case "function":
            for operator in list_operators(ddl.catalog):
                if operator.function_oid == target.oid:
                    yield Dependent(Object("operator", operator.oid), target)
            for user in users_with(ddl, _has_field("function_oid", target.oid)):
                yield Dependent(user, target)
        case "operator":
            for user in users_with(ddl, _has_field("operator_oid", target.oid)):
                yield Dependent(user, target)


def _selects_attribute(ddl: Ddl, target: Object) -> Callable[[Any], bool]:
    """Return whether a node selects an attribute of a composite type from a row."""
    relation, types = ddl.relation(target.oid), TypeFacts(ddl.environment)
    place = relation.columns.index(relation.column_at(target.number)) + 1
    return lambda node: (
        isinstance(node, nodes.FieldSelect)
        and node.field_number == place
        and types.base(node.arg.type) == relation.row_type
    )


def _row_type(relation: Relation, target: Object) -> Iterator[Dependent]:
    if relation.row_type:
        yield Dependent(Object("type", type_oid(relation.row_type)), target, is_silent=True)


def _named_indexes(ddl: Ddl, relation: Relation, target: Object) -> Iterator[Dependent]:
    """Yield the indexes of a relation that a constant names.  Other indexes have no dependents."""
    for index in relation.indexes:
        part = Object("index", index.oid)
        if any(users_naming(ddl, part)):
            constraint = constraint_of(relation, index)
            gone = part if constraint is None else Object("constraint", constraint.oid)
            yield Dependent(gone, target, is_silent=True)


def _namers(ddl: Ddl, target: Object) -> Iterator[Dependent]:
    for user in users_naming(ddl, target):
        yield Dependent(user, target)


def _policies(ddl: Ddl, target: Object, policies: Sequence[int]) -> Iterator[Dependent]:
    for oid in policies:
        yield Dependent(Object("policy", oid), target)


def _views(
    ddl: Ddl, target: Object, find: Callable[[Catalog, int], Sequence[int]]
) -> Iterator[Dependent]:
    for view in find(ddl.catalog, target.oid):
        yield Dependent(relation_object(ddl.relation(view)), target)


def _owned(ddl: Ddl, target: Object) -> Iterator[Dependent]:
    """Yield the sequences that a table or a column owns, and defaults that use sequences."""
    attnum = target.number if target.kind == "column" else None
    for sequence in owned_sequences(ddl.catalog, target.oid, attnum):
        yield Dependent(Object("sequence", sequence.relid), target, is_silent=True)
    for column in ddl.relation(target.oid).columns:
        default = column.default
        if attnum in (None, column.attnum) and default is not None and sequences_of(default):
            gone = Object("default", target.oid, column.attnum)
            yield Dependent(gone, target, is_silent=True)


def _in_schema(ddl: Ddl, schema_oid: int) -> list[Object]:
    made = [
        relation_object(relation)
        for relation in load_relations(
            ddl.catalog,
            relation_oids(
                ddl.catalog, (*READABLE, RelKind.SEQUENCE, RelKind.COMPOSITE_TYPE), schema_oid
            ),
        ).values()
    ]
    pg_type = schema.pg_type
    for row in ddl.catalog.select(
        pg_type,
        pg_type.c.typnamespace == schema_oid,
        pg_type.c.typtype.in_([TypeKind.ENUM, TypeKind.DOMAIN]),
    ):
        made.append(Object("type", int(row.oid)))
    made += [
        Object("function", function.oid)
        for function in list_functions(ddl.catalog)
        if function.schema_oid == schema_oid
    ]
    made += [
        Object("operator", operator.oid)
        for operator in list_operators(ddl.catalog)
        if operator.schema_oid == schema_oid
    ]
    made += [
        Object("collation", collation.oid)
        for collation in list_collations(ddl.catalog)
        if collation.schema_oid == schema_oid
    ]
    return made


def references_to(ddl: Ddl, relation: Relation) -> list[tuple[Relation, Constraint]]:
    """Return the foreign keys that refer to a table itself.  Leave out foreign keys of partitions,
    which are parts of the foreign key of their partitioned table.
    """
    found = references_to_rows(ddl, relation)
    return [(other, key) for other, key in found if key.ref_relid == relation.oid]


def references_to_rows(ddl: Ddl, relation: Relation) -> list[tuple[Relation, Constraint]]:
    """Return the same as `references_to`, and the foreign keys that refer to the partitioned tables
    above a partition.
    """
    found = foreign_keys_to(ddl.catalog, relation.oid)
    return [(other, key) for other, key in found if not key.parent_oid]


def _users_of_column(ddl: Ddl, relation: Relation, target: Object) -> Iterator[Dependent]:
    attnum = target.number
    for index in relation.indexes:
        if uses_column(index, attnum):
            constraint = next((c for c in relation.constraints if c.index_oid == index.oid), None)
            gone = (
                Object("index", index.oid)
                if constraint is None
                else Object("constraint", constraint.oid)
            )
            yield Dependent(gone, target, is_silent=True)
    for constraint in relation.constraints:
        if (
            constraint.kind in (ConstraintKind.CHECK, ConstraintKind.FOREIGN_KEY)
            and attnum in constraint.columns
        ):
            yield Dependent(Object("constraint", constraint.oid), target, is_silent=True)
    for other, constraint in references_to(ddl, relation):
        if attnum in constraint.ref_columns:
            is_own = other.oid == relation.oid and attnum in constraint.columns
            yield Dependent(Object("constraint", constraint.oid), target, is_silent=is_own)
    for column in relation.columns:
        is_generated = column.generated and column.default is not None
        if is_generated and column.default and attnum in columns_used(column.default):
            yield Dependent(Object("column", relation.oid, column.attnum), target)
    for membership in published_tables(ddl.catalog, relids=[relation.oid]):
        if is_membership_of_column(membership, attnum):
            yield Dependent(Object("membership", membership.oid), target)


def is_membership_of_column(membership: PublishedTable, attnum: int) -> bool:
    """Return whether the row filter or column list of a table in a publication uses the column."""
    used = set() if membership.row_filter is None else columns_used(membership.row_filter)
    return attnum in used or attnum in (membership.columns or ())


def _users_of_type(ddl: Ddl, name: str, target: Object) -> Iterator[Dependent]:
    array = ddl.environment.type(name).array
    if array is not None:
        part = Object("type", type_oid(array))
        if any(users_naming(ddl, part)) or any(users_of_types(ddl, {array})):
            yield Dependent(part, target, is_silent=True)
    for user in users_of_types(ddl, {name}):
        yield Dependent(user, target)


def _has_field(name: str, oid: int) -> Callable[[nodes.Node], bool]:
    return lambda node: getattr(node, name, 0) == oid


def _constraint(ddl: Ddl, oid: int) -> tuple[Relation, Constraint]:
    row = ddl.catalog.first(schema.pg_constraint, schema.pg_constraint.c.oid == oid)
    assert row is not None
    relation = ddl.relation(int(row.conrelid))
    return relation, next(c for c in relation.constraints if c.oid == oid)


def indexed_relation(ddl: Ddl, index_oid: int) -> Relation:
    """Return the table of an index."""
    return ddl.relation(index_table_oid(ddl.catalog, index_oid))


# ---------------------------------------------------------------------------------------------
# Names (getObjectDescription, which quotes only names that may have a schema)


def describe(ddl: Ddl, target: Object) -> str:
    """Return the description of an object for messages: `table t`, `column a of table s.t`,
    `constraint c on table t`, ...
    """
    environment = ddl.environment
    match target.kind:
        case "schema":
            return f"schema {schema_names(ddl.catalog)[target.oid]}"
        case "table" | "view" | "materialized view" | "index" | "sequence":
            return f"{target.kind} {environment.relation_name(target.oid)}"
        case "column" | "default":
            relation = ddl.relation(target.oid)
            name = relation.column_at(target.number).name
            shown = f"column {name} of {_word(relation)} {environment.relation_name(target.oid)}"
            return shown if target.kind == "column" else f"default value for {shown}"
        case "constraint":
            relation, constraint = _constraint(ddl, target.oid)
            table = environment.relation_name(relation.oid)
            return f"constraint {constraint.name} on table {table}"
        case "type":
            return f"type {environment.format_type(type_name(target.oid))}"
        case "function":
            function = next(f for f in list_functions(ddl.catalog) if f.oid == target.oid)
            return f"function {function_signature(ddl, function)}"
        case "operator":
            operator = next(o for o in list_operators(ddl.catalog) if o.oid == target.oid)
            return f"operator {operator_signature(ddl, operator)}"
        case "collation":
            collation = next(c for c in list_collations(ddl.catalog) if c.oid == target.oid)
            is_visible = environment.collation(None, collation.name) == user_collation(target.oid)
            place = None if is_visible else environment.schema_name(collation.schema_oid)
            return f"collation {quote_qualified_identifier(place, collation.name)}"
        case "membership":
            member = next(m for m in published_tables(ddl.catalog) if m.oid == target.oid)
            publication = publications_by_oid(ddl.catalog, [member.publication_oid])
            name = publication[member.publication_oid].name
            table = environment.relation_name(member.relid)
            return f"publication of table {table} in publication {name}"
        case "policy":
            policy = next(p for p in list_policies(ddl.catalog) if p.oid == target.oid)
            table = environment.relation_name(policy.relid)
            return f"policy {policy.name} on table {table}"


def _word(relation: Relation) -> str:
    return "composite type" if relation.kind == RelKind.COMPOSITE_TYPE else "table"


# ---------------------------------------------------------------------------------------------
# Deletion


def _delete(ddl: Ddl, target: Object) -> None:
    """Remove an object from the catalog, unless it was removed with another object."""
    catalog = ddl.catalog
    match target.kind:
        case "schema":
            memberships, defaults = schema.pg_publication_namespace, schema.pg_default_acl
            catalog.delete(memberships, memberships.c.pnnspid == target.oid)
            catalog.delete(defaults, defaults.c.defaclnamespace == target.oid)
            delete_schema(catalog, target.oid)
        case "table" | "view" | "materialized view":
            relation = get_relation(catalog, target.oid)
            if relation is not None:
                _forget_subscriptions(ddl, relation)
                delete_relation(catalog, relation)
                report_files(ddl, relation)
        case "column":
            relation = get_relation(catalog, target.oid)
            if relation is not None and any(c.attnum == target.number for c in relation.columns):
                remove_column(catalog, relation.oid, relation.column_at(target.number))
        case "default":
            relation = get_relation(catalog, target.oid)
            if relation is not None:
                column = relation.column_at(target.number)
                update_column(catalog, relation.oid, replace(column, default=None))
        case "constraint":
            _delete_constraint(ddl, target.oid)
        case "index":
            delete_index(catalog, target.oid)
        case "sequence":
            relation = get_relation(catalog, target.oid)
            if relation is not None:
                delete_sequence(catalog, relation.oid)
                delete_relation(catalog, relation)
        case "type":
            composite = composite_of_type(catalog, type_name(target.oid))
            if composite is not None:
                delete_relation(catalog, composite)
            else:
                delete_type(catalog, type_name(target.oid))
        case "function":
            delete_function(catalog, target.oid)
        case "operator":
            delete_operator(catalog, target.oid)
        case "collation":
            delete_collation(catalog, target.oid)
        case "membership":
            delete_published_table(catalog, target.oid)
        case "policy":
            delete_policies(catalog, [target.oid])


def report_files(ddl: Ddl, relation: Relation) -> None:
    """Report where the files of a dropped table remain.  Files remain if the user chose their
    location (LOCATION).
    """
    storage = relation.storage
    if storage is not None and storage.is_made and not storage.is_in_base:
        ddl.notice(f'files of table "{relation.name}" remain in "{storage.location}"')


def _delete_constraint(ddl: Ddl, oid: int) -> None:
    row = ddl.catalog.first(schema.pg_constraint, schema.pg_constraint.c.oid == oid)
    if row is None:
        return
    delete_constraint(ddl.catalog, oid)
    if row.contype in INDEX_CONSTRAINTS and row.conindid:
        delete_index(ddl.catalog, int(row.conindid))


def _forget_subscriptions(ddl: Ddl, relation: Relation) -> None:
    """Remove a table from the subscriptions that write it (RemoveSubscriptionRel)."""
    for oid in subscriptions_of_relation(ddl.catalog, relation.oid):
        member = next(
            m for m in subscription_relations(ddl.catalog, oid) if m.relid == relation.oid
        )
        subscription = get_subscription(ddl.catalog, oid)
        if member.state is not RelState.READY and subscription is not None:
            raise ObjectNotInPrerequisiteState(
                f'could not drop relation mapping for subscription "{subscription.name}"',
                detail=f'Table synchronization for relation "{relation.name}" is in progress and is'
                f' in state "{member.state.value}".',
                hint="Use ALTER SUBSCRIPTION ... ENABLE to enable subscription if not already"
                " enabled"
                " or use DROP SUBSCRIPTION ... to drop the subscription.",
            )
        delete_subscription_relation(ddl.catalog, oid, relation.oid)
