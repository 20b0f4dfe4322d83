"""The texts of `--help`, `\\?` and `\\h` (psql's help.c), with only replctl's features."""

from __future__ import annotations

from replctl.psql.psql_settings import PsqlSettings

COPYRIGHT = """\
replctl is licensed under the Apache License 2.0.
It follows psql, the PostgreSQL interactive terminal:
Portions Copyright (c) 1996-2024, PostgreSQL Global Development Group
Portions Copyright (c) 1994, The Regents of the University of California
"""

SHORT_HELP = """\
You are using replctl, the command-line interface to logical replication over Delta tables.
Type:  \\copyright for distribution terms
       \\h for help with SQL commands
       \\? for help with replctl commands
       \\g or terminate with semicolon to execute query
       \\q to quit"""

OPTIONS = """\
replctl is PostgreSQL's logical replication over Delta tables, run by Spark.

Usage:
  replctl [OPTION]... [DBNAME [USERNAME]]
  replctl sync [SUBSCRIPTION]... [--watch [--interval SECONDS] [--metrics-port PORT]]
               [--max-batch-changes N] [--explain [--json]]
  replctl status [SUBSCRIPTION]... [--json] [--max-lag LIMIT]
  replctl verify [SUBSCRIPTION [TABLE]] [--json] [--limit N]
  replctl vacuum [TABLE]... [--full] [--verbose]
  replctl dump [--publications] [--subscriptions] [--schema-only] [--file FILE]
  replctl schema CONNINFO --publication NAME... [--table-map MAP] [--table-options OPTIONS]
  replctl standby create --primary DIRECTORY | sync [--watch] | promote
  replctl cluster backup DIRECTORY | identify [--copied | --moved | --restored]
  replctl spark start [--idle-timeout SECONDS] | stop | status [--json] | prepare

General options:
  -c, --command=COMMAND    run only single command (SQL or internal) and exit
  -d, --dbname=DBNAME      database name to connect to (default: "postgres")
  -f, --file=FILENAME      execute commands from file, then exit
  -l, --list               list available databases, then exit
  -v, --set=, --variable=NAME=VALUE
                           set psql variable NAME to VALUE
                           (e.g., -v ON_ERROR_STOP=1)
  -V, --version            output version information, then exit
  -X, --no-psqlrc          do not read startup file (~/.replctlrc)
  -1 ("one"), --single-transaction
                           execute as a single transaction (if non-interactive)
  -?, --help[=options]     show this help, then exit
      --help=commands      list backslash commands, then exit
      --help=variables     list special variables, then exit

Input and output options:
  -a, --echo-all           echo all input from script
  -b, --echo-errors        echo failed commands
  -e, --echo-queries       echo commands sent to server
  -E, --echo-hidden        accepted, but has no effect
  -L, --log-file=FILENAME  send session log to file
  -n, --no-readline        disable enhanced command line editing
  -o, --output=FILENAME    send query results to file (or |pipe)
  -q, --quiet              run quietly (no messages, only query output)
  -s, --single-step        single-step mode (confirm each query)
  -S, --single-line        single-line mode (end of line terminates SQL command)

Output format options:
  -A, --no-align           unaligned table output mode
      --csv                CSV (Comma-Separated Values) table output mode
  -F, --field-separator=STRING
                           field separator for unaligned output (default: "|")
  -H, --html               HTML table output mode
  -P, --pset=VAR[=ARG]     set printing option VAR to ARG (see \\pset command)
  -R, --record-separator=STRING
                           record separator for unaligned output (default: newline)
  -t, --tuples-only        print rows only
  -T, --table-attr=TEXT    set HTML table tag attributes (e.g., width, border)
  -x, --expanded           turn on expanded table output
  -z, --field-separator-zero
                           set field separator for unaligned output to zero byte
  -0, --record-separator-zero
                           set record separator for unaligned output to zero byte

Connection options:
      --home=DIRECTORY     the cluster (default: $REPLCTL_HOME, or the user's data directory)
  -U, --username=USERNAME  database user name (default: "postgres")

Spark options:
      --remote=URL         Spark Connect server, sc://HOST:PORT (default: $SPARK_REMOTE)
      --master=MASTER      Spark master (default: local[*])
      --conf=NAME=VALUE    Spark property; may be given several times

For more information, type "\\?" (for internal commands) or "\\help" (for SQL
commands) from within replctl, or consult the psql section in the PostgreSQL
documentation."""

