"""What a client over its quota costs others: ``python -m tests.benchmarks.quotas``.

Clients at another address ask in turns beside nobody, beside a client that asks for as much as its quota has, and
beside one that asks for ten times as much. Asked for: the p99 of the others is less than 5 % longer beside ten times
the quota than beside the quota itself, and the p99 of the PING of the client itself is below 20 ms. Each client is a
process of its own; how late the machine wakes one up is told beside it, since no server can be blamed for it.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from tests.benchmarks.processes import machine
from tests.benchmarks.wire_client import (
    ERROR,
    GET_TOPICS_RESPONSE,
    PING,
    PONG,
    command_type,
    connect_frame,
    get_topics_frame,
    ping_frame,
    pong_frame,
)
from tests.support.served import Served

__all__ = ["measure_quotas"]

#: Requests per second that the quota has.
QUOTA: Final = 100
#: How many of the others there are, and what each asks per second.
OTHERS, OTHERS_RATE = 4, 50
LIMITED_ADDRESS, OTHER_ADDRESS = "127.0.0.1", "127.0.0.2"
#: Requests per second of the client with the quota, by round.
ROUNDS: Final = {"nobody": 0, "at its quota": QUOTA, "ten times its quota": 10 * QUOTA}
_QUESTION: Final = get_topics_frame(1, "public/default", "public/default/t1.*")
#: Requests between two PINGs of the client with the quota.
_PING_EVERY: Final = 20


class _Connection:
    """A connection from an address, with whole frames read as they come."""

    def __init__(self, host: str, port: int, source: str) -> None:
        self.socket = socket.create_connection((host, port), source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self.socket.sendall(connect_frame())
        while not self.frames(1.0):
            pass

    def frames(self, timeout: float) -> list[int]:
        """The types of the commands that come within ``timeout`` seconds, if any; PINGs are answered."""
        if select.select([self.socket], [], [], max(timeout, 0))[0]:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._buffer += data
        found = []
        while len(self._buffer) >= 4:
            size = 4 + int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < size:
                break
            kind = command_type(memoryview(bytes(self._buffer[:size])))
            del self._buffer[:size]
            if kind == PING:
                self.socket.sendall(pong_frame())
            else:
                found.append(kind)
        return found


def _ask(host: str, port: int, seconds: float) -> dict[str, Any]:
    """Ask as the others do; the seconds of each answer."""
    connections = [_Connection(host, port, OTHER_ADDRESS) for _ in range(OTHERS)]
    taken: list[float] = []
    late: list[float] = []
    begun = due = time.perf_counter()
    while due < begun + seconds:
        for connection in connections:
            due += 1 / (OTHERS * OTHERS_RATE)
            pause = due - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
                late.append(time.perf_counter() - due)
            sent = time.perf_counter()
            connection.socket.sendall(_QUESTION)
            while not (answers := connection.frames(1.0)):
                pass
            assert answers == [GET_TOPICS_RESPONSE]
            taken.append(time.perf_counter() - sent)
    return {"taken": taken, "late": late}


def _exceed(host: str, port: int, rate: float) -> dict[str, Any]:
    """Ask ``rate`` times a second until the input ends, with PINGs between; the seconds of each PONG."""
    connection = _Connection(host, port, LIMITED_ADDRESS)
    counts = {GET_TOPICS_RESPONSE: 0, ERROR: 0}
    pings: list[float] = []
    pinged: float | None = None
    sent = 0
    begun = time.perf_counter()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        wanted = int((time.perf_counter() - begun) * rate)
        if sent < wanted:
            connection.socket.sendall(_QUESTION)
            sent += 1
            if sent % _PING_EVERY == 0 and pinged is None:
                pinged = time.perf_counter()
                connection.socket.sendall(ping_frame())
        pause = 0.0 if sent < wanted else begun + (sent + 1) / rate - time.perf_counter()
        for kind in connection.frames(pause):
            if kind == PONG:
                assert pinged is not None
                pings.append(time.perf_counter() - pinged)
                pinged = None
            else:
                counts[kind] += 1
    return {"sent": sent, "served": counts[GET_TOPICS_RESPONSE], "refused": counts[ERROR], "pings": pings}


def _round(address: tuple[str, int], rate: float, seconds: float) -> Iterator[dict[str, Any]]:
    """What the others measure, and what the client with the quota does, if there is one."""
    place = [sys.executable, "-m", "tests.benchmarks.quotas", "--play"]
    limited = None
    if rate:
        limited = subprocess.Popen(
            [*place, "exceed", *map(str, address), str(rate)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert limited.stdout is not None
        assert limited.stdout.readline() == "ready\n"
    asked = subprocess.run(
        [*place, "ask", *map(str, address), str(seconds)], stdout=subprocess.PIPE, check=True
    )
    yield json.loads(asked.stdout)
    if limited is not None:
        yield json.loads(limited.communicate("\n", timeout=60)[0])


def measure_quotas(rounds: int, seconds: float) -> dict[str, Any]:
    """Milliseconds of the others' p99 by round, of PONGs, and what became of the requests over the quota."""
    p99: dict[str, list[float]] = {name: [] for name in ROUNDS}
    found: dict[str, Any] = {"sent": 0, "served": 0, "refused": 0}
    pings: list[float] = []
    late: list[float] = []
    with tempfile.TemporaryDirectory(prefix="broker-core-bench-") as folder:
        path = Path(folder) / "topics.sqlite"
        with SqliteCatalog(path) as catalog:
            for number in range(200):
                catalog.create(TopicName.parse(f"persistent://public/default/t{number}"))
        served = Served(Path(folder), {"catalog": {"path": str(path)}})
        with served.config.open("a", encoding="utf-8") as settings:
            settings.write(
                f'[[quotas]]\nname = "limited"\naddresses = ["{LIMITED_ADDRESS}"]\nper = ["address"]\n'
                f'requests = {QUOTA}\nburst = "1s"\n'
            )
        with served:
            for number in range(rounds + 1):  # the first is not counted
                for name, rate in ROUNDS.items():
                    others, *limited = _round(served.address, rate, seconds)
                    if not number:
                        continue
                    p99[name].append(1000 * _at(others["taken"], 0.99))
                    late += others["late"]
                    if rate > QUOTA:
                        for key in found:
                            found[key] += limited[0][key]
                        pings += limited[0]["pings"]
    ratios = [ten / one for one, ten in zip(p99["at its quota"], p99["ten times its quota"], strict=True)]
    return found | {
        "p99_ms": {name: round(statistics.median(each), 3) for name, each in p99.items()},
        "ratio": round(statistics.median(ratios), 3),
        "pings": len(pings),
        "ping_p50_ms": round(1000 * _at(pings, 0.5), 3),
        "ping_p99_ms": round(1000 * _at(pings, 0.99), 3),
        "ping_most_ms": round(1000 * max(pings), 3),
        "late_p99_ms": round(1000 * _at(late, 0.99), 3),
    }


def _at(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each round")
    parser.add_argument("--play", nargs=4, help=argparse.SUPPRESS, metavar=("PART", "HOST", "PORT", "NUMBER"))
    options = parser.parse_args(arguments)
    if options.play:
        part, host, port, number = options.play
        played = _ask if part == "ask" else _exceed
        print(json.dumps(played(host, int(port), float(number))))
        return
    found = measure_quotas(options.rounds, options.seconds)
    print(machine())
    print(json.dumps(found, indent=2))
    print(
        f"p99 of others beside ten times the quota: {found['ratio']:.3f} of that beside the quota (asked: < 1.05)"
    )
    print(f"p99 of PONG: {found['ping_p99_ms']:.2f} ms (asked: < 20 ms)")


if __name__ == "__main__":
    main()
