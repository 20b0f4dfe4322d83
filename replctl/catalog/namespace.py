"""Look up names in a database: the search path, and the environment of expressions
(namespace.c).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from copy import copy
from functools import cached_property
from typing import Any

from replctl.catalog import schema, schema_table
from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges, privileges_of
from replctl.catalog.initdb import (
    BOOTSTRAP_SUPERUSER,
    INFORMATION_SCHEMA,
    PG_CATALOG_NAMESPACE,
)
from replctl.catalog.pg_authid import find_role, role_names
from replctl.catalog.pg_class import Relation, find_relation_oid, get_relation
from replctl.catalog.pg_domain import get_domain
from replctl.catalog.pg_enum import unsafe_labels
from replctl.catalog.pg_namespace import find_schema, schema_names
from replctl.catalog.pg_type import (
    enum_labels,
    find_type,
    get_type,
    type_name,
    type_oid,
    type_schema_oid,
)
from replctl.catalog.transaction import Catalog
from replctl.errors import UnsafeNewEnumValueUsage
from replctl.expr import nodes
from replctl.expr.builtin_environment import BuiltinEnvironment
from replctl.expr.enum_order import with_enum_order
from replctl.expr.environment import (
    SYSTEM_SCHEMA,
    Column,
    DomainRules,
    Routine,
    user_collation,
)
from replctl.expr.user_type import base_type, domain_check, stored_type
from replctl.types import builtin, text
from replctl.types.builtin import FIRST_USER_OID, Function, Operator, Type
from replctl.types.function_kind import FunctionKind, Volatility
from replctl.types.quote import quote_qualified_identifier
from replctl.types.type_kind import TypeKind
from replctl.types.value_format import CANONICAL, ValueFormat

#: The columns with name and schema in catalogs of users' objects.
_NAME_COLUMNS = {
    "pg_collation": ("collname", "collnamespace"),
    "pg_proc": ("proname", "pronamespace"),
    "pg_operator": ("oprname", "oprnamespace"),
}

#: Built-in types whose names are keywords, which never need a schema.  Types that have other names
#: in SQL need none, too (format_type_extended).
_KEYWORDS = frozenset({"bit", "interval", "json", "numeric"})


class SearchPath:
    """The schemas in which names without a schema are looked up.

    Args:
        catalog: the catalogs of the database.
        names: the names of the schemas; missing ones are ignored.
        role_oid: the role that looks up; schemas that it may not use are ignored.
        temporary_schema: the name of the schema that pg_temp stands for.
    """

    def __init__(
        self, catalog: Catalog, names: Sequence[str], role_oid: int, temporary_schema: str | None
    ) -> None:
        self._catalog = catalog
        self._names = tuple(names)
        self._role_oid = role_oid
        self.temporary_schema = temporary_schema

    @cached_property
    def entries(self) -> tuple[tuple[str, int], ...]:
        """Return names and OIDs of the schemas in the order of the search.  The schema of temporary
        relations and pg_catalog come first unless the path names them (finalNamespacePath).
        """
        named = self._named
        implicit = [(SYSTEM_SCHEMA, PG_CATALOG_NAMESPACE)]  # even if the schema has a new name
        if self.temporary_schema is not None:
            implicit.insert(0, (self.temporary_schema, self.schema_oid(self.temporary_schema) or 0))
        known = {0, *dict(named).values()}
        return (*((name, oid) for name, oid in implicit if oid not in known), *named)

    @cached_property
    def _named(self) -> tuple[tuple[str, int], ...]:
        """Return the schemas that the path names, if they exist and the role may use them
        (preprocessNamespacePath).
        """
        found = ((name, self.schema_oid(name)) for name in dict.fromkeys(self._names))
        privileges = privileges_of(self._catalog, self._role_oid)
        return tuple(
            (name, oid)
            for name, oid in found
            if oid is not None
            and (
                privileges.is_superuser
                or name == self.temporary_schema
                or privileges.has_on_schema(oid, Privilege.USAGE)
            )
        )

    @property
    def for_creation(self) -> tuple[tuple[str, int], ...]:
        """Return the schemas that the path names, without that of temporary relations."""
        return tuple(entry for entry in self._named if entry[0] != self.temporary_schema)

    @cached_property
    def _places(self) -> dict[int, int]:
        """Return the position of each schema by OID, relative to pg_catalog.  Only relations and
        types are found in the schema of temporary relations.
        """
        oids = [oid for name, oid in self.entries if name != self.temporary_schema]
        first = -oids.index(PG_CATALOG_NAMESPACE)
        return {oid: place for place, oid in enumerate(oids, start=first)}

    @cached_property
    def hides_system_objects(self) -> bool:
        """Return whether pg_catalog is not the first schema in the path."""
        return self.entries[0][1] != PG_CATALOG_NAMESPACE

    def schema_oid(self, name: str) -> int | None:
        """Return the OID of a schema, even if it is not in the search path."""
        if name == "pg_temp":
            name = self.temporary_schema or name
        return self._catalog.cached((find_schema, name), lambda: find_schema(self._catalog, name))

    def explicit(self, name: str) -> int | None:
        """Return the OID of the schema before the name of an object; None if there is no such
        schema (LookupExplicitNamespace).

        Raises:
            InsufficientPrivilege: the role may not use the schema.
        """
        oid = self.schema_oid(name)
        if oid is not None and name != "pg_temp":
            privileges = privileges_of(self._catalog, self._role_oid)
            privileges.check_schema(oid, name, Privilege.USAGE)
        return oid

    def rows(self, table: str, schema_name: str | None, name: str) -> list[tuple[int, Any]]:
        """Return the rows of all objects of a name, each with the position of its schema in the
        search path: positions before pg_catalog are negative.

        Raises:
            InsufficientPrivilege: the role may not use the schema.
        """
        name_column, schema_column = _NAME_COLUMNS[table]
        if schema_name is None:
            places = self._places
        else:
            oid = self.explicit(schema_name)
            places = {} if oid is None else {oid: 0}
        rows = self._catalog.cached(table, lambda: self._by_name(table, name_column))
        found = [(int(row._mapping[schema_column]), row) for row in rows.get(name, ())]
        return [(places[oid], row) for oid, row in found if oid in places]

    def _by_name(self, table: str, name_column: str) -> dict[str, list[Any]]:
        """Return all rows of a catalog of users' objects, by name.  Reading all is fast: there are
        few rows, and most names are not among them.
        """
        result: dict[str, list[Any]] = defaultdict(list)
        for row in self._catalog.select(schema_table.metadata.tables[table]):
            result[str(row._mapping[name_column])].append(row)
        return result


class CatalogEnvironment(BuiltinEnvironment):
    """A database as seen by one transaction.

    Args:
        catalog: the catalogs of the database.
        database: the name of the database.
        search_path: names of the schemas to search; missing ones are ignored.
        role_oid: the role that looks up; schemas that it may not use are ignored.
        temporary_schema: the name of the schema that pg_temp stands for.
        value_format: the format for parsing literals and showing constants.
        routine: the function whose body is analysed.
    """

    def __init__(
        self,
        catalog: Catalog,
        database: str,
        search_path: Sequence[str],
        role_oid: int = BOOTSTRAP_SUPERUSER,
        *,
        temporary_schema: str | None = None,
        routine: Routine | None = None,
        value_format: ValueFormat = CANONICAL,
    ) -> None:
        self.catalog = catalog
        self.database = database
        self._role_oid = role_oid
        self.search_path = SearchPath(catalog, search_path, role_oid, temporary_schema)
        self.routine = routine
        self.value_format = value_format

    def within(self, routine: Routine) -> CatalogEnvironment:
        """Return the environment for the body of a function."""
        inner = copy(self)
        inner.routine = routine
        return inner

    @property
    def privileges(self) -> Privileges:
        """Return the privileges of the current role in the catalog's current state."""
        return privileges_of(self.catalog, self._role_oid)

    # -- schemas and relations

    def schema_oid(self, name: str) -> int | None:
        return self.search_path.schema_oid(name)

    def schema_name(self, oid: int) -> str | None:
        return schema_names(self.catalog).get(oid)

    def relation_oid(self, schema: str | None, name: str) -> int | None:
        """Return the OID of a relation or catalog; if `schema` is None, of the first one in the
        search path.

        Raises:
            InsufficientPrivilege: the role may not use the schema.
        """
        if schema is None:
            found = (
                _relation_in(self.catalog, oid, name) for _name, oid in self.search_path.entries
            )
            return next((oid for oid in found if oid is not None), None)
        schema_oid = self.search_path.explicit(schema)
        return None if schema_oid is None else _relation_in(self.catalog, schema_oid, name)

    def relation_name(self, oid: int) -> str | None:
        """Return a relation's name as regclass shows it: with its schema, unless the search path
        finds it.
        """
        found = _schema_and_name(self, oid)
        if found is None:
            return None
        schema_name, name = found
        is_visible = self.relation_oid(None, name) == oid
        return quote_qualified_identifier(None if is_visible else schema_name, name)

    # -- types

    def type(self, name: str) -> Type:
        return get_type(self.catalog, name)

    def type_by_oid(self, oid: int) -> Type | None:
        if oid < FIRST_USER_OID:
            return super().type_by_oid(oid)
        try:
            return self.type(type_name(oid))
        except KeyError:  # the type was dropped
            return None

    def find_type(self, schema: str | None, name: str) -> Type | None:
        if schema is not None:
            oid = self.search_path.explicit(schema)
            return None if oid is None else _type_in(self.catalog, oid, name)
        found = (_type_in(self.catalog, oid, name) for _name, oid in self.search_path.entries)
        return next((type_ for type_ in found if type_ is not None), None)

    def columns(self, composite: Type) -> tuple[Column, ...] | None:
        if composite.kind != TypeKind.COMPOSITE or composite.is_builtin:
            return None
        pg_attribute, pg_type = schema.pg_attribute, schema.pg_type
        row = self.catalog.first(pg_type, pg_type.c.oid == composite.oid)
        if row is None or not row.typrelid:
            return None
        collations = {oid: name for name, oid in builtin.collations().items()}
        return tuple(
            Column(
                str(attribute.attname),
                int(attribute.attnum),
                type_name(int(attribute.atttypid)),
                int(attribute.atttypmod),
                collations.get(int(attribute.attcollation)),
            )
            for attribute in self.catalog.select(
                pg_attribute,
                pg_attribute.c.attrelid == row.typrelid,
                ~pg_attribute.c.attisdropped,
                order_by=[pg_attribute.c.attnum],
            )
        )

    def format_type(self, name: str, typmod: int | None = None) -> str:
        """Return a type's name in SQL.  The name has its schema, unless it is a keyword or the
        search path finds it.
        """
        is_builtin = not name.startswith("@")
        if is_builtin and not self.search_path.hides_system_objects:
            return super().format_type(name, typmod)
        type_ = self.type(name)
        if not is_builtin and type_.element is not None:
            return f"{self.format_type(type_.element)}[]"
        if is_builtin:
            shown = super().format_type(name, typmod)
            return f"{SYSTEM_SCHEMA}.{shown}" if _is_hidden(self, type_) else shown
        found = self.find_type(None, type_.sql_name)
        is_visible = found is not None and found.oid == type_.oid
        row = self.catalog.first(schema.pg_type, schema.pg_type.c.oid == type_oid(name))
        assert row is not None
        prefix = None if is_visible else self.schema_name(int(row.typnamespace))
        return quote_qualified_identifier(prefix, type_.sql_name)

    def domain_base(self, domain: Type) -> tuple[str, int]:
        if domain.is_builtin:
            return super().domain_base(domain)
        found = get_domain(self.catalog, domain.name)
        return found.base, found.typmod

    def domain_rules(self, domain: Type) -> DomainRules:
        if domain.is_builtin:
            return super().domain_rules(domain)
        own = get_domain(self.catalog, domain.name)
        place = self.schema_name(type_schema_oid(self.catalog, domain.name)) or ""
        base = self.type(own.base)
        if base.kind != TypeKind.DOMAIN:
            return DomainRules(own.not_null, own.checks, own.default, place)
        below = self.domain_rules(base)
        return DomainRules(
            own.not_null or below.not_null,
            below.checks + own.checks,
            own.default,
            place,
        )

    def check_domain(self, domain: Type, value: str | None) -> None:
        base, check = self.catalog.cached(
            ("domain check", domain.name, self.value_format), lambda: _domain_check(self, domain)
        )
        check([None if value is None else text.parse(base, value)])

    def check_enum_labels(self, enum: Type, labels: Collection[str]) -> None:
        unsafe = self.catalog.cached(
            ("unsafe labels", enum.name), lambda: unsafe_labels(self.catalog, enum.name)
        )
        for label in labels if unsafe else ():
            if label in unsafe:
                raise UnsafeNewEnumValueUsage(
                    f'unsafe use of new value "{label}" of enum type {self.format_type(enum.name)}',
                    hint="New enum values must be committed before they can be used.",
                )

    def enum_labels(self, enum: Type) -> tuple[str, ...]:
        return enum_labels(self.catalog, enum.name)

    def collation(self, schema: str | None, name: str) -> str | None:
        made = self.search_path.rows("pg_collation", schema, name)
        place, row = min(made, key=_place, default=(0, None))
        system = super().collation(schema, name)
        if row is None or (system is not None and place > 0):
            return system
        return user_collation(int(row.oid))

    # -- functions and operators

    def functions(self, schema: str | None, name: str) -> Sequence[tuple[int, Function]]:
        rows = self.search_path.rows("pg_proc", schema, name)
        made = ((place, _function(self, row)) for place, row in rows)
        return sorted((*super().functions(schema, name), *made), key=_place)

    def operators(self, schema: str | None, name: str) -> Sequence[tuple[int, Operator]]:
        rows = self.search_path.rows("pg_operator", schema, name)
        made = ((place, _operator(self, row)) for place, row in rows)
        return sorted((*super().operators(schema, name), *made), key=_place)

    def function(self, oid: int) -> Function:
        return (
            super().function(oid)
            if oid < FIRST_USER_OID
            else _function(self, _row(self.catalog, "pg_proc", oid))
        )

    def operator(self, oid: int) -> Operator:
        if oid < FIRST_USER_OID:
            return super().operator(oid)
        return _operator(self, _row(self.catalog, "pg_operator", oid))

    # -- roles

    def role_oid(self, name: str) -> int | None:
        role = find_role(self.catalog, name)
        return None if role is None else role.oid

    def role_name(self, oid: int) -> str | None:
        return role_names(self.catalog).get(oid)


