"""Find the partition of a row, in Spark SQL.

The rules are those of get_qual_from_partbound.  A list partition accepts its values.  A range
partition accepts the values from its lower bound up to its upper bound, without the upper bound.  A
hash partition accepts the rows with its remainder.  The default partition accepts all other rows,
including those with NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replctl.catalog.pg_class import PartitionBound, RangeDatum
from replctl.spark.comparison_sql import comparison
from replctl.spark.data_type import literal, storage_type
from replctl.spark.numeric_sql import sort_key
from replctl.spark.sql_value import SqlValue
from replctl.spark.text_conversion import to_text
from replctl.spark.values import Leaf, PartitionRule


def leaf_number_sql(leaves: Sequence[Leaf], column: Callable[[int], str]) -> str:
    """Return SQL of the index in `leaves` of the leaf partition that accepts a row; NULL if none
    does.

    Args:
        column: returns the SQL of a column, given its attnum in the root table.
    """
    if len(leaves) == 1 and not leaves[0].rules:
        return "0"
    whens = " ".join(
        f"WHEN {accepts_sql(leaf.rules, column)} THEN {number}"
        for number, leaf in enumerate(leaves)
    )
    return f"CASE {whens} END" if whens else "CAST(NULL AS INT)"


def accepts_sql(rules: Sequence[PartitionRule], column: Callable[[int], str]) -> str:
    """Return the SQL condition that a row satisfies all rules from the root to a partition.  It is
    never NULL.
    """
    tests = [f"coalesce({_accepts(rule, column)}, FALSE)" for rule in rules]
    return f"({' AND '.join(tests) or 'TRUE'})"


def _accepts(rule: PartitionRule, column: Callable[[int], str]) -> str:
    values = [
        SqlValue(column(attnum), type_, storage_type(type_, typmod))
        for attnum, (type_, typmod) in zip(rule.keys, rule.types, strict=True)
    ]
    if rule.bound is not None:
        return _within(rule, rule.bound, values)
    others = [f"coalesce({_within(rule, bound, values)}, FALSE)" for bound in rule.siblings]
    return f"NOT ({' OR '.join(others) or 'FALSE'})"


def _within(rule: PartitionRule, bound: PartitionBound, values: Sequence[SqlValue]) -> str:
    match bound.kind:
        case "list":
            return _in_list(bound, values[0], rule.types[0])
        case "range":
            not_null = " AND ".join(f"{value.text} IS NOT NULL" for value in values)
            above = _beyond(bound.lower, values, rule.types, ">", at_end="TRUE")
            below = _beyond(bound.upper, values, rule.types, "<", at_end="FALSE")
            return f"({not_null} AND {above} AND {below})"
        case "hash":
            arguments = ", ".join(to_text(value).text for value in values)
            types = ",".join(type_ for type_, _typmod in rule.types)
            place = f"replctl_partition_hash('{types}', array({arguments}), {bound.modulus})"
            return f"({place} = {bound.remainder})"
        case "default":
            raise AssertionError("the default partition has no bound")


def _in_list(bound: PartitionBound, value: SqlValue, type_: tuple[str, int]) -> str:
    tests = [
        f"{value.text} IS NULL" if item is None else _compare("=", value, item, type_)
        for item in bound.values
    ]
    return f"({' OR '.join(tests)})"


def _beyond(
    ends: Sequence[RangeDatum],
    values: Sequence[SqlValue],
    types: Sequence[tuple[str, int]],
    operator: str,
    at_end: str,
) -> str:
    """Return the SQL condition that a row is beyond a bound of a range, compared column by column.

    Args:
        at_end: the result for a row that equals the bound.
    """
    text = at_end
    for (kind, datum), value, type_ in reversed(list(zip(ends, values, types, strict=True))):
        if kind != "value":
            text = "TRUE" if (kind == "minvalue") == (operator == ">") else "FALSE"
            continue
        assert datum is not None
        beyond = _compare(operator, value, datum, type_)
        equal = _compare("=", value, datum, type_)
        text = f"({beyond} OR ({equal} AND {text}))"
    return text


def _compare(operator: str, value: SqlValue, datum: str, type_: tuple[str, int]) -> str:
    name, typmod = type_
    constant = SqlValue(literal(name, typmod, datum), name, storage_type(name, typmod))
    if name == "numeric" and value.decimal is None:
        return f"({sort_key(value)} {operator} {sort_key(constant)})"
    return comparison(operator, value, constant).text
