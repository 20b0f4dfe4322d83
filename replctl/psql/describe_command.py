"""`\\d` commands: find the function of a command, and list relations and schemas (describe.c).

Each list has a title and a query of the catalogs.  Other commands are in describe_relation
(`\\d NAME`), describe_replication (`\\dRp`, `\\dRs`) and describe_cluster (`\\l`, `\\du`, `\\dp`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from replctl.catalog import pg_authid, pg_class, pg_namespace, pg_publication, schema
from replctl.catalog.acl import decode_acl
from replctl.catalog.initdb import BOOTSTRAP_SUPERUSER
from replctl.catalog.pg_description import get_comment
from replctl.catalog.relation_kind import (
    INDEX_KINDS,
    TABLE_KINDS,
    WITH_DELTA_TABLE,
    RelKind,
    RelPersistence,
)
from replctl.psql.described import (
    RELATION_TYPES,
    Described,
    access_method,
    described,
    find_relations,
    find_system_relations,
    shown_acl,
)
from replctl.psql.pattern import parse_pattern
from replctl.psql.print_content import Table
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.variables import PsqlError
from replctl.types.builtin import SystemRelation

if TYPE_CHECKING:
    pass

#: The kinds of relation that each letter of `\dtvmisE` lists.
_KINDS = {
    "t": TABLE_KINDS,
    "v": (RelKind.VIEW,),
    "m": (RelKind.MATERIALIZED_VIEW,),
    "i": INDEX_KINDS,
    "s": (RelKind.SEQUENCE,),
    "E": (RelKind.FOREIGN_TABLE,),
}
_PERSISTENCE: dict[str, str] = {
    RelPersistence.PERMANENT: "permanent",
    RelPersistence.TEMPORARY: "temporary",
    RelPersistence.UNLOGGED: "unlogged",
}


def is_describe_command(name: str) -> bool:
    """Return whether `name`, which begins with d, is a command that `describe` runs."""
    return _describer(name) is not None


def describe(settings: PsqlSettings, name: str, pattern: str | None) -> bool:
    """Run `\\NAME PATTERN`, and return whether it found anything.

    Raises:
        PsqlError: there is no connection, or the pattern is invalid.
        PostgresError: the catalog cannot be read.
    """
    describer = _describer(name)
    assert describer is not None, name
    with described(settings) as target:
        return describer(target, pattern, "+" in name, "S" in name)


#: A function for a `\\d` command.  Its arguments are the objects, the pattern, and flags for `+`
#: and `S`.  It returns whether it found anything.
_Describer = Callable[[Described, str | None, bool, bool], bool]


def _describer(name: str) -> _Describer | None:
    base = name.replace("+", "")
    if base.startswith(("dRp", "dRs")):  # psql ignores further letters
        from replctl.psql import describe_replication as replication

        if base.startswith("dRs"):
            return replication.list_subscriptions
        return replication.describe_publications if "+" in name else replication.list_publications
    base = base.replace("S", "")
    match base:
        case "d":
            return _describe_relations
        case "dn":
            return _list_schemas
        case "du" | "dg":
            from replctl.psql.describe_cluster import list_roles

            return list_roles
        case "ddp":
            from replctl.psql.describe_settings import list_default_privileges

            return list_default_privileges
        case "dD":
            from replctl.psql.describe_type import list_domains

            return list_domains
        case _ if base.startswith("dT"):  # psql ignores further letters
            from replctl.psql.describe_type import list_types

            return list_types
        case "drg":
            from replctl.psql.describe_cluster import list_role_grants

            return list_role_grants
        case "dd":
            from replctl.psql.describe_cluster import list_comments

            return list_comments
        case "dp":
            from replctl.psql.describe_cluster import list_privileges_of

            return list_privileges_of
    letters = base[1:]
    if letters and all(letter in _KINDS for letter in letters):
        return _relation_lister("".join(dict.fromkeys(letters)))
    return None


def _describe_relations(
    target: Described, pattern: str | None, verbose: bool, show_system: bool
) -> bool:
    if pattern is None:
        return _relation_lister("tvmsE")(target, None, verbose, show_system)
    from replctl.psql.describe_relation import describe_relations

    return describe_relations(target, pattern, verbose)


def _relation_lister(letters: str) -> _Describer:
    """Return the function for `\\dt`, `\\di`, `\\dtv` and so on: list relations (listTables)."""
    kinds = [kind for letter in letters for kind in _KINDS[letter]]
    has_indexes = RelKind.INDEX in kinds

    def list_relations(
        target: Described, pattern: str | None, verbose: bool, show_system: bool
    ) -> bool:
        parsed = parse_pattern(pattern, target.session.database_name)
        relations: list[pg_class.Relation | SystemRelation] = [
            *find_relations(target, kinds, parsed)
        ]
        if show_system or pattern is not None:
            relations += find_system_relations(target, kinds, parsed)
        if not relations and not target.settings.is_quiet:
            what = "any relations." if pattern is None else f'any relation named "{pattern}".'
            raise PsqlError(f"Did not find {what}")
        owners = pg_authid.role_names(target.catalog)
        columns = ["Schema", "Name", "Type", "Owner", *(["Table"] if has_indexes else [])]
        has_method = has_indexes or any(kind in WITH_DELTA_TABLE for kind in kinds)
        if verbose:
            columns += ["Persistence", *(["Access method"] if has_method else [])]
            columns += ["Size", "Description"]
        tables = _tables_of_indexes(target) if has_indexes else {}
        index_methods = _methods_of_indexes(target) if has_indexes and verbose else {}
        rows = []
        for relation in sorted(relations, key=lambda relation: (relation.schema, relation.name)):
            row: list[str | None] = [
                relation.schema,
                relation.name,
                RELATION_TYPES[relation.kind],
                owners.get(_owner(relation)),
            ]
            if has_indexes:
                row.append(tables.get(relation.oid))
            if verbose:
                row.append(_PERSISTENCE[_persistence(relation)])
                method = access_method(target.settings, relation.kind)
                if method is not None:
                    method = index_methods.get(relation.oid, method)
                row += [method] if has_method else []
                row += [_size(relation), get_comment(target.catalog, "pg_class", relation.oid)]
            rows.append(row)
        target.print(Table(columns, rows, title="List of relations"))
        return True

    return list_relations


def _owner(relation: pg_class.Relation | SystemRelation) -> int:
    return BOOTSTRAP_SUPERUSER if isinstance(relation, SystemRelation) else relation.owner


def _persistence(relation: pg_class.Relation | SystemRelation) -> str:
    return (
        RelPersistence.PERMANENT if isinstance(relation, SystemRelation) else relation.persistence
    )


def _size(relation: pg_class.Relation | SystemRelation) -> str | None:
    """Return the size of a relation's current rows as text; None if its log cannot be read."""
    if isinstance(relation, SystemRelation):
        return "0 bytes"  # a catalog has no file of its own
    from replctl.adt.dbsize import pretty_size
    from replctl.query.size import relation_size

    size = relation_size(relation)
    return None if size is None else pretty_size(size)


