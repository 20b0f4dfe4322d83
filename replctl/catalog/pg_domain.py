"""Read and write domains: their rows in pg_type and pg_constraint."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.pg_type import type_name, type_oid
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes, pg_node_tree
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class DomainConstraint:
    """A domain's row of pg_constraint; its kind is c (CHECK) or n (NOT NULL)."""

    oid: int
    name: str
    check: nodes.Expr | None  # None for NOT NULL
    is_validated: bool = True


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain's own properties, without those of its base type.

    Attributes:
        name: the domain's name in typed expressions.
        base: the domain's base type, which may also be a domain.  `typmod` is the modifier of
            `base`.
        constraints: the domain's constraints, sorted by name.
    """

    name: str
    base: str
    typmod: int
    not_null: bool
    default: nodes.Expr | None
    default_text: str | None
    constraints: tuple[DomainConstraint, ...]

    @property
    def checks(self) -> tuple[nodes.DomainCheck, ...]:
        """Return the domain's CHECK constraints."""
        return tuple(
            nodes.DomainCheck(item.name, item.check)
            for item in self.constraints
            if item.check is not None
        )


@dataclass(frozen=True, slots=True)
class DomainBase:
    """The innermost base type of a domain, its modifier, and the domain's default."""

    base: str
    typmod: int
    default: nodes.Expr | None


def domain_bases(catalog: Catalog) -> dict[str, DomainBase]:
    """Return the base of each domain, by the domain's name in typed expressions."""
    return catalog.cached("domain bases", lambda: _bases(catalog))


def _bases(catalog: Catalog) -> dict[str, DomainBase]:
    pg_type = schema.pg_type
    found: dict[str, DomainBase] = {}
    for row in catalog.select(pg_type, pg_type.c.typtype == "d", order_by=[pg_type.c.oid]):
        base, typmod = type_name(int(row.typbasetype)), int(row.typtypmod)
        default = None if row.typdefaultbin is None else pg_node_tree.loads(row.typdefaultbin)
        below = found.get(base)  # the base type is older, so the loop has seen it
        if below is not None:
            base, typmod = below.base, below.typmod
        found[type_name(int(row.oid))] = DomainBase(base, typmod, default)
    return found


def get_domain(catalog: Catalog, name: str) -> Domain:
    """Return the domain that has this name in typed expressions."""
    return catalog.cached(("domain", name), lambda: _load(catalog, name))


def _load(catalog: Catalog, name: str) -> Domain:
    pg_type, pg_constraint = schema.pg_type, schema.pg_constraint
    row = catalog.first(pg_type, pg_type.c.oid == type_oid(name))
    if row is None:
        raise KeyError(name)
    constraints = catalog.select(
        pg_constraint,
        pg_constraint.c.contypid == row.oid,
        order_by=[pg_constraint.c.conname],
    )
    return Domain(
        name=name,
        base=type_name(int(row.typbasetype)),
        typmod=int(row.typtypmod),
        not_null=bool(row.typnotnull),
        default=None if row.typdefaultbin is None else pg_node_tree.loads(row.typdefaultbin),
        default_text=row.typdefault,
        constraints=tuple(
            DomainConstraint(
                int(item.oid),
                str(item.conname),
                None if item.conbin is None else pg_node_tree.loads(item.conbin),
                bool(item.convalidated),
            )
            for item in constraints
        ),
    )


def set_default(catalog: Catalog, name: str, default: nodes.Expr | None, text: str | None) -> None:
    """Set or remove the default of a domain; `text` is the default in SQL."""
    stored = None if default is None else pg_node_tree.dumps(default)
    _update(catalog, name, typdefaultbin=stored, typdefault=text)


def set_not_null(catalog: Catalog, name: str, not_null: bool) -> None:
    """Set whether a domain forbids NULL. The caller changes the domain's constraints."""
    _update(catalog, name, typnotnull=not_null)


def _update(catalog: Catalog, name: str, **values: object) -> None:
    catalog.update(schema.pg_type, schema.pg_type.c.oid == type_oid(name), **values)


def insert_domain_constraint(
    catalog: Catalog, domain: str, schema_oid: int, constraint: DomainConstraint
) -> None:
    """Add a constraint to a domain."""
    check = constraint.check
    catalog.insert(
        schema.pg_constraint,
        oid=constraint.oid,
        conname=constraint.name,
        connamespace=schema_oid,
        contype="n" if check is None else "c",
        conrelid=0,
        contypid=type_oid(domain),
        conindid=0,
        conparentid=0,
        confrelid=0,
        conbin=None if check is None else pg_node_tree.dumps(check),
        convalidated=constraint.is_validated,
        connoinherit=False,
    )


def update_domain_constraint(catalog: Catalog, constraint: DomainConstraint) -> None:
    """Replace the name and the state of a constraint."""
    pg_constraint = schema.pg_constraint
    catalog.update(
        pg_constraint,
        pg_constraint.c.oid == constraint.oid,
        conname=constraint.name,
        convalidated=constraint.is_validated,
    )
