"""The output of `replctl dump` creates the same database again, in replctl and in PostgreSQL."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import psycopg
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fix_psql import Psql
from fix_replication import Database
from hypothesis import given
from hypothesis import strategies as st

from replctl.dump.dialect import renamings
from replctl.dump.dumped_database import DumpOptions, dump_database
from replctl.dump.dumped_definition import dollar_quoted
from replctl.dump.entry import Entry, in_order
from replctl.execute import execute
from replctl.session import Session

DATA = Path(__file__).parent / "data"
SCHEMA_ONLY = DumpOptions(schema_only=True)
#: Queries of all objects that work on both.  They omit the names of implicit objects.
QUESTIONS = (
    "SELECT n.nspname, c.relname, c.relkind, c.relreplident, c.relpersistence, c.relispartition,"
    " pg_get_userbyid(c.relowner), pg_get_expr(c.relpartbound, c.oid)"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname IN ('public', 'sales', 'Odd s') ORDER BY 1, 2",
    "SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,"
    " a.attidentity, a.attgenerated, a.attislocal, a.attstorage, a.attcompression,"
    " a.attstattarget, a.attoptions::text, pg_get_expr(d.adbin, d.adrelid)"
    " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
    " JOIN pg_namespace n ON n.oid = c.relnamespace"
    " LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
    " WHERE n.nspname IN ('public', 'sales', 'Odd s') AND a.attnum > 0 AND NOT a.attisdropped"
    " AND c.relkind IN ('r', 'p', 'v', 'm', 'c') ORDER BY 1, 2, a.attnum",
    "SELECT r.relname, c.conname, c.contype, c.confdeltype, c.confupdtype,"
    " array_length(c.conkey, 1), c.conislocal, c.condeferrable, c.confdelsetcols::text"
    " FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid"
    " WHERE r.relkind IN ('r', 'p') AND r.relnamespace <> 11 ORDER BY 1, 2",
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
    "SELECT c.relname, i.indisclustered, i.indimmediate, i.indisvalid"
    " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
    " WHERE i.indexrelid >= 16384 AND c.relname !~ '^pg_' ORDER BY 1",
    "SELECT sequencename, data_type::text, start_value, min_value, max_value, increment_by, cycle,"
    " cache_size, last_value FROM pg_sequences ORDER BY 1",
    "SELECT viewname, viewowner, definition FROM pg_views WHERE schemaname = 'public' ORDER BY 1",
    "SELECT matviewname, ispopulated, definition FROM pg_matviews ORDER BY 1",
    "SELECT pubname, schemaname, tablename, attnames::text, rowfilter FROM pg_publication_tables"
    " ORDER BY 1, 2, 3",
    "SELECT pubname, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot"
    " FROM pg_publication ORDER BY 1",
    "SELECT subname, subenabled, subbinary, substream, subtwophasestate, subdisableonerr,"
    " subpasswordrequired, subrunasowner, subfailover, subconninfo, subslotname, subsynccommit,"
    " subpublications::text, suborigin FROM pg_subscription ORDER BY 1",
    "SELECT typname, enumlabel FROM pg_enum JOIN pg_type t ON t.oid = enumtypid"
    " ORDER BY 1, enumsortorder",
    "SELECT proname, provolatile, proisstrict, proretset, prosrc FROM pg_proc"
    " WHERE oid >= 16384 AND proname <> 'evaluate' ORDER BY 1",
    "SELECT tablename, policyname, permissive, roles::text, cmd, qual, with_check FROM pg_policies"
    " ORDER BY 1, 2",
    "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'secured'",
    "SELECT defaclrole::regrole::text, defaclnamespace::regnamespace::text, defaclobjtype,"
    " defaclacl::text FROM pg_default_acl ORDER BY 1, 2, 3",
    "SELECT proname, proacl::text FROM pg_proc WHERE proname IN ('plus_one', 'same') ORDER BY 1",
    "SELECT typname, typacl::text FROM pg_type WHERE typname IN ('mood', 'label', 'pair')"
    " ORDER BY 1",
    "SELECT typname, typbasetype::regtype::text, typtypmod, typnotnull, typdefault,"
    " typcollation::regcollation::text, pg_get_userbyid(typowner) FROM pg_type"
    " WHERE typtype = 'd' AND typname IN"
    " ('posint', 'small', 'label', 'good') ORDER BY 1",
    "SELECT conname, contypid::regtype::text, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE contypid::regtype::text IN ('sales.posint', 'small', 'label', 'good') ORDER BY 2, 1",
    "SELECT description FROM pg_description WHERE objoid >= 16384 ORDER BY 1",
)


def dumped(session: Session, options: DumpOptions = SCHEMA_ONLY) -> str:
    return "".join(dump_database(session, options))


def run(session: Session, script: str) -> None:
    for _result in execute(session, script):
        pass


@pytest.fixture
def rich(session: Session) -> Session:
    """Return a session in a database with objects of all kinds, and without rows."""
    run(session, (DATA / "rich.sql").read_text(encoding="utf-8"))
    return session


def test_a_database_from_a_dump_has_the_same_dump(rich: Session) -> None:
    script = dumped(rich)
    run(rich, "CREATE DATABASE again")
    again = Session.connect(rich.cluster, "again", "postgres")
    run(again, script)
    assert dumped(again) == script


def test_postgresql_makes_the_same_database_of_a_dump(rich: Session, postgres_server: str) -> None:
    script = dumped(rich)
    with _database(postgres_server) as server:
        server.execute(script.encode())
        server.execute("SET search_path TO public")
        answers = [_shown(server.execute(question.encode()).fetchall()) for question in QUESTIONS]
        for subscription in ("plain", "special"):
            server.execute(f"ALTER SUBSCRIPTION {subscription} SET (slot_name = NONE)".encode())
            server.execute(f"DROP SUBSCRIPTION {subscription}".encode())
    run(rich, "SET search_path TO public")
    for question, expected in zip(QUESTIONS, answers, strict=True):
        (result,) = execute(rich, question)
        assert [tuple(row) for row in result.rows] == expected, question


@contextmanager
def _database(conninfo: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Yield a new database of a server with the script's roles, and drop both at the end."""
    name, roles = f"replctl_dump_{os.getpid()}", ("alice", '"Bob B"')
    with psycopg.connect(conninfo, autocommit=True) as server:
        for role in roles:
            server.execute(f"DROP ROLE IF EXISTS {role}".encode())
            server.execute(f"CREATE ROLE {role}".encode())
        server.execute(f"CREATE DATABASE {name}".encode())
        try:
            with psycopg.connect(conninfo, dbname=name, autocommit=True) as database:
                yield database
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
            for role in roles:
                server.execute(f"DROP ROLE {role}".encode())


