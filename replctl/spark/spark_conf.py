"""The choice of a Spark."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class SparkConf:
    """Which Spark to use: a Connect server (`remote`, sc://..), else one started in this process.

    Attributes:
        remote: address of a Spark Connect server, as in SPARK_REMOTE.
        master: master of the session that is started here, local[*] if not given.
        properties: further Spark properties, as (name, value).
        is_brief: the process ends soon: code is not to be compiled for a long life.  It is no other
            Spark for that.
        scratch: the directory for what Spark writes for a while; the system's for temporary files
            if not given.
    """

    remote: str | None = None
    master: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    is_brief: bool = field(default=False, compare=False)
    scratch: Path | None = field(default=None, compare=False)
