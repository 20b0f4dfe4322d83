"""Refuse the commits that a newer state of this catalog has marked, or a copy of it."""

from __future__ import annotations

from pathlib import Path

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_control import check_timeline
from replctl.catalog.storage import accepts_marks
from replctl.catalog.transaction import Catalog
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.commit_mark import CommitMark
from replctl.own_command import own_command
from replctl.types.quote import quote_literal


def check_mark(
    catalog: Catalog,
    relation: Relation,
    version: int,
    mark: CommitMark,
    home: Path,
    *,
    is_known: bool,
) -> None:
    """Check that a marked commit that the commit log lacks was made with this catalog.

    Args:
        version: the version of the Delta table that the commit made.
        is_known: the catalog knows the nonce of the mark.

    Raises:
        CannotConnectNow: a standby that was promoted made the commit (57P03).
        ObjectNotInPrerequisiteState: the catalog does not know the nonce (55000).
    """
    check_timeline(catalog.connection, mark.timeline)
    if is_known or accepts_marks(catalog.connection, relation.oid):
        return
    assert relation.storage is not None
    identify = own_command("cluster", "identify", "--restored", home=home)
    raise ObjectNotInPrerequisiteState(
        f'table "{relation.qualified_name}" has commits of this cluster that its catalog lacks',
        detail=f'Version {version} of the Delta table "{relation.storage.location}" is marked by a'
        " newer state or a copy of this catalog.",
        hint=f'If the catalog was restored from a backup, run "{identify}". To treat the commits as'
        " another writer's, use SELECT"
        f" replctl_accept_commits({quote_literal(relation.quoted_name)}).",
    )
