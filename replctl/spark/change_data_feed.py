"""Convert a table's change data feed to the changes that a publisher sends: pair, filter and
transform the images.

Two images in one commit can be the old and the new image of one row.  If the primary key does not
change, replctl pairs images by this key.  If the key changes, or there is none, replctl joins the
two versions of the table by row id.
A delete and an insert of the same key in one commit become an UPDATE.  Images without a counterpart
become a DELETE or an INSERT.

If Delta cannot read the feed of a commit, replctl compares the rows before and after it.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from itertools import groupby

from replctl.replication.update_transformation import UPDATE_TRANSFORMATION, Action
from replctl.spark.compared_version import (
    compared_sql,
    pairs_by_row_id,
    row_value,
    source_at,
)
from replctl.spark.data_type import quote, storage_type
from replctl.spark.delta_table import column_sql, scan
from replctl.spark.normal_form import is_stored_alike, matching_form, matching_group
from replctl.spark.spark_query import Query, reading, union_text
from replctl.spark.sql_value import raise_error_sql
from replctl.spark.staged import view_rows
from replctl.spark.translation import to_sql
from replctl.spark.values import IMAGES, ChangeSource, FeedVersion, TableSource

_OLD_TYPES = "('update_preimage', 'delete')"
_NEW_TYPES = "('update_postimage', 'insert')"
#: The place of a change if the order does not matter. Without numbers Spark can filter early.
_NOWHERE = "0L"
#: Stands for the values of a row without columns.
_NO_VALUES = "1 AS c0"


class UndoRule(Enum):
    """Way to undo the changes of a key."""

    KEY = "K"  # the key identifies the row
    WHOLE_ROW = "R"  # others have inserted another row with the key
    REFUSED = "X"  # others have, and later changes do not tell which row is whose


#: SQL of the changes of a key that inserted a row although the previous change left one.
_REPEATS = (
    "filter(events, (x, i) ->"
    " i > 0 AND x.o IS NULL AND x.n IS NOT NULL AND get(events, i - 1).n IS NOT NULL)"
)
#: SQL of the `UndoRule` of a key.  A whole row is certain if the last two changes have inserted the
#: two rows, and one of them is the only own change.  Nothing is left to undo if others have deleted
#: all rows.
_RULE = (
    f"CASE WHEN size(repeats) = 0 THEN {quote(UndoRule.KEY.value)}"
    " WHEN size(repeats) = 1 AND repeats[0].version = element_at(events, -1).version"
    " AND size(filter(events, x -> x.is_own)) = 1"
    " AND exists(slice(events, -2, 2), x -> x.is_own)"
    f" THEN {quote(UndoRule.WHOLE_ROW.value)}"
    " WHEN NOT element_at(events, -1).is_own AND aggregate(events, events[0].old_count,"
    " (s, x) -> s + x.new_count - x.old_count) = 0"
    f" THEN {quote(UndoRule.KEY.value)} ELSE {quote(UndoRule.REFUSED.value)} END"
)


def changes_sql(change_source: ChangeSource, pairs: Query | None = None) -> Query:
    """Return a query for the changes to send. The columns are position, action (I, U, D), and the
    published columns of the old row (o1, o2, ...) and of the new row (n1, n2, ...), in the types of
    the table.

    Args:
        pairs: the paired images; default: those of `pairs_sql`.
    """
    columns = f"position, action{_sent_images(change_source)}"
    sent = _sent_changes(change_source, pairs or pairs_sql(change_source))
    return reading(f"SELECT {columns} FROM ({sent})", sent)


def ordered_changes_sql(change_source: ChangeSource) -> Query:
    """Return a query like `changes_sql`, but with a defined order of the changes.

    Within a commit, deletes come first and updates second, both in the order of their keys.
    Inserts come last.  If one file has all inserts, they are in the order in which they were
    written.
    """
    keys = [f"if(action = 'I', NULL, o.c{attnum})" for attnum in change_source.key]
    order = ", ".join(["position", "array_position(array('D', 'U', 'I'), action)", *keys, "place"])
    columns = f"position, action{_sent_images(change_source)}"
    sent = _sent_changes(change_source, pairs_sql(change_source, "monotonically_increasing_id()"))
    return reading(f"SELECT {columns} FROM ({sent}) ORDER BY {order}", sent)


def _sent_images(change_source: ChangeSource) -> str:
    """Return the list of the published columns of the old and the new row, with a comma before
    each."""
    return "".join(
        f", {image}.c{attnum} AS {image}{number}"
        for image in IMAGES
        for number, attnum in enumerate(change_source.published, start=1)
    )


def _sent_changes(change_source: ChangeSource, pairs: Query) -> Query:
    """Return a query for the changes to send: position, action, the images o and n, and the place
    in the feed.
    """
    numbers = ", ".join(f"{v.version}L, {v.position}L" for v in change_source.versions)
    action = _action_sql(change_source)
    transformed = (
        f"SELECT element_at(map({numbers}), version) AS position, place, {action} AS action, o, n"
        f" FROM ({pairs})"
    )
    images = "if(action = 'I', NULL, o) AS o, if(action = 'D', NULL, n) AS n"
    sent = f"SELECT position, place, action, {images} FROM ({transformed})"
    return reading(f"{sent} WHERE action IS NOT NULL", pairs)


def pairs_sql(change_source: ChangeSource, place: str = _NOWHERE) -> Query:
    """Return a query for the changes of whole rows, before filtering: version, place, kind (I, U,
    D), and the old row o and the new row n. An I has no o, and a D has no n.

    Args:
        place: SQL of the place of a row in the feed.
    """
    has_row_ids = change_source.source.has_row_tracking
    by_row_id = tuple(
        v for v in change_source.versions if v.changes_keys and has_row_ids and not v.is_compared
    )
    by_both = [v for v in change_source.versions if v.has_row_ids and v.images is not None]
    by_key = [v for v in change_source.versions if v not in by_row_id and v not in by_both]
    parts: list[Query] = []
    if by_key:
        feed = _feed(change_source.source, by_key, place, among=change_source.versions)
        parts.append(_pairs_by_key(change_source, feed))
    for images, versions in groupby(by_both, key=lambda version: version.images):
        assert images is not None
        parts += _compared_pairs(change_source, list(versions), images)
    if by_row_id:
        parts.append(_pairs_by_row_id(change_source, by_row_id, place))
    return union_text(parts)


def _compared_pairs(
    change_source: ChangeSource, versions: Sequence[FeedVersion], images: str
) -> list[Query]:
    """Return queries for the pairs of compared versions, as parts of a UNION ALL: by row id, then
    the others by key.  The last part has no rows.  It fails if changed rows have no key or one key.

    Args:
        images: the view with the rows of both sides of these versions.
    """
    source, key = change_source.source, change_source.key
    found = pairs_by_row_id(source, versions, images, key)
    parts = [found.updated, _pairs_by_key(change_source, found.others)]
    if key:
        is_null = " OR ".join(f"c{attnum} IS NULL" for attnum in key)
        grouped = (
            f"SELECT version, bool_or({is_null}) AS has_null, count_if(is_old) AS old_count,"
            f" count_if(is_new) AS new_count FROM ({found.keys})"
            f" GROUP BY version, {_key_forms(source, key)}"
        )
        missing, duplicate = _key_errors(change_source)
        # Each column fails: Spark would drop the part if the filters refused constant images
        error = f"if(has_null, {missing}, {duplicate})"
        failing = (
            f"SELECT version, {_NOWHERE} AS place, {error} AS kind, {error} AS o, {error} AS n"
            f" FROM ({grouped}) WHERE has_null OR old_count > 1 OR new_count > 1"
        )
        parts.append(reading(failing, found.keys))
    return parts


def _key_errors(change_source: ChangeSource) -> tuple[str, str]:
    """Return SQL that fails because a row has no key, and because several rows have one key."""
    names = ", ".join(change_source.key_names)
    missing = raise_error_sql(
        "23502",
        f'table "{change_source.name}" has a row without a key',
        f"There is NULL in ({names}).",
    )
    duplicate = raise_error_sql(
        "23505",
        f'table "{change_source.name}" has several rows with one key',
        f"Rows are not unique in ({names}), so changes of them cannot be distinguished.",
    )
    return missing, duplicate


def paired_columns_sql(source: TableSource, pairs: Query) -> Query:
    """Return a query that splits pairs into columns: version, kind, has_o, has_n, and o<attnum> and
    n<attnum> for the values of the old and the new row.

    Args:
        pairs: a result of `pairs_sql`.
    """
    values = "".join(
        f", {image}.c{column.attnum} AS {image}{column.attnum}"
        for column in source.columns
        for image in IMAGES
    )
    there = "o IS NOT NULL AS has_o, n IS NOT NULL AS has_n"
    return reading(f"SELECT version, kind, {there}{values} FROM ({pairs})", pairs)


def pairs_of_columns_sql(source: TableSource, view: str) -> Query:
    """Return a query that converts a view of `paired_columns_sql` back to pairs (`pairs_sql`)."""
    images = [f"if(has_{i}, {_row_of_columns(source, i)}, NULL) AS {i}" for i in IMAGES]
    pairs = f"SELECT version, {_NOWHERE} AS place, kind, {', '.join(images)} FROM {view}"
    return reading(pairs, view_rows(view))


def _row_of_columns(source: TableSource, image: str) -> str:
    """Return SQL of a struct with all columns of a row, which are <image><attnum>."""
    values = ", ".join(f"{image}{c.attnum} AS c{c.attnum}" for c in source.columns)
    return f"struct({values or _NO_VALUES})"


def inverse_sql(source: TableSource, version: FeedVersion) -> Query:
    """Return a query for the changes that undo one commit: position, action, o<attnum>,
    n<attnum>.
    """
    old = "".join(f", c{c.attnum} AS o{c.attnum}" for c in source.columns)
    new = "".join(f", c{c.attnum} AS n{c.attnum}" for c in source.columns)
    feed = _feed(source, [version])
    nothing = [f"CAST(NULL AS {storage_type(c.type, c.typmod)})" for c in source.columns]
    no_old = "".join(
        f", {null} AS o{c.attnum}" for null, c in zip(nothing, source.columns, strict=True)
    )
    no_new = "".join(
        f", {null} AS n{c.attnum}" for null, c in zip(nothing, source.columns, strict=True)
    )
    return reading(
        f"SELECT 1L AS position, 'D' AS action{old}{no_new} FROM ({feed})"
        f" WHERE kind IN {_NEW_TYPES}"
        f" UNION ALL SELECT 1L, 'I'{no_old}{new} FROM ({feed}) WHERE kind IN {_OLD_TYPES}",
        feed,
    )


def without_own_sql(
    source: TableSource,
    key: Sequence[int],
    own: Sequence[FeedVersion],
    foreign: Sequence[FeedVersion],
) -> Query:
    """Return a query for the changes that undo commits although other writers have committed since.
    The columns are those of `inverse_sql`, and `rule`, an UndoRule.  Each row gets the values that
    the others' commits alone would produce.

    The others' commits have the same effect as at a subscriber: an UPDATE or DELETE of a missing
    row does nothing.

    Delta lets two writers insert one key.  Then the old image is the own row, and the change must
    find the whole row.  Or the change is refused, and its old image only has the key.

    Args:
        key: attnums of the columns that identify a row.
        own: the versions to undo.
        foreign: the versions of the other writers.
    """
    row, keys = row_value(source), _key_forms(source, key)
    shown = _key_values(source, key)
    versions = sorted([*own, *foreign], key=lambda version: version.version)
    is_own = f"version IN ({', '.join(str(version.version) for version in own)})"
    feed = _feed(source, versions)
    of_versions = (
        f"SELECT {shown}, version, {is_own} AS is_own,"
        f" any_value({row}) FILTER (WHERE kind IN {_OLD_TYPES}) AS o,"
        f" any_value({row}) FILTER (WHERE kind IN {_NEW_TYPES}) AS n,"
        f" count_if(kind IN {_OLD_TYPES}) AS old_count, count_if(kind IN {_NEW_TYPES}) AS new_count"
        f" FROM ({feed}) GROUP BY {keys}, version"
    )
    event = "struct(version, is_own, o, n, old_count, new_count)"
    by_version = "(a, b) -> CASE WHEN a.version < b.version THEN -1 ELSE 1 END"
    of_keys = (
        "SELECT min(version) FILTER (WHERE is_own) AS first_own,"
        f" array_sort(collect_list({event}), {by_version}) AS events"
        f" FROM ({of_versions}) GROUP BY {keys}"
    )
    ruled = (
        f"SELECT *, element_at(filter(events, x -> x.is_own), -1) AS own, {_RULE} AS rule"
        f" FROM (SELECT *, {_REPEATS} AS repeats FROM ({of_keys})"
        " WHERE first_own IS NOT NULL)"
    )
    since = "filter(events, x -> x.version >= first_own)"
    step = (
        "CASE WHEN x.is_own THEN s WHEN x.n IS NULL THEN NULL WHEN x.o IS NULL THEN x.n"
        " WHEN s IS NOT NULL THEN x.n END"
    )
    by_row, refused = quote(UndoRule.WHOLE_ROW.value), quote(UndoRule.REFUSED.value)
    states = (
        f"SELECT rule, CASE rule WHEN {by_row} THEN own.n WHEN {refused} THEN repeats[0].n"
        f" ELSE element_at(events, -1).n END AS o, if(rule = {by_row}, own.o,"
        f" aggregate(events, events[0].o, (s, x) -> {step})) AS n"
        f" FROM (SELECT rule, own, repeats, {since} AS events FROM ({ruled}))"
    )
    same = " AND ".join(
        is_stored_alike(c.type, f"o.c{c.attnum}", f"n.c{c.attnum}") for c in source.columns
    )
    images = "".join(f", {i}.c{c.attnum} AS {i}{c.attnum}" for i in IMAGES for c in source.columns)
    action = "CASE WHEN n IS NULL THEN 'D' WHEN o IS NULL THEN 'I' ELSE 'U' END"
    return reading(
        f"SELECT 1L AS position, {action} AS action, rule{images} FROM ({states})"
        f" WHERE rule = {refused} OR NOT ((o IS NULL) = (n IS NULL) AND {same})",
        feed,
    )


def _action_sql(change_source: ChangeSource) -> str:
    """Return SQL of the action to send for a pair (o, n); NULL if filters exclude the pair, or if
    no publication publishes its kind of change.
    """
    whens = []
    if Action.INSERT in change_source.filters:
        passes = _passes(change_source, Action.INSERT, "n")
        whens.append(f"WHEN kind = 'I' AND {passes} THEN {quote(Action.INSERT.value)}")
    if Action.DELETE in change_source.filters:
        passes = _passes(change_source, Action.DELETE, "o")
        whens.append(f"WHEN kind = 'D' AND {passes} THEN {quote(Action.DELETE.value)}")
    if Action.UPDATE in change_source.filters:
        old = f"(o IS NOT NULL AND {_passes(change_source, Action.UPDATE, 'o')})"
        new = f"(n IS NOT NULL AND {_passes(change_source, Action.UPDATE, 'n')})"
        for (old_matches, new_matches), action in UPDATE_TRANSFORMATION.items():
            if action is not None:
                tests = (
                    f"{'' if old_matches else 'NOT '}{old} AND {'' if new_matches else 'NOT '}{new}"
                )
                whens.append(f"WHEN kind = 'U' AND {tests} THEN {quote(action.value)}")
    return f"CASE {' '.join(whens)} END" if whens else "CAST(NULL AS STRING)"


def _passes(change_source: ChangeSource, action: Action, image: str) -> str:
    """Return the SQL condition that a row satisfies a row filter of an action; it is never NULL."""
    filters = change_source.filters[action]
    if not filters:
        return "TRUE"
    tests = [
        to_sql(row_filter, lambda var: f"{image}.c{var.attnum}").text for row_filter in filters
    ]
    return f"coalesce({' OR '.join(tests)}, FALSE)"


def _pairs_by_key(change_source: ChangeSource, feed: Query) -> Query:
    """Return a query for pairs: the old and the new image with the same key in one commit.  Without
    a key, each image becomes a DELETE or an INSERT.

    Args:
        feed: the images.
    """
    row = row_value(change_source.source)
    if not change_source.key:
        return reading(
            f"SELECT version, place, if(kind IN {_OLD_TYPES}, 'D', 'I') AS kind,"
            f" CASE WHEN kind IN {_OLD_TYPES} THEN {row} END AS o,"
            f" CASE WHEN kind IN {_NEW_TYPES} THEN {row} END AS n FROM ({feed})",
            feed,
        )
    source = change_source.source
    key = _key_forms(source, change_source.key)
    grouped = (
        f"SELECT version, {_key_values(source, change_source.key)}, min(place) AS place,"
        f" any_value({row}) FILTER (WHERE kind IN {_OLD_TYPES}) AS o,"
        f" any_value({row}) FILTER (WHERE kind IN {_NEW_TYPES}) AS n,"
        f" count_if(kind IN {_OLD_TYPES}) AS old_count,"
        f" count_if(kind IN {_NEW_TYPES}) AS new_count FROM ({feed}) GROUP BY version, {key}"
    )
    missing, duplicate = _key_errors(change_source)
    has_null = " OR ".join(f"c{attnum} IS NULL" for attnum in change_source.key)
    kind = (
        f"CASE WHEN {has_null} THEN {missing}"
        f" WHEN old_count > 1 OR new_count > 1 THEN {duplicate}"
        " WHEN o IS NOT NULL AND n IS NOT NULL THEN 'U' WHEN n IS NOT NULL THEN 'I' ELSE 'D' END"
    )
    return reading(f"SELECT version, place, {kind} AS kind, o, n FROM ({grouped})", feed)


def _pairs_by_row_id(
    change_source: ChangeSource, versions: Sequence[FeedVersion], place: str
) -> Query:
    """Return a query for pairs: join each version with the previous one on row id to find updates,
    and pair the other images by key.
    """
    source, row = change_source.source, row_value(change_source.source)
    parts = _updates_here(source, versions)
    for version in versions:
        if version.updates is not None:
            continue
        before = scan(source_at(source, version.version - 1), with_row_id=True)
        after = scan(source_at(source, version.version), with_row_id=True)
        joined = (
            f"SELECT {version.version}L AS version, a.row_id AS place, 'U' AS kind, b.o, a.n FROM"
            f" (SELECT row_id, {row} AS n FROM ({after}) WHERE row_version = {version.version}) a"
            f" JOIN (SELECT row_id, {row} AS o FROM ({before})) b ON a.row_id = b.row_id"
        )
        parts.append(reading(joined, before, after))
    kinds = "('insert', 'delete')"
    feed = _feed(source, versions, place, kinds, change_source.versions)
    if not change_source.key:
        kept = (
            f"SELECT version, place, CASE WHEN kind = 'insert' THEN 'I' ELSE 'D' END AS kind,"
            f" CASE WHEN kind = 'delete' THEN {row} END AS o, CASE WHEN kind = 'insert' THEN"
            f" {row} END AS n"
            f" FROM ({feed})"
        )
    else:
        key = _key_forms(source, change_source.key)
        kept = (
            "SELECT version, place, CASE WHEN o IS NOT NULL AND n IS NOT NULL THEN 'U'"
            " WHEN n IS NOT NULL THEN 'I' ELSE 'D' END AS kind, o, n FROM (SELECT version,"
            f" min(place) AS place, any_value({row}) FILTER (WHERE kind = 'delete') AS o,"
            f" any_value({row}) FILTER (WHERE kind = 'insert') AS n FROM ({feed}) GROUP BY"
            f" version, {key})"
        )
    return union_text([*parts, reading(kept, feed)])


def _updates_here(source: TableSource, versions: Sequence[FeedVersion]) -> list[Query]:
    """Return queries for the updated rows that this process has paired, as `_pairs_by_row_id`
    does.
    """
    listed: defaultdict[Callable[[], str], list[int]] = defaultdict(list)
    for version in versions:
        if version.updates is not None:
            listed[version.updates].append(version.version)
    old, new = (_row_of_columns(source, image) for image in IMAGES)
    return [
        Query(
            f"SELECT version, row_id AS place, 'U' AS kind, {old} AS o, {new} AS n FROM {updates()}"
            f" WHERE version IN ({', '.join(map(str, numbers))})"
        )
        for updates, numbers in listed.items()
    ]


def _key_forms(source: TableSource, key: Sequence[int]) -> str:
    """Return the list of the key columns in a form that is the same for equal keys only."""
    return ", ".join(matching_form(source.column(attnum), f"c{attnum}") for attnum in key)


def _key_values(source: TableSource, key: Sequence[int]) -> str:
    """Return the list of the key columns in a query that groups by `_key_forms`."""
    return ", ".join(matching_group(source.column(attnum), f"c{attnum}") for attnum in key)


def _feed(
    source: TableSource,
    versions: Sequence[FeedVersion],
    place: str = _NOWHERE,
    kinds: str = "",
    among: Sequence[FeedVersion] = (),
) -> Query:
    """Return a query for the change data feed of some versions: version, kind, place and c<attnum>.

    Args:
        kinds: SQL list of the kinds to read; "" for all.
        among: all versions to decode; default: `versions`.  A feed must not span a version that
            Delta cannot read.
    """
    unreadable = [version.version for version in among or versions if version.is_compared]
    feeds = groupby(
        (version for version in versions if not version.is_compared and version.feed is None),
        key=lambda version: (bisect(unreadable, version.version), version.run),
    )
    runs = [[version.version for version in run] for _place, run in feeds]
    parts = [_feed_of_run(source, run, place, kinds) for run in runs]
    parts += _feeds_here(source, versions, place, kinds)
    parts += [compared_sql(source, v, place) for v in versions if v.is_compared]
    return union_text(parts)


def _feed_of_run(source: TableSource, run: Sequence[int], place: str, kinds: str) -> Query:
    """Return a query for the feed of versions among which Delta can read all, as `_feed` does."""
    assert source.location is not None
    text = (
        "SELECT _commit_version AS version, _change_type AS"
        f" kind, {place} AS place{_columns_in(source, run)}"
        f" FROM table_changes_by_path({quote(source.location)}, {run[0]}, {run[-1]})"
        f" WHERE _commit_version IN ({', '.join(map(str, run))}){_among('_change_type', kinds)}"
    )
    location = frozenset({source.location})
    return Query(text, tables=location, feeds=location)


def _among(column: str, kinds: str) -> str:
    """Return SQL that adds a condition to others: the change is of one of the kinds.

    Args:
        kinds: SQL of the list of kinds; empty for all kinds, which need no condition.
    """
    return f" AND {column} IN {kinds}" if kinds else ""


def _feeds_here(
    source: TableSource, versions: Sequence[FeedVersion], place: str, kinds: str
) -> list[Query]:
    """Return queries for the feeds that this process has read, as `_feed` does."""
    listed: defaultdict[Callable[[], str], list[int]] = defaultdict(list)
    for version in versions:
        if version.feed is not None:
            listed[version.feed].append(version.version)
    columns = "".join(f", c{column.attnum}" for column in source.columns)
    return [
        Query(
            f"SELECT version, kind, {place} AS place{columns} FROM {feed()}"
            f" WHERE version IN ({', '.join(map(str, numbers))}){_among('kind', kinds)}"
        )
        for feed, numbers in listed.items()
    ]


def _columns_in(source: TableSource, run: Sequence[int]) -> str:
    """Return the list of a table's columns in a run of versions, with a comma before each.

    A version may lack a column that the same transaction added later.  Its rows get the default
    that ADD COLUMN gave to existing rows.
    """
    parts = []
    for column in source.columns:
        value = column_sql(column.at(run[-1]))
        since = column.since_version
        if run[0] < since <= run[-1] and column.missing_value is not None:
            missing = column_sql(replace(column, storage_name=None))
            value = f"if(_commit_version < {since}, {missing}, {value})"
        parts.append(f", {value} AS c{column.attnum}")
    return "".join(parts)
