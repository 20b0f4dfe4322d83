"""Check privileges and ownership of roles, and build the errors for missing ones (aclchk.c)."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from replctl.catalog import schema, schema_table
from replctl.catalog.acl import (
    Acl,
    AclKind,
    Privilege,
    decode_acl,
    default_acl,
    encode_acl,
    letters_for,
    options_for,
)
from replctl.catalog.pg_authid import (
    MAINTAIN,
    READ_ALL_DATA,
    READ_ALL_SETTINGS,
    WRITE_ALL_DATA,
    Role,
    get_role,
    memberships,
    role_names,
)
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.role_membership import reachable_roles
from replctl.catalog.transaction import Catalog
from replctl.errors import InsufficientPrivilege
from replctl.record import dataclass
from replctl.types.builtin import FIRST_USER_OID

#: The words for relations of each kind in errors (get_relkind_objtype).
RELATION_WORDS = {
    RelKind.TABLE: "table",
    RelKind.PARTITIONED_TABLE: "table",
    RelKind.VIEW: "view",
    RelKind.MATERIALIZED_VIEW: "materialized view",
    RelKind.SEQUENCE: "sequence",
    RelKind.INDEX: "index",
    RelKind.PARTITIONED_INDEX: "index",
    RelKind.COMPOSITE_TYPE: "table",
}

#: The privileges that a predefined role has on all relations (pg_class_aclmask_ext).
_ON_ALL_RELATIONS = {
    Privilege.SELECT: READ_ALL_DATA,
    Privilege.INSERT: WRITE_ALL_DATA,
    Privilege.UPDATE: WRITE_ALL_DATA,
    Privilege.DELETE: WRITE_ALL_DATA,
    Privilege.MAINTAIN: MAINTAIN,
}


@dataclass(frozen=True)
class Privileges:
    """Answers which privileges a role has in a database."""

    catalog: Catalog
    role_oid: int

    @cached_property
    def role(self) -> Role:
        """Return the role; a role that does not exist has no privileges."""
        return get_role(self.catalog, self.role_oid) or Role(self.role_oid, "")

    @property
    def is_superuser(self) -> bool:
        return self.role.is_superuser

    @cached_property
    def roles(self) -> frozenset[int]:
        """Return the role and the roles whose privileges it inherits (roles_is_member_of)."""
        return reachable_roles(self.catalog, self.role_oid, lambda grant: grant.inherits)

    @cached_property
    def memberships(self) -> frozenset[int]:
        """Return the role and all roles that it is a member of, even without inheritance."""
        return reachable_roles(self.catalog, self.role_oid, lambda grant: True)

    @cached_property
    def settable(self) -> frozenset[int]:
        """Return the roles that the role may SET ROLE to."""
        return reachable_roles(self.catalog, self.role_oid, lambda grant: grant.may_set)

    # -- tests

    def acts_for(self, role_oid: int) -> bool:
        """Return whether the role has the privileges of another role, such as an owner
        (has_privs_of_role).
        """
        return self.is_superuser or role_oid in self.roles

    def may_become(self, role_oid: int) -> bool:
        """Return whether the role may SET ROLE to another role."""
        return self.is_superuser or role_oid in self.settable

    def is_admin_of(self, role_oid: int) -> bool:
        """Return whether the role may grant membership in another role (is_admin_of_role)."""
        return self.is_superuser or any(
            m.role == role_oid and m.is_admin and m.member in self.memberships
            for m in memberships(self.catalog)
        )

    def has(
        self,
        kind: AclKind,
        owner: int,
        acl: Acl | None,
        privilege: Privilege,
        *,
        as_option: bool = False,
    ) -> bool:
        """Return whether an access list gives the role a privilege, or the grant option for it."""
        if self.is_superuser:
            return True
        effective = default_acl(kind, owner) if acl is None else acl
        if as_option:
            return owner in self.roles or privilege in options_for(effective, self.roles)
        return privilege in letters_for(effective, self.roles)

    def has_on_relation(
        self,
        relation: Relation,
        privilege: Privilege,
        attnums: Collection[int] | None = None,
        *,
        as_option: bool = False,
    ) -> bool:
        """Return whether the role has a privilege on a relation, or on all columns in `attnums`. If
        `attnums` is empty, any column suffices (ExecCheckOneRelPerms).

        Args:
            attnums: 0 stands for the whole row.  Negative numbers are system columns, on which
                nobody can grant a privilege.
        """
        if not as_option and self.has_on_all_relations(privilege):
            return True
        kind: AclKind = "sequence" if relation.kind == RelKind.SEQUENCE else "table"
        acl = relation_acl(self.catalog, relation.oid)
        if self.has(kind, relation.owner, acl, privilege, as_option=as_option):
            return True
        if attnums is None or any(attnum < 0 for attnum in attnums):
            return False
        acls = column_acls(self.catalog, relation.oid)
        is_whole = not attnums or 0 in attnums
        chosen = [c.attnum for c in relation.columns] if is_whole else attnums
        verdicts = [
            self.has("column", relation.owner, acls.get(a), privilege, as_option=as_option)
            for a in chosen
        ]
        return all(verdicts) and bool(verdicts) if attnums else any(verdicts)

    def has_on_all_relations(self, privilege: Privilege) -> bool:
        """Return whether a predefined role gives the role a privilege on every relation."""
        return _ON_ALL_RELATIONS.get(privilege) in self.roles

    def has_on_schema(self, oid: int, privilege: Privilege, *, as_option: bool = False) -> bool:
        table = schema.pg_namespace
        row = self.catalog.first(table, table.c.oid == oid)
        if row is None:
            return False
        if row.nspname == self.catalog.temporary_schema and not as_option:  # pg_namespace_aclmask
            return privilege == Privilege.USAGE or self.has_on_database(Privilege.TEMPORARY)
        if (
            privilege == Privilege.USAGE
            and not as_option
            and self.roles & {READ_ALL_DATA, WRITE_ALL_DATA}
        ):
            return True
        acl = decode_acl(row.nspacl)
        return self.has("schema", int(row.nspowner), acl, privilege, as_option=as_option)

    def has_on_database(
        self, privilege: Privilege, oid: int | None = None, *, as_option: bool = False
    ) -> bool:
        table = schema.pg_database
        row = self.catalog.first(table, table.c.oid == (oid or self.catalog.database_oid))
        if row is None:
            return False
        acl = decode_acl(row.datacl)
        return self.has("database", int(row.datdba), acl, privilege, as_option=as_option)

    def has_on_function(
        self, oid: int, privilege: Privilege = Privilege.EXECUTE, *, as_option: bool = False
    ) -> bool:
        """Return whether the role may call a user-defined function."""
        row = self.catalog.first(schema.pg_proc, schema.pg_proc.c.oid == oid)
        if row is None:
            return False
        acl = decode_acl(row.proacl)
        return self.has("function", int(row.proowner), acl, privilege, as_option=as_option)

    def has_on_type(
        self, oid: int, privilege: Privilege = Privilege.USAGE, *, as_option: bool = False
    ) -> bool:
        """Return whether the role may use a type; arrays have the privileges of their elements."""
        table = schema.pg_type
        row = self.catalog.first(table, table.c.oid == oid)
        if row is not None and row.typelem:
            row = self.catalog.first(table, table.c.oid == row.typelem)
        if row is None:
            return oid < FIRST_USER_OID
        acl = decode_acl(row.typacl)
        return self.has("type", int(row.typowner), acl, privilege, as_option=as_option)

    def check_type(self, oid: int, name: str) -> None:
        """Check that the role may use a type.

        Raises:
            InsufficientPrivilege: the role may not use the type (42501).
        """
        if not self.is_superuser and oid >= FIRST_USER_OID and not self.has_on_type(oid):
            raise denied("type", name)

    @property
    def reads_all_settings(self) -> bool:
        return self.acts_for(READ_ALL_SETTINGS)

    # -- errors

    def check_relation(
        self, relation: Relation, privilege: Privilege, attnums: Collection[int] | None = None
    ) -> None:
        """Check that the role has a privilege on a relation.

        Raises:
            InsufficientPrivilege: the role does not have the privilege (42501).
        """
        if not self.is_superuser and not self.has_on_relation(relation, privilege, attnums):
            raise denied(RELATION_WORDS[relation.kind], relation.name)

    def check_relation_owner(self, relation: Relation) -> None:
        """Check that the role owns a relation.

        Raises:
            InsufficientPrivilege: neither the role, nor a role that it acts for, owns the relation.
        """
        self.check_owner(relation.owner, RELATION_WORDS[relation.kind], relation.name)

    def check_owner(self, owner: int, word: str, name: str) -> None:
        """Check that the role owns an object.

        Raises:
            InsufficientPrivilege: neither the role, nor a role that it acts for, owns the object.
        """
        if not self.acts_for(owner):
            raise InsufficientPrivilege(f"must be owner of {word} {name}")

    def check_sequence(self, oid: int, privileges: tuple[Privilege, ...]) -> None:
        """Check that the role has at least one of these privileges on a sequence.

        Raises:
            InsufficientPrivilege: the role has none of these privileges.
        """
        key = (Privileges.check_sequence, self.role_oid, oid, privileges)
        self.catalog.cached(key, lambda: self._check_sequence(oid, privileges))

    def _check_sequence(self, oid: int, privileges: tuple[Privilege, ...]) -> None:
        sequence = get_relation(self.catalog, oid)
        if sequence is None or sequence.kind != RelKind.SEQUENCE:
            return
        if not any(self.has_on_relation(sequence, privilege) for privilege in privileges):
            self.check_relation(sequence, privileges[0])

    def check_schema(self, oid: int, name: str, privilege: Privilege) -> None:
        """Check that the role has a privilege on a schema.

        Raises:
            InsufficientPrivilege: the role does not have the privilege.
        """
        if not self.is_superuser and not self.has_on_schema(oid, privilege):
            raise denied("schema", name)

    def check_database(self, name: str, privilege: Privilege) -> None:
        """Check that the role has a privilege on the session's database.

        Raises:
            InsufficientPrivilege: the role does not have the privilege.
        """
        if not self.is_superuser and not self.has_on_database(privilege):
            raise denied("database", name)

    def check_become(self, role_oid: int, name: str) -> None:
        """Check that the role may SET ROLE to another role.

        Raises:
            InsufficientPrivilege: the role lacks this permission, so it cannot make the other role
                an owner.
        """
        if not self.may_become(role_oid):
            raise InsufficientPrivilege(f'must be able to SET ROLE "{name}"')


def privileges_of(catalog: Catalog, role_oid: int) -> Privileges:
    """Return the privileges of a role in the catalog's current state."""
    return catalog.cached(("privileges", role_oid), lambda: Privileges(catalog, role_oid))


