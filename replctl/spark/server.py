"""A Spark Connect server that a cluster keeps running for all commands of its owner.

A supervisor process holds `server.lock` while it runs, and the server's JVM ends with it.  All
processes that use the server share `clients.lock`; the server is idle while none of them holds it.
The system releases both locks when a process ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import IO, Any, NoReturn

from replctl.absolute_path import absolute_path
from replctl.errors import (
    ConnectionFailure,
    FileAccessDenied,
    IoError,
    ObjectInUse,
    PostgresError,
)
from replctl.file_lock import LockTimeout, help_with, is_locked, locked
from replctl.own_command import own_command
from replctl.own_python import python_command
from replctl.private_file import open_private
from replctl.record import dataclass
from replctl.spark import java_start
from replctl.spark.attachment import note_attachment
from replctl.spark.container import network_namespace, process_namespace
from replctl.spark.java import check_user, find_java
from replctl.spark.liveness import LIMIT, Liveness, answers
from replctl.spark.maven import delta_jars, known_s3_jars
from replctl.spark.memory import heap, memory_limit
from replctl.spark.start_failure import ending, reason, start_hint

_START_TIMEOUT = (
    180.0  # seconds within which the server must answer; Delta's jars may have to be downloaded
)
_END_TIMEOUT = 30.0  # seconds for the JVM of a server to end
_STOP_TIMEOUT = 45.0  # seconds to wait before killing a server
_KILL_TIMEOUT = 10.0  # seconds for the system to end a killed server
_HEAP = 4 << 30  # bytes, if there is enough memory
_POLL_INTERVAL = 0.5
_TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # other users could see an argument

#: Spark properties of a server.  It runs for a long time, so they limit Spark's records of finished
#: work.
_PROPERTIES = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.ui.retainedDeadExecutors": "5",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.connect.ui.retainedSessions": "10",
    "spark.sql.connect.ui.retainedStatements": "10",
}


@dataclass(frozen=True, slots=True)
class ServerConf:
    """The configuration with which a server starts.

    Attributes:
        master: Spark's master; None: local[*].
        properties: further Spark properties, as (name, value).
        idle_timeout: seconds without users after which the server ends; 0: never.
    """

    master: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    idle_timeout: float = 3600.0

    def misses(self, other: ServerConf) -> bool:
        """Return whether a server with this configuration differs from a server that `other`
        requires.
        """
        return (
            other.master not in (None, self.master)
            or not set(other.properties) <= set(self.properties)
            or other.idle_timeout != self.idle_timeout
        )


@dataclass(frozen=True, slots=True)
class Server:
    """A running server.

    Attributes:
        pid: the process ID of the supervisor.
        jvm: the process ID of the server's JVM, a child of the supervisor.
        port: the server's port on 127.0.0.1.
        token: the secret that gives access to the server.
        started: the time of the start, in UTC (ISO 8601).
        log: the file with Spark's messages.
        conf: the configuration with which the server has started.
        processes, network: the namespaces of the process IDs and of the port.
    """

    pid: int
    jvm: int
    port: int
    token: str
    started: str
    log: str
    conf: ServerConf
    processes: str = field(default_factory=process_namespace)
    network: str = field(default_factory=network_namespace)

    @property
    def remote(self) -> str:
        """Return the server's address with the token, in the form of SPARK_REMOTE."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    @property
    def is_reachable(self) -> bool:
        """Return whether the server's localhost is that of this process, and not that of another
        container.
        """
        return self.network == network_namespace()

    def check_place(self, cluster: Path) -> None:
        """Check that the server's process IDs and port mean the same in this process.

        Args:
            cluster: the directory of the server's cluster.

        Raises:
            ObjectInUse: the server runs in another container.
        """
        if not self.is_reachable or self.processes != process_namespace():
            raise ObjectInUse(
                "the Spark server of this cluster runs in another container or on another machine",
                detail=f"Its process there is {self.pid}.",
                hint=f'Use "{own_command("spark", "stop", home=cluster)}" there.',
            )

    def answers(self) -> bool:
        """Return whether the server answers within some seconds."""
        return answers(self.port)


