"""Find the relation named in a statement (RangeVarGetRelidExtended)."""

from __future__ import annotations

from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.relation_kind import INDEX_KINDS, TABLE_KINDS, RelKind
from replctl.commands.ddl import Ddl
from replctl.does_not_exist import no_relation
from replctl.errors import InsufficientPrivilege, WrongObjectType
from replctl.expr.type_names import check_schema, split_relation_name
from replctl.types.builtin import FIRST_USER_OID

#: The kinds of relations that each type of object in statements has.
RELATION_KINDS: dict[str, tuple[RelKind, ...]] = {
    "table": TABLE_KINDS,
    "index": INDEX_KINDS,
    "view": (RelKind.VIEW,),
    "materialized view": (RelKind.MATERIALIZED_VIEW,),
    "sequence": (RelKind.SEQUENCE,),
    "foreign table": (),
}


def find_relation(ddl: Ddl, name: tuple[str, ...], *, missing_ok: bool = False) -> Relation | None:
    """Return the relation of that name.  If it is missing and IF EXISTS was given, report a notice
    and return None.

    Raises:
        UndefinedTable: there is no such relation.
        InsufficientPrivilege: the relation is a catalog.
    """
    schema_name, last = split_relation_name(ddl.environment, name)
    oid = ddl.environment.relation_oid(schema_name, last)
    if oid is None:
        shown = last if schema_name is None else f"{schema_name}.{last}"
        if not missing_ok:
            check_schema(ddl.environment, schema_name)
            raise no_relation(shown)
        ddl.notice(f'relation "{last}" does not exist, skipping')
        return None
    if oid < FIRST_USER_OID:
        raise InsufficientPrivilege(f'permission denied: "{last}" is a system catalog')
    return get_relation(ddl.catalog, oid)


def check_kind(relation: Relation, kind: str) -> None:
    """Check the kind of a relation.  ALTER TABLE and the renaming of attributes accept every kind;
    the other statements accept only their own.

    Raises:
        WrongObjectType: the relation is of another kind.
    """
    if kind not in ("table", "type") and relation.kind not in RELATION_KINDS[kind]:
        article = "an" if kind == "index" else "a"
        raise WrongObjectType(f'"{relation.name}" is not {article} {kind}')
