"""Run `\\d NAME` and `\\d+ NAME`: print a relation's columns, and lines about it below them.

The lines are in the order of describeOneTableDetails in describe.c.
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog import pg_class, pg_inherits, pg_publication, ruleutils, schema
from replctl.catalog.pg_class import Column, Constraint, Index, Relation
from replctl.catalog.pg_description import get_comment
from replctl.catalog.pg_policy import policies_of
from replctl.catalog.relation_kind import (
    INDEX_KINDS,
    WITH_ROWS,
    ConstraintKind,
    RelKind,
    RelPersistence,
    ReplicaIdentity,
)
from replctl.psql.describe_catalog import described_catalog
from replctl.psql.describe_delta import DescribedRules, delta_lines, described_rules, native_lines
from replctl.psql.describe_index import described_index
from replctl.psql.describe_replication import membership_details
from replctl.psql.describe_sequence import described_sequence
from replctl.psql.described import (
    RELATION_TYPES,
    WITH_COLUMN_DETAILS,
    Described,
    access_method,
    column_titles,
    find_relations,
    find_system_relations,
    index_words,
    is_valid,
    listed,
    policy_roles,
    shows_compression,
)
from replctl.psql.pattern import parse_pattern
from replctl.psql.print_content import PrintOptions, Table
from replctl.psql.variables import PsqlError
from replctl.types.builtin import SystemRelation


def describe_relations(target: Described, pattern: str, verbose: bool) -> bool:
    """Describe every relation that matches `pattern`.

    Raises:
        PsqlError: no relation matches.
    """
    parsed = parse_pattern(pattern, target.session.database_name)
    relations: list[Relation | SystemRelation] = [*find_relations(target, tuple(RelKind), parsed)]
    relations += find_system_relations(target, (RelKind.TABLE, RelKind.VIEW), parsed)
    if not relations and not target.settings.is_quiet:
        raise PsqlError(f'Did not find any relation named "{pattern}".')
    for relation in sorted(relations, key=lambda relation: (relation.schema, relation.name)):
        if isinstance(relation, SystemRelation):
            table = described_catalog(target, relation, verbose)
        else:
            table = _described(target, relation, verbose)
        target.settings.print(table, _options(target))
    return bool(relations)


def _options(target: Described) -> PrintOptions:
    # "This output looks confusing in expanded mode."
    return replace(target.options, expanded="off")


def _described(target: Described, relation: Relation, verbose: bool) -> Table:
    title = f'{_kind(relation)} "{relation.schema}.{relation.name}"'
    if relation.kind == RelKind.SEQUENCE:
        return described_sequence(target, relation, title)
    if relation.kind in INDEX_KINDS:
        return described_index(target, relation, title, verbose)
    columns = column_titles(target, relation.kind, verbose)
    rules = described_rules(relation)
    rows = [
        _column_row(target, rules, column, len(columns), verbose) for column in relation.columns
    ]
    return Table(
        columns,
        rows,
        title=title,
        footers=_footers(target, rules, verbose),
    )


def _kind(relation: Relation) -> str:
    word = RELATION_TYPES.get(relation.kind, "relation")
    return (
        f"Unlogged {word}" if relation.persistence == RelPersistence.UNLOGGED else word.capitalize()
    )


def _column_row(
    target: Described, rules: DescribedRules, column: Column, width: int, verbose: bool
) -> list[str | None]:
    relation = rules.relation
    type_ = target.environment.type(column.declared_type)
    row: list[str | None] = [
        column.name,
        target.environment.format_type(column.declared_type, column.declared_typmod),
    ]
    if relation.kind in WITH_COLUMN_DETAILS:
        row += [
            ruleutils.own_collation(target.environment, column) or "",
            "not null" if rules.is_not_null(column) else "",
            _default(target, rules, column),
        ]
    if verbose:
        row.append((column.storage or type_.storage).name.lower())
        if relation.kind in WITH_ROWS:
            if shows_compression(target.settings):
                row.append(column.compression.name.lower() if column.compression else "")
            row.append("" if column.statistics is None else str(column.statistics))
    row += [""] * (width - len(row))
    if verbose and relation.kind in WITH_COLUMN_DETAILS:
        row[-1] = get_comment(target.catalog, "pg_class", relation.oid, column.attnum) or ""
    return row


def _default(target: Described, rules: DescribedRules, column: Column) -> str:
    if (value := rules.value(column)) is not None:
        return value
    if column.identity:
        return f"generated {column.identity.clause.lower()} as identity"
    if column.default is None:
        return rules.default(column)
    text = ruleutils.get_expr(target.environment, rules.relation, column.default, is_pretty=True)
    return f"generated always as ({text}) stored" if column.generated else text


def _footers(target: Described, rules: DescribedRules, verbose: bool) -> list[str]:
    relation, lines = rules.relation, list[str]()
    if relation.is_partition and relation.partition_bound is not None:
        lines += _partition_of(target, relation, verbose)
    if relation.is_partitioned:
        lines.append(f"Partition key: {ruleutils.partition_key(target.environment, relation)}")
    if relation.kind == RelKind.VIEW and verbose:
        return [*_view_definition(target, relation), *_options_line(relation)]
    if relation.kind not in WITH_ROWS:
        return lines
    lines += _section("Indexes:", [_index_line(target, relation, i) for i in _by_rank(relation)])
    lines += _section("Check constraints:", _checks(target, relation))
    lines += _section("Check constraints of the Delta table:", rules.checks)
    lines += _section("Foreign-key constraints:", _foreign_keys(target, relation))
    lines += _section("Referenced by:", _references(target, relation))
    lines += _policies(target, relation)
    lines += _section("Publications:", _publications(target, relation))
    if relation.kind == RelKind.MATERIALIZED_VIEW and verbose:
        lines += _view_definition(target, relation)
    lines += _parents(target, relation)
    lines += _children(target, relation, verbose)
    if (
        verbose
        and relation.kind != RelKind.PARTITIONED_TABLE
        and relation.replica_identity in (ReplicaIdentity.FULL, ReplicaIdentity.NOTHING)
    ):
        lines.append(f"Replica Identity: {relation.replica_identity.name}")
    method = access_method(target.settings, relation.kind)
    if verbose and method is not None:
        lines.append(f"Access method: {method}")
    lines += [*_options_line(relation), *native_lines(relation)] if verbose else []
    return lines + delta_lines(rules, verbose)


def _view_definition(target: Described, view: Relation) -> list[str]:
    from replctl.query.view_definition import view_definition  # few relations need it

    text = view_definition(target.environment, view, is_pretty=True)
    return ["View definition:", text]


def _options_line(relation: Relation) -> list[str]:
    options = ", ".join(f"{name}={value}" for name, value in relation.options.items())
    return [f"Options: {options}"] if options else []


def _section(title: str, lines: list[str]) -> list[str]:
    return [title, *(f"    {line}" for line in lines)] if lines else []


def _partition_of(target: Described, relation: Relation, verbose: bool) -> list[str]:
    parent = pg_class.get_relation(target.catalog, relation.parents[0])
    assert parent is not None
    name = target.environment.relation_name(parent.oid)
    lines = [f"Partition of: {name} {_bound(target, parent, relation)}"]
    if verbose:
        from replctl.psql.describe_partition import partition_constraint

        constraint = partition_constraint(target, relation)
        lines.append(
            f"Partition constraint: {constraint}" if constraint else "No partition constraint"
        )
    return lines


def _bound(target: Described, parent: Relation, relation: Relation) -> str:
    assert relation.partition_bound is not None
    assert parent.partition_key is not None
    types = []
    exprs = iter(parent.partition_key.exprs)
    for attnum in parent.partition_key.attnums:
        if attnum:
            column = parent.column_at(attnum)
            types.append((column.declared_type, column.declared_typmod))
        else:
            types.append((next(exprs).type, -1))
    return ruleutils.partition_bound(target.environment, relation.partition_bound, types)


def _by_rank(relation: Relation) -> list[Index]:
    return sorted(relation.indexes, key=lambda index: (not index.is_primary, index.name))


def _index_line(target: Described, relation: Relation, index: Index) -> str:
    is_constraint = any(
        constraint.kind == ConstraintKind.UNIQUE and constraint.index_oid == index.oid
        for constraint in relation.constraints
    )
    line = f'"{index.name}"{index_words(index.is_primary, index.is_unique, is_constraint)}'
    line += f" {ruleutils.index_columns(target.environment, relation, index, is_pretty=True)}"
    line += " DEFERRABLE" if index.is_deferrable else ""
    line += " CLUSTER" if index.is_clustered else ""
    line += "" if is_valid(target, relation, index) else " INVALID"
    return line + (" REPLICA IDENTITY" if index.is_replica_identity else "")


def _checks(target: Described, relation: Relation) -> list[str]:
    lines = []
    for constraint in sorted(relation.checks(), key=lambda constraint: constraint.name):
        assert constraint.check is not None
        text = ruleutils.get_expr(target.environment, relation, constraint.check, is_pretty=True)
        tail = " NO INHERIT" if constraint.no_inherit else ""
        lines.append(f'"{constraint.name}" CHECK ({text}){tail}')
    return lines


def _foreign_keys(target: Described, relation: Relation) -> list[str]:
    """Return the foreign keys of a relation, including those of its partitioned ancestors."""
    lines = []
    own = [key for key in relation.foreign_keys() if not key.parent_oid]
    for key in sorted(own, key=lambda key: key.name):
        text = ruleutils.constraint_definition(target.environment, relation, key)
        lines.append(f'"{key.name}" {text}')
    inherited = []
    above = pg_class.load_relations(
        target.catalog, pg_inherits.ancestors_of(target.catalog, relation.oid)
    )
    for ancestor in above.values():
        inherited += [
            (key.name, ancestor, key) for key in ancestor.foreign_keys() if not key.parent_oid
        ]
    for _name, ancestor, key in sorted(inherited, key=lambda item: item[0]):
        lines.append(_foreign_constraint(target, ancestor, key))
    return lines


def _references(target: Described, relation: Relation) -> list[str]:
    """Return the foreign keys that reference the relation or one of its ancestors."""
    referenced = [relation.oid, *pg_inherits.ancestors_of(target.catalog, relation.oid)]
    pg_constraint = schema.pg_constraint
    rows = target.catalog.select(
        pg_constraint,
        pg_constraint.c.confrelid.in_(referenced),
        pg_constraint.c.contype == ConstraintKind.FOREIGN_KEY,
        pg_constraint.c.conparentid == 0,
    )
    owners = pg_class.load_relations(target.catalog, [int(row.conrelid) for row in rows])
    found = [
        (key.name, owners[int(row.conrelid)], key)
        for row in rows
        for key in owners[int(row.conrelid)].foreign_keys()
        if key.oid == row.oid
    ]
    ordered = sorted(found, key=lambda item: (item[0], item[1].oid))
    return [_foreign_constraint(target, owner, key) for _name, owner, key in ordered]


def _foreign_constraint(target: Described, owner: Relation, key: Constraint) -> str:
    name = target.environment.relation_name(owner.oid)
    text = ruleutils.constraint_definition(target.environment, owner, key)
    return f'TABLE "{name}" CONSTRAINT "{key.name}" {text}'


def _policies(target: Described, relation: Relation) -> list[str]:
    """Return the line `Policies:` with a note whether they apply, and then the command, roles and
    conditions of each policy.
    """
    policies = policies_of(target.catalog, relation.oid)
    if not policies and not relation.has_row_security:
        return []
    from replctl.query.pg_get_expr import condition_text  # few relations need it

    title = "Policies"
    if not relation.has_row_security:
        title += " (row security disabled)"
    elif relation.forces_row_security:
        title += " (forced row security enabled)"
    elif not policies:
        title += " (row security enabled)"
    lines = [f"{title}:" if policies else f"{title}: (none)"]
    for policy in policies:
        kind = "" if policy.is_permissive else " AS RESTRICTIVE"
        command = "" if policy.command is None else f" FOR {policy.command_word}"
        lines.append(f'    POLICY "{policy.name}"{kind}{command}')
        roles = policy_roles(target, policy)
        lines += [f"      TO {','.join(roles)}"] if roles else []
        for word, text in (("USING", policy.using), ("WITH CHECK", policy.check)):
            if text is not None:
                shown = condition_text(target.environment, relation, text)
                lines.append(f"      {word} ({shown})")
    return lines


def _publications(target: Described, relation: Relation) -> list[str]:
    """Return the publications that name a table or its schema, or are FOR ALL TABLES."""
    catalog = target.catalog
    if not pg_publication.is_publishable(relation):
        return []
    details: set[tuple[str, str]] = set()
    by_name = {
        item.publication_oid: item
        for item in pg_publication.published_tables(catalog, relids=[relation.oid])
    }
    by_schema = pg_publication.publications_of_schemas(catalog).get(relation.schema_oid, [])
    for publication in pg_publication.list_publications(catalog):
        if publication.all_tables or publication.oid in by_schema:
            details.add((publication.name, ""))
        item = by_name.get(publication.oid)
        if item is not None:
            details.add((publication.name, membership_details(target, relation, item)))
    # psql sorts the filter, and NULL is the last value.
    in_order = sorted(details, key=lambda item: (item[0], item[1] == "", item[1]))
    return [f'"{name}"{text}' for name, text in in_order]


def _parents(target: Described, relation: Relation) -> list[str]:
    if relation.is_partition:
        return []
    names = [target.environment.relation_name(oid) or "" for oid in relation.parents]
    return listed("Inherits", names)


def _children(target: Described, relation: Relation, verbose: bool) -> list[str]:
    children = list(
        pg_class.load_relations(
            target.catalog, pg_inherits.children_of(target.catalog, relation.oid)
        ).values()
    )
    if relation.is_partitioned and (not children or not verbose):
        hint = " (Use \\d+ to list them.)" if children else ""
        return [f"Number of partitions: {len(children)}{hint}"]
    if not verbose:
        count = len(children)
        return [f"Number of child tables: {count} (Use \\d+ to list them.)"] if children else []
    items = []
    for child in children:
        bound = f" {_bound(target, relation, child)}" if child.partition_bound else ""
        name = target.environment.relation_name(child.oid) or ""
        is_default = child.partition_bound is not None and child.partition_bound.kind == "default"
        items.append(
            (is_default, name, name + bound + (", PARTITIONED" if child.is_partitioned else ""))
        )
    title = "Partitions" if relation.is_partitioned else "Child tables"
    return listed(title, [text for _is_default, _name, text in sorted(items)])
