"""Apply changes to rows without a key: each change finds one row that equals its old image, with
NULL equal to NULL (RelationFindReplTupleSeq in execReplication.c).

Among rows that are equal but stored differently (1.0 and 1.00, 0 and -0), a change prefers a row
that is stored identically to its old image.
"""

from __future__ import annotations

from collections.abc import Sequence

from replctl.spark.data_type import storage_type
from replctl.spark.delta_table import scan
from replctl.spark.normal_form import matches, matching_form, stored_form
from replctl.spark.outcome import NO_COLUMNS, new_values_sql
from replctl.spark.spark_query import Query, reading, union_text
from replctl.spark.staged import Staged
from replctl.spark.values import Target, TargetColumn

#: The order in which changes find equal rows: the oldest first.
_ORDER = "row_version, row_id, leaf"


def whole_row_sql(target: Target, changes: Staged, missing: str) -> Query:
    """Return a query for the rows of an outcome for simultaneous changes (the `joined` of
    `finished_sql`).

    Args:
        missing: SQL condition: the change is already known to have no row.
    """
    sent = [column for column in target.columns if column.sent is not None]
    changed, candidates = _ranked_sides(target, sent, changes, missing)
    same = f"{_same(sent, 't.c', 'ch.o')} AND t.rank = ch.rank"
    matched, kept = _met_rows(target, sent, changed, candidates, same)
    plain = [column for column in target.columns if column.generated is None]
    gone = ", ".join(f"{'c' if c.sent is None else 'o'}{c.attnum} AS w{c.attnum}" for c in plain)
    gone = gone or NO_COLUMNS
    absent = ", ".join(f"CAST(NULL AS {storage_type(c.type, c.typmod)})" for c in plain)
    absent = absent or NO_COLUMNS
    staying = ", ".join(f"c{c.attnum} AS w{c.attnum}" for c in plain) or NO_COLUMNS
    no_old = "".join(
        f", CAST(NULL AS {storage_type(c.type, c.typmod)}) AS c{c.attnum}" for c in target.columns
    )
    place = "row_number() OVER (ORDER BY ch.position)"
    moved = new_values_sql(target, "TRUE", "1L", "m", "m")
    added = new_values_sql(target, "FALSE", place, "ch", None)
    return reading(
        "SELECT if(is_first, 'D', 'R') AS op, position, action, leaf AS old_leaf, 0L AS missing_u,"
        f" 0L AS missing_d, {gone}{no_old} FROM ({matched}) WHERE is_first OR action = 'D'"
        f" UNION ALL SELECT 'I', position, action, leaf, 0L, 0L, {moved}{no_old} FROM ({matched}) m"
        " WHERE action = 'U'"
        f" UNION ALL SELECT 'I', 0L, 'I', leaf, 0L, 0L, {staying}{no_old} FROM ({kept})"
        " WHERE position IS NULL AND is_touched"
        " UNION ALL SELECT 'M', position, action, NULL, if(action = 'U', 1L, 0L),"
        f" if(action = 'D', 1L, 0L), {absent}{no_old} FROM ({changed}) ch"
        f" LEFT ANTI JOIN ({candidates}) t ON {same}"
        " UNION ALL SELECT 'M', position, action, NULL, if(action = 'U', 1L, 0L),"
        f" if(action = 'D', 1L, 0L), {absent}{no_old} FROM {changes.view} ch WHERE {missing}"
        f" UNION ALL SELECT 'I', position, action, NULL, 0L, 0L, {added}{no_old}"
        f" FROM {changes.view} ch"
        " WHERE action = 'I'",
        changed,
        candidates,
    )


def _met_rows(
    target: Target, sent: Sequence[TargetColumn], changed: Query, candidates: Query, same: str
) -> tuple[str, str]:
    """Return SQL of the changes with the rows that they find, and SQL of all rows that equal these,
    with the position of their change or NULL.

    MERGE deletes all equal rows of a leaf partition in which a change finds one of them.  Such rows
    are `is_touched`, and one of the changes that find them is `is_first`.

    Args:
        changed, candidates: see `_ranked_sides`.
        same: the condition that a change (ch) finds a row (t).
    """
    stored = "".join(f", t.c{c.attnum} AS c{c.attnum}" for c in target.columns)
    is_first, is_touched = "ch.rank = 1", "TRUE"
    if len(target.leaves) > 1:
        in_leaf = f"PARTITION BY {', '.join(['t.leaf', *_forms(sent, 't.c')])}"
        is_first = f"row_number() OVER ({in_leaf} ORDER BY t.rank) = 1"
        is_touched = f"count(ch.position) OVER ({in_leaf}) > 0"
    matched = (
        f"SELECT ch.*, t.leaf{stored}, {is_first} AS is_first FROM ({changed}) ch"
        f" JOIN ({candidates}) t ON {same}"
    )
    kept = (
        f"SELECT t.leaf{stored}, ch.position, {is_touched} AS is_touched FROM ({candidates}) t"
        f" LEFT JOIN ({changed}) ch ON {same}"
    )
    return matched, kept


