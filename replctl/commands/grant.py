"""GRANT and REVOKE of privileges on objects (aclchk.c)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from replctl.catalog import schema, schema_table
from replctl.catalog.acl import (
    ALL_RIGHTS,
    PUBLIC,
    Acl,
    AclKind,
    Privilege,
    decode_acl,
    default_acl,
    encode_acl,
    find_privilege,
    granted,
    letters_for,
    options_for,
    revoked,
)
from replctl.catalog.aclchk import denied, owner_of, relation_acl
from replctl.catalog.pg_class import Relation, load_relations, relation_oids
from replctl.catalog.pg_proc import UserFunction, get_function, list_functions
from replctl.catalog.relation_kind import INDEX_KINDS, READABLE, VIEW_KINDS, RelKind
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.find_object import (
    find_database_oid,
    find_function,
    find_schema_oid,
    find_type_of_name,
    input_types,
)
from replctl.commands.find_relation import find_relation
from replctl.commands.role import role_oid
from replctl.does_not_exist import no_column, no_schema
from replctl.errors import (
    DependentObjectsStillExist,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidGrantOperation,
    InvalidParameterValue,
    SqlSyntaxError,
    WrongObjectType,
)
from replctl.parser import ast
from replctl.record import dataclass
from replctl.session import Session
from replctl.types.builtin import FIRST_USER_OID, Type, system_columns
from replctl.types.type_kind import TypeKind


@dataclass(frozen=True, slots=True)
class _Target:
    """An object whose access list changes; `attnum` and `column` are set if it is a column."""

    kind: AclKind
    oid: int
    owner: int
    word: str
    name: str
    attnum: int = 0
    column: str = ""
    relation_acl: Acl = ()  # the access list of the column's relation before the statement


def grant(session: Session, statement: ast.Grant) -> str:
    """Grant privileges to roles, or revoke them.

    Raises:
        UndefinedObject, UndefinedTable, UndefinedColumn: there is no such role or object.
        InvalidGrantOperation: the kind of object has no such privilege.
        InsufficientPrivilege: the current role has no privilege at all on the object.
    """
    return carry_out(session, lambda ddl: _grant(ddl, statement))


def _grant(ddl: Ddl, statement: ast.Grant) -> str:
    if statement.granted_by is not None:
        grantor = role_oid(ddl.session, ddl.catalog, statement.granted_by)
        if grantor != ddl.session.role_oid:
            raise FeatureNotSupported("grantor must be current user")
    objects = _objects(ddl, statement)  # before the roles, as in ExecuteGrantStmt
    grantees = grantee_oids(ddl, statement)
    for target, letters in _targets(ddl, statement, objects):
        _change(ddl, statement, target, letters, grantees)
    return "GRANT" if statement.is_grant else "REVOKE"


#: The catalogs whose objects have access lists, apart from relations and their columns.
_CLASSES: dict[str, tuple[AclKind, str]] = {
    "pg_namespace": ("schema", "nspname"),
    "pg_database": ("database", "datname"),
    "pg_proc": ("function", "proname"),
    "pg_type": ("type", "typname"),
}


def revoke_all(ddl: Ddl, class_name: str, oid: int, grantee: int) -> None:
    """Revoke all privileges on an object from a role, as the current role may: REVOKE ALL ...
    CASCADE (RemoveRoleFromObjectACL).

    Args:
        class_name: the catalog of the object; for a column, pass its relation.

    Raises:
        InsufficientPrivilege: the current role has no privilege at all on the object.
    """
    item: Relation | _Target
    if class_name == "pg_class":
        item = ddl.relation(oid)
    else:
        kind, column = _CLASSES[class_name]
        table = schema_table.metadata.tables[class_name]
        row = ddl.catalog.first(table, table.c.oid == oid)
        assert row is not None
        owner = owner_of(ddl.catalog, class_name, oid)
        item = _Target(kind, oid, owner, kind, str(row._mapping[column]))
    statement = ast.Grant(False, (ast.Privilege("all"),), "table", (), (), behavior="cascade")
    for target, letters in _targets(ddl, statement, [item]):
        _change(ddl, statement, target, letters, [grantee])


def grantee_oids(ddl: Ddl, statement: ast.Grant) -> list[int]:
    """Return the OIDs of the grantees; 0 stands for PUBLIC.

    Raises:
        UndefinedObject: there is no such role.
    """
    return [
        PUBLIC if name == "public" else role_oid(ddl.session, ddl.catalog, name)
        for name in statement.grantees
    ]


def _objects(ddl: Ddl, statement: ast.Grant) -> list[Relation | Type | _Target]:
    """Return the objects that a statement names (objectNamesToOids, objectsInSchemaToOids)."""
    names, catalog = statement.names, ddl.catalog
    match statement.target:
        case "table" | "sequence":
            return [_relation(ddl, name) for name in names]
        case "all tables" | "all sequences":
            kinds = READABLE if statement.target == "all tables" else (RelKind.SEQUENCE,)
            schemas = [_usable_schema(ddl, place) for (place,) in names]
            oids = [oid for place in schemas for oid in relation_oids(catalog, kinds, place)]
            return list(load_relations(catalog, oids).values())
        case "schema":
            return [_schema(ddl, place) for (place,) in names]
        case "database":
            return [_database(ddl, place) for (place,) in names]
        case "function" | "routine" | "procedure" as kind:
            functions = zip(names, statement.arguments, strict=True)
            return [_function(ddl, kind, name, arguments) for name, arguments in functions]
        case "all functions" | "all routines" | "all procedures" as target:
            schemas = [_usable_schema(ddl, place) for (place,) in names]
            word = target.removeprefix("all ").removesuffix("s")
            found = list_functions(catalog) if word != "procedure" else []  # no procedures exist
            return [_function_target(f, word) for f in found if f.schema_oid in schemas]
        case "type" | "domain":
            return [find_type_of_name(ddl, name) for name in names]


def _usable_schema(ddl: Ddl, name: str) -> int:
    """Return the OID of a schema that the current role may use (LookupExplicitNamespace)."""
    oid = ddl.environment.search_path.explicit(name)
    if oid is None:
        raise no_schema(name)
    return oid


def _relation(ddl: Ddl, name: tuple[str, ...]) -> Relation:
    relation = find_relation(ddl, name)
    assert relation is not None
    return relation


def _schema(ddl: Ddl, name: str) -> _Target:
    oid = find_schema_oid(ddl, name)
    return _Target("schema", oid, owner_of(ddl.catalog, "pg_namespace", oid), "schema", name)


def _database(ddl: Ddl, name: str) -> _Target:
    oid = find_database_oid(ddl, name)
    return _Target("database", oid, owner_of(ddl.catalog, "pg_database", oid), "database", name)


def _function(
    ddl: Ddl,
    kind: str,
    name: tuple[str, ...],
    parameters: tuple[ast.FunctionParameter, ...] | None,
) -> _Target:
    oid = find_function(ddl, name, input_types(parameters), kind).oid
    if oid < FIRST_USER_OID:
        raise FeatureNotSupported("privileges on built-in functions are not supported")
    return _function_target(get_function(ddl.catalog, oid), kind)


def _function_target(function: UserFunction, kind: str) -> _Target:
    return _Target("function", function.oid, function.owner, kind, function.name)


def _targets(
    ddl: Ddl, statement: ast.Grant, objects: list[Relation | Type | _Target]
) -> Iterator[tuple[_Target, str]]:
    """Yield the objects and columns, each with the ACL letters of the statement's privileges."""
    if statement.target in ("all functions", "all routines", "all procedures"):
        letters_of(statement, "function", statement.target.removeprefix("all ").removesuffix("s"))
    for item in objects:
        if isinstance(item, Relation):
            yield from _on_relation(ddl, statement, item)
        elif isinstance(item, Type):
            yield _on_type(ddl, statement, item)
        else:
            yield item, letters_of(statement, item.kind, item.word)


