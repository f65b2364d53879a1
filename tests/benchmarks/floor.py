"""The cost of the client and the loopback socket alone: a process that sends the same bytes for everything.

python -m tests.benchmarks.floor BYTES    prints its port, answers one connection until it is closed
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.benchmarks.measure import latency
from tests.benchmarks.wire_client import CONNECTED, GET_TOPICS_RESPONSE, RawClient, get_topics_frame
from tests.support.narrowed import present

__all__ = ["floor", "floor_client"]


def floor(size: int) -> float:
    """Seconds (p50) until a frame of ``size`` bytes that was ready beforehand has been read."""
    with floor_client(size) as client:
        frame = get_topics_frame(1, "a/b")
        for _ in range(3):
            client.ask(frame)
        return latency(client, lambda _turn: frame, turns=range(2_000), budget=1.0, at_least=5).p50


@contextmanager
def floor_client(size: int) -> Iterator[RawClient]:
    """A client of a process that answers everything with a frame of ``size`` bytes, which it has ready."""
    command = [sys.executable, "-m", "tests.benchmarks.floor", str(size)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        contextlib.closing(
            RawClient(("127.0.0.1", int(present(server.stdout).readline())), size + 65_536)
        ) as client,
    ):
        yield client


def _answer(size: int) -> None:
    # Bytes that are written to: those of a new array are all one page of zeros, which never leaves the cache.
    frame = bytearray(b"\1") * size
    struct.pack_into(">IIBB", frame, 0, size - 4, size - 8, 8, GET_TOPICS_RESPONSE)
    connected = struct.pack(">IIBB", 6, 2, 8, CONNECTED)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        connection, _ = listening.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.recv(1 << 16)
            connection.sendall(connected)
            while connection.recv(1 << 16):
                connection.sendall(frame)


if __name__ == "__main__":
    _answer(int(sys.argv[1]))
