"""The configuration that selects a Spark."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class SparkConf:
    """Selects the Spark to use: a Connect server (`remote`, sc://..), else one started in this
    process.

    Attributes:
        remote: address of a Spark Connect server, as in SPARK_REMOTE.
        master: master of the session that is started here, local[*] if not given.
        properties: further Spark properties, as (name, value).
        is_brief: the process ends soon, so that optimising compilation does not pay off.  Two
            configurations that only differ in this select the same Spark.
        scratch: the directory for Spark's temporary files; default: the system's directory.
    """

    remote: str | None = None
    master: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    is_brief: bool = field(default=False, compare=False)
    scratch: Path | None = field(default=None, compare=False)