@contextmanager
def _naming_file() -> Iterator[None]:
    """Translate an error of the operating system to one that names the file.

    Raises:
        FileAccessDenied: another user has made the file, for example with sudo.
        IoError: the file cannot be used for another reason.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        kind = FileAccessDenied if isinstance(error, PermissionError) else IoError
        raise kind(f'could not access file "{error.filename}": {error.strerror}') from error


@_naming_file()
def find_server(cluster: Path) -> Server | None:
    """Return the running server of a cluster; None if there is none.

    Raises:
        FileAccessDenied, IoError: the server's files cannot be used.
    """
    folder = _Folder(cluster)
    return folder.read() if folder.is_locked() else None


@_naming_file()
def start_server(cluster: Path, conf: ServerConf) -> tuple[Server, bool]:
    """Start the server of a cluster unless it already runs.  If several processes call this at the
    same time, only one starts a server.

    Returns:
        the server, and whether this call has started it.

    Raises:
        ObjectNotInPrerequisiteState: there is no Java, or there are no jars.
        ConnectionFailure: the server has ended, or has not answered in time.
        FileAccessDenied, IoError: the server's files cannot be used.
        ObjectInUse: a server runs in another container.
    """
    folder = _Folder(cluster)
    folder.path.mkdir(mode=0o700, exist_ok=True)
    with folder.starting():
        if (server := find_server(cluster)) is not None:
            server.check_place(cluster)
            return server, False
        check_user()
        delta_jars(find_java())
        folder.forget()
        with folder.open_log() as log:
            process = subprocess.Popen(
                python_command(
                    "from replctl.spark.server import serve; serve()", str(folder.cluster)
                ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder.path,
                start_new_session=True,  # the server survives the end of the terminal
            )
        _send(process, json.dumps(asdict(conf)))
        deadline = time.monotonic() + _START_TIMEOUT
        try:
            while time.monotonic() < deadline and process.poll() is None:
                if (server := find_server(cluster)) is not None:
                    _release(process)
                    return server, True
                time.sleep(0.05)
        except BaseException:  # such as Ctrl-C: nobody would use the server
            process.terminate()
            raise
        raise _not_started(folder, process)


def _not_started(folder: _Folder, process: subprocess.Popen[bytes]) -> ConnectionFailure:
    """Kill the supervisor of a server that has not started, and return the error."""
    code = process.poll()
    process.kill()
    process.communicate()
    failure = folder.read_failure()
    if failure is not None:
        detail, hint = failure
    else:
        output = folder.log.read_text("utf-8", "replace")
        detail, hint = reason(output, code), start_hint(code)
    return ConnectionFailure("could not start the Spark server", detail=detail, hint=hint)


def _send(process: subprocess.Popen[bytes], text: str) -> None:
    """Send a line to the standard input of a process.  It is not an argument, because it may
    contain secrets, and other users can see arguments."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # the process has ended; see its log
        process.stdin.write(f"{text}\n".encode())
        process.stdin.flush()


def _release(process: subprocess.Popen[bytes]) -> None:
    """Let a supervisor whose server runs outlive this process."""
    assert process.stdin is not None
    process.stdin.close()
    detach(process)


def detach(process: subprocess.Popen[bytes]) -> None:
    """Detach a child process: Python then does not wait for it."""
    process.returncode = 0


@_naming_file()
def stop_server(cluster: Path) -> Server | None:
    """Stop the server of a cluster, even if it is in use.  Return it; None if there is none.

    Raises:
        ConnectionFailure: the server has been killed, but does not end.
        FileAccessDenied, IoError: the server's files cannot be used.
        ObjectInUse: the server runs in another container.
    """
    folder = _Folder(cluster)
    server = find_server(cluster)
    if server is None:
        folder.description.unlink(missing_ok=True)
        return None
    server.check_place(cluster)
    with suppress(ProcessLookupError):  # it has ended meanwhile
        os.kill(server.pid, signal.SIGTERM)
    if not folder.wait_for_end(_STOP_TIMEOUT):
        # The supervisor is suspended or hangs.  So the JVM is still its child, and its PID valid.
        for pid in (server.jvm, server.pid):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, signal.SIGKILL)
        if not folder.wait_for_end(_KILL_TIMEOUT):
            raise ConnectionFailure(
                f"the Spark server (PID {server.pid}) does not end",
                detail="replctl killed the server, but its process has not ended.",
            )
        folder.forget()
    return server


