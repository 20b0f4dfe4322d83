"""`\\d` of the catalogs and system views themselves."""

from __future__ import annotations

from replctl.psql.described import (
    RELATION_TYPES,
    Described,
    access_method,
    column_titles,
    index_words,
)
from replctl.psql.print_content import Table
from replctl.types.builtin import SystemRelation, system_attributes, system_indexes


def described_catalog(target: Described, relation: SystemRelation, verbose: bool) -> Table:
    """Return the table that `\\d` prints for a catalog or a system view, without the definition of
    the view."""
    titles = column_titles(target, relation.kind, verbose)
    columns = system_attributes(relation.schema)[relation.name]
    return Table(
        titles,
        [_column_row(target, row, len(titles), verbose) for row in columns],
        title=f'{RELATION_TYPES[relation.kind].capitalize()} "{relation.schema}.{relation.name}"',
        footers=_footers(target, relation, verbose),
    )


def _column_row(
    target: Described, row: dict[str, str], width: int, verbose: bool
) -> list[str | None]:
    shown = [row["attname"], row["formatted"], row["collname"]]
    shown += ["not null" if row["attnotnull"] == "t" else "", ""]
    if verbose:
        shown.append(target.environment.type(row["typname"]).storage.name.lower())
    return [*shown, *[""] * (width - len(shown))]


def _footers(target: Described, relation: SystemRelation, verbose: bool) -> list[str]:
    indexes = system_indexes().get(relation.oid, [])
    lines = ["Indexes:"] if indexes else []
    lines += [f'    "{row["relname"]}"{_words(row)} {row["definition"]}' for row in indexes]
    method = access_method(target.settings, relation.kind)
    return [*lines, f"Access method: {method}"] if verbose and method is not None else lines


def _words(index: dict[str, str]) -> str:
    flags = (index[name] == "t" for name in ("indisprimary", "indisunique", "is_constraint"))
    return index_words(*flags)
