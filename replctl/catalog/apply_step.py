"""Number the writes of a subscription into a table, so that no write is applied twice after a
crash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select, update
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from replctl.catalog import state_schema
from replctl.catalog.transaction import Catalog


class WriteStep(NamedTuple):
    """A begun write of a subscription into a table.

    Attributes:
        version: the table's version before the write; None if there was no table.
        number: the result of `next_apply_step`.
    """

    version: int | None
    number: int


def next_apply_step(catalog: Catalog, subscription_oid: int, relid: int) -> int:
    """Return the number of a subscription's next write into a table.  The first write has 1."""
    return _put_apply_step(catalog, subscription_oid, relid, state_schema.apply_step.c.step + 1)


def raise_apply_step(catalog: Catalog, subscription_oid: int, relid: int, step: int) -> None:
    """Make the next number greater than `step`, the number of a write that the catalog has lost."""
    known = func.max(state_schema.apply_step.c.step, step)
    _put_apply_step(catalog, subscription_oid, relid, known, first=step)


def note_written_steps(
    connection: Connection, subscription_oid: int, steps: Mapping[int, int]
) -> None:
    """Record the newest step that a subscription has written into each table, by OID."""
    table = state_schema.apply_step
    for relid, step in steps.items():
        connection.execute(
            update(table)
            .where(table.c.subid == subscription_oid, table.c.relid == relid)
            .values(written=step)
        )


def written_steps(connection: Connection, relid: int) -> dict[int, tuple[int | None, int]]:
    """Return the steps of each subscription that has written a table, by the subscription's OID:
    the newest step in the log (None without one), and the newest assigned step.
    """
    table = state_schema.apply_step
    rows = connection.execute(select(table).where(table.c.relid == relid))
    return {int(row.subid): (row.written, int(row.step)) for row in rows}


def _put_apply_step(
    catalog: Catalog,
    subscription_oid: int,
    relid: int,
    step: ColumnElement[int],
    first: int = 1,
) -> int:
    """Set the step number of a subscription in a table, and return it: `first` if there was none,
    else `step`.
    """
    table = state_schema.apply_step
    put = sqlite_insert(table).values(subid=subscription_oid, relid=relid, step=first)
    put = put.on_conflict_do_update(index_elements=["subid", "relid"], set_={"step": step})
    return int(catalog.connection.execute(put.returning(table.c.step)).scalar_one())
