"""Lists whose rows differ from those of a PostgreSQL server.  data/script has the other lists."""

from __future__ import annotations

from fix_psql import Psql

DATABASES = """\
                                                 List of databases
   Name    |  Owner   | Encoding | Locale Provider | Collate | Ctype  | Locale | ICU Rules |   Access privileges   
-----------+----------+----------+-----------------+---------+--------+--------+-----------+-----------------------
 postgres  | postgres | UTF8     | libc            | C.utf8  | C.utf8 |        |           | 
 template0 | postgres | UTF8     | libc            | C.utf8  | C.utf8 |        |           | =c/postgres          +
           |          |          |                 |         |        |        |           | postgres=CTc/postgres
 template1 | postgres | UTF8     | libc            | C.utf8  | C.utf8 |        |           | =c/postgres          +
           |          |          |                 |         |        |        |           | postgres=CTc/postgres
(3 rows)

"""  # noqa: E501, W291
ROLES = """\
                             List of roles
 Role name |                         Attributes                         
-----------+------------------------------------------------------------
 postgres  | Superuser, Create role, Create DB, Replication, Bypass RLS

"""  # noqa: W291
SUBSCRIPTIONS = """\
                                                                                            List of subscriptions
 Name |  Owner   | Enabled |  Publication  | Binary | Streaming | Two-phase commit | Disable on error | Origin | Password required | Run as owner? | Failover | Synchronous commit |   Conninfo    | Skip LSN 
------+----------+---------+---------------+--------+-----------+------------------+------------------+--------+-------------------+---------------+----------+--------------------+---------------+----------
 s    | postgres | f       | {p,"q \\"r\\""} | f      | off       | d                | f                | any    | t                 | f             | f        | off                | dbname=nobody | 0/0
(1 row)

"""  # noqa: E501, W291


def test_databases(psql: Psql) -> None:
    assert psql("-X", "-l").stdout == DATABASES
    assert psql("-X", "-At", "-c", "\\l postgres").stdout.startswith("postgres|postgres|UTF8|")
    assert psql("-X", "-At", "-c", "\\l post?").stdout == ""
    collations = "SELECT DISTINCT datcollate, datctype FROM pg_database"
    assert psql("-X", "-At", "-c", collations).stdout == "C.utf8|C.utf8\n"


def test_roles(psql: Psql) -> None:
    assert psql("-X", "-c", "\\du").stdout == ROLES
    assert (
        psql("-X", "-At", "-c", "\\dg+").stdout
        == ROLES.splitlines()[3].replace(" postgres  | ", "postgres|") + "|\n"
    )


def test_schemas(psql: Psql) -> None:
    assert psql("-X", "-At", "-c", "\\dn").stdout == "public|pg_database_owner\n"
    assert psql("-X", "-At", "-c", "\\dnS").stdout == (
        "information_schema|postgres\npg_catalog|postgres\npublic|pg_database_owner\n"
    )


def test_subscriptions(psql: Psql) -> None:
    create = (
        'CREATE SUBSCRIPTION s CONNECTION \'dbname=nobody\' PUBLICATION p, "q ""r"""'
        " WITH (connect = false)"
    )
    outcome = psql("-X", "-q", "-c", create, "-c", "\\dRs+")
    assert outcome.stdout == SUBSCRIPTIONS
    assert psql("-X", "-At", "-c", "\\dRs S").stdout == 's|postgres|f|{p,"q \\"r\\""}\n'
    assert psql("-X", "-At", "-c", "\\dRs s?").stdout == ""


def test_commands_of_psql_that_are_missing_say_so(psql: Psql) -> None:
    outcome = psql("-X", script="\\df\n\\dC+ x\n\\dPtn+\n\\dPx\n\\dZ\n")
    assert outcome.stderr == (
        "\\df is not supported by replctl\n"
        "\\dC+ is not supported by replctl\n"
        "\\dPtn+ is not supported by replctl\n"
        "invalid command \\dPx\n"
        "invalid command \\dZ\n"
    )


