"""Download jars from Maven Central or a mirror, with the Ivy among pyspark's jars.

replctl gives up a download after a minute without data.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from replctl.cache_directory import cache_directory
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.file_lock import LockTimeout, help_with, locked
from replctl.spark.installation import SPARK, check_pyspark, pyspark_folder
from replctl.spark.java import find_java
from replctl.spark.java_environment import JAVA_VARIABLES

logger = logging.getLogger(__name__)

_SCALA = "2.13"
#: Organisations whose jars replctl downloads; pyspark contains all other dependencies of Delta.
_DELTA_ORGANISATIONS = r"io\.delta|io\.unitycatalog"
#: The same for Amazon's SDK.
_AWS_ORGANISATIONS = r"software\.amazon\..*|org\.reactivestreams"
_AWS_SDK = "2.35.4"  # the versions with which Hadoop 3.5 is built
_AWS_STREAMS = "1.3.1"
_AWS_MODULES = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")

_SILENCE = 60.0  # seconds without data after which replctl gives up a download
_OTHERS_TIMEOUT = 600.0  # seconds to wait for the download of another process
_LEAST = 1024  # bytes of growth that count as progress
_REPORT_INTERVAL = 10.0
_CONNECT_TIMEOUT, _READ_TIMEOUT = 20_000, 45_000  # milliseconds per attempt
_NETWORK_HINT = (
    "Set HTTPS_PROXY if a proxy is needed, REPLCTL_IVY_SETTINGS to an Ivy settings file that names"
    " a mirror, or use a Spark Connect server (--remote)."
)
_TRUST_HINT = (
    "Have Java trust the certificate of your network:"
    " JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE."
)
#: Matches lines of Ivy's output that state the reason of a failure.
_REASON = re.compile(r"Server access error.*|(?:\w+\.)+\w+(?:Exception|Error): .*")
_PR_SET_PDEATHSIG = 1


def delta_jars(java: Path) -> list[Path]:
    """Return Delta's own jars; download them on the first call on a machine.

    Raises:
        ObjectNotInPrerequisiteState: replctl cannot download or store the jars, or pyspark has
            another version.
    """
    check_pyspark()
    delta = version("delta_spark")
    name = f"delta-{delta}-spark-{SPARK}"
    return _kept_jars(java, name, _delta_dependency(delta), "Delta Lake")


def s3_jars(java: Path) -> list[Path]:
    """Return the jars that Spark needs for S3; download their 10 MB on the first call on a machine.

    Raises:
        ObjectNotInPrerequisiteState: see `delta_jars`.
    """
    return _kept_jars(java, _s3_name(), _s3_dependencies(), "Hadoop's connector for S3")


def known_s3_jars(_java: Path) -> list[Path]:
    """Return the jars of `s3_jars` if they are on this machine, else []."""
    cache = cache_directory()
    return [] if cache is None else sorted((cache / _s3_name()).glob("*.jar"))


def _kept_jars(java: Path, name: str, dependencies: str, what: str) -> list[Path]:
    """Return the jars in the folder `name` of the user's cache.  Download them if the folder does
    not exist."""
    cache = cache_directory()
    if cache is None:
        raise _unkept("this user has no home directory", what)
    folder = cache / name
    if os.pathsep in str(folder):
        raise _unkept(f'Java cannot read from "{cache}", which has a "{os.pathsep}"', what)
    if not folder.is_dir():  # a read-only image may contain them: then no lock is needed
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _bringing(folder):
                if not folder.is_dir():
                    resolve(java, dependencies, folder)
        except OSError as error:
            raise _unkept(f'"{cache}": {error.strerror}', what) from error
    return sorted(folder.glob("*.jar"))


@contextmanager
def _bringing(folder: Path) -> Iterator[None]:
    """Hold the lock for downloading jars.  While another process holds it, wait and say so.

    Raises:
        ObjectNotInPrerequisiteState: another process has held the lock for too long.
    """
    path = Path(f"{folder}.lock")
    begun = time.monotonic()
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(locked(path, _REPORT_INTERVAL, mode=0o644))
                break
            except LockTimeout as error:  # tell the user why nothing happens
                detail, hint = help_with(path)
                if time.monotonic() - begun > _OTHERS_TIMEOUT:
                    why = (
                        f"Another process has been downloading it for {_OTHERS_TIMEOUT:g} seconds."
                    )
                    waited = why if detail is None else f"{why} {detail}"
                    raise _not_brought(folder.name, waited, hint=hint) from error
                logger.info("waiting for %s, which another process downloads", folder.name)
        yield


def bring_jars(*, for_s3: bool = False) -> Path:
    """Return the directory of Delta's jars; download them if they are missing.

    Args:
        for_s3: also download the jars of the connector for S3.

    Raises:
        ObjectNotInPrerequisiteState: there is no Java; also for the reasons in `delta_jars`.
    """
    java = find_java()
    if for_s3:
        s3_jars(java)
    return delta_jars(java)[0].parent


def _delta_dependency(delta: str) -> str:
    others = f"(?!({_DELTA_ORGANISATIONS})$).*"
    return (
        f'<dependency org="io.delta" name="delta-spark_{SPARK}_{_SCALA}"'
        f' rev="{delta}" conf="default->default">'
        f'<exclude org="{others}" matcher="regexp"/></dependency>'
    )


def _s3_name() -> str:
    return f"hadoop-aws-{_hadoop_version()}"


def _hadoop_version() -> str:
    """Return the version of Hadoop among pyspark's jars.  Its connectors need the same version."""
    start = "hadoop-client-api-"
    jar = next((pyspark_folder() / "jars").glob(f"{start}*.jar"))
    return jar.stem.removeprefix(start)


