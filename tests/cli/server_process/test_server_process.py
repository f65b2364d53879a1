from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from broker_core.cli.server_process.server_process import ready_line
from broker_core.client import LookupSession
from broker_core.errors import ServerError
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameDecoder
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.cli.server_process.serving import COMMAND, Server, started
from tests.support.eventually import eventually_sync
from tests.support.files import file_with
from tests.support.forked_programs import forked_program


def test_the_line_ready() -> None:
    assert ready_line({"pulsar": ("127.0.0.1", 6650), "http": ("::1", 8080)}) == (
        "ready pulsar=127.0.0.1:6650 http=[::1]:8080"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_ready_once_and_drains_on_a_signal(
    servers: list[Server], tmp_path: Path, number: signal.Signals
) -> None:
    arguments = ["--pulsar", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    server = started(servers, tmp_path, *arguments, command=COMMAND if number is signal.SIGTERM else None)
    ready = server.ready()
    assert list(ready) == ["pulsar", "http"]

    async def ask() -> int:
        async with LookupSession(f"pulsar://{ready['pulsar']}") as client:
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
    server = started(servers, tmp_path, "--pulsar", "127.0.0.1:0")
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
    config = file_with(
        tmp_path / "f.toml",
        '[pulsar]\nlisten = "127.0.0.1:0"\ndrain_timeout = "50s"\n'
        '[plugins]\nenabled = ["hangs"]\n[plugins.hangs]\ndeadline = "40s"\n',
    )
    return str(config)


def test_a_second_signal_ends_it_at_once(
    servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _with_plugin(tmp_path, monkeypatch, PLUGIN_THAT_HANGS.format(in_startup=False))
    server = started(servers, tmp_path, "--config", config)
    url = f"pulsar://{server.ready()['pulsar']}"
    asking = subprocess.Popen(
        [forked_program("broker-core"), "list", "a/b", "--url", url], stderr=subprocess.PIPE
    )
    server.lines.wait_for(lambda said: said == "ready asked", 60, what="the plugin asked")
    server.process.terminate()
    eventually_sync(lambda: "stopping" in server.log.read_text(), 30, what="draining")
    assert server.process.poll() is None
    server.process.terminate()
    assert server.end() == 128 + signal.SIGTERM
    assert asking.wait(60) == 1
    assert asking.stderr is not None
    with asking.stderr as said:
        assert said.read().startswith(b"broker-core: ")


def test_a_signal_during_the_start_ends_it(
    servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _with_plugin(tmp_path, monkeypatch, PLUGIN_THAT_HANGS.format(in_startup=True))
    server = started(servers, tmp_path, "--config", config)
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
    server = started(servers, tmp_path, "--config", config)
    server.ready()
    server.process.terminate()
    assert server.end() == 0
    assert "leaving threads behind" in server.log.read_text()


# -- a log that nobody reads --------------------------------------------------------------------------------------

PLUGIN_THAT_TALKS = """
import logging, sys
import structlog
from broker_core import hookimpl

@hookimpl
async def broker_core_list_topics(request):
    for number in range({lines}):
        structlog.get_logger("talks").info("said by structlog", number=number)
        logging.getLogger("talks").warning("said by logging %d", number)
        print("printed", number, file=sys.stderr)
        print("put out", number)
"""


class Unread:
    """A server whose standard error (and, from the line `ready` on, standard output) nobody reads."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._output, into = os.pipe()
        self._errors, errors = os.pipe()
        for pipe in (into, errors):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
        options = ["--pulsar", "127.0.0.1:0", "--http", "127.0.0.1:0", *arguments]
        command = [forked_program("broker-core"), "serve", *options]
        self.process = subprocess.Popen(command, stdout=into, stderr=errors, cwd=folder)
        os.close(into)
        os.close(errors)
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self._output, 1)
        pairs = dict(pair.split("=", 1) for pair in line.decode().split()[1:])
        host, _, port = pairs["pulsar"].rpartition(":")
        self.address, self.http = (host, int(port)), pairs["http"]

    def sample(self, name: str) -> float:
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(name)))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._output)
        os.close(self._errors)


def _bad_frames(address: tuple[str, int], count: int) -> None:
    """Connections that each send a frame that is none, until the server closes them."""
    for _ in range(count):
        with socket.create_connection(address, timeout=60) as sock:
            sock.sendall(b"\xff" * 16)
            try:
                assert sock.recv(1) == b""
            except ConnectionResetError:
                pass


def test_bad_frames_and_a_log_that_nobody_reads_stop_nobody(tmp_path: Path) -> None:
    with contextlib.closing(Unread(tmp_path, "--debug")) as server:
        with socket.create_connection(server.address, timeout=60) as other:
            _bad_frames(server.address, 300)
            other.sendall(commands.ping())
            assert FrameDecoder(1 << 20).feed(other.recv(100))
        closed = 'broker_core_connections_closed_total{reason="bad_frame"}'
        eventually_sync(lambda: server.sample(closed) == 300, what="all are counted")
        # All but the first of each five seconds, and its count.
        assert 250 < server.sample('broker_core_log_dropped_total{reason="rate"}') <= 299
        server.process.terminate()
        assert server.process.wait(60) == 0


def test_a_plugin_that_talks_to_nobody_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = _with_plugin(tmp_path, monkeypatch, PLUGIN_THAT_TALKS.format(lines=100))
    with contextlib.closing(Unread(tmp_path, "--config", config)) as server:

        async def ask() -> None:
            async with LookupSession("pulsar://{}:{}".format(*server.address)) as client:
                for number in range(200):
                    await client.get_topics("public/default", pattern=f"public/default/{number}")

        asyncio.run(ask())
        assert server.sample('broker_core_log_dropped_total{reason="full"}') > 1000
        server.process.terminate()
        assert server.process.wait(60) == 0


def test_lines_that_somebody_reads_are_all_there(
    servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _with_plugin(tmp_path, monkeypatch, PLUGIN_THAT_TALKS.format(lines=1000))
    server = started(servers, tmp_path, "--config", config, "--http", "127.0.0.1:0")
    ready = server.ready()
    host, _, port = ready["pulsar"].rpartition(":")
    _bad_frames((host, int(port)), 100)

    async def ask() -> None:
        async with LookupSession(f"pulsar://{ready['pulsar']}") as client:
            await client.get_topics("public/default")

    asyncio.run(ask())
    server.process.terminate()
    assert server.end() == 0
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    events = [line["event"] for line in lines]
    assert [line["number"] for line in lines if line["event"] == "said by structlog"] == [*range(1000)]
    assert [event for event in events if event.startswith("said by logging")] == [
        f"said by logging {number}" for number in range(1000)
    ]
    assert [event for event in events if event.startswith("printed")] == [
        f"printed {number}" for number in range(1000)
    ]
    assert [line for line in server.lines.all() if line.startswith("put out")] == [
        f"put out {number}" for number in range(1000)
    ]
    bad = [line for line in lines if line["event"] == "bad frame"]
    assert sum(line.get("repeats", 1) for line in bad) == 100
    assert len(bad) < 20


# -- descriptors ----------------------------------------------------------------------------------------------------


def test_more_clients_than_descriptors_stop_nobody_inside(
    servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_CORE_PULSAR__KEEP_ALIVE", "1h")  # no PING comes before the answers
    limited = ["bash", "-c", 'ulimit -n 80; exec "$0" "$@"', *COMMAND]
    server = Server(tmp_path, "--pulsar", "127.0.0.1:0", "--http", "127.0.0.1:0", command=limited)
    servers.append(server)
    ready = server.ready()
    host, _, port = ready["pulsar"].rpartition(":")
    clients = [socket.create_connection((host, int(port)), timeout=60) for _ in range(120)]
    web_host, _, web_port = ready["http"].rpartition(":")
    idle = [socket.create_connection((web_host, int(web_port)), timeout=60) for _ in range(200)]
    inside: list[socket.socket] = []
    refused = 0
    for client in clients:
        client.sendall(commands.connect("Pulsar-Java-v4.2.4"))
    for client in clients:
        (frame,) = FrameDecoder(1 << 20).feed(client.recv(4096))
        answer = commands.decode(frame)
        if answer.type == BaseCommand.CONNECTED:
            inside.append(client)
        else:
            assert answer.error.error == ServerError.NotAllowedError
            refused += 1
    assert 20 <= len(inside) <= 60
    assert [_status(ready["http"], path)[0] for path in ("/-/live", "/-/ready")] == [200, 200]
    _, body = _status(ready["http"], "/metrics")
    assert f'connections_refused_total{{reason="connections"}} {refused}.0' in body
    for number, client in enumerate(inside):
        client.sendall(commands.get_topics(number, "public/default"))
        (frame,) = FrameDecoder(1 << 20).feed(client.recv(4096))
        assert commands.decode(frame).type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
    for sock in (*clients, *idle):
        sock.close()
    server.process.terminate()
    assert server.end() == 0
    log = server.log.read_text()
    assert len(log.splitlines()) < 50
    assert "Traceback" not in log


# -- reloading, draining, systemd -------------------------------------------------------------------------------------


def _status(address: str, path: str = "/-/ready") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_it_ends_by_itself_after_the_delay(servers: list[Server], tmp_path: Path) -> None:
    config = file_with(tmp_path / "f.toml", '[pulsar]\nlisten = "127.0.0.1:0"\ndrain_delay = 1\n')
    server = started(servers, tmp_path, "--config", str(config))
    server.ready()
    begun = time.monotonic()
    server.process.terminate()
    assert server.end() == 0
    assert time.monotonic() - begun >= 1


def test_clients_are_served_in_the_delay(servers: list[Server], tmp_path: Path) -> None:
    config = file_with(
        tmp_path / "f.toml",
        '[pulsar]\nlisten = "127.0.0.1:0"\ndrain_delay = 600\n[http]\nlisten = "127.0.0.1:0"\n',
    )
    server = started(servers, tmp_path, "--config", str(config))
    ready = server.ready()
    assert _status(ready["http"])[0] == 200
    server.process.terminate()
    eventually_sync(lambda: _status(ready["http"])[0] == 503, what="it is not ready")
    assert _status(ready["http"]) == (503, '{"status":"draining"}\n')
    assert _status(ready["http"], "/-/live")[0] == 200

    async def ask() -> int:
        async with LookupSession(f"pulsar://{ready['pulsar']}") as client:
            return len(await client.get_topics("public/default"))

    assert asyncio.run(ask()) == 0
    server.process.terminate()  # somebody is impatient
    assert server.end() == 128 + signal.SIGTERM


def test_systemd_is_told_from_the_start_to_the_end(
    servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)

        def told(wanted: str) -> dict[str, str]:
            while True:
                said = dict(line.split("=", 1) for line in manager.recv(4096).decode().split("\n"))
                if wanted in said:
                    return said
                assert said == {"WATCHDOG": "1"}

        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "100000")
        server = started(servers, tmp_path, "--pulsar", "127.0.0.1:0")
        ready = server.ready()
        assert told("READY")["STATUS"] == f"ready pulsar={ready['pulsar']}"
        assert told("WATCHDOG") == {"WATCHDOG": "1"}
        server.process.send_signal(signal.SIGHUP)
        assert int(told("RELOADING")["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
        assert told("READY")["READY"] == "1"
        server.process.terminate()
        assert told("STOPPING")["STOPPING"] == "1"
        assert server.end() == 0