VARIABLES = """\
List of specially treated variables

Usage:
  replctl --set=NAME=VALUE
  or \\set NAME VALUE inside replctl

  AUTOCOMMIT
    if set, successful SQL commands are automatically committed
  AUTOSYNC
    if set, subscriptions are synchronized after every committed change
  DBNAME
    the currently connected database name
  ECHO
    controls what input is written to standard output
    [all, errors, none, queries]
  ERROR
    "true" if last query failed, else "false"
  HISTCONTROL
    controls command history [ignorespace, ignoredups, ignoreboth]
  HISTFILE
    file name used to store the command history
  HISTSIZE
    maximum number of commands to store in the command history
  HOST
    the directory of the cluster
  IGNOREEOF
    number of EOFs needed to terminate an interactive session
  LAST_ERROR_MESSAGE
  LAST_ERROR_SQLSTATE
    message and SQLSTATE of last error, or empty string and "00000" if none
  ON_ERROR_STOP
    stop batch execution after error
  PROMPT1
    specifies the standard replctl prompt
  PROMPT2
    specifies the prompt used when a statement continues from a previous line
  QUIET
    run quietly (same as -q option)
  ROW_COUNT
    number of rows returned or affected by last query, or 0
  SHELL_ERROR
    "true" if the last shell command failed, "false" if it succeeded
  SHELL_EXIT_CODE
    exit status of the last shell command
  SHOW_ALL_RESULTS
    show all results of a combined query (\\;) instead of only the last
  SHOW_CONTEXT
    controls display of message context fields [never, errors, always]
  SINGLELINE
    if set, end of line terminates SQL commands (same as -S option)
  SINGLESTEP
    single-step mode (same as -s option)
  SQLSTATE
    SQLSTATE of last query, or "00000" if no error
  USER
    the currently connected database user
  VERBOSITY
    controls verbosity of error reports [default, verbose, terse, sqlstate]
  VERSION
  VERSION_NAME
  VERSION_NUM
    version of replctl, and of psql as which it behaves, as a name and as a number"""