@_naming_file()
def attach_server(cluster: Path) -> Server | None:
    """Return the server of a cluster, and use it until this process ends: until then the server is
    not idle.  Return None if there is no server, or if the server runs in another container, where
    this process cannot reach it.

    Raises:
        ConnectionFailure: the last server has died.
        FileAccessDenied, IoError: the server's files cannot be used.
    """
    folder = _Folder(cluster)
    if not folder.description.exists():
        return None
    lock = os.open(folder.path / "clients.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_SH)  # wait while a server is ending
    server = find_server(cluster)
    if server is not None and server.is_reachable:
        note_attachment(folder.cluster, lock)
        return server
    os.close(lock)
    if server is not None:
        return None
    dead = folder.read()
    if dead is None:
        return None
    folder.description.unlink(missing_ok=True)
    raise ConnectionFailure(
        f"the Spark server of this cluster (PID {dead.pid}) has died",
        detail=f'{folder.read_ending()}Its log is "{dead.log}".',
        hint=f'Start it again with "{own_command("spark", "start", home=folder.cluster)}".',
    )


@contextmanager
def temporary_server(
    memory: str,
    master: str = "local[2]",
    *,
    properties: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Iterator[str]:
    """Start a server without a cluster, and yield its address with the token.  The server ends with
    the `with` block.

    Args:
        memory: the value of spark.driver.memory.
        properties: further Spark properties.
        folder: an empty directory, where `find_server` finds the server.

    Raises:
        PostgresError: see `start_server`.
    """
    chosen = {"spark.driver.memory": memory, **(properties or {})}
    with tempfile.TemporaryDirectory() as other:
        place = folder or Path(other)
        # The server also ends if this process is killed: it is then idle.
        conf = ServerConf(master, tuple(chosen.items()), idle_timeout=5.0)
        server, _is_new = start_server(place, conf)
        attach_server(place)
        try:
            yield server.remote
        finally:
            stop_server(place)


class _Folder:
    """The files by which the processes of a cluster find its server."""

    def __init__(self, cluster: Path) -> None:
        self.cluster = absolute_path(cluster)
        self.path = self.cluster / "spark"
        self.description = self.path / "server.json"
        self.lock = self.path / "server.lock"
        self.log = self.path / "server.log"
        self.scratch = self.cluster / "tmp"
        self._failure = self.path / "failure.json"
        self._ending = self.path / "ending"

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Prevent other processes from starting a server during the `with` block.

        Raises:
            ConnectionFailure: another process has been starting a server for too long.
        """
        path = self.path / "start.lock"
        try:
            with locked(path, _START_TIMEOUT):
                yield
        except LockTimeout as error:
            detail, hint = help_with(path)
            raise ConnectionFailure(
                "another program has been starting the Spark server for"
                f" {_START_TIMEOUT:g} seconds",
                detail=detail,
                hint=hint,
            ) from error

    def is_locked(self) -> bool:
        """Return whether the supervisor holds its lock: it is running."""
        return is_locked(self.lock)

    def wait_for_end(self, timeout: float) -> bool:
        """Wait for the end of the supervisor.  Return False if it still runs after `timeout`
        seconds.
        """
        deadline = time.monotonic() + timeout
        while self.is_locked():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def read(self) -> Server | None:
        try:
            found = json.loads(self.description.read_text("utf-8"))
            return Server(**{**found, "conf": _conf_of(found["conf"])})
        except (FileNotFoundError, KeyError, TypeError, ValueError):
            return None  # missing, incomplete, or written by another version

    def write(self, server: Server) -> None:
        """Record the running server in one atomic step.  Only the owner can read the file."""
        scratch = self.description.with_suffix(".new")
        scratch.unlink(missing_ok=True)
        with open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "w") as file:
            json.dump(asdict(server), file)
            file.flush()
            os.fsync(file.fileno())  # otherwise the new name may lead to an empty file (power loss)
        scratch.rename(self.description)

    def forget(self) -> None:
        """Remove the records of the previous server."""
        for file in (self.description, self._failure, self._ending):
            file.unlink(missing_ok=True)

    def write_failure(self, error: PostgresError) -> None:
        """Record why a server has not started, for the process that waits for it."""
        failure = {"detail": error.detail or f"{error.message}.", "hint": error.hint}
        with open_private(self._failure, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "w") as file:
            json.dump(failure, file)

    def read_failure(self) -> tuple[str, str | None] | None:
        """Return the detail and hint that `write_failure` has recorded, and remove the record."""
        try:
            found = json.loads(self._failure.read_text("utf-8"))
        except (FileNotFoundError, ValueError):  # no failure, or the record is incomplete
            return None
        self._failure.unlink()
        return found["detail"], found["hint"]

    def note_ending(self, how: str) -> None:
        """Record how a server has ended, for the processes that use it."""
        with open_private(self._ending, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "w") as file:
            file.write(how)
        print(how, flush=True)

    def read_ending(self) -> str:
        """Return how the last server has ended, followed by a space; '' if it is unknown."""
        try:
            how = self._ending.read_text("utf-8")
        except FileNotFoundError:  # the supervisor was killed, too
            return ""
        self._ending.unlink()
        return f"{how} "

    def open_log(self) -> IO[bytes]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        return open_private(self.log, flags, "ab")


def _conf_of(found: dict[str, Any]) -> ServerConf:
    """Convert a ServerConf from its JSON form."""
    properties = tuple((name, value) for name, value in found["properties"])
    return ServerConf(**{**found, "properties": properties})


# -- the supervisor of a server


def serve() -> NoReturn:
    """Run the supervisor of a server until the server is stopped, idle or dead.  The argument of
    the command line is the cluster's directory; stdin contains a ServerConf as a line of JSON, and
    stays open until the server runs.
    """
    cluster, conf = Path(sys.argv[1]), _conf_of(json.loads(sys.stdin.readline()))
    folder = _Folder(cluster)
    signal.signal(signal.SIGTERM, _end)
    Thread(target=_end_with_starter, args=(folder,), daemon=True).start()
    try:
        # One supervisor for a cluster: a process holds this lock as long as its server runs
        with locked(folder.lock, 10), _running(folder, conf) as process:
            _watch(folder, conf, process)
    except LockTimeout:  # an earlier supervisor has not ended
        sys.exit("another process watches over this cluster's Spark server")
    except PostgresError as error:  # the program that waits for the server reports it
        folder.write_failure(error)
        sys.exit(1)
    sys.exit()


def _end_with_starter(folder: _Folder) -> None:
    """End this process if the one that starts the server ends before the server runs: nobody would
    use the server."""
    os.read(sys.stdin.fileno(), 1)  # returns when the pipe closes
    if folder.read() is None:
        os.kill(os.getpid(), signal.SIGTERM)


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit()


@contextmanager
def _running(folder: _Folder, conf: ServerConf) -> Iterator[subprocess.Popen[bytes]]:
    """Start the JVM, and record its address.  The JVM ends with the `with` block."""
    from replctl.spark.python_functions import PACKAGE, own_package
    from replctl.spark.s3_connector import S3Connector
    from replctl.spark.session_start import start
    from replctl.spark.spark_conf import SparkConf
    from replctl.spark.spark_errors import translating

    port, token = _free_port(), secrets.token_urlsafe(32)
    os.environ[_TOKEN_VARIABLE] = token
    memory = {"spark.driver.memory": heap(_HEAP, memory_limit())}
    properties = {**_PROPERTIES, **memory, **dict(conf.properties)}
    properties["spark.connect.grpc.binding.port"] = str(port)
    properties[PACKAGE] = own_package()
    spark = SparkConf(
        master=conf.master, properties=tuple(properties.items()), scratch=folder.scratch
    )
    with translating():
        S3Connector(start(spark, folder.log), properties).add(known_s3_jars)
    process = java_start.started()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    folder.write(Server(os.getpid(), process.pid, port, token, now, str(folder.log), conf))
    try:
        yield process
    except SystemExit:
        folder.description.unlink(missing_ok=True)
        raise
    finally:
        # A JVM that does not answer does not end by itself, either.
        java_start.end(process, _END_TIMEOUT if answers(port) else 0.0)


def _watch(folder: _Folder, conf: ServerConf, process: subprocess.Popen[bytes]) -> None:
    """Wait until the JVM has ended.  Kill it if it does not answer.  Raise SystemExit when the
    server has been idle for too long.
    """
    server = folder.read()
    assert server is not None
    liveness = Liveness(server.answers)
    idle_since = time.monotonic()
    flags = os.O_RDWR | os.O_CREAT
    with open_private(folder.path / "clients.lock", flags, "w") as clients:
        while process.poll() is None:
            time.sleep(_POLL_INTERVAL)
            if liveness.has_ended():
                process.kill()
                process.wait()
                folder.note_ending(f"It did not answer for {LIMIT:g} seconds, and was killed.")
                return
            try:
                fcntl.flock(clients, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # clients hold a shared lock, so the server is in use
                idle_since = time.monotonic()
                continue
            if conf.idle_timeout and time.monotonic() - idle_since > conf.idle_timeout:
                print(f"nobody has used the server for {conf.idle_timeout:g} seconds", flush=True)
                folder.description.unlink()  # before waiting processes can get the lock
                sys.exit()
            fcntl.flock(clients, fcntl.LOCK_UN)
    folder.note_ending(ending(process.returncode))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