def _shown(rows: list[tuple[object, ...]]) -> list[tuple[str | None, ...]]:
    """Return rows with their values as texts."""
    texts = {True: "t", False: "f"}
    return [
        tuple(
            None if v is None else texts[v] if isinstance(v, bool)
            else v.decode() if isinstance(v, bytes) else str(v)
            for v in row
        )
        for row in rows
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (DumpOptions(publications=True), {"PUBLICATION", "PUBLICATION TABLE"}),
        (DumpOptions(subscriptions=True), {"SUBSCRIPTION"}),
        (
            DumpOptions(publications=True, subscriptions=True),
            {"PUBLICATION", "PUBLICATION TABLE", "SUBSCRIPTION"},
        ),
    ],
)
def test_publications_and_subscriptions_alone(
    options: DumpOptions, expected: set[str], rich: Session
) -> None:
    lines = [line for line in dumped(rich, options).splitlines() if line.startswith("-- Name: ")]
    kinds = {line.split("; ")[1].removeprefix("Type: ") for line in lines}
    assert kinds - {"COMMENT", "PUBLICATION TABLES IN SCHEMA"} == expected


def test_subscriptions_are_for_superusers(rich: Session) -> None:
    alice = Session.connect(rich.cluster, "postgres", "alice")
    notices: list[str] = []
    alice.on_notice = lambda notice: notices.append(f"{notice.severity}: {notice.message}")
    script = dumped(alice)
    assert "CREATE PUBLICATION" in script
    assert "CREATE SUBSCRIPTION" not in script
    assert notices == ["WARNING: subscriptions not dumped because current user is not a superuser"]


