"""Partition bounds: analyse them, and check them against existing bounds.

Sources: transformPartitionBound() in parse_utilcmd.c, check_new_partition_bound() in partbounds.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Column, PartitionBound, RangeDatum, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.relation_kind import PartitionStrategy
from replctl.catalog.ruleutils import partition_bound as deparse_bound
from replctl.commands.ddl import Ddl
from replctl.commands.value import constant_value
from replctl.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidObjectDefinition,
    InvalidTableDefinition,
)
from replctl.expr.coerce import ASSIGNMENT
from replctl.expr.collate import assign_collations
from replctl.expr.context import ExprContext
from replctl.expr.error_location import raw_location
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.range_table import FromScope
from replctl.types import text
from replctl.types.type_kind import TypeKind

_DAY = 86_400_000_000  # microseconds


def analyze_bound(ddl: Ddl, parent: Relation, raw: ast.PartitionBound) -> PartitionBound:
    """Return the bound of a new partition of `parent`.  Cast its values to the types of the key.

    Raises:
        InvalidTableDefinition: the bound does not fit the partitioning strategy.
        PostgresError: a value is wrong.
    """
    key = parent.partition_key
    assert key is not None
    columns = [parent.column_at(attnum) for attnum in key.attnums]
    if raw.kind == "default":
        if key.strategy == PartitionStrategy.HASH:
            raise InvalidTableDefinition(
                "a hash-partitioned table may not have a default partition"
            )
        return PartitionBound("default")
    strategy = key.strategy.clause.lower()
    if raw.kind != strategy:
        raise InvalidTableDefinition(
            f"invalid bound specification for a {strategy} partition", position=raw.pos
        )
    match raw.kind:
        case "hash":
            return _hash_bound(raw)
        case "list":
            values = [_value(ddl, columns[0], item) for item in raw.values]
            return PartitionBound("list", tuple(dict.fromkeys(values)))
        case "range":
            for name, ends in (("FROM", raw.lower), ("TO", raw.upper)):
                if len(ends) != len(columns):
                    raise InvalidTableDefinition(
                        f"{name} must specify exactly one value per partitioning column"
                    )
            return PartitionBound(
                "range",
                lower=_range_end(ddl, columns, raw.lower),
                upper=_range_end(ddl, columns, raw.upper),
            )


def _hash_bound(raw: ast.PartitionBound) -> PartitionBound:
    if raw.modulus <= 0:
        raise InvalidTableDefinition(
            "modulus for hash partition must be an integer value greater than zero"
        )
    if raw.remainder < 0:
        raise InvalidTableDefinition(
            "remainder for hash partition must be an integer value greater than or equal to zero"
        )
    if raw.remainder >= raw.modulus:
        raise InvalidTableDefinition("remainder for hash partition must be less than modulus")
    return PartitionBound("hash", modulus=raw.modulus, remainder=raw.remainder)


def _range_end(
    ddl: Ddl, columns: Sequence[Column], raws: Sequence[ast.RawExpr]
) -> tuple[RangeDatum, ...]:
    data: list[RangeDatum] = []
    keys = iter(columns)  # as PostgreSQL, move to the next column after a value only
    for raw in raws:
        infinity = _infinity(raw)
        if infinity is not None:
            data.append((infinity, None))  # type: ignore[arg-type]
            continue
        value = _value(ddl, next(keys), raw)
        if value is None:
            raise InvalidObjectDefinition("cannot specify NULL in range bound")
        data.append(("value", value))
    infinite = None
    for (kind, _), raw in zip(data, raws, strict=True):
        if infinite is not None and kind != infinite:
            shown = infinite.upper()
            raise DatatypeMismatch(
                f"every bound following {shown} must also be {shown}", position=raw_location(raw)
            )
        if kind != "value":
            infinite = kind
    return tuple(data)


def _infinity(raw: ast.RawExpr) -> str | None:
    """Return `minvalue` or `maxvalue` for these words, which the grammar parses as column names.
    Return None for other values.
    """
    if isinstance(raw, ast.ColumnRef) and len(raw.fields) == 1:
        return raw.fields[0] if raw.fields[0] in ("minvalue", "maxvalue") else None
    return None


def _value(ddl: Ddl, column: Column, raw: ast.RawExpr) -> str | None:
    """Convert a value to the canonical text of the key column's type
    (transformPartitionBoundValue).
    """
    analyzer = QueryAnalyzer(ddl.environment, ddl.now).analyzer(
        FromScope(), ExprContext.PARTITION_BOUND
    )
    expr = analyzer.expr(raw)
    coerced = analyzer.coercion.to_target(
        expr, column.declared_type, column.declared_typmod, ASSIGNMENT
    )
    if coerced is None:
        shown = ddl.environment.format_type(column.declared_type)
        raise DatatypeMismatch(
            f'specified value cannot be cast to type {shown} for column "{column.name}"',
            position=raw_location(raw),
        )
    return constant_value(
        ddl,
        assign_collations(ddl.environment, coerced),
        "a partition bound",
        raw_location(raw),
    )


# ---------------------------------------------------------------------------------------------
# Comparison with other bounds


def check_new_bound(
    ddl: Ddl, parent: Relation, name: str, bound: PartitionBound, raw: ast.PartitionBound
) -> None:
    """Check that a new partition does not overlap other partitions.

    Args:
        name: the new partition's name.

    Raises:
        InvalidObjectDefinition: the partitions overlap.
    """
    siblings = [ddl.relation(oid) for oid in children_of(ddl.catalog, parent.oid)]
    others = [(s.name, s.partition_bound) for s in siblings if s.partition_bound is not None]
    if bound.kind == "default":
        for other_name, other in others:
            if other.kind == "default":
                raise InvalidObjectDefinition(
                    f'partition "{name}" conflicts with existing default partition "{other_name}"',
                    position=raw.pos,
                )
        return
    others = [(other_name, other) for other_name, other in others if other.kind != "default"]
    match bound.kind:
        case "hash":
            overlap = _hash_overlap(others, bound, raw)
        case "list":
            overlap = _list_overlap(others, bound, _ListValues(ddl, parent, raw))
        case "range":
            overlap = _range_overlap(ddl, parent, name, others, bound, raw)
    if overlap is not None:
        other_name, position = overlap
        raise InvalidObjectDefinition(
            f'partition "{name}" would overlap partition "{other_name}"', position=position
        )


_Others = Sequence[tuple[str, PartitionBound]]


def _hash_overlap(
    others: _Others, bound: PartitionBound, raw: ast.PartitionBound
) -> tuple[str, int] | None:
    ordered = sorted(others, key=lambda item: (item[1].modulus, item[1].remainder))
    place = (bound.modulus, bound.remainder)
    before = [item for item in ordered if (item[1].modulus, item[1].remainder) <= place]
    after = ordered[len(before) :]
    rule = "every hash partition modulus must be a factor of the next larger modulus"
    if before and bound.modulus % before[-1][1].modulus:
        name, other = before[-1]
        raise InvalidObjectDefinition(
            rule,
            detail=f"The new modulus {bound.modulus} is not divisible by {other.modulus}, the"
            f' modulus of existing partition "{name}".',
        )
    if after and after[0][1].modulus % bound.modulus:
        name, other = after[0]
        raise InvalidObjectDefinition(
            rule,
            detail=f"The new modulus {bound.modulus} is not a factor of {other.modulus}, the"
            f' modulus of existing partition "{name}".',
        )
    for name, other in ordered:
        smaller = min(other.modulus, bound.modulus)
        if other.remainder % smaller == bound.remainder % smaller:
            return name, raw.pos
    return None


class _ListValues:
    """The values of a list bound, with their positions in the statement."""

    def __init__(self, ddl: Ddl, parent: Relation, raw: ast.PartitionBound) -> None:
        assert parent.partition_key is not None
        column = parent.column_at(parent.partition_key.attnums[0])
        self.key = bound_key(ddl.environment, column.type)
        self.positions = [(_value(ddl, column, item), raw_location(item)) for item in raw.values]


def _list_overlap(
    others: _Others, bound: PartitionBound, values: _ListValues
) -> tuple[str, int] | None:
    taken = {
        None if value is None else values.key(value): name
        for name, other in others
        for value in other.values
    }
    for value, position in values.positions:
        name = taken.get(None if value is None else values.key(value))
        if name is not None:
            return name, position
    return None


def _range_overlap(
    ddl: Ddl,
    parent: Relation,
    name: str,
    others: _Others,
    bound: PartitionBound,
    raw: ast.PartitionBound,
) -> tuple[str, int] | None:
    assert parent.partition_key is not None
    columns = [parent.column_at(attnum) for attnum in parent.partition_key.attnums]
    keys = [bound_key(ddl.environment, column.type) for column in columns]

    def end(data: Sequence[RangeDatum], *, is_lower: bool) -> _End:
        return _end(keys, data, is_lower=is_lower)

    lower, upper = end(bound.lower, is_lower=True), end(bound.upper, is_lower=False)
    if lower >= upper:
        types = [(column.type, column.typmod) for column in columns]
        shown = deparse_bound(ddl.environment, bound, types)
        first, second = shown.removeprefix("FOR VALUES FROM ").split(") TO (", 1)
        # If the bounds are equal, the last datum decides (partition_rbound_cmp in partbounds.c)
        is_equal = lower[0] == upper[0]
        place = len(lower[0]) - 1 if is_equal else _differing(lower, upper)
        raise InvalidObjectDefinition(
            f'empty range bound specified for partition "{name}"',
            detail=f"Specified lower bound {first}) is greater than or equal to upper bound"
            f" ({second}.",
            position=raw_location(raw.lower[place]),
        )
    ranges = sorted(
        (end(other.lower, is_lower=True), end(other.upper, is_lower=False), other_name)
        for other_name, other in others
    )
    for other_lower, other_upper, other_name in ranges:
        if other_lower <= lower < other_upper:
            return other_name, raw_location(raw.lower[_differing(other_lower, lower)])
        if lower < other_lower < upper:
            return other_name, raw_location(raw.upper[_differing(other_lower, upper)])
    return None


#: A range bound in comparable form: its data, each with its kind, then 1 for lower or 0 for upper.
_End = tuple[tuple[tuple[int, Any], ...], int]


def _end(
    keys: Sequence[Callable[[str], Any]], data: Sequence[RangeDatum], *, is_lower: bool
) -> _End:
    """Return a range bound in comparable form.  Ignore data after MINVALUE or MAXVALUE.  An upper
    bound sorts before an equal lower bound.
    """
    items: list[tuple[int, Any]] = []
    for key, (kind, value) in zip(keys, data, strict=True):
        if kind != "value":
            items.append((-1 if kind == "minvalue" else 1, 0))
            break
        assert value is not None
        items.append((0, key(value)))
    return tuple(items), 1 if is_lower else 0


def _differing(one: _End, other: _End) -> int:
    """Return the index of the first datum in which two bounds differ; 0 if they are equal."""
    for place, (a, b) in enumerate(zip(one[0], other[0], strict=False)):
        if a != b:
            return place
    return 0


def bound_key(environment: CatalogEnvironment, type_name: str) -> Callable[[str], Any]:
    """Return a function that converts canonical texts of a type to sort keys.

    Raises:
        FeatureNotSupported: replctl does not support partition keys of the type.
    """
    type_ = environment.type(type_name)
    if type_.kind == TypeKind.ENUM:
        labels = environment.enum_labels(type_)
        return labels.index
    key = _KEYS.get(type_name)
    if key is None:
        raise FeatureNotSupported(
            f"partition keys of type {environment.format_type(type_name)} are not supported"
        )
    return lambda value: key(text.parse(type_name, value))


def _number(value: Any) -> Any:
    """Return a sort key for a number.  NaN is greater than every other number."""
    is_nan = value.is_nan() if isinstance(value, Decimal) else value != value
    return (1, 0) if is_nan else (0, value)


_KEYS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        [
            "bool",
            "int2",
            "int4",
            "int8",
            "oid",
            "date",
            "timestamp",
            "timestamptz",
            "time",
            "uuid",
            "pg_lsn",
            "bytea",
        ],
        lambda value: value,
    ),
    **dict.fromkeys(("text", "varchar", "name"), str.encode),
    **dict.fromkeys(("float4", "float8", "numeric"), _number),
    "bpchar": lambda value: value.rstrip(" ").encode(),
    "interval": lambda value: (value[0] * 30 + value[1]) * _DAY + value[2],
}
