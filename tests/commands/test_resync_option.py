"""The subscription options resync and resync_max_delete, which are replctl's own, and their dumps,
without Spark."""

from __future__ import annotations

import pytest
from fix_psql import Psql
from golden_script import answer_of

from replctl.catalog.pg_subscription import Resync, find_subscription
from replctl.dump.dumped_database import DumpOptions, dump_database
from replctl.execute import execute
from replctl.psql.describe_replication import own_options
from replctl.session import Session

_CREATE = "create subscription {} connection 'dbname=x' publication p with (connect = false{})"


def _run(session: Session, statement: str) -> tuple[str, ...]:
    answer = tuple(answer_of(session, statement))
    assert not any(line.startswith("ERROR") for line in answer), answer
    return answer


def _options(session: Session, name: str) -> tuple[Resync, int]:
    with session.read() as catalog:
        found = find_subscription(catalog, name)
    assert found is not None
    return found.resync, found.resync_max_delete


def test_the_options_are_kept(session: Session) -> None:
    _run(session, _CREATE.format("a", ""))
    assert _options(session, "a") == (Resync.MANUAL, 10)
    _run(session, _CREATE.format("b", ", resync = auto, resync_max_delete = 0"))
    assert _options(session, "b") == (Resync.AUTO, 0)
    _run(session, "alter subscription a set (resync = 'AUTO')")
    _run(session, "alter subscription a set (resync_max_delete = 100, disable_on_error)")
    assert _options(session, "a") == (Resync.AUTO, 100)
    _run(session, "alter subscription b set (resync = manual)")
    assert _options(session, "b") == (Resync.MANUAL, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("resync = perhaps", 'unrecognized resync value: "perhaps"'),
        ("resync", "resync requires a parameter"),
        ("resync_max_delete = 101", 'invalid value for option "resync_max_delete": "101"'),
        ("resync_max_delete = -1", 'invalid value for option "resync_max_delete": "-1"'),
        ("resync_max_delete = 0.5", 'invalid value for option "resync_max_delete": "0.5"'),
        ("resync_max_delete = all", 'invalid value for option "resync_max_delete": "all"'),
        ("resync_max_delete", "resync_max_delete requires a parameter"),
    ],
)
def test_values_that_are_refused(session: Session, options: str, message: str) -> None:
    _run(session, _CREATE.format("a", ""))
    answer = answer_of(session, f"alter subscription a set ({options})")
    assert answer[0].startswith("ERROR ")
    assert answer[0].endswith(message)


def test_a_dump_has_them_for_replctl_alone(session: Session) -> None:
    _run(session, _CREATE.format("a", ""))
    plain = "".join(dump_database(session, DumpOptions(subscriptions=True)))
    assert "resync" not in plain
    assert "is_replctl" not in plain
    _run(session, "alter subscription a set (resync = auto, resync_max_delete = 5)")
    script = "".join(dump_database(session, DumpOptions(subscriptions=True)))
    statement = (
        "CREATE SUBSCRIPTION a CONNECTION 'dbname=x' PUBLICATION p"
        " WITH (connect = false, slot_name = 'a'"
    )
    assert (
        f"\\if :is_replctl\n{statement}, resync = auto, resync_max_delete = 5);\n"
        f"\\else\n{statement});\n\\endif\n"
    ) in script
    assert script.index("AS is_replctl \\gset") < script.index("\\if :is_replctl")


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("resync = auto", "    resync = auto"),
        (
            "table_map = 'orders = gold.\"it''s\"'",
            '    table_map:\n        public.orders = gold."it\'s"\n',
        ),
    ],
)
def test_a_dump_is_taken(psql: Psql, option: str, shown: str) -> None:
    psql("-c", _CREATE.format("a", f", {option}"))
    script = psql("dump", "--schema-only").stdout
    psql("-c", "create database again")
    assert psql("-d", "again", "-v", "ON_ERROR_STOP=1", script=script).exit_code == 0
    described = psql("-d", "again", "-c", "\\dRs+").stdout
    assert f'Options of subscription "a" that are replctl\'s own:\n{shown}' in described


def test_they_are_shown_where_they_are_not_the_default(session: Session) -> None:
    _run(session, _CREATE.format("a", ""))
    with session.read() as catalog:
        before = find_subscription(catalog, "a")
    assert before is not None
    assert own_options(before) == []
    _run(session, "alter subscription a set (resync_max_delete = 20)")
    with session.read() as catalog:
        after = find_subscription(catalog, "a")
    assert after is not None
    assert own_options(after) == [
        'Options of subscription "a" that are replctl\'s own:',
        "    resync = manual, resync_max_delete = 20",
    ]


def test_pg_subscription_has_postgresqls_columns(session: Session) -> None:
    _run(session, _CREATE.format("a", ", resync = auto"))
    (result,) = execute(session, "SELECT * FROM pg_subscription")
    assert result.columns is not None
    assert result.columns[-1].name == "suborigin"