def test_the_command_writes_a_file_whole_or_not_at_all(psql: Psql, tmp_path: Path) -> None:
    psql("-c", "CREATE TABLE t (a int)")
    target = tmp_path / "dump.sql"
    assert psql("dump", "--schema-only", "-f", str(target)).exit_code == 0
    assert psql("dump", "--schema-only").stdout == target.read_text(encoding="utf-8")
    target.write_text("before", encoding="utf-8")
    missing = psql("dump", "-d", "nosuch", "-f", str(target))
    assert missing.exit_code == 2
    assert target.read_text(encoding="utf-8") == "before"
    refused = psql("dump", "-s", "-f", str(tmp_path / "no" / "dump.sql"))
    assert refused.exit_code == 1
    assert refused.stderr.endswith('dump.sql": No such file or directory\n')


def test_a_dump_replaces_the_content_of_a_file_and_nothing_else(psql: Psql, tmp_path: Path) -> None:
    psql("-c", "CREATE TABLE t (a int)")
    dump = psql("dump", "--schema-only").stdout
    target, link = tmp_path / "dump.sql", tmp_path / "link.sql"
    target.write_text("before", encoding="utf-8")
    target.chmod(0o600)  # it may have the passwords of subscriptions
    link.symlink_to("dump.sql")
    others = tmp_path / "dump.sql.unfinished"
    others.write_text("of somebody else", encoding="utf-8")
    assert psql("dump", "-s", "-f", str(link)).exit_code == 0
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == dump
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert others.read_text(encoding="utf-8") == "of somebody else"
    assert len(list(tmp_path.glob("*.unfinished"))) == 1


def test_a_dump_is_written_into_a_pipe(psql: Psql, tmp_path: Path) -> None:
    psql("-c", "CREATE TABLE t (a int)")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert psql("dump", "-s", "-f", str(pipe)).exit_code == 0
        assert os.read(reader, 1 << 16).decode() == psql("dump", "-s").stdout
    finally:
        os.close(reader)
    assert pipe.is_fifo()  # a device, such as /dev/null, is no file to be replaced either


def test_a_dump_without_a_name_is_refused(psql: Psql) -> None:
    refused = psql("dump", "-s", "-f", "")
    assert (refused.exit_code, refused.stderr) == (
        1,
        'replctl: error: could not write "": No such file or directory\n',
    )


def test_an_adopted_table_is_adopted_again(psql: Psql, tmp_path: Path) -> None:
    location = str(tmp_path / "theirs")
    rows = pa.table(
        {"id": pa.array([1, 2], pa.int32()), "Old name": ["a", "b"], "gone": ["c", "d"]}
    )
    write_deltalake(location, rows, configuration={"delta.enableChangeDataFeed": "true"})
    made = psql(
        script=f"CREATE TABLE t USING delta LOCATION '{location}' WITH (foreign_files = on);\n"
        'ALTER TABLE t RENAME COLUMN "Old name" TO name;\n'
        "ALTER TABLE t DROP COLUMN gone;\n"
        "ALTER TABLE t ALTER COLUMN name SET DEFAULT 'x';\n"
        "ALTER TABLE t REPLICA IDENTITY FULL;\n"
    )
    assert made.stderr == ""
    script = psql("dump", "-s").stdout
    assert f"USING delta LOCATION '{location}' WITH (foreign_files='on');" in script
    assert psql("-c", "DROP TABLE t").exit_code == 0
    loaded = psql("-v", "ON_ERROR_STOP=1", "-q", script=script)
    assert (loaded.exit_code, loaded.stderr) == (0, "")
    assert psql("dump", "-s").stdout == script
    where = psql("-A", "-t", "-c", "SELECT pg_relation_filepath('public.t')").stdout
    assert where.strip() == location


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        ([("id", "id"), ("w", "v")], [("w", "v")]),
        ([("w", "v"), ("v", "v_1")], [("v", "v_1"), ("w", "v")]),
        ([("a", "b"), ("b", "a")], [("a", "b_1"), ("b", "a"), ("b_1", "b")]),
        (
            [("a", "b"), ("b", "a"), ("b_1", "c")],
            [("b_1", "c"), ("a", "b_1"), ("b", "a"), ("b_1", "b")],
        ),
    ],
)
def test_columns_are_renamed_in_an_order_that_works(
    names: list[tuple[str, str]], steps: list[tuple[str, str]]
) -> None:
    assert renamings(names) == steps


