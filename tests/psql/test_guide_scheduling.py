"""The examples of the guide on cron, systemd, Kubernetes and Airflow work, and match the image."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from fix_psql import Psql

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "guides" / "scheduling.md").read_text("utf-8")
_INSTALLED = "/opt/replctl/bin/replctl"
_PROGRAM = f"{sys.executable} -m replctl"
_SETUP = r"""
CREATE DATABASE shop;
\c shop
CREATE TABLE orders (id int PRIMARY KEY);
CREATE PUBLICATION p FOR TABLE orders;
\c postgres
CREATE TABLE orders (id int PRIMARY KEY);
CREATE SUBSCRIPTION s1 CONNECTION 'dbname=shop' PUBLICATION p WITH (copy_data = false);
"""


def _block(language: str, start: str = "") -> str:
    """Return the code on the page that begins with these characters."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if block.startswith(start)]
    return str(found)


def _instruction(name: str) -> str:
    """Return the argument of an instruction of the Dockerfile."""
    lines = (_ROOT / "Dockerfile").read_text("utf-8").splitlines()
    return [line for line in lines if line.startswith(f"{name} ")][-1].partition(" ")[2]


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock is not here")
def test_the_line_for_cron_syncs_in_silence(psql: Psql, tmp_path: Path) -> None:
    assert psql("-X", "-q", script=_SETUP).stderr.count("ERROR") == 0
    assignment, line = _block("sh", "REPLCTL_HOME").splitlines()
    assert assignment.startswith("REPLCTL_HOME=")
    command = line.split(maxsplit=5)[5].replace(_INSTALLED, _PROGRAM)
    command = command.replace("/tmp/replctl.lock", str(tmp_path / "lock"))
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, cwd=_ROOT
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "replctl.service"
    unit.write_text(_block("ini").replace(_INSTALLED, sys.executable), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    about = [line for line in done.stderr.splitlines() if "replctl.service" in line]
    assert about == [], done.stderr


def test_the_stateful_set_suits_the_image() -> None:
    found: dict[str, Any] = yaml.safe_load(_block("yaml"))
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert str(pod["securityContext"]["runAsUser"]) == _instruction("USER")
    (port,) = container["ports"]
    assert str(port["containerPort"]) == _instruction("EXPOSE")
    assert port["name"] == container["livenessProbe"]["httpGet"]["port"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    claims = {claim["metadata"]["name"] for claim in found["spec"]["volumeClaimTemplates"]}
    assert mounted == claims | {volume["name"] for volume in pod["volumes"]}
    places = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert places == {"/var/lib/replctl", "/tmp"}


def test_the_docker_commands_suit_the_image(psql: Psql) -> None:
    _build, script, watch = _block("sh", "docker").splitlines()
    assert f"--publish {_instruction('EXPOSE')}:{_instruction('EXPOSE')} " in watch
    for command in (script, watch):
        assert ":/var/lib/replctl " in command
    arguments = script.partition("replctl replctl ")[2].partition(" <")[0].split()
    assert psql(*arguments, script=_SETUP).stdout.splitlines()[-1] == "CREATE SUBSCRIPTION"


def test_the_command_of_airflow_syncs(psql: Psql) -> None:
    assert psql("-X", "-q", script=_SETUP).stderr.count("ERROR") == 0
    (call,) = (node for node in ast.walk(ast.parse(_block("python"))) if isinstance(node, ast.Call))
    arguments = {word.arg: word.value for word in call.keywords}
    command = ast.literal_eval(arguments["bash_command"]).replace(_INSTALLED, _PROGRAM)
    assert set(ast.literal_eval(arguments["env"])) == {"REPLCTL_HOME"}
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, cwd=_ROOT
    )
    assert done.returncode == 0, done.stderr
    assert [item["subscription"] for item in json.loads(done.stdout)] == ["s1"]
