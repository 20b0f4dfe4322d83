"""Read and write domains: their rows in pg_type and pg_constraint."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.pg_type import type_name, type_oid
from replctl.catalog.relation_kind import ConstraintKind, RelKind
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes, pg_node_tree
from replctl.record import dataclass
from replctl.types import builtin
from replctl.types.type_kind import TypeKind


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
    """The type that stores the values of a user-defined type, its modifier, and a domain's
    default.
    """

    base: str
    typmod: int
    default: nodes.Expr | None = None


def domain_bases(catalog: Catalog) -> dict[str, DomainBase]:
    """Return the base of each domain, by the domain's name in typed expressions."""
    return _bases(catalog)[0]


def user_type_bases(catalog: Catalog) -> dict[str, DomainBase]:
    """Return the types in which values of composite types, and of arrays of enums or domains, are
    stored.  The keys are the names of the composite types and arrays.
    """
    return _bases(catalog)[1]


def _bases(catalog: Catalog) -> tuple[dict[str, DomainBase], dict[str, DomainBase]]:
    return catalog.cached("domain bases", lambda: _load_bases(catalog))


def _load_bases(catalog: Catalog) -> tuple[dict[str, DomainBase], dict[str, DomainBase]]:
    domains: dict[str, DomainBase] = {}
    others: dict[str, DomainBase] = {}
    enums: set[str] = set()
    composites = {
        int(row.reltype)
        for row in catalog.select(
            schema.pg_class, schema.pg_class.c.relkind == RelKind.COMPOSITE_TYPE
        )
    }
    # An element or a base type is older than the types that are made from it
    for row in catalog.select(schema.pg_type, order_by=[schema.pg_type.c.oid]):
        name, element = type_name(int(row.oid)), type_name(int(row.typelem))
        if row.typtype == TypeKind.DOMAIN:
            default = None if row.typdefaultbin is None else pg_node_tree.loads(row.typdefaultbin)
            base = type_name(int(row.typbasetype))
            below = domains.get(base) or others.get(base) or DomainBase(base, int(row.typtypmod))
            domains[name] = DomainBase(below.base, below.typmod, default)
        elif row.typtype == TypeKind.ENUM:
            enums.add(name)
        elif int(row.oid) in composites:
            others[name] = DomainBase("text", -1)
        elif element in enums:
            others[name] = DomainBase("_text", -1)
        elif element in domains and (array := _array_of(domains[element].base)) is not None:
            others[name] = DomainBase(array, domains[element].typmod)
    return domains, others


def _array_of(stored: str) -> str | None:
    """Return the type that stores arrays of values of a stored type; None if there is none."""
    return "_text" if stored.startswith("@") else builtin.types()[stored].array


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
        contype=ConstraintKind.NOT_NULL if check is None else ConstraintKind.CHECK,
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
