"""Clients that come back at once, plain and over TLS, beside others that hold a handshake up, while PING is answered.

The clients are in a process of their own.

python -m tests.benchmarks.reconnects JSON     connects as the JSON says, and prints what became of them as JSON
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from broker_core.servers.admission import raise_file_limit
from tests.benchmarks.ping import pinged, pong_figures
from tests.benchmarks.processes import cpu_seconds, resident, resident_peak
from tests.benchmarks.wire_client import CONNECTED, command_type, connect_frame
from tests.support.certificates import Authority
from tests.support.ports import host_and_port
from tests.support.served import Served
from tests.support.tokens import data_url, der, rsa_key, token

__all__ = ["Reconnects", "reconnects", "run_reconnects"]

_GIVE_UP = 120.0
#: The head of a record of 512 bytes, of which a slow client sends one byte after the other.
_RECORD = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class Reconnects:
    """How many clients there are, and where. ``silent`` ones connect to the address of TLS and send nothing, ``slow``
    ones a byte of their first record in each 200 ms, ``halves`` a whole first record and nothing behind it. All others
    authenticate with ``token``, if the server requires tokens.
    """

    plain: int
    tls: int
    silent: int = 0
    slow: int = 0
    halves: int = 0
    address: tuple[str, int] = ("", 0)
    tls_address: tuple[str, int] = ("", 0)
    ca: str = ""
    token: str = ""


def run_reconnects(wanted: Reconnects, folder: Path) -> dict[str, Any]:
    """Let them come to a server of their own, which asks for tokens, with its files in a new ``folder``."""
    folder.mkdir()
    authority = Authority(folder)
    issued = authority.issue("server")
    tls = {"listen": "127.0.0.1:0", "certificate": str(issued.certificate), "key": str(issued.key)}
    catalog = {"path": str(folder / "catalog.sqlite")}
    key = rsa_key()
    secured = {"methods": ["token"], "token": {"key": data_url(der(key))}}
    settings: dict[str, dict[str, Any]] = {
        "pulsar": {"tls": tls},
        "catalog": catalog,
        "authentication": secured,
    }
    with Served(folder / "server", settings) as served:
        placed = replace(
            wanted,
            address=served.address,
            tls_address=host_and_port(served.ready["pulsar+ssl"]),
            ca=str(authority.ca),
            token=token({"sub": "one-of-many"}, key=key).decode(),
        )
        return reconnects(placed, served.pid)


def reconnects(wanted: Reconnects, pid: int) -> dict[str, Any]:
    """Let them all come to the server whose process is ``pid``: seconds until all were connected, by kind; what became
    of them; PING meanwhile; the server's CPU and memory.
    """
    before, cpu = resident(pid), cpu_seconds(pid)
    command = [sys.executable, "-m", "tests.benchmarks.reconnects", json.dumps(asdict(wanted))]
    with pinged(wanted.address, wanted.token) as felt:
        said = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return {
        "outcomes": said["outcomes"],
        "seconds": said["seconds"],
        "cpu": cpu_seconds(pid) - cpu,
        "resident_before": before,
        "resident_peak": resident_peak(pid),
        **pong_figures(felt),
    }


class _Crowd:
    def __init__(self, wanted: Reconnects) -> None:
        self._wanted = wanted
        self._context = ssl.create_default_context(cafile=wanted.ca or None)
        self._context.check_hostname = False
        self._begun = 0.0
        self.outcomes: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}
        self._writers: list[asyncio.StreamWriter] = []

    async def come(self) -> None:
        wanted = self._wanted
        hello = _first_record(self._context)
        holding = [
            asyncio.create_task(self._hold(sent))
            for sent, count in ((b"", wanted.silent), (hello, wanted.halves))
            for _ in range(count)
        ]
        holding += [asyncio.create_task(self._trickle()) for _ in range(wanted.slow)]
        if holding:
            await asyncio.sleep(1.0)  # so that they are there before the others
        self._begun = time.perf_counter()
        await asyncio.gather(
            *(self._connect("plain", wanted.address, None) for _ in range(wanted.plain)),
            *(self._connect("tls", wanted.tls_address, self._context) for _ in range(wanted.tls)),
        )
        for task in holding:
            task.cancel()
        await asyncio.gather(*holding, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    async def _connect(self, kind: str, address: tuple[str, int], context: ssl.SSLContext | None) -> None:
        try:
            async with asyncio.timeout(_GIVE_UP):
                reader, writer = await asyncio.open_connection(
                    *address, ssl=context, ssl_handshake_timeout=_GIVE_UP if context else None
                )
                self._writers.append(writer)
                writer.write(connect_frame(self._wanted.token))
                size = await reader.readexactly(4)
                answer = size + await reader.readexactly(int.from_bytes(size, "big"))
                if command_type(memoryview(answer)) != CONNECTED:
                    raise ConnectionRefusedError("an ERROR in place of CONNECTED")
        except (OSError, EOFError, TimeoutError) as error:
            self.outcomes[f"{kind} {type(error).__name__}"] += 1
        else:
            self.outcomes[kind] += 1
            self.seconds[kind] = time.perf_counter() - self._begun

    async def _hold(self, sent: bytes) -> None:
        while True:  # it comes again when it is closed
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(*self._wanted.tls_address)
                self._writers.append(writer)
                writer.write(sent)
                while await reader.read(65536):
                    pass

    async def _trickle(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(*self._wanted.tls_address)
                self._writers.append(writer)
                for byte in _RECORD:
                    writer.write(bytes([byte]))
                    await asyncio.sleep(_PAUSE)


def _first_record(context: ssl.SSLContext) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def main(text: str) -> None:
    """Connect, and say what became of all."""
    raise_file_limit()
    given: dict[str, Any] = json.loads(text)
    wanted = replace(
        Reconnects(**given), address=tuple(given["address"]), tls_address=tuple(given["tls_address"])
    )
    crowd = _Crowd(wanted)
    asyncio.run(crowd.come())
    print(json.dumps({"outcomes": crowd.outcomes, "seconds": crowd.seconds}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