def test_a_key_that_is_not_enforced_is_dumped_so(psql: Psql, tmp_path: Path) -> None:
    """Two rows have the same key.  A program that checks the rows refuses the key."""
    location = str(tmp_path / "theirs")
    write_deltalake(location, pa.table({"id": pa.array([1, 1], pa.int32()), "Old": ["a", "b"]}))
    made = psql(
        script=f'CREATE TABLE t (CONSTRAINT "My key" PRIMARY KEY (id, "Old") NOT ENFORCED)'
        f" USING delta LOCATION '{location}';\n"
        'ALTER TABLE t RENAME COLUMN "Old" TO name;\n'
        'ALTER TABLE t REPLICA IDENTITY USING INDEX "My key";\n'
    )
    assert made.stderr == ""
    script = psql("dump", "-s").stdout
    own, _else, others = script.partition("\\else\n")
    assert 'CREATE TABLE public.t (CONSTRAINT "My key" PRIMARY KEY (id, "Old") NOT ENFORCED)' in own
    assert "NOT ENFORCED" not in others
    assert 'ADD CONSTRAINT "My key" PRIMARY KEY (id, name);\n\\endif' in others
    assert psql("-c", "DROP TABLE t").exit_code == 0
    loaded = psql("-v", "ON_ERROR_STOP=1", "-q", script=script)
    assert (loaded.exit_code, loaded.stderr) == (0, "")
    assert psql("dump", "-s").stdout == script
    enforced = "SELECT enforced FROM information_schema.table_constraints WHERE constraint_type = "
    assert psql("-A", "-t", "-c", f"{enforced}'PRIMARY KEY'").stdout == "NO\n"


def test_parameters_of_replctl_are_for_replctl(psql: Psql) -> None:
    parameters = "fillfactor = 70, deletion_vectors = off, schema_changes = metadata"
    psql("-c", f"CREATE TABLE t (a int) WITH ({parameters})")
    script = psql("dump", "-s").stdout
    own, _else, others = script.partition("\\else\n")
    assert "WITH (fillfactor='70', deletion_vectors=off, schema_changes=metadata);" in own
    assert "WITH (fillfactor='70');\n\\endif" in others
    assert "deletion_vectors" not in others
    assert "schema_changes" not in others
    assert psql("-c", "DROP TABLE t").exit_code == 0
    assert psql("-v", "ON_ERROR_STOP=1", "-q", script=script).stderr == ""
    assert psql("dump", "-s").stdout == script


def test_the_layout_and_the_properties_of_delta_are_for_replctl(psql: Psql) -> None:
    parameters = "partition_by = '\"R x\", d', delta.checkpointInterval = 20"
    psql("-c", f'CREATE TABLE t (id int, "R x" text, d date) WITH ({parameters})')
    script = psql("dump", "-s").stdout
    own, _else, others = script.partition("\\else\n")
    assert "WITH (partition_by='\"R x\", d', delta.\"checkpointInterval\"='20');" in own
    assert "WITH" not in others
    assert psql("-c", "DROP TABLE t").exit_code == 0
    assert psql("-v", "ON_ERROR_STOP=1", "-q", script=script).stderr == ""
    assert psql("dump", "-s").stdout == script


@pytest.mark.spark
def test_rows_come_back(publisher: Database) -> None:
    publisher.run(
        "CREATE TABLE v (id int GENERATED ALWAYS AS IDENTITY, f8 double precision, n numeric,"
        " b bytea, j jsonb, tz timestamptz, i interval, ok boolean, d date, c char(3),"
        " ia int[], t text, twice int GENERATED ALWAYS AS (id * 2) STORED)"
    )
    publisher.run(
        "INSERT INTO v (f8, n, b, j, tz, i, ok, d, c, ia, t) VALUES"
        " ('NaN', 12345678901234567890.12, '\\xdead00', '{\"a\": [1, \"b\"]}',"
        " '2024-01-01 12:34:56.789+02', '1 year 2 days 03:00', true, 'infinity', 'a', '{1,NULL}',"
        " E'it''s\\n\\\\'),"
        " ('-0', 'NaN', '', 'null', '-infinity', '-1 mon', false, '0001-01-01 BC', '', '{}', '')"
    )
    publisher.run("CREATE TABLE kid () INHERITS (v)")
    publisher.run("INSERT INTO kid (id, t) OVERRIDING SYSTEM VALUE VALUES (7, 'kid')")
    publisher.run("CREATE MATERIALIZED VIEW kept AS SELECT id, t FROM v")
    session = publisher.session
    script = dumped(session, DumpOptions())
    publisher.run("CREATE DATABASE again")
    again = Session.connect(session.cluster, "again", "postgres", engine=session.engine)
    run(again, script)
    assert dumped(again, DumpOptions()) == script