def slash_commands(settings: PsqlSettings | None) -> str:
    """Return the text of `\\?`, with the current values of switches."""
    options = settings.print_options if settings is not None else None
    html = "on" if options is not None and options.format == "html" else "off"
    tuples_only = "on" if options is not None and options.tuples_only else "off"
    expanded = options.expanded if options is not None else "off"
    timing = "on" if settings is not None and settings.shows_timing else "off"
    session = settings.session if settings is not None else None
    current = f'currently "{session.database_name}"' if session else "currently no connection"
    return f"""\
General
  \\copyright             show usage and distribution terms
  \\crosstabview [COLUMNS] execute query and display result in crosstab
  \\errverbose            show most recent error message at maximum verbosity
  \\g [(OPTIONS)] [FILE]  execute query (and send result to file or |pipe);
                         \\g with no arguments is equivalent to a semicolon
  \\gdesc                 describe result of query, without executing it
  \\gexec                 execute query, then execute each value in its result
  \\gset [PREFIX]         execute query and store result in replctl variables
  \\gx [(OPTIONS)] [FILE] as \\g, but forces expanded output mode
  \\q                     quit replctl
  \\restrict RESTRICT_KEY
                         enter restricted mode with provided key
  \\unrestrict RESTRICT_KEY
                         exit restricted mode if key matches
  \\watch [[i=]SEC] [c=N] [m=MIN]
                         execute query every SEC seconds, up to N times,
                         stop if less than MIN rows are returned

Replication
  \\sync [SUBSCRIPTION]... apply the publishers' commits
                         (\\set AUTOSYNC on: after every change)

Help
  \\? [commands]          show help on backslash commands
  \\? options             show help on replctl command-line options
  \\? variables           show help on special variables
  \\h [NAME]              help on syntax of SQL commands, * for all commands

Query Buffer
  \\e [FILE] [LINE]       edit the query buffer (or file) with external editor
  \\p                     show the contents of the query buffer
  \\r                     reset (clear) the query buffer
  \\s [FILE]              display history or save it to file
  \\w FILE                write query buffer to file

Input/Output
  \\copy ...              perform SQL COPY with data stream to the client host
  \\echo [-n] [STRING]    write string to standard output (-n for no newline)
  \\i FILE                execute commands from file
  \\ir FILE               as \\i, but relative to location of current script
  \\o [FILE]              send all query results to file or |pipe
  \\qecho [-n] [STRING]   write string to \\o output stream (-n for no newline)
  \\warn [-n] [STRING]    write string to standard error (-n for no newline)

Conditional
  \\if EXPR               begin conditional block
  \\elif EXPR             alternative within current conditional block
  \\else                  final alternative within current conditional block
  \\endif                 end conditional block

Informational
  (options: S = show system objects, + = additional detail)
  \\d[S+]                 list tables, views, and sequences
  \\d[S+]  NAME           describe table, view, sequence, or index
  \\dd[S]  [PATTERN]      show object descriptions not displayed elsewhere
  \\ddp    [PATTERN]      list default privileges
  \\dg[S+] [PATTERN]      list roles
  \\di[S+] [PATTERN]      list indexes
  \\dn[S+] [PATTERN]      list schemas
  \\dp[S]  [PATTERN]      list table, view, and sequence access privileges
  \\drds [ROLEPTRN [DBPTRN]] list per-database role settings
  \\drg[S] [PATTERN]      list role grants
  \\dRp[+] [PATTERN]      list replication publications
  \\dRs[+] [PATTERN]      list replication subscriptions
  \\ds[S+] [PATTERN]      list sequences
  \\dt[S+] [PATTERN]      list tables
  \\dT[S+] [PATTERN]      list data types
  \\du[S+] [PATTERN]      list roles
  \\dv[S+] [PATTERN]      list views
  \\l[+]   [PATTERN]      list databases
  \\z[S]   [PATTERN]      same as \\dp

Formatting
  \\a                     toggle between unaligned and aligned output mode
  \\C [STRING]            set table title, or unset if none
  \\f [STRING]            show or set field separator for unaligned query output
  \\H                     toggle HTML output mode (currently {html})
  \\pset [NAME [VALUE]]   set table output option
                         (border|columns|csv_fieldsep|expanded|fieldsep|
                         fieldsep_zero|footer|format|linestyle|null|
                         numericlocale|pager|pager_min_lines|recordsep|
                         recordsep_zero|tableattr|title|tuples_only|
                         unicode_border_linestyle|unicode_column_linestyle|
                         unicode_header_linestyle)
  \\t [on|off]            show only rows (currently {tuples_only})
  \\T [STRING]            set HTML <table> tag attributes, or unset if none
  \\x [on|off|auto]       toggle expanded output (currently {expanded})

Connection
  \\c[onnect] {{[DBNAME|- USER|- DIRECTORY|-] | conninfo}}
                         connect to new database ({current})
  \\conninfo              display information about current connection
  \\encoding [ENCODING]   show or set client encoding
  \\password [USERNAME]   securely change the password for a user

Operating System
  \\cd [DIR]              change the current working directory
  \\getenv PSQLVAR ENVVAR fetch environment variable
  \\setenv NAME [VALUE]   set or unset environment variable
  \\timing [on|off]       toggle timing of commands (currently {timing})
  \\! [COMMAND]           execute command in shell or start interactive shell

Variables
  \\prompt [TEXT] NAME    prompt user to set internal variable
  \\set [NAME [VALUE]]    set internal variable, or list all if no parameters
  \\unset NAME            unset (delete) internal variable"""