def _s3_dependencies() -> str:
    """Return Ivy's elements for the connector for S3, and for the modules of Amazon's SDK that it
    uses.  Hadoop itself depends on the whole SDK, which has 686 MB.
    """
    connector = (
        '<dependency org="org.apache.hadoop" name="hadoop-aws"'
        f' rev="{_hadoop_version()}" conf="default->master"/>'
        '<dependency org="software.amazon.s3.analyticsaccelerator" name="analyticsaccelerator-s3"'
        f' rev="{_AWS_STREAMS}" conf="default->master"/>'
    )
    others = f"(?!({_AWS_ORGANISATIONS})$).*"
    modules = (
        f'<dependency org="software.amazon.awssdk" name="{module}" rev="{_AWS_SDK}"'
        f' conf="default->default"><exclude org="{others}" matcher="regexp"/></dependency>'
        for module in _AWS_MODULES
    )
    return f"{connector}{''.join(modules)}"


def _unkept(why: str, what: str) -> ObjectNotInPrerequisiteState:
    return ObjectNotInPrerequisiteState(
        f"could not store the jars of {what}",
        detail=f"{why[0].upper()}{why[1:]}.",
        hint="Set XDG_CACHE_HOME to a directory that this user can write, or that has the jars"
        ' from "replctl spark prepare".',
    )


def resolve(java: Path, dependency: str, folder: Path) -> None:
    """Download a module and its dependencies with Ivy, which is among pyspark's jars.

    Args:
        dependency: Ivy's `dependency` element for the module.
        folder: the directory for the jars.  It is created when all jars are there.

    Raises:
        ObjectNotInPrerequisiteState: the download failed.
    """
    ivy_jar = next((pyspark_folder() / "jars").glob("ivy-*.jar"))
    description = (
        '<ivy-module version="2.0"><info organisation="replctl" module="jars"/>'
        f"<dependencies>{dependency}</dependencies></ivy-module>"
    )
    logger.info("downloading %s from Maven Central", folder.name)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        ivy_file = Path(scratch) / "ivy.xml"
        ivy_file.write_text(description, encoding="utf-8")
        jars, cache = Path(scratch) / "jars", Path(scratch) / "ivy"
        settings = os.environ.get("REPLCTL_IVY_SETTINGS")
        argv = [
            str(java),
            f"-Dsun.net.client.defaultConnectTimeout={_CONNECT_TIMEOUT}",
            f"-Dsun.net.client.defaultReadTimeout={_READ_TIMEOUT}",
            f"-Djava.io.tmpdir={scratch}",
            f"-Divy.default.ivy.user.dir={cache}",  # the home directory may be read-only
            *proxy_options(os.environ),
            "-jar", str(ivy_jar), "-warn", "-cache", str(cache),
            *(["-settings", settings] if settings else []),
            "-ivy", str(ivy_file), "-types", "jar",
            "-retrieve", f"{jars}/[artifact]-[revision].[ext]",
        ]  # fmt: skip
        output = _run(argv, Path(scratch), folder.name)
        if not any(jars.glob("*.jar")):
            if "PKIX path building failed" in output:
                raise _not_brought(folder.name, _reason(output), hint=_TRUST_HINT)
            raise _not_brought(folder.name, _reason(output), hint=_NETWORK_HINT)
        shutil.rmtree(cache, ignore_errors=True)
        jars.rename(folder)


