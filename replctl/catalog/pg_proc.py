"""Read and write user-defined functions and operators. namespace.py looks them up by name."""

from __future__ import annotations

from typing import Any

from replctl.catalog import schema
from replctl.catalog.pg_default_acl import new_object_acl
from replctl.catalog.pg_type import type_name, type_oid
from replctl.catalog.transaction import Catalog
from replctl.errors import InternalError
from replctl.record import dataclass
from replctl.types.function_kind import Parallel, Volatility

#: The cost of a function, and the rows of one that returns a set, if CREATE FUNCTION gives none.
DEFAULT_COST, DEFAULT_ROWS = 100.0, 1000.0


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A row of pg_proc.  Types have their names in typed expressions.

    Attributes:
        cost, rows, parallel, is_leakproof: for PostgreSQL's planner; replctl only stores them.
    """

    oid: int
    name: str
    schema_oid: int
    owner: int
    language: str
    volatility: Volatility
    is_strict: bool
    returns_set: bool
    result: str
    arguments: tuple[str, ...]
    argument_names: tuple[str, ...]
    body: str
    cost: float = DEFAULT_COST
    rows: float = 0
    parallel: Parallel = Parallel.UNSAFE
    is_leakproof: bool = False

    @property
    def attributes(self) -> str:
        """Return the attributes of CREATE FUNCTION that differ from their defaults, in the order of
        pg_get_functiondef(), each after a blank: ` IMMUTABLE STRICT`.
        """
        rows = self.rows if self.returns_set and self.rows != DEFAULT_ROWS else 0
        words = (
            "" if self.volatility == Volatility.VOLATILE else self.volatility.name,
            "" if self.parallel == Parallel.UNSAFE else f"PARALLEL {self.parallel.name}",
            "STRICT" if self.is_strict else "",
            "LEAKPROOF" if self.is_leakproof else "",
            f"COST {self.cost:g}" if self.cost != DEFAULT_COST else "",
            f"ROWS {rows:g}" if rows else "",
        )
        return "".join(f" {word}" for word in words if word)


@dataclass(frozen=True, slots=True)
class UserOperator:
    """A row of pg_operator; `left` is '' for a prefix operator."""

    oid: int
    name: str
    schema_oid: int
    owner: int
    left: str
    right: str
    result: str
    function_oid: int


def list_functions(catalog: Catalog) -> list[UserFunction]:
    """Return all functions of the database, in their order of creation."""
    rows = catalog.select(schema.pg_proc, order_by=[schema.pg_proc.c.oid])
    return [_function(row) for row in rows]


def list_operators(catalog: Catalog) -> list[UserOperator]:
    """Return all operators of the database, in their order of creation."""
    table = schema.pg_operator
    return [_operator(row) for row in catalog.select(table, order_by=[table.c.oid])]


def get_function(catalog: Catalog, oid: int) -> UserFunction:
    """Return the function with this OID, which must exist."""
    row = catalog.first(schema.pg_proc, schema.pg_proc.c.oid == oid)
    if row is None:
        raise InternalError(f"cache lookup failed for function {oid}")
    return _function(row)


def insert_function(catalog: Catalog, function: UserFunction) -> None:
    """Add a function."""
    acl = new_object_acl(catalog, "function", function.owner, function.schema_oid)
    catalog.insert(schema.pg_proc, oid=function.oid, proacl=acl, **_function_values(function))


def update_function(catalog: Catalog, function: UserFunction) -> None:
    """Replace the definition of a function."""
    table = schema.pg_proc
    catalog.update(table, table.c.oid == function.oid, **_function_values(function))


def delete_function(catalog: Catalog, oid: int) -> None:
    """Remove a function."""
    catalog.delete(schema.pg_proc, schema.pg_proc.c.oid == oid)


def insert_operator(catalog: Catalog, operator: UserOperator) -> None:
    """Add an operator."""
    catalog.insert(
        schema.pg_operator,
        oid=operator.oid,
        oprname=operator.name,
        oprnamespace=operator.schema_oid,
        oprowner=operator.owner,
        oprleft=type_oid(operator.left),
        oprright=type_oid(operator.right),
        oprresult=type_oid(operator.result),
        oprcode=operator.function_oid,
    )


def delete_operator(catalog: Catalog, oid: int) -> None:
    """Remove an operator."""
    catalog.delete(schema.pg_operator, schema.pg_operator.c.oid == oid)


def _function_values(function: UserFunction) -> dict[str, Any]:
    names = ",".join(function.argument_names) if any(function.argument_names) else None
    return {
        "proname": function.name,
        "pronamespace": function.schema_oid,
        "proowner": function.owner,
        "prolang": function.language,
        "procost": function.cost,
        "prorows": function.rows,
        "proleakproof": function.is_leakproof,
        "provolatile": function.volatility,
        "proparallel": function.parallel,
        "proisstrict": function.is_strict,
        "proretset": function.returns_set,
        "prorettype": type_oid(function.result),
        "proargtypes": " ".join(str(type_oid(argument)) for argument in function.arguments),
        "proargnames": names,
        "prosrc": function.body,
    }


def _function(row: Any) -> UserFunction:
    arguments = tuple(type_name(int(oid)) for oid in row.proargtypes.split())
    names = tuple(row.proargnames.split(",")) if row.proargnames else ("",) * len(arguments)
    return UserFunction(
        oid=int(row.oid),
        name=str(row.proname),
        schema_oid=int(row.pronamespace),
        owner=int(row.proowner),
        language=str(row.prolang),
        volatility=Volatility(row.provolatile),
        is_strict=bool(row.proisstrict),
        returns_set=bool(row.proretset),
        result=type_name(int(row.prorettype)),
        arguments=arguments,
        argument_names=names,
        body=str(row.prosrc),
        cost=float(row.procost),
        rows=float(row.prorows),
        parallel=Parallel(row.proparallel),
        is_leakproof=bool(row.proleakproof),
    )


def _operator(row: Any) -> UserOperator:
    return UserOperator(
        oid=int(row.oid),
        name=str(row.oprname),
        schema_oid=int(row.oprnamespace),
        owner=int(row.oprowner),
        left=type_name(int(row.oprleft)),
        right=type_name(int(row.oprright)),
        result=type_name(int(row.oprresult)),
        function_oid=int(row.oprcode),
    )