def _on_type(ddl: Ddl, statement: ast.Grant, type_: Type) -> tuple[_Target, str]:
    if type_.element is not None:
        raise InvalidGrantOperation(
            "cannot set privileges of array types",
            hint="Set the privileges of the element type instead.",
        )
    if statement.target == "domain" and type_.kind != TypeKind.DOMAIN:
        name = type_.name if type_.is_builtin else type_.sql_name
        raise WrongObjectType(f'"{name}" is not a domain')
    if type_.is_builtin:
        raise FeatureNotSupported("privileges on built-in types are not supported")
    owner = owner_of(ddl.catalog, "pg_type", type_.oid)
    target = _Target("type", type_.oid, owner, "type", type_.sql_name)
    return target, letters_of(statement, "type", statement.target)


def _on_relation(
    ddl: Ddl, statement: ast.Grant, relation: Relation
) -> Iterator[tuple[_Target, str]]:
    if statement.target == "sequence" and relation.kind != RelKind.SEQUENCE:
        raise WrongObjectType(f'"{relation.name}" is not a sequence')
    if relation.kind == RelKind.COMPOSITE_TYPE:
        raise WrongObjectType(f'"{relation.name}" is a composite type')
    if relation.kind in INDEX_KINDS:
        raise WrongObjectType(f'"{relation.name}" is an index')
    kind: AclKind = "sequence" if relation.kind == RelKind.SEQUENCE else "table"
    if kind == "sequence" and statement.target == "table":
        yield from _on_sequence_as_table(ddl, statement, relation)
        return
    whole = letters_of(statement, kind, kind)
    acl = _relation_acl(ddl, kind, relation)
    if whole:
        yield _Target(kind, relation.oid, relation.owner, kind, relation.name), whole
    by_column = _column_letters(statement, relation, whole)
    for attnum, letters in sorted(by_column.items()):
        name = _column_name(relation, attnum)
        yield (
            _Target("column", relation.oid, relation.owner, kind, relation.name, attnum, name, acl),
            letters,
        )


