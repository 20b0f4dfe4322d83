"""Hostile names, labels, defaults, filters and comments have the same answers as on a server."""

from __future__ import annotations

import pytest
from golden_script import answer_of
from hostile_texts import HOSTILE, LONG_NAMES, NAMES
from server_answers import Server, database

from replctl.session import Session
from replctl.types.quote import quote_literal

#: <name> is the text as a name, <text> as a string, <e> as an escape string, <raw> without quotes.
RELATIONS = """
create table <name> (id int primary key, <name> text default <text> check (<name> <> <text>))
select oid::regclass, relname, pg_table_is_visible(oid), to_regclass(quote_ident(relname)) = oid
 from pg_class where relnamespace = 'public'::regnamespace order by relname collate "C"
select <text>::regclass
select attname, attnum, attrelid::regclass from pg_attribute join pg_class c on c.oid = attrelid
 where relnamespace = 'public'::regnamespace and attnum > 0 order by relname collate "C", attnum
select pg_get_expr(adbin, adrelid) from pg_attrdef order by oid
select conname, pg_get_constraintdef(oid), conrelid::regclass from pg_constraint
 where oid >= 16384 order by conname collate "C"
create index on <name> (<name>)
select indexname, indexdef from pg_indexes where schemaname = 'public'
 order by indexname collate "C"
comment on column <name>.<name> is <text>
select obj_description(objoid), col_description(objoid, objsubid), objoid::regclass
 from pg_description where objoid >= 16384 order by 3
alter table <name> rename column <name> to x
alter table <name> rename column x to <name>
alter table <name> alter column <name> set default <e> || <text>
alter table <name> add constraint <name> check (<name> in (<text>, <e>, 'x'))
select pg_get_expr(adbin, adrelid) from pg_attrdef order by adrelid
create publication <name> for table <name> (id, <name>) where (<name> = <text> or <name> like <e>)
select pubname, tablename, attnames, rowfilter from pg_publication_tables
 order by pubname collate "C"
alter publication <name> rename to p
alter publication p rename to <name>
drop publication <name>
create schema <name>
alter table <name> set schema <name>
select oid::regclass, relnamespace::regnamespace from pg_class where relkind = 'r'
 and oid >= 16384 order by relname collate "C"
set search_path = <name>, public
show search_path
select current_schemas(true)
select <text>::regclass
reset search_path
create view <name> as select <text>::text as <name>, <name>.id from <name>.<name>
select viewname, definition from pg_views where schemaname = 'public' order by viewname collate "C"
drop view <name>
drop schema <name>
drop table <name>.<name>
drop schema <name>
drop table <name>
"""
#: Statements whose errors and notices describe objects.
DESCRIBED = """
create role "R r"
create table "T t" ("C c" int primary key constraint "K k" check ("C c" > 0), d int default 1)
create view "V v" as select "C c" from "T t"
create policy "P p" on "T t" using ("C c" > 0)
create publication "B b" for table "T t" ("C c") where ("C c" > 1)
create schema "S s"
create type "E e" as enum ('a')
create table "S s".u (x "E e" default 'a', "T t" int references "T t"
 constraint "f f" check (x = 'a'))
alter table "T t" owner to "R r"
grant select on "S s".u to "R r"
grant usage on schema "S s" to "R r"
alter default privileges for role "R r" in schema "S s" grant select on tables to public
create sequence "Q q"
create table z (a int default nextval('"Q q"'))
create function "F f"(int) returns int language sql as 'select 1'
create table zz (a int constraint "F c" check ("F f"(a) > 0))
drop sequence "Q q"
drop function "F f"
drop type "E e"
drop table "T t"
alter table "T t" drop column "C c"
alter table "T t" drop constraint "T t_pkey"
drop schema "S s"
create database "D d" owner "R r"
drop role "R r"
drop schema "S s" cascade
drop type "E e" cascade
drop table "T t" cascade
drop database "D d"
drop owned by "R r"
drop role "R r"
"""
OTHERS = """
create type <name> as enum ('first', <text>, 'last')
select enumtypid::regtype, enumlabel from pg_enum order by oid
create table e (x <name> default <text>)
select pg_get_expr(adbin, adrelid), format_type(atttypid, atttypmod) from pg_attrdef
 join pg_attribute on adrelid = attrelid and adnum = attnum
alter table e alter column x drop default, alter column x type <name> using null
drop table e
drop type <name>
create sequence <name>
select nextval(<text>)
drop sequence <name>
create role <name>
select rolname, oid::regrole from pg_roles where oid >= 16384 order by rolname collate "C"
alter role <name> rename to hostile_other
alter role hostile_other rename to <name>
create table o ()
alter table o owner to <name>
grant select on o to <name>
select relacl, relowner::regrole from pg_class where relname = 'o'
set role <name>
select current_user
reset role
alter role <name> set my.x = <text>
select setrole::regrole, setconfig from pg_db_role_setting
 order by setrole::regrole::text collate "C"
drop table o
drop role <name>
set application_name = <text>
show application_name
select set_config('search_path', <text>, false)
select set_config('search_path', 'public', false)
set my.x = <text>
select current_setting('my.x'), current_setting(<text>)
set work_mem = <text>
create database <name>
comment on database <name> is <text>
select shobj_description(oid, 'pg_database') from pg_database where datname = <text>::name
drop database <name>
select pg_replication_origin_create(<text>) is not null
select roname from pg_replication_origin order by roname collate "C"
select pg_replication_origin_drop(<text>)
select pg_drop_replication_slot(<text>)
create subscription <name> connection 'dbname=x' publication <name> with (connect = false)
select subname, subslotname, subpublications from pg_subscription order by subname collate "C"
alter subscription <name> set (slot_name = none)
alter subscription <name> connection <text>
alter subscription <name> rename to s
alter subscription s rename to <name>
drop subscription <name>
create subscription <name> connection <text> publication p with (connect = false)
alter subscription <name> set (slot_name = none)
drop subscription <name>
"""
VALUES = """
select <text>, <e>, length(<text>), <text>::name, quote_ident(<text>), md5(<text>), left(<text>, 3)
select format('%I %L %s', <text>, <text>, <text>), quote_literal(<text>), array[<text>, null]
select <text>::json
select <text>::jsonb
select <text>::int
select <text>::float8
select <text>::numeric
select <text>::bool
select <text>::date
select <text>::bytea
select <text>::text[]
select <text>::regrole
select <text>::regnamespace
select <text>::regproc
select to_regclass(<text>)
select 'x' like <text>
select 'x' ~ <text>
select has_table_privilege('pg_class', <text>)
select U&<text>
select E<text>
select $$<raw>$$
select 1 as <name>
select <name>
select <name>(1)
select 1::<name>
select * from <name>.<name>
drop table if exists <name>.<name>
"""


