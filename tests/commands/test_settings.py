"""Settings of ALTER SYSTEM, and the limits that settings of replication set, without Spark."""

from __future__ import annotations

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from golden_script import answer_of
from server_answers import database

from replctl.catalog.auto_conf import write_auto_conf
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.standby import create_standby
from replctl.catalog.worker import (
    Walsender,
    claim_walsender,
    claim_worker,
    release_walsender,
    release_worker,
)
from replctl.errors import (
    ConfigurationLimitExceeded,
    FeatureNotSupported,
    InvalidParameterValue,
    IoError,
    LockNotAvailable,
    Notice,
    TooManyConnections,
)
from replctl.execute import execute
from replctl.relation_lock import lock_relations
from replctl.session import Session
from replctl.types.guc_check import checked
from replctl.types.quote import quote_string


def connect(cluster: Cluster) -> Session:
    return Session.connect(cluster, "postgres", "postgres")


def shown(session: Session, name: str) -> str:
    return answer_of(session, f"show {name}")[0].removeprefix("| ")


def test_alter_system_is_for_those_who_connect_later(cluster: Cluster) -> None:
    first = connect(cluster)
    assert answer_of(first, "alter system set max_slot_wal_keep_size = '1.5GB'") == (
        "ALTER SYSTEM",
    )
    assert answer_of(first, "alter system set search_path = 'it''s', b") == ("ALTER SYSTEM",)
    assert answer_of(first, r"alter system set foo.bar = 'a\b#'") == ("ALTER SYSTEM",)
    answer_of(first, "alter system set max_replication_slots = 3")
    assert shown(first, "max_slot_wal_keep_size") == "-1"
    second = connect(cluster)
    assert shown(second, "max_slot_wal_keep_size") == "1536MB"
    assert second.search_path == ("it's", "b")
    assert shown(second, "foo.bar") == r"a\b#"
    source = "select setting, source, reset_val from pg_settings where name like 'max_slot%'"
    assert answer_of(second, source)[0] == "| 1536 | configuration file | 1536"
    assert answer_of(first, "select pg_reload_conf()")[0] == "| t"
    assert shown(first, "max_slot_wal_keep_size") == "1536MB"
    assert shown(first, "max_replication_slots") == "10"  # a change needs a new connection
    answer_of(second, "alter system reset max_slot_wal_keep_size")
    assert shown(connect(cluster), "max_slot_wal_keep_size") == "-1"
    answer_of(second, "alter system reset all")
    assert shown(connect(cluster), "max_replication_slots") == "10"