def _domain_check(
    environment: CatalogEnvironment, domain: Type
) -> tuple[str, Callable[[Sequence[Any]], Any]]:
    """Return the type that stores a domain's values, and a Python function that checks them."""
    from replctl.adt.interpret import compiled  # the evaluator, which few commands need

    base, typmod = base_type(environment, domain.name)
    expr = domain_check(environment, domain.name, nodes.Param(1, base, typmod))
    stored, _typmod = stored_type(environment, domain.name)
    return stored, compiled(with_enum_order(environment, expr))


def relation_named(catalog: Catalog, schema_name: str, name: str) -> Relation | None:
    """Return the relation of a name; None if the relation or its schema does not exist."""
    schema_oid = find_schema(catalog, schema_name)
    oid = None if schema_oid is None else find_relation_oid(catalog, name, schema_oid)
    return None if oid is None else get_relation(catalog, oid)


def is_relation_visible(environment: CatalogEnvironment, oid: int) -> bool | None:
    """Return whether the search path finds a relation by its name; None if the relation does not
    exist.
    """
    found = _schema_and_name(environment, oid)
    return None if found is None else environment.relation_oid(None, found[1]) == oid


def _schema_and_name(environment: CatalogEnvironment, oid: int) -> tuple[str | None, str] | None:
    system = builtin.system_relations_by_oid().get(oid)
    if system is not None:
        return system.schema, system.name
    row = environment.catalog.first(schema.pg_class, schema.pg_class.c.oid == oid)
    return None if row is None else (environment.schema_name(int(row.relnamespace)), row.relname)