# ---------------------------------------------------------------------------------------------
# Parts


@given(st.text("$_X'a\n\\", max_size=40))
def test_dollar_quotes_are_not_in_what_they_quote(text: str) -> None:
    quoted = dollar_quoted(text)
    tag = quoted[: quoted.index("$", 1) + 1]
    assert quoted == tag + text + tag
    assert (text + tag).index(tag) == len(text)


@given(
    st.lists(
        st.tuples(st.sampled_from(["TABLE", "VIEW", "FUNCTION", "INDEX"]), st.sampled_from("abcd")),
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_what_is_needed_comes_before(things: list[tuple[str, str]], random: Random) -> None:
    numbered = list(enumerate(things))
    random.shuffle(numbered)
    entries = []
    for place, (number, (kind, name)) in enumerate(numbered):
        below = [("x", other) for other, _thing in numbered[:place]]
        needs = random.sample(below, min(len(below), 2))
        entries.append(Entry(kind, name, "", key=("x", number), needs=frozenset(needs)))
    ordered = in_order(entries)
    assert sorted(map(id, ordered)) == sorted(map(id, entries))
    places = {entry.key: place for place, entry in enumerate(ordered)}
    for entry in entries:
        assert all(places[key] < places[entry.key] for key in entry.needs)


def test_without_needs_the_order_is_by_kind_schema_and_name() -> None:
    entries = [
        Entry("INDEX", "a", "", "a"),
        Entry("TABLE", "b", "", "a"),
        Entry("VIEW", "a", "", "b"),
        Entry("SEQUENCE", "a", "", "a"),
        Entry("SCHEMA", "z", ""),
    ]
    assert [entry.name + entry.kind[0] for entry in in_order(entries)] == [
        "zS", "aS", "bT", "aV", "aI",
    ]  # fmt: skip


def test_a_circle_is_dumped_too() -> None:
    first = Entry("TABLE", "a", "", key=("x", 1), needs=frozenset([("x", 2)]))
    second = Entry("TABLE", "b", "", key=("x", 2), needs=frozenset([("x", 1)]))
    assert in_order([second, first]) == [first, second]


def test_a_child_does_not_get_the_default_that_only_its_parent_has(session: Session) -> None:
    run(
        session,
        "CREATE SEQUENCE s; CREATE TABLE p (a int DEFAULT nextval('s'), b text DEFAULT 'x', g int"
        " GENERATED ALWAYS AS (a) STORED); CREATE TABLE dropped () INHERITS (p);"
        " ALTER TABLE dropped ALTER a DROP DEFAULT, ALTER b DROP DEFAULT;"
        " CREATE TABLE own (b text DEFAULT NULL) INHERITS (p);"
        " CREATE TABLE below () INHERITS (own); ALTER TABLE below ALTER b SET DEFAULT 'y';"
        " CREATE TABLE kept () INHERITS (p);",
    )
    defaults = (
        "SELECT attrelid::regclass::text, attname, pg_get_expr(adbin, adrelid) FROM pg_attribute"
        " LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attname IN"
        " ('a', 'b', 'g') ORDER BY 1, 2"
    )
    expected = [row for result in execute(session, defaults) for row in result.rows or ()]
    script = dumped(session)
    assert "    b text DEFAULT NULL\n" in script
    run(session, "DROP TABLE p CASCADE; DROP SEQUENCE s")
    run(session, script + "RESET search_path;")
    assert [row for result in execute(session, defaults) for row in result.rows or ()] == expected
    assert dumped(session) == script
