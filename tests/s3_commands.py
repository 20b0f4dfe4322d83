"""Runs the command as a separate process, with tables on S3."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from fix_s3 import ACCOUNT, S3


@dataclass
class Commands:
    """The command, with its cluster, Spark and account.

    Attributes:
        s3: the bucket of the owner's table, and the server.
        remote: the address of a Spark Connect server; None: each process starts its own Spark.
        environment: further variables.
        options: further arguments.
    """

    home: Path
    s3: S3
    remote: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def run(self, *arguments: str, kill_at: str = "") -> tuple[int, str, str]:
        """Run a command, and return its exit code, stdout and stderr."""
        environment = {
            **os.environ,
            **ACCOUNT,
            "AWS_ENDPOINT_URL": self.s3.endpoint,
            "REPLCTL_HOME": str(self.home),
            **self.environment,
        }
        if self.remote is not None:
            environment["SPARK_REMOTE"] = self.remote
        if kill_at:
            environment["REPLCTL_INJECTION_POINT"] = f"{kill_at}:kill"
        done = subprocess.run(
            [sys.executable, "-m", "replctl", "-X", "-q", "-A", "-t", *self.options, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def script(self, database: str, *statements: str) -> str:
        """Run statements, which must not fail, and return their answers."""
        arguments = [word for statement in statements for word in ("-c", statement)]
        code, answer, told = self.run("-d", database, "-v", "ON_ERROR_STOP=1", *arguments)
        assert code == 0, told
        return answer

    def sync(self, kill_at: str = "") -> tuple[int, str]:
        """Run a sync, and return its exit code and stderr."""
        code, _answer, told = self.run("-d", "copy", "-c", r"\sync", kill_at=kill_at)
        return code, told

    def write(self, *ids: int) -> None:
        """Append rows as the owner does."""
        rows = pa.table({"id": pa.array(ids, pa.int32()), "v": [f"row {i}" for i in ids]})
        properties = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(
            self.s3.location("source"),
            rows,
            mode="append",
            storage_options=self.s3.options,
            configuration=properties,
        )
