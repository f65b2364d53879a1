from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.cli.serving import ready_line
from broker_core.client import LookupClient
from tests.support.eventually import eventually_sync
from tests.support.lines import ProgramLines

COMMAND = [sys.executable, "-m", "broker_core.cli"]


class Server:
    """`broker-core serve` as a process."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", *arguments], stdout=subprocess.PIPE, stderr=log, cwd=folder
            )
        self.lines = ProgramLines(self.process)

    def ready(self) -> dict[str, str]:
        """The addresses of the line `ready`."""
        line = self.lines.wait_for(lambda said: said.startswith("ready "), 60, what="ready")
        return dict(pair.split("=", 1) for pair in line.split()[1:])

    def end(self) -> int:
        """Wait for the end; the exit code."""
        return self.process.wait(60)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()


def _started(servers: list[Server], folder: Path, *arguments: str) -> Server:
    server = Server(folder, *arguments)
    servers.append(server)
    return server


def test_the_line_ready() -> None:
    assert ready_line({"pulsar": ("127.0.0.1", 6650), "http": ("::1", 8080)}) == (
        "ready pulsar=127.0.0.1:6650 http=[::1]:8080"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_ready_once_and_drains_on_a_signal(
    servers: list[Server], tmp_path: Path, number: signal.Signals
) -> None:
    server = _started(servers, tmp_path, "--pulsar", "127.0.0.1:0", "--http", "127.0.0.1:0")
    ready = server.ready()
    assert list(ready) == ["pulsar", "http"]

    async def ask() -> int:
        async with LookupClient(f"pulsar://{ready['pulsar']}") as client:
            return len(await client.get_topics("public/default"))

    assert asyncio.run(ask()) == 0
    for path in ("/-/ready", "/metrics"):
        with urllib.request.urlopen(f"http://{ready['http']}{path}", timeout=60) as answer:
            assert answer.status == 200
    server.process.send_signal(number)
    assert server.end() == 0
    assert len(server.lines.all()) == 1
    log = server.log.read_text()
    assert '"stopped"' in log
    assert "Traceback" not in log


def test_without_the_table_there_is_no_http(servers: list[Server], tmp_path: Path) -> None:
    server = _started(servers, tmp_path, "--pulsar", "127.0.0.1:0")
    assert list(server.ready()) == ["pulsar"]
    server.process.terminate()
    assert server.end() == 0


PLUGIN_THAT_HANGS = """
import asyncio
from broker_core import hookimpl

@hookimpl
async def broker_core_list_topics(request):
    print("ready asked", flush=True)
    await asyncio.sleep(60)

@hookimpl
async def broker_core_startup(broker, settings):
    if {in_startup}:
        print("ready starting", flush=True)
        await asyncio.sleep(60)
"""


def _with_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> str:
    site = tmp_path / "site"
    metadata = site / "hangs-1.dist-info"
    metadata.mkdir(parents=True)
    (site / "hangs.py").write_text(source)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hangs\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[broker_core]\nhangs = hangs\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    config = tmp_path / "f.toml"
    config.write_text(
        '[pulsar]\nlisten = "127.0.0.1:0"\ndrain_timeout = "50s"\n'
        '[plugins]\nenabled = ["hangs"]\n[plugins.hangs]\ndeadline = "40s"\n'
    )
    return str(config)


def test_a_second_signal_ends_it_at_once(
    servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _with_plugin(tmp_path, monkeypatch, PLUGIN_THAT_HANGS.format(in_startup=False))
    server = _started(servers, tmp_path, "--config", config)
    url = f"pulsar://{server.ready()['pulsar']}"
    asking = subprocess.Popen([*COMMAND, "list", "a/b", "--url", url], stderr=subprocess.PIPE)
    server.lines.wait_for(lambda said: said == "ready asked", 60, what="the plugin asked")
    server.process.terminate()
    eventually_sync(lambda: "stopping" in server.log.read_text(), 30, what="draining")
    assert server.process.poll() is None
    server.process.terminate()
    assert server.end() == 128 + signal.SIGTERM
    assert asking.wait(30) == 1
    assert asking.stderr is not None
    with asking.stderr as said:
        assert said.read().startswith(b"broker-core: ")


def test_a_signal_during_the_start_ends_it(
    servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _with_plugin(tmp_path, monkeypatch, PLUGIN_THAT_HANGS.format(in_startup=True))
    server = _started(servers, tmp_path, "--config", config)
    server.lines.wait_for(lambda said: said == "ready starting", 60, what="the plugin starting")
    os.kill(server.process.pid, signal.SIGTERM)
    assert server.end() == 0


PLUGIN_THAT_IS_STUCK = """
import asyncio, threading
from broker_core import hookimpl

@hookimpl
async def broker_core_startup(broker, settings):
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
"""


def test_a_thread_that_never_ends_does_not_hold_the_process(
    servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _with_plugin(tmp_path, monkeypatch, PLUGIN_THAT_IS_STUCK)
    server = _started(servers, tmp_path, "--config", config)
    server.ready()
    server.process.terminate()
    assert server.end() == 0
    assert "leaving threads behind" in server.log.read_text()
