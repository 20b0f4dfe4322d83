"""The files by which processes find a server: broken files, and servers of other containers.

The tests need no Spark: a process that holds the server's lock takes the place of the server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replctl.errors import ObjectInUse
from replctl.own_command import own_command
from replctl.spark import Server, ServerConf, attach_server, find_server, start_server, stop_server
from replctl.spark import server as servers
from replctl.spark.container import network_namespace, process_namespace
from replctl.spark.server import _Folder

_HOLDS = """
import sys, time
from pathlib import Path
from replctl.file_lock import locked
with locked(Path(sys.argv[1]), 60):
    print("locked", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that holds the lock of the server of the cluster in tmp_path, which names
    it.
    """
    folder = _Folder(tmp_path)
    folder.path.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(folder.lock)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    folder.write(Server(process.pid, process.pid, 1, "t", "", str(folder.log), ServerConf()))
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("kind", ["process_namespace", "network_namespace"])
def test_a_server_of_another_container_is_left_alone(
    tmp_path: Path,
    supervisor: subprocess.Popen[str],
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(servers, kind, lambda: "another")
        for command in (stop_server, lambda place: start_server(place, ServerConf())):
            with pytest.raises(ObjectInUse, match="runs in another container") as caught:
                command(tmp_path)
            stop = own_command("spark", "stop", home=tmp_path)
            assert caught.value.hint == f'Use "{stop}" there.'
        attached = attach_server(tmp_path)
        assert (attached is None) == (kind == "network_namespace")
        assert find_server(tmp_path) is not None
    assert supervisor.poll() is None
    # The HINT is followed: this is the server's container
    stopped = stop_server(tmp_path)
    assert stopped is not None
    assert stopped.pid == supervisor.pid
    assert supervisor.wait(30) == -15


def test_a_server_that_ends_while_it_is_stopped(
    tmp_path: Path, supervisor: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kill = os.kill

    def end_first(pid: int, number: int) -> None:
        kill(supervisor.pid, signal.SIGKILL)
        supervisor.wait()
        kill(pid, number)

    monkeypatch.setattr(servers.os, "kill", end_first)  # type: ignore[attr-defined]
    stopped = stop_server(tmp_path)
    assert stopped is not None
    assert stopped.pid == supervisor.pid


def test_a_container_has_its_own_name() -> None:
    program = (
        "from replctl.spark.container import network_namespace, process_namespace\n"
        "print(process_namespace(), network_namespace(), sep='\\n')"
    )
    command = ["unshare", "--fork", "--pid", "--net", sys.executable, "-c", program]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not make namespaces")
    processes, network = ended.stdout.splitlines()
    assert processes.split()[0] == process_namespace().split()[0]
    assert processes != process_namespace()
    assert network != network_namespace()


@pytest.mark.parametrize("content", ["", "{", "null", "[]", "{}", '{"conf": {"properties": [1]}}'])
def test_a_broken_description_is_no_server(tmp_path: Path, content: str) -> None:
    folder = _Folder(tmp_path)
    folder.path.mkdir()
    folder.description.write_text(content)
    assert attach_server(tmp_path) is None
    assert find_server(tmp_path) is None
    assert stop_server(tmp_path) is None
    assert not folder.description.exists()


def test_a_description_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _Folder(tmp_path)
    folder.path.mkdir()
    sizes: list[int] = []

    def fsync(descriptor: int) -> None:
        assert not folder.description.exists()
        sizes.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "fsync", fsync)
    folder.write(Server(1, 2, 3, "t", "", str(folder.log), ServerConf()))
    assert sizes == [folder.description.stat().st_size]
