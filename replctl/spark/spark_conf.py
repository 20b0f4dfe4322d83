"""The configuration that selects the Spark to use."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class SparkConf:
    """Selects the Spark to use: a Connect server, or a Spark that this process starts.

    Attributes:
        remote: the address of a Spark Connect server (sc://...), in the form of SPARK_REMOTE; None:
            start Spark.
        master: the master of a Spark that this process starts; None: local[*].
        properties: further Spark properties, as (name, value).
        is_brief: the process ends soon, so optimising compilation does not pay off.  Two
            configurations that differ only in this select the same Spark.
        scratch: the directory for Spark's temporary files; None: the system's directory.
    """

    remote: str | None = None
    master: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    is_brief: bool = field(default=False, compare=False)
    scratch: Path | None = field(default=None, compare=False)
