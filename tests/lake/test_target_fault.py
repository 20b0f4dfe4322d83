"""Changes that other programs make to the targets of a subscription, and the changes that stop
it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from fix_lake import Lake

from replctl.catalog.apply_step import next_apply_step, note_written_steps
from replctl.catalog.pg_class import load_relations
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    insert_subscription,
    insert_subscription_relation,
    update_subscription_relation,
)
from replctl.errors import ObjectNotInPrerequisiteState, UndefinedFile
from replctl.lake.target_check import TargetCheck
from replctl.lake.target_fault import application_of, is_known_step


def subscribe(lake: Lake, *, disable_on_error: bool = False) -> Subscription:
    """Create a subscription that applies changes to the table, and return it."""
    with lake.session.write() as catalog:
        subscription = Subscription(
            catalog.new_oid(),
            catalog.database_oid,
            "My sub",
            10,
            "dbname=elsewhere",
            ("p",),
            "my_sub",
            disable_on_error=disable_on_error,
        )
        insert_subscription(catalog, subscription)
        member = SubscriptionRelation(subscription.oid, lake.oid, RelState.READY)
        insert_subscription_relation(catalog, member)
    return subscription


def restore(lake: Lake) -> None:
    DeltaTable(lake.location).restore(1)


def overwrite(lake: Lake) -> None:
    lake.write({"id": [1]}, mode="overwrite")


def create_or_replace(lake: Lake) -> None:
    DeltaTable.create(lake.location, DeltaTable(lake.location).schema(), mode="overwrite")


def write_again(lake: Lake) -> None:
    shutil.rmtree(lake.location)
    for _number in range(6):
        lake.write({"id": [1]}, mode="append")


def put_back(lake: Lake) -> None:
    newest = DeltaTable(lake.location).version()
    (Path(lake.location) / "_delta_log" / f"{newest:020d}.json").unlink()


def move_in(lake: Lake) -> None:
    other = f"{lake.location}-other"
    for _number in range(6):
        lake.write({"id": [5], "v": ["other"]}, mode="append", location=other)
    shutil.rmtree(lake.location)
    shutil.move(other, lake.location)


_FAULTS: dict[Callable[[Lake], None], str] = {
    restore: "Another program restored an earlier version of the table (RESTORE) in version 4 of",
    overwrite: "Another program overwrote the table without a predicate (WRITE) in version 4 of",
    create_or_replace: "Another program replaced the table (CREATE OR REPLACE TABLE) in version 4",
    write_again: "Another Delta table is at",
    put_back: "was restored to an earlier state",
    move_in: "Another Delta table is at",
}


@pytest.mark.parametrize("action", _FAULTS)
def test_rows_that_were_replaced_stop_the_subscription_until_a_refresh(
    lake: Lake, action: Callable[[Lake], None]
) -> None:
    lake.update(3)
    check = TargetCheck(lake.session, subscribe(lake))
    check.check_targets()
    action(lake)
    for _attempt in range(2):
        with pytest.raises(ObjectNotInPrerequisiteState) as caught:
            check.check_targets()
        error = caught.value
        assert error.message == 'rows of target table "public.t" were replaced by another program'
        assert _FAULTS[action] in (error.detail or "")
        assert error.hint == 'ALTER SUBSCRIPTION "My sub" REFRESH TABLE public.t;'
        lake.update()
        lake.run("vacuum")  # trims the log


def test_a_table_that_is_gone_is_made_again_by_a_refresh(lake: Lake) -> None:
    lake.update(2)
    check = TargetCheck(lake.session, subscribe(lake))
    shutil.rmtree(lake.location)
    with pytest.raises(UndefinedFile) as caught:
        check.check_targets()
    assert caught.value.hint == (
        'ALTER SUBSCRIPTION "My sub" REFRESH TABLE public.t WITH (replace = true);'
    )
    with lake.session.write() as catalog:
        relation = load_relations(catalog, [lake.oid])[lake.oid]
        check.enter(catalog, [relation], is_replaced=True)
        storage = load_relations(catalog, [lake.oid])[lake.oid].storage
    assert storage is not None
    assert not storage.is_made
    assert all(column.since_version is None for column in storage.columns.values())
    check.check_targets()


def test_one_statement_helps_a_subscription_that_the_error_disables(lake: Lake) -> None:
    lake.update(2)
    check = TargetCheck(lake.session, subscribe(lake, disable_on_error=True))
    restore(lake)
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        check.check_targets()
    assert caught.value.hint == (
        'ALTER SUBSCRIPTION "My sub" REFRESH TABLE public.t WITH (enabled = true);'
    )


@pytest.mark.parametrize("state", [RelState.FINISHEDCOPY, RelState.SYNCDONE])
def test_a_table_in_synchronization_is_checked(lake: Lake, state: RelState) -> None:
    """A table that catches up by itself stops alone.  Apply writes a synchronized table, so that
    the fault also stops apply."""
    lake.update(2)
    subscription = subscribe(lake)
    with lake.session.write() as catalog:
        member = SubscriptionRelation(subscription.oid, lake.oid, state)
        update_subscription_relation(catalog, member)
    check = TargetCheck(lake.session, subscription)
    restore(lake)
    for checked in (None, lake.oid, None, lake.oid):
        with (
            nullcontext()
            if checked is None and state is RelState.FINISHEDCOPY
            else pytest.raises(ObjectNotInPrerequisiteState, match="were replaced")
        ):
            check.check_targets(checked)


def test_other_changes_are_as_in_postgresql(lake: Lake) -> None:
    lake.update(2)
    check = TargetCheck(lake.session, subscribe(lake))
    lake.write({"id": [4, 5]}, mode="append")
    lake.write({"id": [5]}, mode="overwrite", predicate="id = 5")
    table = DeltaTable(lake.location)
    table.update(updates={"v": "'x'"}, predicate="id = 4")
    table.delete("id = 4")
    table.optimize.compact()
    table.vacuum(dry_run=False)
    table.create_checkpoint()
    table.delete()
    check.check_targets()


def clean(lake: Lake) -> None:
    """Write a checkpoint of the newest version, and remove the commits before it."""
    table = DeltaTable(lake.location)
    table.create_checkpoint()
    for number in range(table.version()):
        (Path(lake.location) / "_delta_log" / f"{number:020d}.json").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("step", "written", "is_fault"), [(7, 7, False), (6, 7, True), (None, 7, True)]
)
def test_a_cleaned_log_is_believed_if_it_has_the_last_step(
    lake: Lake, step: int | None, written: int, is_fault: bool
) -> None:
    subscription = subscribe(lake)
    identifier = lake.session.cluster.system_identifier
    application = application_of(identifier, subscription.oid, lake.oid)
    with lake.session.write() as catalog:
        for _number in range(written):
            next_apply_step(catalog, subscription.oid, lake.oid)
        note_written_steps(catalog.connection, subscription.oid, {lake.oid: written})
    lake.write({"id": [9]}, mode="append", step=None if step is None else (application, step))
    lake.enter()
    check = TargetCheck(lake.session, subscription)
    for _number in range(3):
        DeltaTable(lake.location).update(updates={"v": "'x'"}, predicate="id = 9")
    clean(lake)
    if is_fault:
        with pytest.raises(ObjectNotInPrerequisiteState) as caught:
            check.check_targets()
        assert "does not have the subscription's last write" in (caught.value.detail or "")
        return
    check.check_targets()
    lake.update()
    check.check_targets()
    write_deltalake(lake.location, DeltaTable(lake.location).to_pyarrow_table(), mode="overwrite")
    with pytest.raises(ObjectNotInPrerequisiteState):
        check.check_targets()


@pytest.mark.parametrize(
    ("found", "written", "taken", "expected"),
    [
        (None, None, 3, True),
        (None, 2, 3, False),
        (2, 2, 3, True),
        (3, 2, 3, True),
        (1, 2, 3, False),
        (4, 2, 3, False),
        (1, None, 1, True),
    ],
)
def test_steps(found: int | None, written: int | None, taken: int, expected: bool) -> None:
    assert is_known_step(found, written, taken) is expected
