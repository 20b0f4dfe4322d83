"""Check access to the files of tables: a table with a LOCATION requires a role that may read or
write the server's files.
"""

from __future__ import annotations

from collections.abc import Iterable

from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_authid import PREDEFINED_ROLES, READ_SERVER_FILES, WRITE_SERVER_FILES
from replctl.catalog.pg_class import Relation
from replctl.catalog.storage import PARTITION_TIMEZONE
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported, InsufficientPrivilege, ObjectNotInPrerequisiteState
from replctl.lake.commit_log import reading_log
from replctl.lake.delta_log import columns_of
from replctl.lake.delta_protocol import check_writer_protocol
from replctl.lake.partition_zone import is_utc
from replctl.lake.table_state import has_foreign_rules, table_state
from replctl.types.quote import quote_identifier, quote_literal


def check_location_role(privileges: Privileges, *, writes: bool) -> None:
    """Check that a role may read or create tables at a LOCATION.

    Raises:
        InsufficientPrivilege: the role lacks the privilege (42501).
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
        InsufficientPrivilege: an owner lacks the privilege (42501).
    """
    for relation in relations:
        _check_owner(catalog, relation, READ_SERVER_FILES, "read")


def check_writable(catalog: Catalog, relations: Iterable[Relation]) -> None:
    """Check that replctl may write tables, and that it knows their protocol.

    Raises:
        The errors of `check_files_writable`.
        FeatureNotSupported: a table has an unknown requirement for writers, or Spark would change
            its partition values (0A000).
        UndefinedFile, DataCorrupted, IoError: a table is missing (58P01), or its log is broken
            (XX001) or unreadable.
    """
    for relation in relations:
        check_files_writable(catalog, relation)
        _check_protocol(catalog, relation)


def check_files_writable(catalog: Catalog, relation: Relation) -> None:
    """Check that replctl may write the files of a table.  If this cluster is a copy, the table must
    not belong to the original cluster.  The owner of a table with a LOCATION must be allowed to
    write the server's files.

    Raises:
        ObjectNotInPrerequisiteState: the table belongs to the original cluster (55000).
        InsufficientPrivilege: the table's owner may not write files (42501).
    """
    _check_not_read_only(relation)
    _check_owner(catalog, relation, WRITE_SERVER_FILES, "write")


def _check_protocol(catalog: Catalog, relation: Relation) -> None:
    storage = relation.storage
    if storage is None or not has_foreign_rules(storage):
        return
    with reading_log(catalog, relation):
        state = table_state(storage.location)
        check_writer_protocol(state.protocol, storage.location)
        fields = columns_of(state.metadata, storage.location, state.version)
    partitions = state.metadata.get("partitionColumns", ())
    for field in fields:
        if field["type"] == "binary" and field["name"] in partitions:
            raise FeatureNotSupported(
                f'cannot write table "{relation.name}", which is partitioned by the binary column'
                f' "{field["name"]}"',
                detail="Spark writes partition values as texts. An empty value becomes NULL, and"
                " bytes that are not UTF-8 change.",
            )
    zone = relation.options.get(PARTITION_TIMEZONE)
    if zone is not None and not is_utc(zone):
        raise FeatureNotSupported(
            f'cannot write table "{relation.name}", whose {PARTITION_TIMEZONE} is "{zone}"',
            detail="Delta would write the rows of a changed file with other partition values.",
        )


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
        name = quote_literal(relation.quoted_name)
        raise ObjectNotInPrerequisiteState(
            f'cannot write table "{relation.name}": it belongs to the cluster that this one is'
            " a copy of",
            detail=f'Its Delta table is "{relation.storage.location}".',
            hint="If only this cluster writes it from now on, use SELECT"
            f" replctl_adopt_again({name}).",
        )
