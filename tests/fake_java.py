"""Programs that replace Java, for tests of the start of a JVM."""

from __future__ import annotations

from pathlib import Path


def make_java(folder: Path, script: str, release: str = "17.0.1") -> Path:
    """Make a Java home whose java is a script of sh; return the home."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    java.chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{release}"\n', "utf-8")
    return folder
