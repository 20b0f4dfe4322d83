"""`\\d` commands: what a name stands for, and the lists of relations and schemas (describe.c).

Every list is a query of the catalogs and a title.  The others are in describe_relation
(`\\d NAME`), describe_replication (`\\dRp`, `\\dRs`) and describe_cluster (`\\l`, `\\du`, `\\dp`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replctl.catalog import pg_authid, pg_class, pg_namespace, pg_publication, schema
from replctl.catalog.acl import PUBLIC, Acl, decode_acl
from replctl.catalog.aclchk import acl_items
from replctl.catalog.cluster import BOOTSTRAP_SUPERUSER
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_authid import role_names
from replctl.catalog.pg_description import get_comment
from replctl.catalog.pg_policy import Policy
from replctl.catalog.transaction import Catalog
from replctl.psql.pattern import NamePattern, parse_pattern
from replctl.psql.print_table import PrintOptions, Table
from replctl.psql.settings import PsqlSettings
from replctl.psql.variables import PsqlError
from replctl.record import dataclass
from replctl.types.builtin import SystemRelation, system_relations_by_oid

if TYPE_CHECKING:
    from replctl.session import Session

#: What `\\d+` calls pg_type.typstorage.
STORAGE = {"p": "plain", "m": "main", "x": "extended", "e": "external"}

RELATION_TYPES = {
    "r": "table",
    "p": "partitioned table",
    "v": "view",
    "m": "materialized view",
    "i": "index",
    "I": "partitioned index",
    "S": "sequence",
    "f": "foreign table",
}
#: Kinds of relations whose columns have a collation, NOT NULL, a default.
WITH_COLUMN_DETAILS = "rpvmfc"
#: Letter of `\dtvmisE` -> the kinds of relation that it lists.
_KINDS = {"t": "rp", "v": "v", "m": "m", "i": "iI", "s": "S", "E": "f"}
_PERSISTENCE = {"p": "permanent", "t": "temporary", "u": "unlogged"}
SYSTEM_SCHEMAS = frozenset({"pg_catalog", "information_schema", "pg_toast"})


@dataclass(frozen=True, slots=True)
class Described:
    """The objects that a `\\d` command looks at.

    Attributes:
        settings: where its table goes.
        session, catalog, environment: the database.
    """

    settings: PsqlSettings
    session: Session
    catalog: Catalog
    environment: CatalogEnvironment

    @property
    def options(self) -> PrintOptions:
        """The session's options."""
        return self.settings.print_options

    def print(self, table: Table) -> None:
        self.settings.print(table, self.options)

    def is_visible(self, oid: int, name: str) -> bool:
        """Return whether the search path finds a relation by its bare name."""
        return self.environment.relation_oid(None, name) == oid


def is_describe_command(name: str) -> bool:
    """Return whether `name`, which begins with d, is one of the commands here."""
    return _describer(name) is not None


def describe(settings: PsqlSettings, name: str, pattern: str | None) -> bool:
    """Carry out `\\NAME PATTERN`; whether it found what it was to describe.

    Raises:
        PsqlError: there is no connection, or the pattern is wrong.
        PostgresError: what the catalog says.
    """
    describer = _describer(name)
    assert describer is not None, name
    with described(settings) as target:
        return describer(target, pattern, "+" in name, "S" in name)


@contextmanager
def described(settings: PsqlSettings) -> Iterator[Described]:
    """Yield the connected database, to be looked at.

    Raises:
        PsqlError: there is no connection.
    """
    session = settings.session
    if session is None:
        raise PsqlError("You are currently not connected to a database.")
    with session.read() as catalog:
        yield Described(settings, session, catalog, session.environment(catalog))


#: A `\\d` command: what to look at, pattern, `+`, `S`; whether something was found.
_Describer = Callable[[Described, str | None, bool, bool], bool]


def _describer(name: str) -> _Describer | None:
    base = name.replace("+", "")
    if base in ("dRp", "dRs"):
        from replctl.psql import describe_replication as replication

        if base == "dRs":
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


def find_relations(target: Described, kinds: str, pattern: NamePattern) -> list[pg_class.Relation]:
    """Return the relations of these kinds that a pattern means, by schema and name."""
    rows = target.catalog.select(schema.pg_class, schema.pg_class.c.relkind.in_(list(kinds)))
    names = pg_namespace.schema_names(target.catalog)
    oids = [
        int(row.oid)
        for row in rows
        if _is_meant(target, pattern, names[int(row.relnamespace)], str(row.relname), int(row.oid))
    ]
    found = pg_class.load_relations(target.catalog, oids).values()
    return sorted(found, key=lambda relation: (relation.schema, relation.name))