def statements(script: str) -> list[str]:
    """Return the statements of a script.  A line that begins with a blank continues the previous
    one."""
    return script.strip().replace("\n ", " ").split("\n")


def filled(template: str, text: str) -> str:
    name = '"' + text.replace('"', '""') + '"'
    string = "'" + text.replace("'", "''") + "'"
    parts = {"<name>": name, "<text>": string, "<e>": quote_literal(text), "<raw>": text}
    for mark, part in parts.items():
        template = template.replace(mark, part)
    return template


def differences(
    session: Session, server: Server, script: str, texts: dict[str, str]
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the statements whose answers differ from those of the server, with both answers."""
    found = {}
    for template in statements(script):
        for statement in dict.fromkeys(filled(template, text) for text in texts.values()):
            expected, answer = server.answer(statement), answer_of(session, statement)
            if answer != expected:
                found[statement] = (expected, answer)
    return found


@pytest.mark.parametrize(
    ("script", "texts"),
    [(RELATIONS, NAMES), (OTHERS, NAMES), (VALUES, HOSTILE), (DESCRIBED, NAMES)],
    ids=["relations", "others", "values", "described"],
)
def test_a_hostile_text_is_answered_as_by_a_server(
    session: Session, postgres_server: str, script: str, texts: dict[str, str]
) -> None:
    with database(postgres_server, "replctl_hostile") as server:
        assert differences(session, server, script, texts) == {}


def test_a_long_name_is_cut_as_by_a_server(session: Session, postgres_server: str) -> None:
    with database(postgres_server, "replctl_hostile_long") as server:
        for script in (RELATIONS, OTHERS):
            assert differences(session, server, script, LONG_NAMES) == {}


#: Invalid characters, in every notation.
NO_CHARACTERS = r"""
select E'\000'
select E'a\x00b'
select E'\u0000'
select E'\U00000000'
select U&'\+000000'
select U&"\0000"
select E'\xff'
select E'\xed\xa0\x80'
select E'\xf4\x90\x80\x80'
select E'\xc0\x80'
select chr(0)
select '{"a": "\u0000"}'::json
select '{"a": "\u0000"}'::jsonb
select '{"\u0000": 1}'::jsonb
select '"\ud800"'::json
select '"\ud800"'::jsonb
select '"\\u0000"'::jsonb
select '"\u0000"'::json #>> '{}'
select '{"a": 1, "b": "\u0000"}'::json ->> 'a'
select '{"a": "\u0000"}'::json -> 'a'
select '["\u0000"]'::json -> 0
select '["\u0000"]'::json ->> 0
select json_array_length('["\u0000"]')
select '$."\u0000"'::jsonpath
select jsonb_path_query('"a"', '$ ? (@ like_regex "\u0000")')
create table j (a jsonb default '"\u0000"')
create table j (a jsonb default '"x"')
create publication p for table j where (a = '"\u0000"')
comment on table j is E'\u0000'
create table U&"\D83D\DE00" (U&"!0041" UESCAPE '!' int)
"""


def test_what_is_no_character_is_refused_as_by_a_server(
    session: Session, postgres_server: str
) -> None:
    with database(postgres_server, "replctl_no_characters") as server:
        assert differences(session, server, NO_CHARACTERS, {"": ""}) == {}


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xff", "0xff"),
        (b"\xed\xa0\x80", "0xed 0xa0 0x80"),
        (b"\xc0 ", "0xc0 0x20"),
        (b"a\0b", "0x00"),
    ],
)
@pytest.mark.parametrize("form", ["select '{}'", 'select 1 as "{}"', "select 1 -- {}"])
def test_bytes_that_are_no_character_are_refused(
    session: Session, data: bytes, shown: str, form: str
) -> None:
    statement = form.replace("{}", data.decode("utf-8", "surrogateescape"))
    error = f'ERROR 22021: invalid byte sequence for encoding "UTF8": {shown}'
    assert answer_of(session, statement) == (error,)