def _column_letters(statement: ast.Grant, relation: Relation, whole: str) -> dict[int, str]:
    """Return the ACL letters by column, where REVOKE of a table's privileges also means the columns
    (expand_all_col_privileges).
    """
    by_column: dict[int, str] = {}
    on_columns = "".join(letter for letter in whole if letter in ALL_RIGHTS["column"])
    if not statement.is_grant and on_columns:
        by_column = dict.fromkeys((column.attnum for column in relation.columns), on_columns)
        if relation.kind not in VIEW_KINDS:
            by_column |= {attnum: on_columns for attnum, _type in system_columns().values()}
    for privilege in statement.privileges:
        for name in privilege.columns:
            attnum = _attnum(statement, relation, name)
            letters = _letter(privilege, "column", "column")
            by_column[attnum] = "".join(dict.fromkeys(by_column.get(attnum, "") + letters))
    return by_column


def _attnum(statement: ast.Grant, relation: Relation, name: str) -> int:
    column = relation.column(name)
    if column is not None:
        return column.attnum
    if name not in system_columns() or relation.kind == RelKind.VIEW:
        raise no_column(name, relation.name)
    if statement.is_grant:
        raise FeatureNotSupported(f'privileges on system column "{name}" are not supported')
    return system_columns()[name][0]


def _column_name(relation: Relation, attnum: int) -> str:
    if attnum < 0:
        return next(name for name, (number, _) in system_columns().items() if number == attnum)
    return next(column.name for column in relation.columns if column.attnum == attnum)


def _relation_acl(ddl: Ddl, kind: AclKind, relation: Relation) -> Acl:
    acl = relation_acl(ddl.catalog, relation.oid)
    return default_acl(kind, relation.owner) if acl is None else acl


def _on_sequence_as_table(
    ddl: Ddl, statement: ast.Grant, relation: Relation
) -> Iterator[tuple[_Target, str]]:
    """Yield a sequence that the statement names as if it was a table.  Privileges that only tables
    have cause a WARNING (ExecGrant_Relation).
    """
    letters = ""
    for privilege in statement.privileges:
        if privilege.name == "all":
            letters += ALL_RIGHTS["sequence"]
        elif not privilege.columns:
            found = find_privilege(privilege.name)
            is_of_table = found is not None and found in ALL_RIGHTS["table"]
            kind: AclKind = "table" if is_of_table else "sequence"
            letters += _letter(privilege, kind, "table")
    if letters:
        what = "USAGE, SELECT, and UPDATE privileges"
        whole = _of_sequence(ddl, relation, letters, ALL_RIGHTS["sequence"], what)
        yield _Target("sequence", relation.oid, relation.owner, "sequence", relation.name), whole
    for privilege in statement.privileges:
        for name in privilege.columns:
            letter = _letter(privilege, "column", "column")
            usable = _of_sequence(
                ddl, relation, letter, Privilege.SELECT, "SELECT column privileges"
            )
            column = relation.column(name)
            if column is None:
                raise no_column(name, relation.name)
            target = _Target(
                "column",
                relation.oid,
                relation.owner,
                "sequence",
                relation.name,
                column.attnum,
                name,
                _relation_acl(ddl, "sequence", relation),
            )
            yield target, usable


def _of_sequence(ddl: Ddl, relation: Relation, letters: str, supported: str, shown: str) -> str:
    """Return the letters that a sequence supports.  Warn if there are others."""
    usable = "".join(letter for letter in dict.fromkeys(letters) if letter in supported)
    if not set(letters) <= set(supported):
        ddl.notice(
            f'sequence "{relation.name}" only supports {shown}',
            severity="WARNING",
            sqlstate=InvalidGrantOperation.sqlstate,
        )
    return usable


