"""The Dockerfile: the command and the user of its image, and its health check."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from replctl.psql.subcommand import Subcommand, parse_subcommand

_ROOT = Path(__file__).parents[2]
#: Instructions, each on one line.
_INSTRUCTIONS = (_ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()


def _last(name: str) -> str:
    """Return the argument of the last instruction with a name."""
    return [line for line in _INSTRUCTIONS if line.startswith(f"{name} ")][-1].partition(" ")[2]


def _health_command() -> list[str]:
    return list(json.loads(_last("HEALTHCHECK").partition("CMD ")[2]))


class _Metrics(BaseHTTPRequestHandler):
    code = 200

    def do_GET(self) -> None:
        self.send_response(self.code if self.path == "/metrics" else 404)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        pass


def test_the_image_watches_as_a_user_without_rights() -> None:
    assert json.loads(_last("ENTRYPOINT")) == ["replctl"]
    name, *arguments = json.loads(_last("CMD"))
    parsed = parse_subcommand(name, arguments)
    assert isinstance(parsed, Subcommand)
    assert parsed.options.keeps_running
    user = _INSTRUCTIONS.index(f"USER {_last('USER')}")
    assert int(_last("USER")) > 0
    assert not any(line.startswith(("RUN", "COPY", "FROM")) for line in _INSTRUCTIONS[user:])
    assert f"useradd --uid {_last('USER')} " in _last("RUN")  # Java needs a passwd entry
    port = arguments[arguments.index("--metrics-port") + 1]
    assert _last("EXPOSE") == port
    assert f":{port}/" in _health_command()[-1]


@pytest.mark.parametrize(("code", "is_healthy"), [(200, True), (500, False), (None, False)])
def test_its_health(code: int | None, is_healthy: bool) -> None:
    handler = type("Handler", (_Metrics,), {"code": code})
    server = HTTPServer(("127.0.0.1", 0), handler)
    port = server.server_address[1]
    if code is None:
        server.server_close()
    else:
        threading.Thread(target=server.handle_request).start()
    program, *arguments = _health_command()
    assert program == "python"
    arguments[-1] = re.sub(r":\d+/", f":{port}/", arguments[-1])
    answer = subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
    server.server_close()
    assert (answer.returncode == 0) is is_healthy


def test_what_the_image_is_built_of(tmp_path: Path) -> None:
    """pip builds a wheel from the files that .dockerignore includes."""
    for line in (_ROOT / ".dockerignore").read_text("utf-8").splitlines():
        if line.startswith("!"):
            source, target = _ROOT / line[1:], tmp_path / "src" / line[1:]
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir(exist_ok=True)
                shutil.copy(source, target)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    answer = subprocess.run(
        [*build, tmp_path, tmp_path / "src"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    (wheel,) = tmp_path.glob("replctl-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"replctl/__main__.py", "replctl/grammar/replctl.lark"} <= set(names)