def find_system_relations(
    target: Described, kinds: str, pattern: NamePattern
) -> list[SystemRelation]:
    """Return the catalogs and system views of these kinds that a pattern means."""
    return [
        relation
        for relation in system_relations_by_oid().values()
        if relation.kind in kinds
        and _is_meant(target, pattern, relation.schema, relation.name, relation.oid)
    ]


def _is_meant(target: Described, pattern: NamePattern, schema: str, name: str, oid: int) -> bool:
    return pattern.matches(schema, name) and (pattern.has_schema or target.is_visible(oid, name))


def _relation_lister(letters: str) -> _Describer:
    """`\\dt`, `\\di`, `\\dtv` ...: List of relations (listTables)."""
    kinds = "".join(_KINDS[letter] for letter in letters)

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
        columns = ["Schema", "Name", "Type", "Owner"]
        if "i" in letters:
            columns.append("Table")
        if verbose:
            has_method = set(letters) & set("tmi")
            columns += ["Persistence", *(["Access method"] if has_method else [])]
            columns += ["Size", "Description"]
        tables = _tables_of_indexes(target) if "i" in letters else {}
        rows = []
        for relation in sorted(relations, key=lambda relation: (relation.schema, relation.name)):
            row: list[str | None] = [
                relation.schema,
                relation.name,
                RELATION_TYPES[relation.kind],
                owners.get(_owner(relation)),
            ]
            if "i" in letters:
                row.append(tables.get(relation.oid))
            if verbose:
                row.append(_PERSISTENCE[_persistence(relation)])
                row += [access_method(target.settings, relation.kind)] if has_method else []
                row += [_size(relation), get_comment(target.catalog, "pg_class", relation.oid)]
            rows.append(row)
        target.print(Table(columns, rows, title="List of relations"))
        return True

    return list_relations


def column_titles(target: Described, kind: str, verbose: bool) -> list[str]:
    """Return what `\\d` shows of the columns of a relation of a kind."""
    titles = ["Column", "Type"]
    has_details = kind in WITH_COLUMN_DETAILS
    if has_details:
        titles += ["Collation", "Nullable", "Default"]
    if verbose:
        titles += ["Storage"]
        if kind in "rpm" and not target.settings.variables.is_on("HIDE_TOAST_COMPRESSION"):
            titles += ["Compression"]
        if kind in "rpmf":
            titles += ["Stats target"]
        if has_details:
            titles += ["Description"]
    return titles


def index_words(is_primary: bool, is_unique: bool, is_constraint: bool) -> str:
    """Return what stands between an index's name and its definition."""
    if is_primary:
        return " PRIMARY KEY,"
    if is_unique:
        return " UNIQUE CONSTRAINT," if is_constraint else " UNIQUE,"
    return ""


def access_method(settings: PsqlSettings, kind: str) -> str | None:
    """Return what psql shows for one, to readers who know PostgreSQL."""
    if settings.variables.is_on("HIDE_TABLEAM"):
        return None
    return {"r": "heap", "m": "heap", "i": "btree", "I": "btree"}.get(kind)


def _owner(relation: pg_class.Relation | SystemRelation) -> int:
    return BOOTSTRAP_SUPERUSER if isinstance(relation, SystemRelation) else relation.owner


def _persistence(relation: pg_class.Relation | SystemRelation) -> str:
    return "p" if isinstance(relation, SystemRelation) else relation.persistence


def _size(relation: pg_class.Relation | SystemRelation) -> str | None:
    """Return what the rows of a relation take up as they are now; nothing if its log cannot be
    read."""
    if isinstance(relation, SystemRelation):
        return "0 bytes"  # the catalogs are one file
    from replctl.adt.dbsize import pretty_size
    from replctl.query.size import relation_size

    size = relation_size(relation)
    return None if size is None else pretty_size(size)


def _tables_of_indexes(target: Described) -> dict[int, str]:
    rows = target.catalog.select(schema.pg_index)
    relations = pg_class.load_relations(target.catalog, [int(row.indrelid) for row in rows])
    return {int(row.indexrelid): relations[int(row.indrelid)].name for row in rows}


def _list_schemas(target: Described, pattern: str | None, verbose: bool, show_system: bool) -> bool:
    """`\\dn` (listSchemas)."""
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


def shown_acl(target: Described, acl: Acl | None) -> str | None:
    """Return an access list, an item on each line (printACLColumn)."""
    items = acl_items(target.catalog, acl)
    return items if items is None else "\n".join(items) or "(none)"


def policy_roles(target: Described, policy: Policy) -> list[str]:
    """Return the names of the roles that a policy is for; none where it is for everybody."""
    names = role_names(target.catalog)
    return sorted(names[oid] for oid in policy.roles if oid != PUBLIC)


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
