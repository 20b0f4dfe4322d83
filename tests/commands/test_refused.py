"""replctl names each statement that it does not support, and the statement changes nothing."""

from __future__ import annotations

import pytest

from replctl.errors import FeatureNotSupported, InFailedSqlTransaction, InternalError
from replctl.execute import execute
from replctl.session import Session


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("create temp table x (a int) on commit drop", "ON COMMIT DROP is not supported"),
        ("create temp sequence x", "temporary sequences are not supported"),
        ("create view x with (check_option = local) as select 1", "WITH CHECK OPTION"),
        ("create view x as select 1 with check option", "WITH CHECK OPTION is not supported"),
        ("create table x (a int) location '/x'", 'LOCATION with access method "heap"'),
        ("create table x (a t)", "columns of type t are not supported"),
        ("create table x (a int unique initially deferred)", "INITIALLY DEFERRED constraints"),
        ("create table x (a int, exclude using gist (a with =))", "exclusion constraints"),
        (
            "create table x (a int) partition by list ((a + 1))",
            "partition keys that are expressions",
        ),
        ("create unique index on t ((a + 1))", "unique indexes over expressions are not"),
        ("create index on t using gist (a)", 'access method "gist" is not supported'),
        ("create index on t (a int4_ops)", 'operator class "int4_ops" is not supported'),
        ("alter table t set schema pg_catalog", "objects of users in schema pg_catalog are not"),
        ("alter table t add check (a > 0) not valid", "NOT VALID constraints are not supported"),
        ("create database d lc_collate 'de_DE'", 'option "lc_collate" of CREATE DATABASE'),
        ("alter function abs (int) owner to postgres", "changing built-in functions is not"),
        ("alter function abs (int) strict", "changing built-in functions is not supported"),
        (
            "alter role postgres set session characteristics as transaction read only",
            "SET SESSION CHARACTERISTICS of roles is not supported",
        ),
        ("alter operator + (int, int) owner to postgres", "changing built-in operators is not"),
    ],
)
def test_is_refused_by_name(session: Session, statement: str, message: str) -> None:
    list(execute(session, "create table t (a int primary key)"))
    with pytest.raises(FeatureNotSupported) as caught:
        list(execute(session, statement))
    assert message in caught.value.message
    (result,) = execute(session, "select count(*) from pg_class where relnamespace = 2200")
    assert result.rows == [["2"]]


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
@pytest.mark.parametrize("begin", ["begin", "start transaction", "select 1; begin"])
def test_statements_after_a_refused_begin_do_not_commit(
    session: Session, begin: str, level: str
) -> None:
    """In PostgreSQL they are in a block, which a ROLLBACK may undo."""
    with pytest.raises(FeatureNotSupported, match=f"ISOLATION LEVEL {level.upper()} is not"):
        list(execute(session, f"{begin} isolation level {level}"))
    with pytest.raises(InFailedSqlTransaction):
        list(execute(session, "create table t (a int)"))
    (result,) = execute(session, "commit")
    assert result.tag == "ROLLBACK"
    list(execute(session, "create table t (a int)"))


@pytest.mark.parametrize("type_", ["date", "money", "date[]", "tsrange", "day", "day[]"])
def test_checks_of_domains_are_independent_of_settings(session: Session, type_: str) -> None:
    list(execute(session, "create domain day as date"))
    with pytest.raises(FeatureNotSupported, match="functions that are not immutable"):
        list(execute(session, f"create domain d as {type_} check (value::text <> 'x')"))


def test_a_collation_of_a_user_is_no_regcollation(session: Session) -> None:
    list(execute(session, 'create collation c from "C"'))
    with pytest.raises(FeatureNotSupported, match="collations that users made are not supported"):
        list(execute(session, "create table t (a regcollation default 'c')"))


@pytest.mark.parametrize(
    ("sent", "is_refused"), [("update", True), ("insert, delete", True), ("truncate", False)]
)
def test_a_volatile_update_without_a_key_is_sent_as_a_whole(
    session: Session, sent: str, *, is_refused: bool
) -> None:
    """replctl decodes the UPDATE as DELETE and INSERT.  A publication of only UPDATE would not send
    these."""
    for statement in (
        "create table t (a int, b float8)",
        "alter table t replica identity full",
        f"create publication p for table t with (publish = '{sent}')",
    ):
        list(execute(session, statement))
    error = FeatureNotSupported if is_refused else InternalError
    message = 'publication "p" publishes only some' if is_refused else "this session has no Spark"
    with pytest.raises(error, match=message):
        list(execute(session, "update t set b = random()"))
    with pytest.raises(InternalError, match="this session has no Spark"):
        list(execute(session, "update t set b = 1"))
    list(execute(session, "alter table t add primary key (a)"))  # as the HINT says
    with pytest.raises(InternalError, match="this session has no Spark"):
        list(execute(session, "update t set b = random()"))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("select a from t where nextval('s') > 0", r"nextval\(\) outside of the SELECT list"),
        ("select sum(nextval('s')) from t", r"nextval\(\) outside of the SELECT list"),
        ("select n from (select nextval('s') n, a from t) q", r"nextval\(\) outside of the SELECT"),
        ("select setval('s', 1) from t union select 1", r"setval\(\) outside of the SELECT list"),
        ("with q as (select nextval('s') n from t) select * from q", r"nextval\(\) outside of"),
        ("select nextval('s') n, nextval('s') m from t order by n", "both in ORDER BY or DISTINCT"),
        ("select nextval('s') from t offset (select a from t)", "with this OFFSET"),
        ("insert into t select currval('s') from t", r"currval\(\) outside of the SELECT list"),
        ("insert into t select distinct nextval('s') from t", "in a query whose rows are written"),
        ("insert into t select nextval('s') from t offset 1", "in a query whose rows are written"),
        ("insert into t select case when a > 0 then nextval('s') end from t", "nextval in CASE"),
    ],
)
def test_calls_of_the_session_that_are_not_exact_are_refused(
    session: Session, statement: str, message: str
) -> None:
    """replctl refuses such queries before it calls Spark, which does not know the session."""
    list(execute(session, "create table t (a bigint)"))
    list(execute(session, "create sequence s"))
    with pytest.raises(FeatureNotSupported, match=message):
        list(execute(session, statement))
