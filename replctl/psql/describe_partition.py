"""The line `Partition constraint:` of `\\d+`: the condition for the rows of a partition.

FOR VALUES FROM (1) TO (10)  becomes  ((a IS NOT NULL) AND (a >= 1) AND (a < 10))

The rules are those of get_qual_from_partbound in partbounds.c, applied to texts.
"""

from __future__ import annotations

from typing import assert_never

from replctl.catalog import pg_class, pg_inherits, ruleutils
from replctl.catalog.pg_class import PartitionBound, RangeDatum, Relation
from replctl.expr import nodes
from replctl.expr.deparse_constant import constant
from replctl.psql.described import Described
from replctl.record import dataclass
from replctl.types.quote import quote_identifier


@dataclass(frozen=True, slots=True)
class _Key:
    """A column of a partition key: its text for comparisons, its text alone, and the type and the
    collation of constants for comparisons.
    """

    text: str
    bare: str
    type: str
    typmod: int
    collation: str | None


def partition_constraint(target: Described, relation: Relation) -> str | None:
    """Return the condition for the rows of a partition, including the conditions of its ancestors;
    None if all rows belong to it.
    """
    conditions: list[str] = []
    child = relation
    for oid in pg_inherits.ancestors_of(target.catalog, relation.oid):
        parent = pg_class.get_relation(target.catalog, oid)
        assert parent is not None
        conditions = _conditions(target, parent, child) + conditions
        child = parent
    return _joined("AND", conditions) if conditions else None


def _conditions(target: Described, parent: Relation, child: Relation) -> list[str]:
    bound = child.partition_bound
    assert bound is not None
    match bound.kind:
        case "list":
            return _list_conditions(target, parent, bound)
        case "range":
            keys = _keys(target, parent)
            return [*_not_null(keys), *(_range_conditions(target, keys, bound) or ["true"])]
        case "hash":
            names = ", ".join(key.bare for key in _keys(target, parent))
            return [
                f"satisfies_hash_partition('{parent.oid}'::oid, {bound.modulus},"
                f" {bound.remainder}, {names})"
            ]
        case "default":
            return _default_conditions(target, parent)
    assert_never(bound.kind)


def _default_conditions(target: Described, parent: Relation) -> list[str]:
    """Return the conditions of the default partition, which gets the rows of no other partition."""
    children = pg_inherits.children_of(target.catalog, parent.oid)
    bounds = [
        child.partition_bound
        for child in pg_class.load_relations(target.catalog, children).values()
        if child.partition_bound is not None and child.partition_bound.kind != "default"
    ]
    if not bounds:
        return []
    if bounds[0].kind == "list":
        merged = PartitionBound("list", tuple(value for bound in bounds for value in bound.values))
        return [f"(NOT {_joined('AND', _list_conditions(target, parent, merged))})"]
    keys = _keys(target, parent)
    bounds.sort(key=lambda bound: [_rank(datum) for datum in bound.lower])
    arms = [
        _joined("AND", _range_conditions(target, keys, bound) or _not_null(keys))
        for bound in bounds
    ]
    return [f"(NOT {_joined('AND', [*_not_null(keys), _joined('OR', arms)])})"]


def _list_conditions(target: Described, parent: Relation, bound: PartitionBound) -> list[str]:
    (key,) = _keys(target, parent)
    values = [_constant(target, key, value) for value in bound.values if value is not None]
    is_in = ""
    if values:
        many = f"ANY (ARRAY[{', '.join(values)}])"
        is_in = f"({key.text} = {many if len(values) > 1 else values[0]})"
    if None not in bound.values:
        return [f"({key.bare} IS NOT NULL)", is_in]
    is_null = f"({key.bare} IS NULL)"
    return [f"({is_null} OR {is_in})" if is_in else is_null]


def _range_conditions(target: Described, keys: list[_Key], bound: PartitionBound) -> list[str]:
    """Return comparisons with both bounds, without tests for NULL; none if both are infinite."""
    conditions = []
    first = 0
    while (
        first < len(keys)
        and bound.lower[first] == bound.upper[first]
        and bound.lower[first][0] == "value"
    ):
        value = _constant(target, keys[first], bound.lower[first][1])
        conditions.append(f"({keys[first].text} = {value})")
        first += 1
    for end, infinity, operators in (
        (bound.lower, "minvalue", (">", ">=")),
        (bound.upper, "maxvalue", ("<", "<=")),
    ):
        arms = _arms(target, keys, end, first, infinity, operators)
        if arms:
            conditions.append(_joined("OR", arms))
    return conditions


def _arms(
    target: Described,
    keys: list[_Key],
    end: tuple[RangeDatum, ...],
    first: int,
    infinity: str,
    operators: tuple[str, str],
) -> list[str]:
    """Return conditions such as `(a > 1)` and `((a = 1) AND (b >= 2))`.  A row is on the right side
    of a bound if one of them is true.

    Args:
        infinity: the infinite bound that all values satisfy: minvalue for a lower bound, else
            maxvalue.
        operators: the strict and the inclusive operator.  The last comparison of each condition
            uses one of them.
    """
    strict, inclusive = operators
    arms: list[str] = []
    for last in range(first, len(keys)):
        if end[last][0] != "value":
            break
        terms = [
            f"({keys[i].text} = {_constant(target, keys[i], end[i][1])})"
            for i in range(first, last)
        ]
        is_final = last == len(keys) - 1
        includes = (is_final and infinity == "minvalue") or (
            not is_final and end[last + 1][0] == infinity
        )
        value = _constant(target, keys[last], end[last][1])
        terms.append(f"({keys[last].text} {inclusive if includes else strict} {value})")
        arms.append(_joined("AND", terms))
    return arms


def _rank(datum: RangeDatum) -> tuple[int, float, str]:
    """Return a sort key for lower bounds: numbers sort by value, other values by their text."""
    kind, value = datum
    if kind != "value" or value is None:
        return ({"minvalue": 0, "value": 1, "maxvalue": 2}[kind], 0.0, "")
    try:
        return (1, float(value), "")
    except ValueError:  # a date or a text
        return (1, 0.0, value)


def _keys(target: Described, parent: Relation) -> list[_Key]:
    assert parent.partition_key is not None
    exprs = iter(parent.partition_key.exprs)
    keys = []
    for attnum in parent.partition_key.attnums:
        if attnum:
            column = parent.column_at(attnum)
            bare, stored = quote_identifier(column.name), column.type
            type_, typmod = column.declared_type, column.declared_typmod
            collation = column.collation
        else:
            expr = next(exprs)
            bare = ruleutils.get_expr(target.environment, parent, expr)
            stored, type_, typmod = expr.type, expr.type, -1
            collation = nodes.collation(expr)
        # varchar uses the operators of text
        text = f"({bare})::text" if stored == "varchar" else bare
        keys.append(_Key(text, bare, type_, typmod, collation))
    return keys


def _constant(target: Described, key: _Key, value: str | None) -> str:
    const = nodes.Const(key.type, value, key.typmod, key.collation)
    return constant(target.environment, const)


def _not_null(keys: list[_Key]) -> list[str]:
    return [f"({key.bare} IS NOT NULL)" for key in keys]


def _joined(word: str, terms: list[str]) -> str:
    return terms[0] if len(terms) == 1 else f"({f' {word} '.join(terms)})"