def _row(catalog: Catalog, table: str, oid: int) -> Any:
    catalog_table = schema_table.metadata.tables[table]
    row = catalog.first(catalog_table, catalog_table.c.oid == oid)
    if row is None:
        raise KeyError(oid)
    return row


def _relation_in(catalog: Catalog, schema_oid: int, name: str) -> int | None:
    """Return the OID of the relation of that name in a schema."""
    if schema_oid == PG_CATALOG_NAMESPACE:
        system = builtin.system_relations().get(name)
        return None if system is None else system.oid
    if schema_oid == INFORMATION_SCHEMA and name in builtin.information_schema():
        return builtin.information_schema()[name].oid
    return find_relation_oid(catalog, name, schema_oid)


def _is_hidden(environment: CatalogEnvironment, type_: Type) -> bool:
    """Return whether an earlier schema of the search path hides a built-in type, or the element of
    an array type.
    """
    item = type_ if type_.element is None else environment.type(type_.element)
    is_keyword = item.sql_name.strip('"') != item.name or item.name in _KEYWORDS
    return not is_keyword and environment.find_type(None, item.name) != item


def _type_in(catalog: Catalog, schema_oid: int, name: str) -> Type | None:
    """Return the type of that name in a schema."""
    if schema_oid == PG_CATALOG_NAMESPACE:
        return builtin.types().get(name)
    return find_type(catalog, schema_oid, name)


