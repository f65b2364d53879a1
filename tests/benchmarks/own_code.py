"""Figures of what was written here in the place of a library: ``python -m tests.benchmarks.own_code [--dsn DSN]``.

- Our transport over TLS and asyncio's: memory of a connection that is idle, and of one that has been asked 256 KiB and
  has answered them.
- Our pool of connections to PostgreSQL (with a DSN) and asyncpg's: the time of the least statement, with a connection
  of the pool.

Whatever Python runs it: docs/reference/dependencies.md has the figures of two.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import platform
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import asyncpg

from broker_core.servers.arrival import TlsTransport
from broker_core_postgres.connect.connection_pool import PostgresPool
from broker_core_postgres.connect.libpq.connection_parameters import ConnectionParameters
from broker_core_postgres.connect.session_settings import SessionSettings
from broker_core_postgres.settings import PostgresSettings
from tests.benchmarks.processes import resident
from tests.support.certificates import Authority
from tests.support.narrowed import of_type

__all__ = ["main", "pool_times", "tls_memory"]

_SIZE: Final = 256 * 1024
#: Opens connections, and at each line that it reads sends and receives on all of them.
_CLIENTS: Final = f"""
import socket, ssl, sys
port, count = map(int, sys.argv[1:])
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
clients = [context.wrap_socket(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]
print("open", flush=True)
for line in sys.stdin:
    for client in clients:
        client.sendall(bytes({_SIZE}))
        left = {_SIZE}
        while left:
            left -= len(client.recv(left))
    print("asked", flush=True)
"""


class _Answers(asyncio.Protocol):
    """Answers so many bytes to so many."""

    def __init__(self) -> None:
        self._left = _SIZE

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = of_type(transport, asyncio.Transport)

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if not self._left:
            self._left = _SIZE
            self._transport.write(bytes(_SIZE))


async def _accept_by_ours(listening: socket.socket, context: ssl.SSLContext) -> None:
    """Each connection gets a transport of ours, behind a handshake in a thread."""

    def shaken(plain: socket.socket) -> ssl.SSLSocket:
        plain.setblocking(True)
        sock = context.wrap_socket(plain, server_side=True)
        sock.setblocking(False)
        return sock

    loop = asyncio.get_running_loop()
    while True:
        plain, address = await loop.sock_accept(listening)
        TlsTransport(await asyncio.to_thread(shaken, plain), _Answers(), address)


async def _memory(context: ssl.SSLContext, count: int, *, ours: bool) -> tuple[float, float]:
    with socket.create_server(("127.0.0.1", 0), backlog=count) as listening:
        listening.setblocking(False)
        if ours:
            accepting = asyncio.create_task(_accept_by_ours(listening, context))
        else:
            server = await asyncio.get_running_loop().create_server(_Answers, sock=listening, ssl=context)
            accepting = asyncio.create_task(server.serve_forever())
        before = resident(os.getpid())
        clients = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", _CLIENTS, str(listening.getsockname()[1]), str(count)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert clients.stdin is not None
        assert clients.stdout is not None
        sizes = []
        for word in (b"open\n", b"asked\n"):
            assert await clients.stdout.readline() == word
            gc.collect()
            sizes.append((resident(os.getpid()) - before) / count)
            clients.stdin.write(b"\n")
        clients.kill()
        await clients.wait()
        accepting.cancel()
        await asyncio.gather(accepting, return_exceptions=True)
        return sizes[0], sizes[1]


def tls_memory(count: int) -> dict[str, tuple[float, float]]:
    """Bytes of a connection that is idle, and of one that was asked and has answered, by whose transport it is.

    Each is measured in a process of its own.
    """
    found = {}
    with tempfile.TemporaryDirectory(prefix="broker-core-bench-") as folder:
        issued = Authority(Path(folder)).issue("broker")
        for name in ("ours", "asyncio"):
            command = [
                sys.executable,
                "-m",
                __name__ if __name__ != "__main__" else "tests.benchmarks.own_code",
            ]
            command += ["--only", name, str(issued.certificate), str(issued.key), str(count)]
            said = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
            found[name] = float(said[0]), float(said[1])
    return found


async def pool_times(dsn: str, rounds: int) -> dict[str, float]:
    """Seconds of a statement with a connection of each pool, the median; both are asked in turns."""
    settings = PostgresSettings(dsn=dsn)
    ours = PostgresPool(
        ConnectionParameters.parse(dsn), settings, SessionSettings(settings, application_name="benchmark")
    )
    await ours.start()

    async def with_ours() -> None:
        held = await ours.acquire()
        await held.connection.fetchval("SELECT 1")
        ours.release(held)

    async with asyncpg.create_pool(dsn, min_size=1, max_size=4) as theirs:

        async def with_asyncpg() -> None:
            async with theirs.acquire() as connection:
                await connection.fetchval("SELECT 1")

        taken: dict[str, list[float]] = {"ours": [], "asyncpg": []}
        ways: dict[str, Callable[[], Awaitable[None]]] = {"ours": with_ours, "asyncpg": with_asyncpg}
        for number in range(rounds + 10):
            for name, ask in ways.items():
                begun = time.perf_counter()
                await ask()
                if number >= 10:
                    taken[name].append(time.perf_counter() - begun)
    await ours.close()
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.own_code", description=__doc__)
    parser.add_argument("--connections", type=int, default=400)
    parser.add_argument("--dsn", help="a PostgreSQL server, for the pools")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--only", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.only:
        name, certificate, key, count = options.only
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        print(*asyncio.run(_memory(context, int(count), ours=name == "ours")))
        return
    print(f"Python {platform.python_version()}")
    for name, (idle, asked) in tls_memory(options.connections).items():
        print(f"TLS, {name}: {idle / 1024:.0f} KiB idle, {asked / 1024:.0f} KiB after an answer")
    if options.dsn:
        for name, seconds in asyncio.run(pool_times(options.dsn, options.rounds)).items():
            print(f"a statement with the pool of {name}: {seconds * 1e6:.0f} us")


if __name__ == "__main__":
    main()
