"""Reduce a run of changes to one net effect for each key. This is replication/composition.py in
Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.replication.composition import COMPOSITION, NetEffect
from replctl.spark.data_type import quote
from replctl.spark.normal_form import matching_form, matching_group
from replctl.spark.values import TargetColumn

_STATE = (
    "STRUCT<effect: STRING, absent_at: BIGINT, conflict_at: BIGINT,"
    " found_u: BIGINT, found_d: BIGINT, gone_u: BIGINT, gone_d: BIGINT>"
)
_GONE = (NetEffect.DELETED, NetEffect.VANISHED)


def net_effects_sql(
    changes: str, key: Sequence[TargetColumn], image: Sequence[str], *, repeats_keys: bool = True
) -> str:
    """Return SQL of the net effects: the key's columns k1, k2, ..., effect, absent_at, conflict_at,
    last_position, last_action, found_u, found_d, gone_u, gone_d, and the last new image.

    Args:
        changes: a relation of position, action, o<x>, n<x>.  No update in it changes the key.
        key: the key's columns; their suffixes <x> are their attnums.
        image: the suffixes of all sent columns; the result has the columns n<x>.
        repeats_keys: a key may have several changes.  If false, each change is the net effect of
            its key.

    absent_at is the position of the INSERT that requires that the row is missing at the start.
    conflict_at is the position of an INSERT of a row that the run itself has inserted.  found_u and
    found_d count the UPDATEs and DELETEs that apply to a row that exists at the start.  gone_u and
    gone_d count the UPDATEs and DELETEs of a row that the run has already deleted.
    """
    names = {f"k{i}": column for i, column in enumerate(key, start=1)}
    keys = ", ".join(f"coalesce(n{c.attnum}, o{c.attnum}) AS {name}" for name, c in names.items())
    if not repeats_keys:
        return _single_effects_sql(changes, keys, image)
    grouped_by = ", ".join(matching_form(column, name) for name, column in names.items())
    shown = ", ".join(matching_group(column, name) for name, column in names.items())
    images = ", ".join(f"n{x}" for x in image)
    folded = (
        f"aggregate(array_sort(collect_list(struct(position, action))), {_start()}, (s, x) ->"
        f" {_step()})"
    )
    grouped = (
        f"SELECT {shown}, {folded} AS state, max(position) AS last_position,"
        f" max_by(action, position) AS last_action,"
        f" max_by(struct({images}), position) FILTER (WHERE action <> 'D') AS image"
        f" FROM (SELECT *, {keys} FROM {changes}) GROUP BY {grouped_by}"
    )
    unpacked = ", ".join(f"image.n{x} AS n{x}" for x in image)
    return (
        f"SELECT {', '.join(names)}, state.effect AS effect, state.absent_at AS absent_at,"
        " state.conflict_at AS conflict_at, last_position, last_action,"
        " state.found_u, state.found_d, state.gone_u, state.gone_d,"
        f" {unpacked} FROM ({grouped})"
    )


def _single_effects_sql(changes: str, keys: str, image: Sequence[str]) -> str:
    """Return SQL of the net effects if each key has only one change.  The effect of a change is one
    step of the composition from the state FOUND.
    """
    effects = " ".join(
        f"WHEN {quote(action.value)} THEN {quote(result.value)}"
        for (effect, action), result in COMPOSITION.items()
        if effect is NetEffect.FOUND
    )
    images = ", ".join(f"n{x}" for x in image)
    return (
        f"SELECT {keys}, CASE action {effects} END AS effect,"
        " if(action = 'I', position, NULL) AS absent_at, CAST(NULL AS BIGINT) AS conflict_at,"
        " position AS last_position, action AS last_action,"
        " if(action = 'U', 1L, 0L) AS found_u, if(action = 'D', 1L, 0L) AS found_d,"
        f" 0L AS gone_u, 0L AS gone_d, {images} FROM {changes}"
    )


def _start() -> str:
    return (
        f"CAST(named_struct('effect', {quote(NetEffect.FOUND.value)}, 'absent_at', NULL,"
        f" 'conflict_at', NULL, 'found_u', 0, 'found_d', 0, 'gone_u', 0, 'gone_d', 0) AS {_STATE})"
    )


def _step() -> str:
    """Return SQL of the next state: the table of the composition as a CASE expression."""
    whens = " ".join(
        f"WHEN s.effect = {quote(effect.value)} AND x.action = {quote(action.value)} THEN"
        f" {quote(result.value)}"
        for (effect, action), result in COMPOSITION.items()
    )
    conflicting = ", ".join(
        quote(effect.value)
        for (effect, _action), result in COMPOSITION.items()
        if result is NetEffect.CONFLICT and effect is not NetEffect.CONFLICT
    )
    met = {"found": (NetEffect.FOUND,), "gone": _GONE}
    counters = ", ".join(
        f"'{name}_{action}', s.{name}_{action} + if(x.action = '{action.upper()}' AND s.effect IN"
        f" ({', '.join(quote(effect.value) for effect in effects)}), 1L, 0L)"
        for name, effects in met.items()
        for action in ("u", "d")
    )
    return (
        f"CAST(named_struct('effect', CASE {whens} END,"
        f" 'absent_at', CASE WHEN s.absent_at IS NULL AND s.effect = {quote(NetEffect.FOUND.value)}"
        f" AND x.action = 'I' THEN x.position ELSE s.absent_at END,"
        f" 'conflict_at', CASE WHEN s.conflict_at IS NULL AND x.action = 'I'"
        f" AND s.effect IN ({conflicting}) THEN x.position ELSE s.conflict_at END,"
        f" {counters}) AS {_STATE})"
    )