def letters_of(statement: ast.Grant, kind: AclKind, word: str) -> str:
    """Return the ACL letters of the privileges of a statement that have no column list.

    Args:
        word: the name of the kind of object in errors.

    Raises:
        InvalidGrantOperation: there is no such privilege on that kind of object.
    """
    if any(privilege.columns for privilege in statement.privileges) and kind != "table":
        raise InvalidGrantOperation("column privileges are only valid for relations")
    parts = [_letter(p, kind, word) for p in statement.privileges if not p.columns]
    return "".join(dict.fromkeys("".join(parts)))


def _letter(privilege: ast.Privilege, kind: AclKind, word: str) -> str:
    if privilege.name == "all":
        return ALL_RIGHTS[kind]
    if privilege.name == "rule":
        return ""  # a privilege of former releases
    found = find_privilege(privilege.name)
    if found is None:
        raise SqlSyntaxError(f'unrecognized privilege type "{privilege.name}"')
    if found not in ALL_RIGHTS[kind]:
        if word == "table" and found not in ALL_RIGHTS["sequence"]:
            word = "relation"  # GRANT ... ON name also accepts a sequence
        name = "TEMP" if found == Privilege.TEMPORARY else found.word  # as privilege_to_string()
        raise InvalidGrantOperation(f"invalid privilege type {name} for {word}")
    return found


def _change(
    ddl: Ddl, statement: ast.Grant, target: _Target, letters: str, grantees: list[int]
) -> None:
    stored = _stored(ddl, target)
    acl = default_acl(target.kind, target.owner) if stored is None else stored
    grantor, options = _grantor(ddl, target, target.relation_acl + acl, letters)
    if letters and not options:
        _check_some_privilege(ddl, target, acl)
    usable = "".join(letter for letter in letters if letter in options)
    if letters and not usable:
        _warn(ddl, statement, target, "no privileges were granted for")
        return
    if len(usable) < len(letters) and not _is_all(statement, target, letters):
        _warn(ddl, statement, target, "not all privileges were granted for")
    changed = changed_acl(acl, statement, target.owner, grantees, grantor, usable)
    if target.kind != "column" or changed != acl:
        _store(ddl, target, changed)


def _check_some_privilege(ddl: Ddl, target: _Target, acl: Acl) -> None:
    """Check that the role has any privilege on an object whose privileges it may not grant
    (restrict_and_check_grant).

    Raises:
        InsufficientPrivilege: the role has no privilege.
    """
    held = letters_for(target.relation_acl + acl, ddl.privileges.roles)
    if target.kind in ("table", "sequence", "column"):  # pg_class_aclmask
        held += "".join(p for p in Privilege if ddl.privileges.has_on_all_relations(p))
    # Only the privileges that this kind of object can have (pg_aclmask)
    if set(ALL_RIGHTS[target.kind]).intersection(held):
        return
    if target.kind == "schema" and ddl.privileges.has_on_schema(target.oid, Privilege.USAGE):
        return
    if target.attnum:
        raise InsufficientPrivilege(
            f'permission denied for column "{target.column}" of relation "{target.name}"'
        )
    raise denied(target.word, target.name)


def changed_acl(
    acl: Acl,
    statement: ast.Grant,
    owner: int,
    grantees: Iterable[int],
    grantor: int,
    letters: str,
) -> Acl:
    """Return the access list that a statement leads to (merge_acl_with_grant).

    Raises:
        DependentObjectsStillExist: a grantee has granted a revoked privilege to other roles, and
            CASCADE was not given.
        InvalidGrantOperation: PUBLIC would get the grant option, or the grantor would have its
            grant options from the grantee.
    """
    revoke = _Revoke(owner, is_cascade=statement.behavior == "cascade")
    for grantee in grantees:
        if statement.is_grant:
            if statement.with_option and grantee == PUBLIC:
                raise InvalidGrantOperation("grant options can only be granted to roles")
            if statement.with_option:
                _check_circularity(acl, owner, grantee, grantor, letters)
            acl = granted(acl, grantee, grantor, letters, with_option=statement.with_option)
        else:
            only_option = statement.only_option
            acl = revoke.from_(acl, grantee, grantor, letters, only_option=only_option)
    return acl