def _place(found: tuple[int, Any]) -> int:
    return found[0]


def _function(environment: CatalogEnvironment, row: Any) -> Function:
    types = tuple(type_name(int(oid)) for oid in row.proargtypes.split())
    names = tuple(row.proargnames.split(",")) if row.proargnames else ("",) * len(types)
    return Function(
        oid=int(row.oid),
        name=str(row.proname),
        argument_types=types,
        result=type_name(int(row.prorettype)),
        kind=FunctionKind(row.prokind),
        volatility=Volatility(row.provolatile),
        is_strict=bool(row.proisstrict),
        returns_set=bool(row.proretset),
        variadic=None,
        defaults=(),
        source=str(row.prosrc),
        argument_names=names,
        columns=(),
        schema=environment.schema_name(int(row.pronamespace)) or "",
    )


def _operator(environment: CatalogEnvironment, row: Any) -> Operator:
    function = environment.function(int(row.oprcode))
    return Operator(
        oid=int(row.oid),
        name=str(row.oprname),
        left=type_name(int(row.oprleft)) or None,
        right=type_name(int(row.oprright)),
        result=type_name(int(row.oprresult)),
        function=function.name,
        function_oid=function.oid,
        commutator=None,
        negator=None,
        volatility=function.volatility,
        is_strict=function.is_strict,
        schema=environment.schema_name(int(row.oprnamespace)) or "",
    )