#: The description and the syntax of each command, for `\\h`.
_SQL: dict[str, tuple[str, str]] = {
    "CREATE PUBLICATION": (
        "define a new publication",
        """CREATE PUBLICATION name
    [ FOR ALL TABLES
      | FOR publication_object [, ... ] ]
    [ WITH ( publication_parameter [= value] [, ... ] ) ]

where publication_object is one of:

    TABLE [ ONLY ] table_name [ * ] [ ( column_name [, ... ] ) ] [ WHERE ( expression ) ] [, ... ]
    TABLES IN SCHEMA { schema_name | CURRENT_SCHEMA } [, ... ]""",
    ),
    "ALTER PUBLICATION": (
        "change the definition of a publication",
        """ALTER PUBLICATION name ADD publication_object [, ...]
ALTER PUBLICATION name SET publication_object [, ...]
ALTER PUBLICATION name DROP publication_object [, ...]
ALTER PUBLICATION name SET ( publication_parameter [= value] [, ... ] )
ALTER PUBLICATION name OWNER TO { new_owner | CURRENT_ROLE | CURRENT_USER | SESSION_USER }
ALTER PUBLICATION name RENAME TO new_name""",
    ),
    "DROP PUBLICATION": (
        "remove a publication",
        "DROP PUBLICATION [ IF EXISTS ] name [, ...] [ CASCADE | RESTRICT ]",
    ),
    "CREATE SUBSCRIPTION": (
        "define a new subscription",
        """CREATE SUBSCRIPTION subscription_name
    CONNECTION 'conninfo'
    PUBLICATION publication_name [, ...]
    [ WITH ( subscription_parameter [= value] [, ... ] ) ]""",
    ),
    "ALTER SUBSCRIPTION": (
        "change the definition of a subscription",
        """ALTER SUBSCRIPTION name CONNECTION 'conninfo'
ALTER SUBSCRIPTION name SET PUBLICATION publication_name [, ...]
    [ WITH ( publication_option [= value] [, ... ] ) ]
ALTER SUBSCRIPTION name ADD PUBLICATION publication_name [, ...]
    [ WITH ( publication_option [= value] [, ... ] ) ]
ALTER SUBSCRIPTION name DROP PUBLICATION publication_name [, ...]
    [ WITH ( publication_option [= value] [, ... ] ) ]
ALTER SUBSCRIPTION name REFRESH PUBLICATION [ WITH ( refresh_option [= value] [, ... ] ) ]
ALTER SUBSCRIPTION name REFRESH TABLE table_name [, ...]
    [ WITH ( refresh_option [= value] [, ... ] ) ]
ALTER SUBSCRIPTION name ENABLE
ALTER SUBSCRIPTION name DISABLE
ALTER SUBSCRIPTION name SET ( subscription_parameter [= value] [, ... ] )
ALTER SUBSCRIPTION name SKIP ( skip_option = value )
ALTER SUBSCRIPTION name OWNER TO { new_owner | CURRENT_ROLE | CURRENT_USER | SESSION_USER }
ALTER SUBSCRIPTION name RENAME TO new_name""",
    ),
    "DROP SUBSCRIPTION": (
        "remove a subscription",
        "DROP SUBSCRIPTION [ IF EXISTS ] name [ CASCADE | RESTRICT ]",
    ),
    "CREATE TABLE": (
        "define a new table",
        """CREATE TABLE [ IF NOT EXISTS ] table_name ( [
  { column_name data_type [ column_constraint [ ... ] ]
    | table_constraint
    | LIKE source_table [ like_option ... ] }
    [, ... ]
] )
[ INHERITS ( parent_table [, ... ] ) ]
[ PARTITION BY { RANGE | LIST | HASH } ( column_name [, ... ] ) ]

CREATE TABLE [ IF NOT EXISTS ] table_name
    PARTITION OF parent_table [ ( ... ) ] { FOR VALUES partition_bound_spec | DEFAULT }
    [ PARTITION BY ... ]

CREATE TABLE [ IF NOT EXISTS ] table_name
    [ ( { column_name data_type [ column_constraint [ ... ] ] | table_constraint } [, ... ] ) ]
    USING delta { LOCATION 'path or URI' | TABLE 'name in the catalogs of Spark' }
    [ WITH ( foreign_files = on, partition_timezone = 'zone' ) ]""",
    ),
    "ALTER TABLE": (
        "change the definition of a table",
        """ALTER TABLE [ IF EXISTS ] [ ONLY ] name [ * ]
    action [, ... ]
ALTER TABLE name RENAME [ COLUMN ] column_name TO new_column_name
ALTER TABLE name RENAME TO new_name
ALTER TABLE name ATTACH PARTITION partition_name { FOR VALUES partition_bound_spec | DEFAULT }
ALTER TABLE name DETACH PARTITION partition_name

where action is one of:

    ADD [ COLUMN ] column_name data_type [ column_constraint [ ... ] ]
    DROP [ COLUMN ] column_name
    ALTER [ COLUMN ] column_name [ SET DATA ] TYPE data_type [ USING expression ]
    ALTER [ COLUMN ] column_name SET DEFAULT expression
    ALTER [ COLUMN ] column_name DROP DEFAULT
    ALTER [ COLUMN ] column_name { SET | DROP } NOT NULL
    ALTER [ COLUMN ] column_name SET ( attribute_option = value [, ... ] )
    ADD table_constraint
    DROP CONSTRAINT constraint_name
    SET ( storage_parameter [= value] [, ... ] )
    RESET ( storage_parameter [, ... ] )
    REPLICA IDENTITY { DEFAULT | USING INDEX index_name | FULL | NOTHING }""",
    ),
    "SELECT": (
        "retrieve rows from a table or view",
        """SELECT [ ALL | DISTINCT ]
    [ { * | expression [ [ AS ] output_name ] } [, ...] ]
    [ FROM from_item [, ...] ]
    [ WHERE condition ]
    [ GROUP BY grouping_element [, ...] ]
    [ HAVING condition ]
    [ { UNION | INTERSECT | EXCEPT } [ ALL | DISTINCT ] select ]
    [ ORDER BY expression [ ASC | DESC ] [ NULLS { FIRST | LAST } ] [, ...] ]
    [ LIMIT { count | ALL } ]
    [ OFFSET start ]""",
    ),
    "INSERT": (
        "create new rows in a table",
        """INSERT INTO table_name [ AS alias ] [ ( column_name [, ...] ) ]
    { DEFAULT VALUES | VALUES ( { expression | DEFAULT } [, ...] ) [, ...] | query }
    [ ON CONFLICT [ conflict_target ] conflict_action ]
    [ RETURNING { * | expression [ [ AS ] output_name ] } [, ...] ]

where conflict_target can be one of:

    ( column_name [, ...] ) [ WHERE index_predicate ]
    ON CONSTRAINT constraint_name

and conflict_action is one of:

    DO NOTHING
    DO UPDATE SET { column_name = { expression | DEFAULT } |
                    ( column_name [, ...] ) = [ ROW ] ( { expression | DEFAULT } [, ...] )
                  } [, ...]
              [ WHERE condition ]""",
    ),
    "UPDATE": (
        "update rows of a table",
        """UPDATE table_name [ [ AS ] alias ]
    SET column_name = { expression | DEFAULT } [, ...]
    [ FROM from_item [, ...] ]
    [ WHERE condition ]
    [ RETURNING { * | expression [ [ AS ] output_name ] } [, ...] ]""",
    ),
    "DELETE": (
        "delete rows of a table",
        """DELETE FROM table_name [ [ AS ] alias ]
    [ USING from_item [, ...] ]
    [ WHERE condition ]
    [ RETURNING { * | expression [ [ AS ] output_name ] } [, ...] ]""",
    ),
    "TRUNCATE": (
        "empty a table or set of tables",
        """TRUNCATE [ TABLE ] [ ONLY ] name [ * ] [, ... ]
    [ RESTART IDENTITY | CONTINUE IDENTITY ] [ CASCADE | RESTRICT ]""",
    ),
}


def sql_help(topic: str) -> str:
    """Return the text of `\\h TOPIC`.  Without a topic, return the list of commands."""
    if not topic:
        names = "".join(f"  {name}\n" for name in sorted(_SQL))
        return f"Available help:\n{names}"
    found = [
        name
        for name in sorted(_SQL)
        if topic == "*" or name == topic.upper() or name.startswith(topic.upper())
    ]
    if not found:
        return f'No help available for "{topic}".\nTry \\h with no arguments to see available help.'
    return "\n".join(
        f"Command:     {name}\nDescription: {_SQL[name][0]}\nSyntax:\n{_SQL[name][1]}\n\n"
        f"URL: https://www.postgresql.org/docs/17/sql-{name.lower().replace(' ', '')}.html\n"
        for name in found
    )
