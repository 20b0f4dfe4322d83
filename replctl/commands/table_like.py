"""LIKE: copy columns, and optionally more, from another table (transformTableLikeClause() and
expandTableLikeClause() in parse_utilcmd.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.acl import Privilege
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_description import get_comment, set_comment
from replctl.catalog.pg_sequence import owned_sequences
from replctl.catalog.relation_kind import DependencyType, Generated, Identity, RelKind
from replctl.commands.column_definition import ColumnDraft
from replctl.commands.constraint import add_check, renumbered_check
from replctl.commands.ddl import Ddl
from replctl.commands.index import constraint_of, define_index, draft_like
from replctl.commands.sequence import SequenceDraft
from replctl.errors import FeatureNotSupported, WrongObjectType
from replctl.expr import nodes
from replctl.parser import ast
from replctl.query.open_relation import open_relation
from replctl.record import dataclass
from replctl.types.builtin import SystemRelation

_OPTIONS = frozenset(
    (
        "comments",
        "compression",
        "constraints",
        "defaults",
        "generated",
        "identity",
        "indexes",
        "storage",
    )
)


@dataclass(frozen=True, slots=True)
class Like:
    """A table whose columns are copied, and `options`, which name the parts to copy with them:
    constraints, defaults, generated, identity, indexes, storage, compression, comments.
    """

    source: Relation
    options: frozenset[str]


def find_like(ddl: Ddl, clause: ast.TableLike) -> Like:
    """Return the table and options of a LIKE clause.

    Raises:
        UndefinedTable: there is no such table.
        WrongObjectType: the relation is a sequence or an index.
    """
    name = clause.relation
    try:
        source = open_relation(ddl.environment, name, or_sequence=True, or_composite=True)
    except WrongObjectType as error:
        raise _invalid_source(name, error.detail) from error
    if isinstance(source, SystemRelation):
        raise FeatureNotSupported("LIKE of a system catalog is not supported", position=clause.pos)
    if source.kind == RelKind.SEQUENCE:
        raise _invalid_source(name, f"This operation is not supported for {source.kind.plural}.")
    if source.kind == RelKind.COMPOSITE_TYPE:
        type_ = ddl.environment.type(source.row_type)
        ddl.privileges.check_type(type_.oid, source.name)
    else:
        ddl.privileges.check_relation(source, Privilege.SELECT)
    included = set(_OPTIONS) if "all" in clause.including else set(clause.including)
    excluded = set(_OPTIONS) if "all" in clause.excluding else set(clause.excluding)
    return Like(source, frozenset(included - excluded))


def _invalid_source(name: ast.RangeVar, detail: str | None) -> WrongObjectType:
    return WrongObjectType(
        f'relation "{name.name}" is invalid in LIKE clause', detail=detail, position=name.pos
    )


def like_columns(ddl: Ddl, like: Like) -> list[ColumnDraft]:
    """Return drafts of the copied columns, with NOT NULL but without defaults."""
    return [
        ColumnDraft(
            replace(
                column,
                attnum=0,
                default=None,
                generated=column.generated if "generated" in like.options else Generated.NONE,
                identity=column.identity if "identity" in like.options else Identity.NONE,
                is_local=True,
                inherited_count=0,
                missing_value=None,
                storage=column.storage if "storage" in like.options else None,
                compression=column.compression if "compression" in like.options else None,
                statistics=None,
                options={},
            ),
            sequence=_copied_sequence(ddl, like.source, column)
            if column.identity and "identity" in like.options
            else None,
        )
        for column in like.source.columns
    ]


def _copied_sequence(ddl: Ddl, table: Relation, column: Column) -> SequenceDraft:
    """Return the sequence of an identity column, with the options of the source's sequence.  As in
    PostgreSQL, its type is bigint.
    """
    found = owned_sequences(ddl.catalog, table.oid, column.attnum)
    source = next(s for s in found if s.ownership == DependencyType.INTERNAL)
    options = (
        ("cache", source.cache),
        ("cycle", "true" if source.cycles else "false"),
        ("increment", source.increment),
        ("maxvalue", source.maximum),
        ("minvalue", source.minimum),
        ("start", source.start),
    )
    elements = tuple(ast.DefElem(name, str(value)) for name, value in options)
    return SequenceDraft("int8", DependencyType.INTERNAL, elements)


def like_defaults(likes: Sequence[Like], columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns of a new table, with the copied defaults and generation expressions."""
    by_name = {column.name: column for column in columns}
    for like in likes:
        for source in like.source.columns:
            option = "generated" if source.generated else "defaults"
            if source.identity:
                continue
            if source.default is not None and option in like.options:
                attnums = {c.attnum: by_name[c.name].attnum for c in like.source.columns}
                default = nodes.renumber(source.default, attnums)
                by_name[source.name] = replace(by_name[source.name], default=default)
    return tuple(by_name[column.name] for column in columns)


def like_members(ddl: Ddl, oid: int, likes: Sequence[Like]) -> None:
    """Copy the requested constraints, indexes and comments to a new table."""
    for like in likes:
        if "constraints" in like.options:
            for check in like.source.checks():
                relation = ddl.relation(oid)
                mine = renumbered_check(check, like.source, relation)
                copied = replace(mine, is_local=True, inherited_count=0, parent_oid=0)
                add_check(ddl, relation, copied, merges=True)
        if "indexes" in like.options:
            for index in sorted(like.source.indexes, key=lambda index: index.oid):
                new_oid = _copy_index(ddl, ddl.relation(oid), like.source, index.oid)
                if "comments" in like.options:
                    _copy_comment(ddl, "pg_class", index.oid, new_oid)
        if "comments" in like.options:
            _copy_comments(ddl, like, ddl.relation(oid))


def _copy_comments(ddl: Ddl, like: Like, relation: Relation) -> None:
    """Copy the comments on columns, and on CHECKs if they are copied."""
    for column in like.source.columns:
        text = get_comment(ddl.catalog, "pg_class", like.source.oid, column.attnum)
        copy = relation.column(column.name)
        if text is not None and copy is not None:
            set_comment(ddl.catalog, "pg_class", relation.oid, text, number=copy.attnum)
    if "constraints" in like.options:
        copies = {check.name: check.oid for check in relation.checks()}
        for check in like.source.checks():
            _copy_comment(ddl, "pg_constraint", check.oid, copies[check.name])


def _copy_comment(ddl: Ddl, class_name: str, source_oid: int, oid: int) -> None:
    text = get_comment(ddl.catalog, class_name, source_oid)
    if text is not None:
        set_comment(ddl.catalog, class_name, oid, text)


def _copy_index(ddl: Ddl, relation: Relation, source: Relation, index_oid: int) -> int:
    """Create an index as the source has it, and return its OID."""
    index = next(index for index in source.indexes if index.oid == index_oid)
    constraint = constraint_of(source, index)
    kind = None if constraint is None else constraint.kind
    return define_index(ddl, relation, draft_like(source, index, relation, kind)).oid
