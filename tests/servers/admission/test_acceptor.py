"""Accepting clients without free file descriptors, in a process with a low limit."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from broker_core.servers.admission.acceptor import Acceptor
from tests.support.eventually import eventually


async def test_each_connection_is_handed_on_and_does_not_block() -> None:
    accepted: list[tuple[socket.socket, Any]] = []
    acceptor = Acceptor(lambda *connection: accepted.append(connection), at_once=2)
    address = await acceptor.listen("127.0.0.1", 0)
    clients = [socket.create_connection(address) for _ in range(9)]
    await eventually(lambda: len(accepted) == 9)
    assert {peer for _, peer in accepted} == {client.getsockname() for client in clients}
    assert all(sock.gettimeout() == 0 for sock, _ in accepted)
    acceptor.close()
    acceptor.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    for sock in (*clients, *(sock for sock, _ in accepted)):
        sock.close()


async def test_it_rests_after_a_full_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.servers.admission.acceptor._REST", 3600)
    accepted: list[socket.socket] = []
    acceptor = Acceptor(lambda sock, _peer: accepted.append(sock), at_once=2)
    address = await acceptor.listen("127.0.0.1", 0)
    clients = [socket.create_connection(address) for _ in range(5)]
    await eventually(lambda: len(accepted) == 2)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(accepted) == 2, "the others wait in the kernel"
    acceptor.close()  # also while it rests
    for sock in (*clients, *accepted):
        sock.close()


async def test_a_name_is_all_its_addresses() -> None:
    acceptor = Acceptor(lambda sock, _peer: sock.close(), at_once=1)
    await acceptor.listen("localhost", 0)
    names = {sock.getsockname()[0] for sock in acceptor.sockets}
    assert "127.0.0.1" in names or "::1" in names
    for sock in acceptor.sockets:
        with socket.create_connection(sock.getsockname()[:2]):
            pass
    await asyncio.sleep(0)
    acceptor.close()


async def test_an_address_that_is_taken_or_not_ours() -> None:
    first = Acceptor(lambda *_: None, at_once=1)
    second = Acceptor(lambda *_: None, at_once=1)
    address = await first.listen("127.0.0.1", 0)
    with pytest.raises(OSError, match="Address already in use"):
        await second.listen(*address)
    assert not second.sockets
    with pytest.raises(OSError, match="Cannot assign"):
        await second.listen("203.0.113.1", 0)
    with pytest.raises(socket.gaierror):
        await second.listen("nowhere.invalid", 0)
    first.close()


def test_without_descriptors_it_pauses_quietly_and_goes_on() -> None:
    program = textwrap.dedent(
        """
        import asyncio, os, resource, socket
        from structlog.testing import capture_logs
        from broker_core.servers.admission.acceptor import Acceptor

        async def main():
            accepted, pauses = [], []
            acceptor = Acceptor(lambda sock, peer: accepted.append(sock), at_once=64, on_pause=lambda: pauses.append(1))
            accept, calls = acceptor._accept, []
            acceptor._accept = lambda listening: (calls.append(1), accept(listening))
            address = await acceptor.listen("127.0.0.1", 0)
            clients = [socket.create_connection(address) for _ in range(8)]
            held = []
            while True:
                try:
                    held.append(os.open(os.devnull, os.O_RDONLY))
                except OSError:
                    break
            os.close(held.pop())
            os.close(held.pop())
            while len(pauses) < 3:
                await asyncio.sleep(0.01)
            assert len(accepted) == 2, len(accepted)
            calls.clear()
            pauses.clear()
            while len(pauses) < 3:
                await asyncio.sleep(0.01)
            assert len(calls) == len(pauses), "it does not look in between"
            for each in held:
                os.close(each)
            while len(accepted) < 8:
                await asyncio.sleep(0.01)
            # In the midst of a pause, too.
            acceptor.close()
            for sock in (*clients, *accepted):
                sock.close()

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        with capture_logs() as logs:
            asyncio.run(main())
        assert 3 <= len(logs) < 100, len(logs)
        assert all("exc_info" not in line for line in logs)
        print("well")
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("well\n", "")