def test_further_letters_of_publications_are_ignored(psql: Psql) -> None:
    psql("-X", "-c", "CREATE PUBLICATION p")
    assert psql("-X", "-c", "\\dRpx").stdout == psql("-X", "-c", "\\dRp").stdout
    assert psql("-X", "-At", "-c", "\\dRsx").stdout == ""


def test_an_index(psql: Psql) -> None:
    psql("-X", "-c", 'CREATE TABLE ix ("A" int, b int, PRIMARY KEY (b, "A"))')
    assert psql("-X", "-c", "\\d ix_pkey").stdout == (
        '        Index "public.ix_pkey"\n'
        " Column |  Type   | Key? | Definition \n"
        "--------+---------+------+------------\n"
        " b      | integer | yes  | b\n"
        ' A      | integer | yes  | "A"\n'
        'primary key, btree, for table "public.ix"\n\n'
    )


def test_what_goes_well_before_an_error_is_shown(psql: Psql) -> None:
    outcome = psql("-X", "-At", "-c", "SELECT 1; SELECT 2; SELECT nothing; SELECT 3")
    assert outcome.stdout == "1\n2\n"
    assert outcome.exit_code == 1


def test_tables_whose_filter_changed_after_their_copy(psql: Psql) -> None:
    """`\\dRs+` and `replctl status` list them, and REFRESH PUBLICATION with `reconcile` updates
    them."""
    setup = r"""
    CREATE DATABASE pub; CREATE DATABASE sub;
    \c pub
    CREATE TABLE a (id int PRIMARY KEY, v int); CREATE TABLE b (id int PRIMARY KEY, v int);
    CREATE PUBLICATION p FOR TABLE a WHERE (id > 0), b;
    \c sub
    CREATE TABLE a (id int PRIMARY KEY, v int); CREATE TABLE b (id int PRIMARY KEY, v int);
    CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p WITH (copy_data = false);
    """
    assert "ERROR" not in psql("-X", "-q", script=setup).stderr
    describe = ("-X", "-d", "sub", "-c", r"\dRs+")
    before = psql(*describe).stdout
    assert before.endswith("\n(1 row)\n\n")
    psql("-X", "-d", "pub", "-c", "ALTER PUBLICATION p SET TABLE a WHERE (id > 1), b (id)")
    lines = [
        'Tables of subscription "s" with a changed row filter or column list:',
        '    "public.a"',
        '    "public.b"',
    ]
    assert psql(*describe).stdout == before[:-1] + "\n".join(lines) + "\n\n"
    outcome = psql("status")
    assert outcome.stdout.splitlines()[-4:-1] == lines
    psql("-X", "-d", "pub", "-c", "ALTER PUBLICATION p SET TABLE a WHERE (id > 0), b")
    assert psql(*describe).stdout == before
    psql("-X", "-d", "pub", "-c", "ALTER PUBLICATION p SET TABLE a WHERE (id > 1), b")
    refresh = "ALTER SUBSCRIPTION s REFRESH PUBLICATION WITH (reconcile = true)"
    assert psql("-X", "-d", "sub", "-c", refresh).exit_code == 0
    states = "SELECT relname, srsubstate FROM pg_subscription_rel JOIN pg_class ON oid = srrelid"
    assert psql("-X", "-d", "sub", "-At", "-c", f"{states} ORDER BY 1").stdout == "a|i\nb|r\n"
    assert psql(*describe).stdout == before


def test_no_list_in_a_failed_block(psql: Psql) -> None:
    refused = "ERROR:  current transaction is aborted, commands ignored until end of transaction"
    commands = ("\\d", "\\dt", "\\dn", "\\dp", "\\dRp", "\\dRp+", "\\l", "\\d t", "\\ddp")
    script = "CREATE TABLE t (a int);\nBEGIN;\nSELECT 1/0;\n" + "\n".join(commands)
    outcome = psql("-XqAt", script=script + "\nROLLBACK;\n\\dt\n")
    assert outcome.stderr.count(refused) == len(commands)
    assert outcome.stdout == "public|t|table|postgres\n"