@pytest.mark.parametrize("character", ["\r", "\r\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_configured_value_may_contain_other_line_ends(cluster: Cluster, character: str) -> None:
    value = f"a{character}b{character}"
    for name in ("my.x", "primary_conninfo", "search_path"):
        statement = f"alter system set {name} = '{value}'"
        assert answer_of(connect(cluster), statement) == ("ALTER SYSTEM",)
    assert connect(cluster).setting("my.x") == value
    assert connect(cluster).search_path == (value,)
    write_auto_conf(cluster.path, {})
    assert connect(cluster).setting("search_path") == '"$user", public'


def test_a_line_of_another_encoding_is_named(cluster: Cluster) -> None:
    path = cluster.path / "postgresql.auto.conf"
    path.write_bytes(b"work_mem = 8MB\nmy.x = 'caf\xe9'\n")
    with pytest.raises(IoError, match=re.escape(f'syntax error in file "{path}" line 2')):
        connect(cluster)


def test_a_configured_value_has_no_newline(cluster: Cluster, tmp_path: Path) -> None:
    message = "parameter value for ALTER SYSTEM must not contain a newline"
    answer = answer_of(connect(cluster), r"alter system set my.x = E'a\nb'")
    assert answer == (f"ERROR 22023: {message}",)
    with pytest.raises(InvalidParameterValue, match=message):
        write_auto_conf(cluster.path, {"my.x": "a\nb"})
    primary = tmp_path / "two\nlines"
    open_cluster(primary).close()
    with pytest.raises(InvalidParameterValue, match=message):
        create_standby(primary, tmp_path / "standby", "standby1")
    assert not (tmp_path / "standby").exists()


def test_a_reset_goes_back_to_the_configuration(cluster: Cluster) -> None:
    answer_of(connect(cluster), "alter system set lock_timeout = '5s'")
    session = connect(cluster)
    answer_of(session, "set lock_timeout = '1min'")
    assert shown(session, "lock_timeout") == "1min"
    answer_of(session, "reset lock_timeout")
    assert shown(session, "lock_timeout") == "5s"


def test_slots_need_wal_level_logical(cluster: Cluster) -> None:
    answer_of(connect(cluster), "alter system set wal_level = hot_standby")
    session = connect(cluster)
    create = "select pg_create_logical_replication_slot('s', 'pgoutput')"
    assert answer_of(session, create) == (
        'ERROR 55000: logical decoding requires "wal_level" >= "logical"',
    )
    assert answer_of(session, "create publication p") == (
        'WARNING 55000: "wal_level" is insufficient to publish logical changes',
        'HINT: Set "wal_level" to "logical" before creating subscriptions.',
        "CREATE PUBLICATION",
    )
    answer_of(session, "alter system set wal_level = minimal")
    assert answer_of(connect(cluster), create) == (
        'ERROR 55000: replication slots can only be used if "wal_level" >= "replica"',
    )


def test_max_replication_slots_is_the_limit(cluster: Cluster) -> None:
    answer_of(connect(cluster), "alter system set max_replication_slots = 1")
    session = connect(cluster)
    answer_of(session, "select pg_create_logical_replication_slot('a', 'pgoutput')")
    assert answer_of(
        session, "select slot_name from pg_create_logical_replication_slot('b', 'pgoutput')"
    ) == (
        "ERROR 53400: all replication slots are in use",
        'HINT: Free one or increase "max_replication_slots".',
    )
    assert answer_of(session, "select slot_name from pg_replication_slots") == ("| a", "SELECT 1")
    answer_of(session, "alter system set max_replication_slots = 0")
    assert answer_of(
        connect(cluster), "select pg_create_logical_replication_slot('b', 'pgoutput')"
    ) == ('ERROR 55000: replication slots can only be used if "max_replication_slots" > 0',)


def test_names_of_the_search_path(session: Session) -> None:
    answer_of(session, """set search_path to 'a,b', "C ""d", 'E', f""")
    assert list(session.search_path) == ["a,b", 'C "d', "E", "f"]
    answer_of(session, "select set_config('search_path', 'A,\"$user\",B', false)")
    assert list(session.search_path) == ["a", "postgres", "b"]


def test_lock_timeout_ends_the_wait_for_a_table(cluster: Cluster) -> None:
    first, second = connect(cluster), connect(cluster)
    with ExitStack() as stack:
        lock_relations(first, [16384], stack)
        answer_of(second, "set lock_timeout = '50ms'")
        with pytest.raises(LockNotAvailable, match="canceling statement due to lock timeout"):
            lock_relations(second, [16384], stack)
    lock_relations(second, [16384], stack)
    stack.close()


def test_workers_and_walsenders_have_their_limits(cluster: Cluster) -> None:
    """The limits count processes.  A process does not count itself."""
    claim_worker(cluster, 1, "s", maximum=1)
    claim_walsender(cluster, Walsender("s", "1/1", "s", 10), maximum=1)
    other = open_cluster(cluster.path)
    try:
        with pytest.raises(ConfigurationLimitExceeded) as caught:
            claim_worker(other, 2, "t", maximum=1)
        assert caught.value.message == "out of logical replication worker slots"
        with pytest.raises(
            TooManyConnections, match=r"exceeds \"max_wal_senders\" \(currently 1\)"
        ):
            claim_walsender(other, Walsender("t", "1/2", "t", 10), maximum=1)
        claim_worker(cluster, 3, "u", maximum=1)
        for subscription in (1, 3):
            release_worker(cluster, subscription, stays=True)
        release_walsender(cluster, "s", stays=True)
        claim_worker(other, 2, "t", maximum=1)
        claim_walsender(other, Walsender("t", "1/2", "t", 10), maximum=1)
    finally:
        other.close()
    with pytest.raises(ConfigurationLimitExceeded):
        claim_worker(cluster, 4, "v", maximum=0)


def test_sessions_begin_with_what_was_said_for_role_and_database(session: Session) -> None:
    for statement in (
        "create role reg_set login",
        "create database other",
        "alter role all set lock_timeout = 1",
        "alter database postgres set lock_timeout = 2",
        "alter database postgres set work_mem = 64",
        "alter role reg_set set lock_timeout = 3",
        "alter role reg_set in database postgres set lock_timeout = 4",
    ):
        answer_of(session, statement)

    def begun(role: str, database: str) -> Session:
        return Session.connect(session.cluster, database, role)

    assert shown(begun("reg_set", "postgres"), "lock_timeout") == "4ms"
    assert shown(begun("reg_set", "postgres"), "work_mem") == "64kB"
    assert shown(begun("reg_set", "other"), "lock_timeout") == "3ms"
    assert shown(begun("postgres", "postgres"), "lock_timeout") == "2ms"
    later = begun("postgres", "other")
    assert shown(later, "lock_timeout") == "1ms"
    answer_of(later, "set lock_timeout = 9")
    answer_of(later, "reset lock_timeout")
    assert shown(later, "lock_timeout") == "1ms"


def test_time_zones_are_those_of_a_server(postgres_server: str) -> None:
    zones = "utc foo Europe/Berlin -3.5 3 1e1 3x UTC+3 <+03>-3 EST5EDT GMT zulu ../utc ${x}".split()
    zones += "167 168 -167.9 aest-10aedt,m10.1.0,m4.1.0/3 x5y,1,365 x5y,1 x5y,0,366".split()
    zones += ["", " ", "Europe/Berlin ", "a\nb", "interval '1:30'", "INTERVAL'-10:00:01' "]
    with database(postgres_server, "replctl_zones") as server:
        for zone in zones:
            answer = server.answer(f"set timezone = {quote_string(zone)}")
            if answer == ("SET",):
                shown_zone = server.answer("show timezone")[0].removeprefix("| ")
                assert checked("TimeZone", zone, "", "") == shown_zone, zone
            else:
                with pytest.raises(InvalidParameterValue) as caught:
                    checked("TimeZone", zone, "", "")
                assert f"ERROR 22023: {caught.value.message}" == answer[0].replace("\\n", "\n")


def test_values_that_change_results_are_refused_everywhere(cluster: Cluster) -> None:
    session = connect(cluster)
    refusal = (
        'ERROR 0A000: value "off" of parameter "standard_conforming_strings" is not supported',
        'HINT: Supported values: "on".',
    )
    for statement in (
        "set standard_conforming_strings = off",
        "select set_config('standard_conforming_strings', 'off', false)",
        "alter system set standard_conforming_strings = off",
        "alter role postgres set standard_conforming_strings = off",
        "alter database postgres set standard_conforming_strings = off",
    ):
        assert answer_of(session, statement) == refusal


def test_a_configured_value_that_is_refused_is_told_and_not_taken(cluster: Cluster) -> None:
    write_auto_conf(cluster.path, {"xmloption": "document", "work_mem": "8MB", "lock_timeout": "x"})
    notices: list[Notice] = []
    session = Session.connect(cluster, "postgres", "postgres", notices.append)
    assert [(notice.severity, notice.sqlstate, notice.message) for notice in notices] == [
        ("WARNING", "0A000", 'value "document" of parameter "xmloption" is not supported'),
        ("WARNING", "22023", 'invalid value for parameter "lock_timeout": "x"'),
    ]
    assert shown(session, "xmloption") == "content"
    assert shown(session, "work_mem") == "8MB"


def test_alter_system_can_be_switched_off(cluster: Cluster) -> None:
    write_auto_conf(cluster.path, {"allow_alter_system": "off"})
    assert answer_of(connect(cluster), "alter system set work_mem = '1MB'") == (
        "ERROR 0A000: ALTER SYSTEM is not allowed in this environment",
    )


def test_scram_iterations_are_those_of_new_passwords(session: Session) -> None:
    answer_of(session, "set scram_iterations = 1000")
    answer_of(session, "create role r password 'x'")
    query = "select rolpassword like 'SCRAM-SHA-256$1000:%' from pg_authid where rolname = 'r'"
    assert answer_of(session, query)[0] == "| t"


_TIMED_OUT = ("ERROR 57014: canceling statement due to statement timeout",)


@pytest.mark.parametrize(
    "slow",
    [
        "select count(*) from pg_proc a, pg_proc b, pg_proc c where a.pronargs + c.pronargs < 0",
        "select max(length(repeat('x', g) || 'y')) from generate_series(1, 10000000) g",
        "select count(*) from generate_series(1, 100000000)",
    ],
)
@pytest.mark.parametrize("takes_ctrl_c", [True, False])
def test_statement_timeout(session: Session, slow: str, takes_ctrl_c: bool) -> None:
    meant = signal.default_int_handler if takes_ctrl_c else signal.SIG_IGN
    handler = signal.signal(signal.SIGINT, meant)
    try:
        answer_of(session, "begin; set statement_timeout = '100ms'")
        assert answer_of(session, slow) == _TIMED_OUT
        assert answer_of(session, "select 1")[0].startswith("ERROR 25P02")
        answer_of(session, "rollback")
        assert shown(session, "statement_timeout") == "0"
        assert signal.getsignal(signal.SIGINT) is meant
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    finally:
        signal.signal(signal.SIGINT, handler)


def test_each_statement_has_its_own_time(session: Session) -> None:
    answer_of(session, "set statement_timeout = '2s'")
    statements = 0
    begun = time.monotonic()
    while time.monotonic() - begun < 2.5:
        statements += 1
        assert answer_of(session, "select 1") == ("| 1", "SELECT 1")
    assert statements > 1


def test_statement_timeout_ends_the_wait_for_a_block(cluster: Cluster) -> None:
    first, second = connect(cluster), connect(cluster)
    answer_of(first, "create table t (a int)")
    answer_of(first, "begin; alter table t add b int")
    answer_of(second, "set statement_timeout = '100ms'")
    assert answer_of(second, "alter table t add c int") == _TIMED_OUT
    answer_of(first, "rollback")
    answer_of(second, "reset statement_timeout")
    assert answer_of(second, "alter table t add c int") == ("ALTER TABLE",)


def test_statement_timeout_is_for_the_main_thread(session: Session) -> None:
    answer_of(session, "set statement_timeout = '100ms'")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(answer_of, session, "select 1").result() == (
            "ERROR 0A000: statement_timeout outside of the main thread is not supported",
        )


def test_a_stored_zone_is_the_zone_of_later_sessions(cluster: Cluster) -> None:
    hour = "select extract(hour from timestamptz '2026-01-01 00:00+00')"
    for statement, expected in (
        ("alter system set timezone = 'Asia/Tokyo'", "9"),
        ("alter database postgres set timezone = 'Asia/Kolkata'", "5"),
        ("alter role postgres set timezone = 'UTC'", "0"),
    ):
        answer_of(connect(cluster), statement)
        assert answer_of(connect(cluster), hour)[0] == f"| {expected}", statement


@pytest.mark.parametrize(
    ("setting", "query"),
    [
        ("timezone = 'Asia/Tokyo'", "select now()::text"),
        ("timezone = 'Asia/Tokyo'", "select (oid::text || '-01-01')::timestamptz from pg_class"),
        ("timezone = 'Asia/Tokyo'", "select concat('a', timestamptz '2026-01-01')"),
        ("timezone = 'Asia/Tokyo'", "select current_time"),
        ("timezone = 'Asia/Tokyo'", "select extract(timezone from timestamptz '2026-01-01')"),
        ("datestyle = german", "select (date '2026-01-01')::text"),
        ("datestyle = dmy", "select (oid::text || '/02/2026')::date from pg_class"),
        ("intervalstyle = iso_8601", "select 'a' || interval '1 day'"),
        ("bytea_output = escape", "select format('%s', bytea 'a')"),
        ("extra_float_digits = 0", "select point '(1,2)'"),
    ],
)
def test_what_depends_on_a_setting_otherwise_is_refused(
    session: Session, setting: str, query: str
) -> None:
    answer_of(session, f"set {setting}")
    assert answer_of(session, query)[0].startswith("ERROR 0A000: "), query
    answer_of(session, "reset all")
    assert not answer_of(session, query)[0].startswith("ERROR 0A000: "), query


def test_the_hint_of_decoding_gives_back_the_canonical_settings(session: Session) -> None:
    read = "select * from pg_logical_slot_get_changes('s', null, null)"
    list(execute(session, "select pg_create_logical_replication_slot('s', 'test_decoding')"))
    for change in (
        "timezone = 'Australia/Sydney'",
        "datestyle = 'German'",
        "extra_float_digits = 0",
    ):
        list(execute(session, f"set {change}"))
    with pytest.raises(FeatureNotSupported) as caught:
        list(execute(session, read))
    hint = caught.value.hint or ""
    list(execute(session, hint.removeprefix("Use ").removesuffix(".")))
    assert [result.rows for result in execute(session, read)] == [[]]


def test_set_config_needs_a_name(session: Session) -> None:
    for value in ("'8MB'", "NULL"):
        answer = answer_of(session, f"select set_config(NULL, {value}, false)")
        assert answer == ("ERROR 22004: SET requires parameter name",)


def test_the_prefix_of_own_settings_is_reserved(session: Session) -> None:
    refused = (
        'ERROR 42602: invalid configuration parameter name "replctl.nope"',
        'DETAIL: "replctl" is a reserved prefix.',
    )
    for statement in (
        "set replctl.nope = 1",
        "select set_config('replctl.nope', '1', false)",
        "alter role postgres set replctl.nope = 1",
        "alter system set replctl.nope = 1",
    ):
        assert answer_of(session, statement) == refused
    unknown = 'ERROR 42704: unrecognized configuration parameter "replctl.nope"'
    assert answer_of(session, "show replctl.nope") == (unknown,)
