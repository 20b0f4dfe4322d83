"""Dump a database as a script for psql and replctl (pg_dump.c)."""

from __future__ import annotations

from collections.abc import Iterator

from replctl import __version__
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Relation, load_relations, relation_oids
from replctl.catalog.relation_kind import READABLE, RelKind, RelPersistence
from replctl.catalog.transaction import Catalog
from replctl.dump import (
    dumped_definition,
    dumped_replication,
    dumped_rows,
    dumped_table,
    dumped_view,
    security,
)
from replctl.dump.dialect import IF_REPLCTL, QUESTION
from replctl.dump.entry import Entry, in_order
from replctl.dump.source import Source
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.session import Session

_PREAMBLE = """\
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
"""
_STORAGE = "SET default_tablespace = '';\n\nSET default_table_access_method = heap;\n\n"
_WITH_STORAGE = ("TABLE", "MATERIALIZED VIEW")
#: Output formats that every server reads in the same way (setup_connection).
_OUTPUT_SETTINGS = {
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
}


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The options that select the parts of a database to dump.

    Attributes:
        publications, subscriptions: dump only these objects; if both are false, dump everything.
        schema_only: do not dump rows.
    """

    publications: bool = False
    subscriptions: bool = False
    schema_only: bool = False

    @property
    def is_selective(self) -> bool:
        return self.publications or self.subscriptions


def dump_database(session: Session, options: DumpOptions) -> Iterator[str]:
    """Yield the parts of the script that restores the session's database.

    Raises:
        PostgresError: an object cannot be read or dumped.
    """
    for name, value in _OUTPUT_SETTINGS.items():
        session.put_setting(name, value)
    with session.read() as catalog:
        entries, relations = _entries(session, catalog, options)
    yield "--\n-- PostgreSQL database dump\n--\n\n"
    yield f"-- Dumped from database version {session.setting('server_version')}\n"
    yield f"-- Dumped by replctl dump version {__version__}\n\n{_PREAMBLE}\n"
    tables = {t.relation_name: t for t in relations.values() if t.kind == RelKind.TABLE}
    if any(IF_REPLCTL in entry.text for entry in entries):
        yield QUESTION + "\n"
    has_storage = False
    for entry in entries:
        if entry.kind in _WITH_STORAGE and not has_storage:
            has_storage = True
            yield _STORAGE
        if entry.kind == "TABLE DATA":
            found = tables[RelationName(entry.schema or "", entry.name)]
            entry = dumped_rows.table_rows(session, found, entry.owner)
            if not entry.text:
                continue
        yield entry.shown()
    yield "--\n-- PostgreSQL database dump complete\n--\n\n"


def _entries(
    session: Session, catalog: Catalog, options: DumpOptions
) -> tuple[list[Entry], dict[int, Relation]]:
    """Return all entries in the order of the dump, and the database's relations by OID. The entries
    for rows have no text yet.
    """
    environment = CatalogEnvironment(catalog, session.database_name, (), session.role_oid)
    source = Source(environment)
    loaded = load_relations(catalog, relation_oids(catalog, (*READABLE, RelKind.SEQUENCE)))
    relations = {
        oid: found for oid, found in loaded.items() if found.persistence != RelPersistence.TEMPORARY
    }
    entries: list[Entry] = []
    everything = not options.is_selective
    if everything:
        entries += [
            *dumped_definition.schemas(source),
            *dumped_definition.types(source),
            *dumped_definition.functions(source),
            *dumped_definition.operators(source),
            *dumped_table.sequences(source, relations),
            *dumped_table.tables(source, relations),
            *dumped_view.views(source, relations),
        ]
        for relation in relations.values():
            entries += dumped_table.privileges(source, relation)
        entries += security.policies(source, relations)
        entries += security.default_privileges(source)
        if not options.schema_only:
            entries += dumped_rows.sequence_values(source, relations)
            entries += dumped_view.refreshes(source, relations)
            entries += [
                _rows_to_come(source, t) for t in relations.values() if t.kind == RelKind.TABLE
            ]
    if everything or options.publications:
        entries += dumped_replication.publications(source)
    if everything or options.subscriptions:
        entries += _subscriptions(session, source)
    return in_order(entries), relations


def _rows_to_come(source: Source, relation: Relation) -> Entry:
    owner = source.role_name(relation.owner)
    return Entry("TABLE DATA", relation.name, "", relation.schema, owner)


def _subscriptions(session: Session, source: Source) -> list[Entry]:
    """Return the subscriptions.  Only superusers get them, because connection strings may have
    passwords (getSubscriptions).
    """
    if source.environment.privileges.is_superuser:
        return list(dumped_replication.subscriptions(source))
    session.notice(
        "subscriptions not dumped because current user is not a superuser", severity="WARNING"
    )
    return []
