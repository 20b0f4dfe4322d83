"""Which tables' files may be read and written: the server's files, where a table has a LOCATION,
belong to roles that may read and write them."""

from __future__ import annotations

from collections.abc import Iterable

from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_authid import PREDEFINED_ROLES, READ_SERVER_FILES, WRITE_SERVER_FILES
from replctl.catalog.pg_class import Relation
from replctl.catalog.transaction import Catalog
from replctl.errors import InsufficientPrivilege, ObjectNotInPrerequisiteState
from replctl.types.quote import quote_identifier, quote_literal


def check_location_role(privileges: Privileges, *, writes: bool) -> None:
    """Check that a role may read the tables that it finds at a LOCATION, or make some there.

    Raises:
        InsufficientPrivilege: it may not (42501).
    """
    role = WRITE_SERVER_FILES if writes else READ_SERVER_FILES
    if not privileges.acts_for(role):
        raise InsufficientPrivilege(
            "permission denied to use LOCATION",
            detail=f'Only roles with privileges of the "{PREDEFINED_ROLES[role]}" role may'
            f" {'write' if writes else 'read'} tables with a LOCATION.",
        )


def check_readable(catalog: Catalog, relations: Iterable[Relation]) -> None:
    """Check that the owners of tables with a LOCATION may read files of the server.

    Raises:
        InsufficientPrivilege: one may not (42501).
    """
    for relation in relations:
        _check_owner(catalog, relation, READ_SERVER_FILES, "read")


def check_writable(catalog: Catalog, relations: Iterable[Relation]) -> None:
    """Check that replctl may write tables: they are not those of the cluster that this one is a
    copy of, and the owners of those with a LOCATION may write files of the server.

    Raises:
        ObjectNotInPrerequisiteState: one belongs to the original cluster (55000).
        InsufficientPrivilege: the owner of one may not write files (42501).
    """
    for relation in relations:
        _check_not_read_only(relation)
        _check_owner(catalog, relation, WRITE_SERVER_FILES, "write")


def _check_owner(catalog: Catalog, relation: Relation, role: int, verb: str) -> None:
    if relation.storage is None or not relation.storage.has_location:
        return
    owner = Privileges(catalog, relation.owner)
    if not owner.acts_for(role):
        needed, name = PREDEFINED_ROLES[role], owner.role.name
        raise InsufficientPrivilege(
            f'permission denied to {verb} the files of table "{relation.name}"',
            detail=f'The table has a LOCATION, and its owner "{name}" does not have privileges of'
            f' the "{needed}" role.',
            hint=f"Use GRANT {needed} TO {quote_identifier(name)}.",
        )


def _check_not_read_only(relation: Relation) -> None:
    if relation.storage is not None and relation.storage.is_read_only:
        name, location = relation.qualified_name, relation.storage.location
        raise ObjectNotInPrerequisiteState(
            f'cannot write table "{relation.name}": it belongs to the cluster that this one is'
            " a copy of",
            detail=f'Its Delta table is "{location}".',
            hint="If this cluster alone writes it from now on, adopt it again: DROP TABLE"
            f" {name}, which leaves the files, then CREATE TABLE {name} USING delta LOCATION"
            f" {quote_literal(location)}.",
        )