def _methods_of_indexes(target: Described) -> dict[int, str]:
    return {int(row.indexrelid): str(row.indam) for row in target.catalog.select(schema.pg_index)}


def _tables_of_indexes(target: Described) -> dict[int, str]:
    rows = target.catalog.select(schema.pg_index)
    relations = pg_class.load_relations(target.catalog, [int(row.indrelid) for row in rows])
    return {int(row.indexrelid): relations[int(row.indrelid)].name for row in rows}


def _list_schemas(target: Described, pattern: str | None, verbose: bool, show_system: bool) -> bool:
    """Run `\\dn`: list schemas (listSchemas)."""
    parsed = parse_pattern(pattern, target.session.database_name, max_parts=2)
    owners = pg_authid.role_names(target.catalog)
    columns = ["Name", "Owner", *(["Access privileges", "Description"] if verbose else [])]
    rows: list[list[str | None]] = []
    by_name = sorted(target.catalog.select(schema.pg_namespace), key=lambda row: str(row.nspname))
    for row in by_name:
        name = str(row.nspname)
        is_system = name.startswith("pg_") or name == "information_schema"
        if (is_system and pattern is None and not show_system) or not parsed.matches("", name):
            continue
        rows.append([name, owners.get(int(row.nspowner))])
        if verbose:
            rows[-1].append(shown_acl(target, decode_acl(row.nspacl)))
            rows[-1].append(get_comment(target.catalog, "pg_namespace", int(row.oid)))
    footers = None if pattern is None else _publications_of_schema(target, pattern)
    target.print(Table(columns, rows, title="List of schemas", footers=footers or None))
    return True


def _publications_of_schema(target: Described, name: str) -> list[str]:
    oid = pg_namespace.find_schema(target.catalog, name)
    if oid is None:
        return []
    names = [
        publication.name
        for publication in pg_publication.list_publications(target.catalog)
        if oid in pg_publication.published_schemas(target.catalog, publication.oid)
    ]
    return ["Publications:", *(f'    "{name}"' for name in names)] if names else []