def _run(argv: list[str], scratch: Path, what: str) -> str:
    """Run Ivy, and return its output.  Ivy ends with this process.

    Raises:
        ObjectNotInPrerequisiteState: no data arrived for `_SILENCE` seconds.
    """
    with tempfile.TemporaryFile(dir=scratch) as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=scratch,
            preexec_fn=_ends_with_parent(),
        )
        try:
            _await(process, scratch, what)
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        return output.read().decode("utf-8", "replace")


def _await(process: subprocess.Popen[bytes], scratch: Path, what: str) -> None:
    size, changed = 0, time.monotonic()
    reported = changed
    while process.poll() is None:
        time.sleep(0.1)
        now = time.monotonic()
        if (found := _size(scratch)) >= size + _LEAST:  # Ivy also logs its failures there
            size, changed = found, now
        if now - changed > _SILENCE:
            raise _not_brought(
                what,
                f"Nothing has come for {_SILENCE:g} seconds{_way(os.environ)}.",
                hint=_NETWORK_HINT,
            )
        if now - reported > _REPORT_INTERVAL:
            reported = now
            waited = int(now - changed)
            logger.info("downloading %s: %d kB, %d s without an answer", what, size >> 10, waited)


def _size(folder: Path) -> int:
    return sum(
        os.path.getsize(os.path.join(where, name))
        for where, _folders, names in os.walk(folder)
        for name in names
        if os.path.exists(os.path.join(where, name))
    )


def _ends_with_parent() -> Callable[[], object] | None:
    """Return a function for a child process to run first.  It makes the system kill the child when
    the parent dies.  None on systems other than Linux.
    """
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _not_brought(what: str, detail: str, *, hint: str) -> ObjectNotInPrerequisiteState:
    return ObjectNotInPrerequisiteState(
        f"could not get {what} from Maven Central", detail=detail, hint=hint
    )


def _reason(output: str) -> str:
    """Return why Ivy has failed: one line of its output."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reasons = [found[0] for line in lines if (found := _REASON.search(line))]
    return (reasons or lines or ["Ivy did not say why."])[-1][:1000]


# -- proxies


def proxy_options(environment: Mapping[str, str]) -> list[str]:
    """Return the options that make Java use the proxies in the environment's variables, like other
    programs.  Return [] if Java's own variables already name a proxy.

    {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": ".corp"} ->
    [`-Dhttps.proxyHost=p`, `-Dhttps.proxyPort=3128`, `-Dhttp.nonProxyHosts=*.corp`]
    """
    if any("proxyHost" in environment.get(name, "") for name in JAVA_VARIABLES):
        return []
    options = []
    for scheme in ("http", "https"):
        if (address := _proxy(environment, scheme)) is not None:
            host, port = address
            options += [f"-D{scheme}.proxyHost={host}", f"-D{scheme}.proxyPort={port}"]
    direct = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    hosts = [_pattern(name.strip()) for name in direct.split(",") if name.strip()]
    if options and hosts:
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(hosts)}")
    return options


def _proxy(environment: Mapping[str, str], scheme: str) -> tuple[str, int] | None:
    name = f"{scheme}_proxy"
    value = environment.get(name) or environment.get(name.upper())
    if not value:
        return None
    found = urlsplit(value if "//" in value else f"//{value}")
    if not found.hostname:
        return None
    return found.hostname, found.port or (443 if found.scheme == "https" else 80)


def _pattern(host: str) -> str:
    return f"*{host}" if host.startswith(".") else host


def _way(environment: Mapping[str, str]) -> str:
    address = _proxy(environment, "https")
    return "" if address is None else f" through {address[0]}:{address[1]} (HTTPS_PROXY)"
