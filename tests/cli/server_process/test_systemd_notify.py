"""Notifications to systemd, over a real socket of each kind."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker_core.cli.server_process.systemd_notify import ServiceManager
from tests.support.eventually import eventually


@pytest.fixture(params=["file", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """An address as in NOTIFY_SOCKET, and the socket that listens there."""
    address = str(tmp_path / "notify") if request.param == "file" else f"@broker-core-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(address.replace("@", "\0", 1))
        sock.settimeout(60)
        yield address, sock


def told(sock: socket.socket) -> dict[str, str]:
    return dict(line.split("=", 1) for line in sock.recv(4096).decode().split("\n"))


def test_each_state_is_one_datagram(manager: tuple[str, socket.socket]) -> None:
    address, sock = manager
    systemd = ServiceManager.of({"NOTIFY_SOCKET": address})
    systemd.ready("ready pulsar=127.0.0.1:6650\nMAINPID=1")
    assert told(sock) == {"READY": "1", "STATUS": "ready pulsar=127.0.0.1:6650 MAINPID=1"}
    before = time.monotonic_ns() // 1000
    systemd.reloading()
    said = told(sock)
    assert said["RELOADING"] == "1"
    assert before <= int(said["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    systemd.stopping("draining")
    assert told(sock) == {"STOPPING": "1", "STATUS": "draining"}


async def test_the_watchdog_hears_of_a_loop_that_turns(manager: tuple[str, socket.socket]) -> None:
    address, sock = manager
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())}
    systemd = ServiceManager.of(environment | {})
    assert systemd.interval == 0.01
    alive = asyncio.create_task(systemd.keep_alive())
    sock.setblocking(False)
    heard: list[dict[str, str]] = []

    def three() -> bool:
        try:
            heard.append(told(sock))
        except BlockingIOError:
            pass
        return len(heard) == 3

    await eventually(three)
    assert heard == [{"WATCHDOG": "1"}] * 3
    alive.cancel()
    await asyncio.gather(alive, return_exceptions=True)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},
    ],
)
async def test_without_a_watchdog_for_us_nothing_is_sent(variables: dict[str, str]) -> None:
    systemd = ServiceManager.of({"NOTIFY_SOCKET": "@nobody", **variables})
    assert systemd.interval is None
    await systemd.keep_alive()


def test_the_variables_are_not_for_programs_that_are_started_here() -> None:
    environment = {"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "2", "HOME": "/"}
    ServiceManager.of(environment)
    assert environment == {"HOME": "/"}


def test_without_a_manager_nobody_is_told() -> None:
    with capture_logs() as logs:
        for address in (None, ""):
            systemd = ServiceManager.of({} if address is None else {"NOTIFY_SOCKET": address})
            systemd.ready("x")
            systemd.stopping("x")
    assert not logs


def test_a_manager_that_is_gone_or_does_not_listen_is_a_line(tmp_path: Path) -> None:
    with capture_logs() as logs:
        ServiceManager(str(tmp_path / "absent")).ready("x")
    assert [line["event"] for line in logs] == ["the service manager cannot be notified"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "full"))
        deaf = ServiceManager(str(tmp_path / "full"))
        with capture_logs() as logs:
            for _ in range(10_000):  # its queue is full after some; nobody waits
                deaf.ready("x")
        assert logs
