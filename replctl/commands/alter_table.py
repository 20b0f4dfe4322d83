"""ALTER TABLE (tablecmds.c): find the table, order the actions, and run them.  Other modules have
the actions on columns and constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from replctl.catalog import schema
from replctl.catalog.acl import Privilege, decode_acl, encode_acl, with_owner
from replctl.catalog.aclchk import (
    column_acls,
    privileges_of,
    put_column_acl,
    put_relation_acl,
    relation_acl,
)
from replctl.catalog.heap import update_index, update_relation
from replctl.catalog.pg_class import Index, Relation, get_relation
from replctl.catalog.pg_sequence import get_sequence, owned_sequences
from replctl.catalog.relation_kind import (
    INDEX_KINDS,
    READABLE,
    TABLE_KINDS,
    RelKind,
    ReplicaIdentity,
)
from replctl.catalog.spark_registration import is_registered
from replctl.catalog.storage import (
    CATALOG_TABLE,
    DELETION_VECTORS,
    FOREIGN_FILES,
    SCHEMA_CHANGES,
    wants_metadata_changes,
)
from replctl.commands import (
    alter_column,
    alter_constraint,
    alter_type,
    attach,
    column_attributes,
    identity_column,
)
from replctl.commands.attach_index import table_and_index
from replctl.commands.composite import check_not_composite, find_altered_composite, rewrite_values
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.delta_property import (
    is_delta_property,
    request_properties,
    set_delta_properties,
)
from replctl.commands.file_layout import check_layout_change
from replctl.commands.find_relation import check_kind
from replctl.commands.persistence import check_persistence, set_persistence
from replctl.commands.policy import set_row_security
from replctl.commands.reloptions import (
    OptionReader,
    changed_options,
    index_options,
    note_features,
    table_options,
    view_options,
)
from replctl.commands.role import role_oid
from replctl.does_not_exist import no_relation
from replctl.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr.type_names import check_schema, schema_of_relation
from replctl.lake.catalog_name import check_own_name
from replctl.lake.file_access import check_location_role
from replctl.lake.metadata_change import has_metadata_features
from replctl.parser import ast
from replctl.session import Session
from replctl.types.builtin import FIRST_USER_OID

#: Actions in the order of execution (AlterTablePass).
_PASSES = (
    (
        "drop_column",
        "drop_constraint",
        "drop_default",
        "drop_not_null",
        "drop_identity",
        "drop_expression",
    ),
    ("alter_type",),
    ("add_column",),
    ("add_constraint check",),
    ("set_not_null",),
    ("add_constraint primary", "add_constraint unique"),
    ("set_default", "add_constraint foreign", "add_identity"),
)

_STORED = (*TABLE_KINDS, RelKind.MATERIALIZED_VIEW)
_WITH_OPTIONS = (*_STORED, RelKind.VIEW, RelKind.INDEX)
#: The kinds of relations on which ALTER TABLE has an action; for other actions, tables (calls of
#: ATSimplePermissions in tablecmds.c).
_KINDS = {
    "owner_to": (*READABLE, RelKind.SEQUENCE),
    "set_logged": (*TABLE_KINDS, RelKind.SEQUENCE),
    "set_unlogged": (*TABLE_KINDS, RelKind.SEQUENCE),
    "set_default": (*TABLE_KINDS, RelKind.VIEW),
    "drop_default": (*TABLE_KINDS, RelKind.VIEW),
    "set_statistics": (*_STORED, *INDEX_KINDS),
    "set_column_options": _STORED,
    "reset_column_options": _STORED,
    "set_storage": _STORED,
    "set_compression": _STORED,
    "cluster_on": _STORED,
    "set_without_cluster": _STORED,
    "replica_identity": _STORED,
    "set_options": _WITH_OPTIONS,
    "reset_options": _WITH_OPTIONS,
}
#: Actions that PostgreSQL has on these kinds of relations, and replctl has not.
_REFUSED = {
    "set_default": (RelKind.VIEW,),
    "drop_default": (RelKind.VIEW,),
    "set_statistics": INDEX_KINDS,
}


def alter_table(session: Session, statement: ast.AlterTable) -> str:
    """Change a table's definition.

    Raises:
        PostgresError: the statement is wrong, or a row violates the new definition.
        FeatureNotSupported: an action is not supported.
    """
    for command in statement.commands:
        if command.kind == "other":
            words = command.value or "this action"
            kind = statement.object_type.upper()
            raise FeatureNotSupported(f"ALTER {kind} ... {words} is not supported")
    return carry_out(session, lambda ddl: _alter_table(ddl, statement))


def _alter_table(ddl: Ddl, statement: ast.AlterTable) -> str:
    if statement.object_type == "type":
        return _alter_composite(ddl, statement)
    relation = _find_relation(ddl, statement)
    if relation is None:
        ddl.notice(f'relation "{statement.relation.name}" does not exist, skipping')
        return f"ALTER {statement.object_type.upper()}"
    for command in statement.commands:
        _check_action(relation, command)
    return _alter(ddl, relation, statement)


def _alter_composite(ddl: Ddl, statement: ast.AlterTable) -> str:
    relation = find_altered_composite(ddl, statement)
    tag = _alter(ddl, relation, statement)
    if any(command.kind in ("add_column", "drop_column") for command in statement.commands):
        rewrite_values(ddl, relation)
    return tag


def _alter(ddl: Ddl, relation: Relation, statement: ast.AlterTable) -> str:
    recurses = statement.relation.inherit
    persistence = check_persistence(ddl, relation, statement.commands)
    changes = [
        change
        for command in statement.commands
        if command.kind == "alter_type"
        for change in alter_type.prepare_type(ddl, relation, command, recurses=recurses)
    ]
    for kind, commands in groupby(sorted(statement.commands, key=_pass), key=lambda c: c.kind):
        if kind == "alter_type":
            alter_type.change_types(ddl, changes)
            continue
        for command in commands:
            _carry_out(ddl, ddl.relation(relation.oid), command, recurses=recurses)
    if persistence is not None:
        set_persistence(ddl, ddl.relation(relation.oid), persistence)
    return f"ALTER {statement.object_type.upper()}"


def _find_relation(ddl: Ddl, statement: ast.AlterTable) -> Relation | None:
    """Return the relation that a statement alters; None if it is missing and IF EXISTS was given.

    Raises:
        UndefinedTable: there is no such relation.
        WrongObjectType, InsufficientPrivilege: the relation is of another kind, or is a system
            catalog.
    """
    name = statement.relation
    shown = name.name if name.schema is None else f"{name.schema}.{name.name}"
    schema_name = schema_of_relation(ddl.environment, name)
    oid = ddl.environment.relation_oid(schema_name, name.name)
    if oid is None:
        if statement.missing_ok:
            return None
        check_schema(ddl.environment, schema_name)
        raise no_relation(shown)
    if oid < FIRST_USER_OID:
        raise InsufficientPrivilege(f'permission denied: "{name.name}" is a system catalog')
    relation = get_relation(ddl.catalog, oid)
    assert relation is not None
    ddl.privileges.check_relation_owner(relation)
    check_kind(relation, statement.object_type)
    check_not_composite(relation)
    return relation


def _check_action(relation: Relation, command: ast.AlterTableCmd) -> None:
    """Check that an action is possible on relations of this kind (ATSimplePermissions).

    Raises:
        WrongObjectType: PostgreSQL does not have the action on this kind.
        FeatureNotSupported: replctl does not have it.
    """
    if relation.kind not in _KINDS.get(command.kind, TABLE_KINDS):
        raise WrongObjectType(
            f'ALTER action {_action(command)} cannot be performed on relation "{relation.name}"',
            detail=f"This operation is not supported for {relation.kind.plural}.",
        )
    if relation.kind in _REFUSED.get(command.kind, ()):
        raise FeatureNotSupported(f"{_action(command)} is not supported for {relation.kind.plural}")


def _action(command: ast.AlterTableCmd) -> str:
    """Return the words of an action for messages: `ADD COLUMN`, `ALTER COLUMN ... SET DEFAULT`
    (alter_table_type_to_string).
    """
    words = command.kind.replace("_", " ").upper()
    match command.kind:
        case "set_default" | "drop_default":
            return "ALTER COLUMN ... SET DEFAULT"
        case "alter_type":
            return "ALTER COLUMN ... SET DATA TYPE"
        case (
            "set_not_null" | "drop_not_null" | "add_identity" | "drop_identity" | "drop_expression"
        ):
            return f"ALTER COLUMN ... {words}"
        case "alter_identity":
            return "ALTER COLUMN ... SET"
        case "set_storage" | "set_statistics" | "set_compression":
            return f"ALTER COLUMN ... {words}"
        case "set_column_options" | "reset_column_options":
            return f"ALTER COLUMN ... {words.split()[0]}"
        case "set_options" | "reset_options":
            return words.split()[0]
        case "row_level_security":
            return f"{(command.value or '').upper()} ROW SECURITY"
        case _:
            return words


def _pass(command: ast.AlterTableCmd) -> int:
    kind: str = command.kind
    if command.constraint is not None:
        kind = f"{kind} {command.constraint.kind}"
    return next((i for i, kinds in enumerate(_PASSES) if kind in kinds), len(_PASSES))


def _carry_out(ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, *, recurses: bool) -> None:
    name = command.name or ""
    match command.kind:
        case "add_column":
            alter_column.add_column(ddl, relation, command, recurses=recurses)
        case "drop_column":
            alter_column.drop_column(ddl, relation, command, recurses=recurses)
        case "set_default" | "drop_default":
            alter_column.set_default(ddl, relation, name, command.expr, recurses=recurses)
        case "set_not_null":
            alter_column.set_not_null(ddl, relation, name, recurses=recurses)
        case "drop_not_null":
            alter_column.drop_not_null(ddl, relation, name, recurses=recurses)
        case "set_storage" | "set_statistics" | "set_compression" as kind:
            _set_attribute(ddl, relation, kind, command, recurses=recurses)
        case "set_column_options" | "reset_column_options":
            column_attributes.set_column_options(ddl, relation, command)
        case "cluster_on" | "set_without_cluster":
            _set_clustered(ddl, relation, command.name)
        case "add_identity":
            identity_column.add_identity(ddl, relation, command, recurses=recurses)
        case "alter_identity":
            identity_column.alter_identity(ddl, relation, command, recurses=recurses)
        case "drop_identity":
            identity_column.drop_identity(ddl, relation, command, recurses=recurses)
        case "drop_expression":
            alter_column.drop_expression(ddl, relation, command, recurses=recurses)
        case "add_constraint":
            assert command.constraint is not None
            alter_constraint.add_constraint(ddl, relation, command.constraint, recurses=recurses)
        case "drop_constraint":
            alter_constraint.drop_constraint(ddl, relation, command, recurses=recurses)
        case "validate_constraint":
            alter_constraint.validate_constraint(relation, name)
        case "replica_identity":
            _set_replica_identity(ddl, relation, command)
        case "attach_partition":
            attach.attach_partition(ddl, relation, command)
        case "detach_partition":
            attach.detach_partition(ddl, relation, command)
        case "inherit":
            attach.add_parent(ddl, relation, command)
        case "no_inherit":
            attach.remove_parent(ddl, relation, command)
        case "row_level_security":
            set_row_security(ddl, relation, command.value or "")
        case "set_options" | "reset_options":
            resets = command.kind == "reset_options"
            _change_options(ddl, relation, command.options, resets=resets)
        case "set_logged" | "set_unlogged":
            pass  # after all other actions
        case "owner_to":
            change_owner(ddl, relation, role_oid(ddl.session, ddl.catalog, name))
        case other:
            raise AssertionError(f"{other} is refused before")


def _set_attribute(
    ddl: Ddl, relation: Relation, kind: str, command: ast.AlterTableCmd, *, recurses: bool
) -> None:
    name, value = command.name or "", command.value or ""
    match kind:
        case "set_storage":
            column_attributes.set_storage(ddl, relation, name, value, recurses=recurses)
        case "set_statistics":
            column_attributes.set_statistics(ddl, relation, name, value, recurses=recurses)
        case _:
            column_attributes.set_compression(ddl, relation, name, value)


def _set_clustered(ddl: Ddl, relation: Relation, name: str | None) -> None:
    """Record the index for CLUSTER, or that there is none (ATExecClusterOn, ATExecDropCluster).

    Raises:
        UndefinedObject, WrongObjectType: the table has no such index.
        FeatureNotSupported: the index is partial or not a btree, or the table is partitioned.
    """
    chosen = 0
    if name is not None:
        oid = ddl.environment.relation_oid(relation.schema, name)
        if oid is None:
            raise UndefinedObject(f'index "{name}" for table "{relation.name}" does not exist')
        index = _own_index(ddl, relation, oid, name)
        if index.access_method != "btree":
            raise FeatureNotSupported(
                f'cannot cluster on index "{name}" because access method does not support'
                " clustering"
            )
        if index.predicate is not None:
            raise FeatureNotSupported(f'cannot cluster on partial index "{name}"')
        chosen = oid
    if relation.is_partitioned:
        raise FeatureNotSupported("cannot mark index clustered in partitioned table")
    for index in relation.indexes:
        if index.is_clustered != (index.oid == chosen):
            update_index(ddl.catalog, replace(index, is_clustered=index.oid == chosen))


def _own_index(ddl: Ddl, relation: Relation, oid: int, name: str) -> Index:
    """Return the index of a table that a statement names.

    Raises:
        WrongObjectType: the name is that of another relation.
    """
    if ddl.relation(oid).kind not in INDEX_KINDS:
        raise WrongObjectType(f'"{name}" is not an index')
    index = next((index for index in relation.indexes if index.oid == oid), None)
    if index is None:
        raise WrongObjectType(f'"{name}" is not an index for table "{relation.name}"')
    return index


def _option_reader(ddl: Ddl, relation: Relation) -> OptionReader:
    if relation.kind == RelKind.VIEW:
        return view_options
    _, index = table_and_index(ddl, relation)
    return partial(index_options, access_method=index.access_method)


def _change_options(
    ddl: Ddl, relation: Relation, changes: Sequence[ast.DefElem], *, resets: bool
) -> None:
    if relation.kind in (RelKind.VIEW, RelKind.INDEX):
        options = changed_options(
            relation.options, changes, _option_reader(ddl, relation), resets=resets
        )
        update_relation(ddl.catalog, replace(relation, options=options))
        return
    is_adopted = relation.storage is not None and relation.storage.is_adopted
    if is_adopted:
        properties = [change for change in changes if is_delta_property(change)]
        set_delta_properties(ddl, relation, properties, resets=resets)
        changes = [change for change in changes if not is_delta_property(change)]
    read = partial(table_options, kind=relation.kind, is_adopted=is_adopted)
    options = changed_options(relation.options, changes, read, resets=resets)
    if options.get(FOREIGN_FILES) != relation.options.get(FOREIGN_FILES):
        check_location_role(ddl.privileges, writes=False)
    is_made = relation.storage is not None and relation.storage.is_made
    if is_made and options.get(DELETION_VECTORS) != relation.options.get(DELETION_VECTORS):
        raise FeatureNotSupported(
            f'the option "{DELETION_VECTORS}" of a table that has been written cannot be changed',
            hint="Make a new table with this option, and copy the rows.",
        )
    if options.get(CATALOG_TABLE) != relation.options.get(CATALOG_TABLE) and is_registered(
        ddl.catalog.connection, relation.oid
    ):
        raise FeatureNotSupported(
            f'the option "{CATALOG_TABLE}" of a table that is registered cannot be changed',
            hint="Make a new table with this option, and copy the rows.",
        )
    check_own_name(ddl.catalog, relation, options)
    if wants_metadata_changes(relation.options) and not wants_metadata_changes(options):
        _check_rewritable(relation)
    check_layout_change(relation, options)
    request_properties(ddl, relation, options)
    note_features(ddl, relation.name, relation.options, options)
    update_relation(ddl.catalog, replace(relation, options=options))


def _check_rewritable(relation: Relation) -> None:
    """Check that a table has no feature that prevents later changes of columns from rewriting rows.

    Raises:
        FeatureNotSupported: a change of columns has turned on such a feature.
    """
    storage = relation.storage
    if storage is not None and storage.is_made and has_metadata_features(storage.location):
        raise FeatureNotSupported(
            f'the option "{SCHEMA_CHANGES}" of a table whose columns have been changed by metadata'
            " cannot be changed",
            hint="Make a new table with this option, and copy the rows.",
        )


def change_owner(ddl: Ddl, relation: Relation, owner: int) -> None:
    """Change the owner of a relation, its row type, its indexes and the sequences that it owns.

    Raises:
        InsufficientPrivilege: the current role may not change the owner, or the new owner may not
            create objects in the schema.
        FeatureNotSupported: the relation is a sequence that a table owns.
    """
    if relation.owner == owner:
        return
    sequence = get_sequence(ddl.catalog, relation.oid)
    if sequence is not None and sequence.owner_relid:
        raise FeatureNotSupported(
            f'cannot change owner of sequence "{relation.name}"',
            detail=f'Sequence "{relation.name}" is linked to table'
            f' "{ddl.relation(sequence.owner_relid).name}".',
        )
    ddl.privileges.check_relation_owner(relation)
    check_new_owner(ddl, owner, relation.schema_oid)
    give_relation(ddl, relation, owner)


def give_relation(ddl: Ddl, relation: Relation, owner: int) -> None:
    """Change the owner like `change_owner`, without checking permissions."""
    members = [index.oid for index in relation.indexes]
    members += [sequence.relid for sequence in owned_sequences(ddl.catalog, relation.oid)]
    for member in (relation, *map(ddl.relation, members)):
        update_relation(ddl.catalog, replace(member, owner=owner))
        acl = relation_acl(ddl.catalog, member.oid)
        if acl is not None:
            put_relation_acl(ddl.catalog, member.oid, with_owner(acl, member.owner, owner))
        for attnum, acl in column_acls(ddl.catalog, member.oid).items():
            changed = with_owner(acl, member.owner, owner)
            put_column_acl(ddl.catalog, member.oid, attnum, changed)
        if member.row_type:
            _give_row_type(ddl, member, owner)


def _give_row_type(ddl: Ddl, relation: Relation, owner: int) -> None:
    table = schema.pg_type
    row = ddl.catalog.first(table, table.c.typrelid == relation.oid)
    changes: dict[str, object] = {"typowner": owner}
    acl = None if row is None else decode_acl(row.typacl)  # only a composite type has privileges
    if acl is not None:
        changes["typacl"] = encode_acl(with_owner(acl, relation.owner, owner))
    ddl.catalog.update(table, table.c.typrelid == relation.oid, **changes)


def check_new_owner(ddl: Ddl, owner: int, schema_oid: int | None = None) -> None:
    """Check that the current role may give an object to another role, and that the other role may
    create objects in its schema.

    Raises:
        InsufficientPrivilege: one of the roles lacks a privilege.
    """
    privileges = ddl.privileges
    if privileges.is_superuser:
        return
    privileges.check_become(owner, ddl.environment.role_name(owner) or "")
    if schema_oid is not None:
        name = ddl.environment.schema_name(schema_oid) or ""
        privileges_of(ddl.environment.catalog, owner).check_schema(
            schema_oid, name, Privilege.CREATE
        )


# ---------------------------------------------------------------------------------------------
# REPLICA IDENTITY (ATExecReplicaIdentity)


def _set_replica_identity(ddl: Ddl, relation: Relation, command: ast.AlterTableCmd) -> None:
    chosen = 0
    if command.value == "index":
        chosen = _identity_index(ddl, relation, command.name or "")
    identity = ReplicaIdentity[(command.value or "").upper()]
    update_relation(ddl.catalog, replace(relation, replica_identity=identity))
    for index in relation.indexes:
        if index.is_replica_identity != (index.oid == chosen):
            update_index(ddl.catalog, replace(index, is_replica_identity=index.oid == chosen))


def _identity_index(ddl: Ddl, relation: Relation, name: str) -> int:
    """Return the index that REPLICA IDENTITY USING INDEX names.

    Raises:
        UndefinedObject: there is no such index.
        WrongObjectType: the index cannot identify rows.
    """
    oid = ddl.environment.relation_oid(relation.schema, name)
    if oid is None:
        raise UndefinedObject(f'index "{name}" for table "{relation.name}" does not exist')
    index = _own_index(ddl, relation, oid, name)
    if not index.is_unique:
        raise WrongObjectType(f'cannot use non-unique index "{name}" as replica identity')
    if index.is_deferrable:
        raise FeatureNotSupported(f'cannot use non-immediate index "{name}" as replica identity')
    if 0 in index.key:
        raise FeatureNotSupported(f'cannot use expression index "{name}" as replica identity')
    if index.predicate is not None:
        raise FeatureNotSupported(f'cannot use partial index "{name}" as replica identity')
    for column in relation.index_columns(index):
        if not column.not_null:
            raise WrongObjectType(
                f'index "{name}" cannot be used as replica identity because column "{column.name}"'
                " is nullable"
            )
    return index.oid