def _check_circularity(acl: Acl, owner: int, grantee: int, grantor: int, letters: str) -> None:
    """Check that the grantor has its grant options without the grantee (check_circularity).

    Raises:
        InvalidGrantOperation: the grantor has them from the grantee.
    """
    if grantor == owner:
        return
    revoke = _Revoke(owner, is_cascade=True)
    while item := next((i for i in acl if i.grantee == grantee and i.options), None):
        acl = revoke.from_(acl, grantee, item.grantor, item.privileges, only_option=False)
    if not set(letters) <= set(options_for(acl, [grantor])):
        raise InvalidGrantOperation("grant options cannot be granted back to your own grantor")


@dataclass(frozen=True, slots=True)
class _Revoke:
    """Revokes privileges on an object of `owner`."""

    owner: int
    is_cascade: bool

    def from_(
        self, acl: Acl, grantee: int, grantor: int, letters: str, *, only_option: bool
    ) -> Acl:
        """Return the access list without the revoked privileges, or without their grant options.
        If the grantee has lost grant options by this, also remove the privileges that the grantee
        has granted to other roles by these options (aclupdate, recursive_revoke).
        """
        changed = revoked(acl, grantee, grantor, letters, only_option=only_option)
        held = options_for(changed, [grantee])
        lost = "".join(
            letter
            for item in acl
            if (item.grantee, item.grantor) == (grantee, grantor)
            for letter in item.options
            if letter in letters and letter not in held
        )
        dependent = [
            item
            for item in changed
            if item.grantor == grantee
            and grantee != self.owner
            and any(letter in item.privileges for letter in lost)
        ]
        if dependent and not self.is_cascade:
            raise DependentObjectsStillExist(
                "dependent privileges exist", hint="Use CASCADE to revoke them too."
            )
        for item in dependent:
            changed = self.from_(changed, item.grantee, grantee, lost, only_option=False)
        return changed


def _is_all(statement: ast.Grant, target: _Target, letters: str) -> bool:
    if target.attnum:
        return set(letters) == set(ALL_RIGHTS["column"])
    return any(p.name == "all" and not p.columns for p in statement.privileges)


def _warn(ddl: Ddl, statement: ast.Grant, target: _Target, message: str) -> None:
    if not statement.is_grant:
        message = message.replace("granted", "revoked").replace(" were ", " could be ")
    state = "01007" if statement.is_grant else "01006"
    name = f'"{target.name}"'
    shown = f'column "{target.column}" of relation {name}' if target.attnum else name
    ddl.notice(f"{message} {shown}", severity="WARNING", sqlstate=state)


def _grantor(ddl: Ddl, target: _Target, acl: Acl, letters: str) -> tuple[int, str]:
    """Return the grantor, and which privileges of the statement it can grant.

    A role that can grant all of them comes first, then the role that can grant most
    (select_best_grantor).
    """
    privileges = ddl.privileges
    if privileges.is_superuser or privileges.role_oid == target.owner:
        return target.owner, letters
    best, options = privileges.role_oid, ""
    for role in (best, *sorted(privileges.roles - {best})):
        held = letters if role == target.owner else options_for(acl, [role])
        own = "".join(letter for letter in letters if letter in held)
        if len(own) > len(options):
            best, options = role, own
    return best, options


def _stored(ddl: Ddl, target: _Target) -> Acl | None:
    if target.attnum < 0:
        return None  # nobody can grant privileges on system columns
    table, column, where = _place(target)
    row = ddl.catalog.first(table, *where)
    if row is None:
        raise InvalidParameterValue(f'"{target.name}" is gone')
    return decode_acl(row._mapping[column])


def _store(ddl: Ddl, target: _Target, acl: Acl) -> None:
    table, column, where = _place(target)
    empty = target.kind == "column" and not acl
    ddl.catalog.update(table, *where, **{column: None if empty else encode_acl(acl)})


def _place(target: _Target) -> tuple[Any, str, list[Any]]:
    match target.kind:
        case "column":
            table = schema.pg_attribute
            where = [table.c.attrelid == target.oid, table.c.attnum == target.attnum]
            return table, "attacl", where
        case "schema":
            return schema.pg_namespace, "nspacl", [schema.pg_namespace.c.oid == target.oid]
        case "database":
            return schema.pg_database, "datacl", [schema.pg_database.c.oid == target.oid]
        case "function":
            return schema.pg_proc, "proacl", [schema.pg_proc.c.oid == target.oid]
        case "type":
            return schema.pg_type, "typacl", [schema.pg_type.c.oid == target.oid]
    return schema.pg_class, "relacl", [schema.pg_class.c.oid == target.oid]