def _ranked_sides(
    target: Target, sent: Sequence[TargetColumn], changes: Staged, missing: str
) -> tuple[Query, Query]:
    """Return queries for the changes that need a row, and for the rows that they may find.  Both
    have
    a rank: a change finds the equal row with the same rank.
    """
    leaves = enumerate(scan(leaf.source, with_row_id=True) for leaf in target.leaves)
    scans = union_text(
        [reading(f"SELECT {number} AS leaf, * FROM ({rows})", rows) for number, rows in leaves]
    )
    needing = f"FROM {changes.view} ch WHERE action <> 'I' AND NOT {missing}"
    equal = _same(sent, "t.c", "ch.o")
    if all(map(_is_found_as_stored, sent)):
        changed = reading(f"SELECT *, {_rank(sent, 'o', 'position')} {needing}", changes.query)
        candidates = (
            f"SELECT t.*, {_rank(sent, 'c', _ORDER)}"
            f" FROM ({scans}) t LEFT SEMI JOIN ({changed}) ch ON {equal}"
        )
        return changed, reading(candidates, scans, changed)
    changed = reading(f"SELECT * {needing}", changes.query)
    candidates = f"SELECT t.* FROM ({scans}) t LEFT SEMI JOIN ({changed}) ch ON {equal}"
    one = changed, "o", "position"
    other = reading(candidates, scans, changed), "c", _ORDER
    return _exact_first(sent, *one, other), _exact_first(sent, *other, one)


def _rank(sent: Sequence[TargetColumn], image: str, order: str) -> str:
    """Return SQL of the number of a row among equal rows."""
    forms = ", ".join(_forms(sent, image)) or "1"
    return f"row_number() OVER (PARTITION BY {forms} ORDER BY {order}) AS rank"


def _forms(columns: Sequence[TargetColumn], image: str) -> list[str]:
    return [matching_form(column, f"{image}{column.attnum}") for column in columns]


def _exact_first(
    sent: Sequence[TargetColumn], rows: Query, image: str, order: str, other: tuple[Query, str, str]
) -> Query:
    """Return a query for the rows of a side with their ranks.  Rows with a counterpart on the other
    side that is stored identically come first, in the same order on both sides.
    """
    other_rows, other_image, _order = other
    forms = [stored_form(c.type, f"{image}{c.attnum}") for c in sent]
    stored = ", ".join(forms)
    copies = f"SELECT *, row_number() OVER (PARTITION BY {stored} ORDER BY {order}) AS copy"
    counted = ", ".join(
        f"{stored_form(c.type, f'{other_image}{c.attnum}')} AS f{c.attnum}" for c in sent
    )
    counts = f"SELECT {counted}, count(*) AS others FROM ({other_rows}) GROUP BY ALL"
    alike = " AND ".join(
        f"{form} <=> f{column.attnum}" for form, column in zip(forms, sent, strict=True)
    )
    paired = (
        f"SELECT *, coalesce(copy <= others, FALSE) AS is_exact FROM ({copies} FROM ({rows}))"
        f" LEFT JOIN ({counts}) ON {alike}"
    )
    place = f"NOT is_exact, if(is_exact, struct({stored}, copy), NULL), {order}"
    return reading(f"SELECT *, {_rank(sent, image, place)} FROM ({paired})", rows, other_rows)


def _is_found_as_stored(column: TargetColumn) -> bool:
    """Return whether equal values of a column are always stored identically."""
    return matching_form(column, "c") == "c" == stored_form(column.type, "c")


def _same(columns: Sequence[TargetColumn], one: str, other: str) -> str:
    """Return the SQL condition that two rows are equal.

    Args:
        one, other: the prefixes of their columns, before the attnum.
    """
    tests = (matches(c, f"{one}{c.attnum}", f"{other}{c.attnum}", "<=>") for c in columns)
    return " AND ".join(tests) or "TRUE"
