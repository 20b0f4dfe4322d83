"""A release: the sdist holds the whole repository, and the wheel holds everything that a run
needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import replctl

_ROOT = Path(__file__).parent.parent
_PRINTED = _ROOT / "tests" / "psql" / "data" / "sample.out"
_NAME = f"replctl-{replctl.__version__}"
_WHEEL = f"{_NAME}-py3-none-any.whl"


def _run(command: list[str], folder: Path, **environment: str) -> str:
    """Return what a command prints; no checkout is on its path, and no Spark runs."""
    unset = ("PYTHONPATH", "SPARK_REMOTE", "REPLCTL_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """Return the paths of the files in a clone."""
    if not (_ROOT / ".git").exists():
        pytest.skip("this is no clone")
    names = _run(["git", "ls-files", "-z"], _ROOT)
    return {name for name in names.split("\0") if name and (_ROOT / name).is_file()}


@pytest.fixture(scope="module")
def tree(tracked: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of a clone, and in its `dist` the output of `python -m
    build`."""
    folder = tmp_path_factory.mktemp("release") / "clone"
    for name in tracked:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_ROOT / name, folder / name)
    _run([sys.executable, "-m", "build"], folder)
    return folder


def test_the_sdist_holds_the_whole_repository(tree: Path, tracked: set[str]) -> None:
    with tarfile.open(tree / "dist" / f"{_NAME}.tar.gz") as sdist:
        names = {member.name.removeprefix(f"{_NAME}/") for member in sdist if member.isfile()}
    assert names == tracked | {"PKG-INFO"}


def test_the_wheel_holds_the_package_its_grammar_and_its_licenses(
    tree: Path, tracked: set[str]
) -> None:
    package = {name for name in tracked if name.startswith("replctl/")}
    grammar = {f"replctl/{name}" for name in tracked if name.startswith("grammar/")}
    licenses = {f"{_NAME}.dist-info/licenses/{n}" for n in ("LICENSE", "LICENSE-PostgreSQL")}
    with zipfile.ZipFile(tree / "dist" / _WHEEL) as wheel:
        names = set(wheel.namelist())
    assert {name for name in names if name.startswith("replctl/")} == package | grammar
    assert licenses <= names
    assert "replctl/py.typed" in names  # "Typing :: Typed"


def test_the_wheel_of_the_sdist_is_that_of_the_tree(tree: Path, tmp_path: Path) -> None:
    """`python -m build` makes the wheel of the sdist; a packager may make it of the tree."""
    _run([sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path)], tree)
    assert (tmp_path / _WHEEL).read_bytes() == (tree / "dist" / _WHEEL).read_bytes()


def test_no_file_names_the_host_of_a_registry(tracked: set[str]) -> None:
    """pip, Ivy and apt know their registries, or their settings name a mirror."""
    hosts = re.compile(rb"\b(maven|pypi|pythonhosted|debian|docker|ghcr|quay)\.(org|io|com)\b")
    paths = (_ROOT / name for name in tracked)
    assert [str(path) for path in paths if hosts.search(path.read_bytes())] == []


def test_an_extra_installs_what_a_release_needs() -> None:
    """The commands of *Make a release* in CONTRIBUTING.md and of requirements.lock."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = project["optional-dependencies"]["release"]
    assert {name.partition(">")[0] for name in extra} == {"build", "pip-tools"}
    assert "--editable '.[release]'" in (_ROOT / "CONTRIBUTING.md").read_text("utf-8")


@pytest.mark.spark
@pytest.mark.slow(1.5)
def test_the_wheel_alone_runs_the_sample(tree: Path, tmp_path: Path) -> None:
    """The command of README.md, which installs replctl, here from its wheel, and runs the sample.

    The environment is new, and has only the packages that the wheel requires.
    """
    readme = (_ROOT / "README.md").read_text("utf-8")
    (command,) = re.findall(r"^    (python3 .* samples/run\.sh)$", readme, re.MULTILINE)
    assert "'.[java]'" in command
    wheel = command.replace("'.[java]'", f"--no-compile '{tree / 'dist' / _WHEEL}[java]'")
    shutil.copytree(_ROOT / "samples", tmp_path / "samples")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # python3
    try:
        printed = _run(["sh", "-c", wheel], tmp_path, PATH=programs)
    finally:
        shutil.rmtree(tmp_path / ".venv")  # a gigabyte
    assert printed == _PRINTED.read_text("utf-8")