def denied(word: str, name: str) -> InsufficientPrivilege:
    """Return an error such as `permission denied for table t`."""
    return InsufficientPrivilege(f"permission denied for {word} {name}")


def relation_acl(catalog: Catalog, oid: int) -> Acl | None:
    """Return the access list of a relation; None if no privilege was granted."""
    row = catalog.first(schema.pg_class, schema.pg_class.c.oid == oid)
    return None if row is None else decode_acl(row.relacl)


def function_acl(catalog: Catalog, oid: int) -> Acl | None:
    """Return the access list of a user-defined function; None if no privilege was granted."""
    row = catalog.first(schema.pg_proc, schema.pg_proc.c.oid == oid)
    return None if row is None else decode_acl(row.proacl)


def acl_items(catalog: Catalog, acl: Acl | None) -> list[str] | None:
    """Return the items of an access list in text form."""
    if acl is None:
        return None
    names = role_names(catalog)
    return [item.shown(names) for item in acl]


_OWNERS = {
    "pg_namespace": "nspowner", "pg_database": "datdba", "pg_publication": "pubowner",
    "pg_subscription": "subowner", "pg_type": "typowner", "pg_proc": "proowner",
    "pg_operator": "oprowner", "pg_collation": "collowner", "pg_class": "relowner",
}  # fmt: skip


def owner_of(catalog: Catalog, class_name: str, oid: int) -> int:
    """Return the owner of an object; built-in objects belong to the bootstrap superuser."""
    table = schema_table.metadata.tables[class_name]
    row = catalog.first(table, table.c.oid == oid)
    return 10 if row is None else int(row._mapping[_OWNERS[class_name]])


def put_relation_acl(catalog: Catalog, oid: int, acl: Acl) -> None:
    """Replace the access list of a relation."""
    catalog.update(schema.pg_class, schema.pg_class.c.oid == oid, relacl=encode_acl(acl))


def column_acls(catalog: Catalog, relid: int) -> dict[int, Acl]:
    """Return the access lists of a relation's columns, by attnum; columns without one are
    omitted.
    """
    table = schema.pg_attribute
    rows = catalog.select(table, table.c.attrelid == relid, table.c.attacl.is_not(None))
    return {int(row.attnum): decode_acl(row.attacl) or () for row in rows}


def put_column_acl(catalog: Catalog, relid: int, attnum: int, acl: Acl) -> None:
    """Replace the access list of a column."""
    table = schema.pg_attribute
    where = (table.c.attrelid == relid, table.c.attnum == attnum)
    catalog.update(table, *where, attacl=encode_acl(acl) if acl else None)
