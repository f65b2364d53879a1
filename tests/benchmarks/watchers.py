"""Watchers: what changes cost the server, how late updates are, and what idle watchers take: ``make bench-watch``.

Each watcher has a connection of its own, which is there before it. The topics are made over HTTP, so that the server's
CPU time has the writes in it. ``--patterns`` is how many questions the watchers have; each change is of one of them.

*Idle* is with each watcher asking once a minute, with its hash, whether it has all topics, as Java does. *PING* is the
same with a PING in place of the question: what a connection costs of which nothing is asked but whether it is there.
The server itself sends none (``keep_alive``). At the end 1,000 topics of one question come at once, as the
partitions of one.

Below the table is what is asked of these figures, each of its own scene: ``--watchers 2000`` (50 changes a second of 40
questions), ``--watchers 10000`` (idle), ``--patterns 2000``, and ``--watchers 200 --topics 1000000 --rate 5``.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from broker_core.catalog import Edit, SqliteCatalog, creation
from broker_core.names import NamespaceName, TopicName
from broker_core.wire.pulsar import BaseCommand, FrameDecoder, commands
from tests.benchmarks.processes import cpu_seconds, machine, resident
from tests.support.eventually import eventually
from tests.support.ports import free_ports
from tests.support.served import Served

__all__ = ["Result", "main", "measure"]

_NAMESPACE: Final = NamespaceName("bench", "watch")
_BASE: Final = f"persistent://{_NAMESPACE}/"
#: Watchers that are opened at a time.
_AT_ONCE: Final = 50
#: Topics that come at once.
_BURST: Final = 1000


@dataclass(slots=True)
class _Told:
    """The times at which each watcher of a question was notified of each change."""

    at: dict[str, list[float]] = field(default_factory=dict)
    hashes: dict[int, str] = field(default_factory=dict)


class _Watcher(asyncio.Protocol):
    """One watcher; it answers PING, and does nothing else of itself."""

    def __init__(self, number: int, pattern: str, told: _Told) -> None:
        self._decoder = FrameDecoder(1 << 31)
        self._number, self._pattern, self._told = number, pattern, told
        loop = asyncio.get_running_loop()
        self.connected: asyncio.Future[None] = loop.create_future()
        self.opened: asyncio.Future[None] = loop.create_future()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(commands.connect("Pulsar-Java-v4.2.4"))

    def watch(self) -> None:
        """Begin to watch."""
        self.transport.write(commands.watch_topics(1, 0, str(_NAMESPACE), self._pattern))

    def ping(self) -> None:
        """Ask whether the server is there."""
        self.transport.write(commands.ping())

    def reconcile(self) -> None:
        """Ask whether it has all topics, as Java does each period."""
        known = self._told.hashes[self._number]
        self.transport.write(commands.watch_topics(2, 0, str(_NAMESPACE), self._pattern, known))

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        for frame in self._decoder.feed(data):
            command = commands.decode(frame)
            if command.type == BaseCommand.CONNECTED:
                self.connected.set_result(None)
            elif command.type == BaseCommand.WATCH_TOPIC_LIST_SUCCESS:
                self._told.hashes[self._number] = command.watchTopicListSuccess.topics_hash
                if not self.opened.done():
                    self.opened.set_result(None)
            elif command.type == BaseCommand.WATCH_TOPIC_UPDATE:
                body = command.watchTopicUpdate
                self._told.hashes[self._number] = body.topics_hash
                for name in (*body.new_topics, *body.deleted_topics):
                    self._told.at.setdefault(name, []).append(now)
            elif command.type == BaseCommand.PING:
                self.transport.write(commands.pong())
            elif command.type == BaseCommand.ERROR and not self.opened.done():
                self.opened.set_exception(RuntimeError(command.error.message))


class _Writer(threading.Thread):
    """Makes topics over HTTP, so many a second; when each was asked for is in ``begun``."""

    def __init__(self, address: tuple[str, int], names: Sequence[str], rate: float) -> None:
        super().__init__(daemon=True)
        self._address, self._names, self._rate = address, names, rate
        self.begun: dict[str, float] = {}

    def run(self) -> None:
        connection = http.client.HTTPConnection(*self._address)
        start = time.perf_counter()
        for number, name in enumerate(self._names):
            time.sleep(max(0.0, start + number / self._rate - time.perf_counter()))
            self.begun[_BASE + name] = time.perf_counter()
            connection.request("PUT", f"/admin/v2/persistent/{_NAMESPACE}/{name}")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 204:
                raise RuntimeError(f"{name}: {answer.status}")
        connection.close()


@dataclass(frozen=True, slots=True)
class Result:
    """Times are in seconds, shares of one core. ``connection`` is the bytes of one, ``resident`` those of a watcher
    beside it; ``change`` is the CPU time of one change: its write over HTTP, and the updates of all. What the server
    takes without changes, with the PINGs that are measured beside them, is not in it."""

    watchers: int
    patterns: int
    topics: int
    changes: int
    updates: int
    median: float
    p99: float
    longest: float
    busy: float
    idle: float
    pings: float
    change: float
    connection: int
    resident: int
    ping_p99: float
    burst: float
    are_equal: bool

    def asked(self) -> list[tuple[str, float, float]]:
        """What is asked of this scene: a figure, its value, and the most that it may be."""
        figures: list[tuple[str, float, float]] = [
            ("bytes of a watcher beside its connection", self.resident, 4096),
            ("ms to a PONG, p99", 1000 * self.ping_p99, 20),
            ("ms until all have 1,000 topics that came at once", 1000 * self.burst, 1000),
        ]
        if self.patterns == self.watchers > 1:
            figures.append(
                ("ms until an update of a question of its own, at the most", 1000 * self.longest, 5000)
            )
        else:
            figures.append(("ms until an update, p99", 1000 * self.p99, 200))
        if self.watchers <= 2000 and self.topics <= 10_000:
            figures.append(("% of a core with the writes", 100 * self.busy, 25))
        if self.watchers <= 10_000:
            figures.append(("% of a core that see no change", 100 * self.idle, 1))
        if self.topics >= 1_000_000:
            figures.append(("ms of CPU of a change, with its write", 1000 * self.change, 5))
        return figures


async def measure(
    folder: Path, *, watchers: int, patterns: int, topics: int, rate: float, seconds: float
) -> Result:
    """The figures of one scene; ``rate`` is in changes a second."""
    _make(folder / "catalog.sqlite", patterns, topics)
    (web,) = free_ports(1)
    tables: dict[str, dict[str, object]] = {
        "catalog": {"path": str(folder / "catalog.sqlite")},
        "http": {"listen": f"127.0.0.1:{web}"},
        "pulsar": {"keep_alive": "1h"},
    }
    with Served(folder, tables, start_seconds=120) as served:
        pid, host, port = served.pid, *served.address
        before = resident(pid)
        told, loop = _Told(), asyncio.get_running_loop()
        clients: list[_Watcher] = []
        for low in range(0, watchers, _AT_ONCE):
            made = [
                _Watcher(number, _pattern(number % patterns, patterns), told)
                for number in range(low, min(low + _AT_ONCE, watchers))
            ]
            await asyncio.gather(
                *(loop.create_connection(partial(_itself, each), host, port) for each in made)
            )
            await asyncio.gather(*(each.connected for each in made))
            clients += made
        await asyncio.sleep(1)
        connected = resident(pid)
        half = watchers // 2  # with them comes what all share
        await _watch(clients[:half])
        shared = resident(pid)
        await _watch(clients[half:])
        watching = resident(pid)
        pings = await _each_minute(pid, clients, _Watcher.ping, seconds)
        idle = await _each_minute(pid, clients, _Watcher.reconcile, seconds)
        count = int(rate * seconds)
        names = [f"g{number % patterns:05}-new-{number}" for number in range(count)]
        writer = _Writer(("127.0.0.1", web), names, rate)
        quiet = cpu_seconds(pid)
        await _pings(host, port, seconds)
        quiet = (cpu_seconds(pid) - quiet) / seconds
        pinging = asyncio.create_task(_pings(host, port, seconds))
        busy = cpu_seconds(pid)
        writer.start()
        await asyncio.to_thread(writer.join)
        expected = sum(_followers(number % patterns, watchers, patterns) for number in range(count))
        with suppress(AssertionError):  # what is missing is shown
            await eventually(lambda: sum(map(len, told.at.values())) >= expected, 30)
        busy = (cpu_seconds(pid) - busy) / seconds
        late = sorted(at - writer.begun[name] for name, times in told.at.items() for at in times)
        latest = {number % patterns: told.hashes[number] for number in range(watchers)}
        are_equal = len(late) == expected and all(
            told.hashes[number] == latest[number % patterns] for number in range(watchers)
        )
        ping = await pinging
        burst = await _burst(web, told, _followers(0, watchers, patterns))
        for client in clients:
            client.transport.abort()
        return Result(
            watchers,
            patterns,
            topics,
            count,
            len(late),
            statistics.median(late) if late else float("nan"),
            late[int(len(late) * 0.99)] if late else float("nan"),
            late[-1] if late else float("nan"),
            busy,
            idle,
            pings,
            (busy - quiet) * seconds / count,
            (connected - before) // watchers,
            (watching - shared) // (watchers - half),
            ping,
            burst,
            are_equal,
        )


def _make(path: Path, patterns: int, topics: int) -> None:
    with SqliteCatalog(path) as catalog:
        names = [
            TopicName("persistent", _NAMESPACE, f"g{number % patterns:05}-{number}")
            for number in range(topics)
        ]
        for low in range(0, topics, 10_000):
            catalog.edit_many(_NAMESPACE, [Edit(name, creation(name)) for name in names[low : low + 10_000]])


def _itself(watcher: _Watcher) -> _Watcher:
    return watcher


def _pattern(group: int, patterns: int) -> str:
    return f"{_BASE}.*" if patterns == 1 else f"{_BASE}g{group:05}-.*"


def _followers(group: int, watchers: int, patterns: int) -> int:
    return len(range(group, watchers, patterns))


async def _watch(clients: Sequence[_Watcher]) -> None:
    for low in range(0, len(clients), _AT_ONCE):
        for each in clients[low : low + _AT_ONCE]:
            each.watch()
        await asyncio.gather(*(each.opened for each in clients[low : low + _AT_ONCE]))
    await asyncio.sleep(2)


async def _each_minute(
    pid: int, clients: Sequence[_Watcher], ask: Callable[[_Watcher], None], seconds: float
) -> float:
    """The share of a core while nothing changes, and each watcher asks once a minute."""
    begun, start = cpu_seconds(pid), time.perf_counter()
    due = 0.0
    number = 0
    while (now := time.perf_counter() - start) < seconds:
        due = now * len(clients) / 60
        while number < due:
            ask(clients[number % len(clients)])
            number += 1
        await asyncio.sleep(0.01)
    return (cpu_seconds(pid) - begun) / seconds


async def _pings(host: str, port: int, seconds: float) -> float:
    """The 99th percentile of the time to a PONG."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(commands.connect("Pulsar-Java-v4.2.4"))
    head = await reader.readexactly(4)
    await reader.readexactly(int.from_bytes(head, "big"))
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        writer.write(commands.ping())
        await reader.readexactly(len(commands.pong()))
        times.append(time.perf_counter() - begun)
        await asyncio.sleep(0.02)
    writer.close()
    return sorted(times)[int(len(times) * 0.99)]


