"""Spark and replctl itself use the right account for each of two buckets."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from faulty_proxy import Proxy
from fix_s3 import ACCOUNT, made_bucket
from s3_commands import Commands

from replctl.catalog.home_directory import CATALOG

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the server has another account"),
]


def test_publisher_and_subscriber_have_two_accounts(
    tmp_path: Path, s3_server: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    north, copies = made_bucket(s3_server), made_bucket(s3_server)
    file = tmp_path / "credentials"
    file.write_text("[north]\naws_access_key_id = NORTH\naws_secret_access_key = hush1\n", "utf-8")
    start = "spark.hadoop.fs.s3a.bucket"
    options = {
        f"{start}.{north.bucket}.auth.profile.name": "north",
        f"{start}.{copies.bucket}.access.key": "COPIES",
        f"{start}.{copies.bucket}.secret.key": "hush2",
    }
    home = tmp_path / "cluster"
    commands = Commands(
        home,
        north,
        environment={"AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_SESSION_TOKEN": "hush3"},
        options=tuple(word for pair in options.items() for word in ("--conf", "=".join(pair))),
    )
    commands.write(1, 2, 3)
    before = len(s3_server.requests)
    answer = commands.script(
        "postgres",
        f"CREATE TABLE t USING delta LOCATION '{north.location('source')}'",
        "CREATE PUBLICATION p FOR TABLE t",
        "CREATE DATABASE copy",
        r"\c copy",
        f"CREATE TABLE t (id int, v text) USING delta LOCATION '{copies.location('copy', 's3a')}'",
        "ALTER DATABASE copy SET replctl.s3_single_writer = on",
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=postgres' PUBLICATION p",
        r"\sync",
        "SELECT id FROM t ORDER BY id",
        r"\d+ t",
    )
    assert "1\n2\n3\n" in answer
    accounts: dict[str, set[str]] = {}
    for request, account in zip(
        s3_server.requests[before:], s3_server.accounts[before:], strict=True
    ):
        bucket = re.split("[/?]", request)[1]
        found = re.search(r"Credential=([^/]+)/", account)
        accounts.setdefault(bucket, set()).add("nobody" if found is None else found[1])
    assert accounts == {north.bucket: {"NORTH"}, copies.bucket: {"COPIES"}}
    assert "hush" not in answer
    assert b"hush" not in (home / CATALOG).read_bytes()
