"""`replctl spark start | stop | status | prepare`: keep a Spark server running, or prepare faster
starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from replctl.errors import FileAccessDenied
from replctl.own_command import own_command
from replctl.own_python import python_command
from replctl.psql.command_group import (
    check_seconds,
    command_group,
    existing_home,
    opened_cluster,
    run_command_group,
)
from replctl.psql.messages import Messages, report_new
from replctl.psql.subcommand import Conf, Home, Master, spark_properties
from replctl.psql.variables import Variables

_NOT_RUNNING = 3  # the exit code of `pg_ctl status`

#: Small commands, copies and syncs that make the JVM compile code before a user needs it.
_WARM_UP = r"""
SET client_min_messages = warning;
CREATE DATABASE pub;
CREATE DATABASE sub;
\c pub
CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(10,2));
INSERT INTO t SELECT i, 'row', i FROM generate_series(1, 100) i;
CREATE PUBLICATION p FOR TABLE t WHERE (id > 0);
\c sub
SET client_min_messages = warning;
CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(10,2));
CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p;
\sync
\c pub
INSERT INTO t VALUES (101, 'x', 1), (102, 'y', 2);
UPDATE t SET v = 'z' WHERE id = 5;
DELETE FROM t WHERE id = 6;
\sync
SELECT * FROM t WHERE id < 10 ORDER BY id;
INSERT INTO t VALUES (103, 'x', 1);
UPDATE t SET v = 'w' WHERE id = 7;
\sync
"""


def run_spark(argv: Sequence[str], messages: Messages) -> int:
    """Run `replctl spark` with some arguments, and return the exit code."""
    app = command_group("Manage the cluster's Spark server.")
    app.command("start", help="Start the cluster's Spark server, unless it runs.")(_start)
    app.command("stop", help="Stop the server.")(_stop)
    app.command("status", help="Show whether the server runs; exit code 3 if not.")(_status)
    app.command(
        "prepare",
        help="Prepare a machine: download what Spark needs, and archive its classes.",
    )(_prepare)
    return run_command_group(app, "spark", argv, messages)


def _start(
    home: Home = None,
    master: Master = None,
    conf: Conf = None,
    idle_timeout: Annotated[
        float,
        typer.Option(
            min=0.0,
            callback=check_seconds,
            help="Seconds without users after which the server ends; 0: never.",
        ),
    ] = 3600.0,
    warm_up: Annotated[
        bool,
        typer.Option(
            "--warm-up/--no-warm-up",
            help="Run a small replication on the server in the background, so that later work is"
            " faster.",
        ),
    ] = True,
) -> None:
    from replctl.psql.progress import starting_spark
    from replctl.spark import ServerConf, start_server

    properties = spark_properties(conf)
    with opened_cluster(home, is_made=True) as cluster:
        report_new(cluster, home, Messages(Variables()))
        if cluster.refusal is not None:
            raise cluster.refusal
    wanted = ServerConf(master, properties, idle_timeout)
    with starting_spark():
        server, is_new = start_server(cluster.path, wanted)
    if not is_new:
        print(f"Spark server is running already (PID: {server.pid})")
        if server.conf.misses(wanted):
            print("replctl: warning: it was started with other options", file=sys.stderr)
            stop = own_command("spark", "stop", home=cluster.path)
            print(f'replctl: hint: Use "{stop}" first.', file=sys.stderr)
        return
    if warm_up:
        _warm_up_in_background(server.remote)
    print(f"Spark server started (PID: {server.pid})")


def _stop(home: Home = None) -> None:
    from replctl.spark import stop_server

    server = stop_server(existing_home(home))
    if server is None:
        print("no Spark server is running")
        raise typer.Exit(_NOT_RUNNING)
    print(f"Spark server stopped (PID: {server.pid})")


def _status(
    home: Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    from replctl.spark import find_server

    server = find_server(existing_home(home))
    is_answering = server is not None and server.is_reachable and server.answers()
    if as_json:
        state: dict[str, object] = {"running": server is not None}
        if server is not None:
            state |= {
                "answers": is_answering,
                "pid": server.pid,
                "port": server.port,
                "started": server.started,
                "idle_timeout": server.conf.idle_timeout,
                "log": server.log,
            }
        print(json.dumps(state))
    elif server is None:
        print("no Spark server is running")
    else:
        if not server.is_reachable:
            state_of_it = "is running in another container or on another machine"
        else:
            state_of_it = "is running" if is_answering else "is running, but does not answer"
        print(f"Spark server {state_of_it} (PID: {server.pid}), port {server.port}")
        print(f"started {server.started}, log {server.log}")
    if server is None:
        raise typer.Exit(_NOT_RUNNING)


def _prepare(
    home: Home = None,
    archive: Annotated[
        bool,
        typer.Option(
            "--archive/--no-archive",
            help="Archive Spark's classes (200 MB), so that Spark starts faster.",
        ),
    ] = True,
    s3: Annotated[
        bool, typer.Option("--s3", help="Also download the connector for S3 (10 MB).")
    ] = False,
) -> None:
    del home  # all clusters of the user share the archive
    from replctl.psql.progress import starting_spark
    from replctl.spark import archive_classes, bring_jars

    with starting_spark():
        jars = bring_jars(for_s3=s3)
    if not archive:
        print(f"jars: {jars}")
        return
    # On a read-only machine, only the directory of the jars may be writable
    if not os.access(jars.parent, os.W_OK):
        raise FileAccessDenied(
            f'could not write the archive of classes: "{jars.parent}" cannot be written',
            hint='The jars are there: use "replctl spark prepare --no-archive". Or set'
            " XDG_CACHE_HOME to a directory that this user can write.",
        )
    with starting_spark(), tempfile.TemporaryDirectory(dir=jars.parent) as home:
        made = archive_classes(lambda java_options: _run_warm_up(home, java_options))
    print(f"archive of classes: {made}")


def _warm_up_in_background(remote: str) -> None:
    """Start the warm-up.  Pass the address in the environment, because other users can see the
    arguments of a process.
    """
    from replctl.spark import detach

    process = subprocess.Popen(
        python_command("from replctl.psql.spark import warm_up; warm_up()"),
        env={**os.environ, "SPARK_REMOTE": remote},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    detach(process)


def warm_up() -> None:
    """Run a small replication on the server of SPARK_REMOTE, in a temporary cluster."""
    with tempfile.TemporaryDirectory() as home:
        _run_warm_up(home)


def _run_warm_up(home: str, java_options: str | None = None) -> None:
    from replctl.psql.main import run

    script = Path(home) / "warm_up.sql"
    script.write_text(_WARM_UP, "utf-8")
    cluster = ["--home", f"{home}/cluster", "-X", "-q", "-o", os.devnull, "-f", str(script)]
    spark = ["--conf", f"spark.driver.extraJavaOptions={java_options}"] if java_options else []
    run([*cluster, *spark])