async def _burst(web: int, told: _Told, followers: int) -> float:
    """Seconds from the request that makes 1,000 topics of one question until all of its watchers have them."""
    told.at.clear()
    begun = time.perf_counter()

    def make() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", web)
        path = f"/admin/v2/persistent/{_NAMESPACE}/g00000-burst/partitions"
        connection.request("PUT", path, str(_BURST), {"Content-Type": "application/json"})
        return connection.getresponse().status

    assert await asyncio.to_thread(make) == 204
    with suppress(AssertionError):
        await eventually(lambda: sum(map(len, told.at.values())) >= _BURST * followers, 30)
        return max(map(max, told.at.values())) - begun
    return float("nan")


def _shown(result: Result) -> str:
    shares = [f"{100 * share:.2f} %" for share in (result.idle, result.pings)]
    times = [f"{1000 * seconds:.0f}" for seconds in (result.median, result.p99, result.longest)]
    counts = (result.watchers, result.patterns, result.topics, result.changes, result.updates)
    cells = [
        *(f"{count:,}" for count in counts),
        *times,
        f"{100 * result.busy:.1f} %",
        f"{1000 * result.change:.1f}",
        *shares,
        f"{result.connection:,}",
        f"{result.resident:,}",
        f"{1000 * result.ping_p99:.1f}",
        f"{1000 * result.burst:.0f}",
        "yes" if result.are_equal else "NO",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watchers", type=int, default=2000)
    parser.add_argument("--patterns", type=int, default=40)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(machine())
    print(
        "| watchers | patterns | topics | changes | updates | median ms | p99 ms | longest ms | CPU busy | ms a change "
        "| CPU idle | CPU PING | bytes a connection | bytes a watcher | PING p99 ms | 1,000 at once ms | equal |"
    )
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(
            measure(
                Path(folder),
                watchers=asked.watchers,
                patterns=asked.patterns,
                topics=asked.topics,
                rate=asked.rate,
                seconds=asked.seconds,
            )
        )
    print(_shown(result))
    for what, value, limit in result.asked():
        print(f"- {what}: {value:,.1f} (asked: <= {limit:,}): {'passed' if value <= limit else 'missed'}")


if __name__ == "__main__":
    main()
