"""Kafka clients that cost much, and what everybody else feels of it: ``python -m tests.benchmarks.kafka.neighbours``.

Each scene has a server of its own. Beside it a process PINGs over Pulsar's protocol: its figures are how long PONG
took, and how late the machine itself woke it. The memory is the most that was resident above that of the server at
rest.

``--scenes many,unfinished`` runs some of them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from broker_core.wire.kafka import (
    ALTER_CONFIGS,
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    METADATA,
    Api,
    read_response,
    request_frame,
)
from tests.benchmarks.measure import percentile
from tests.benchmarks.names import local_name, namespace_of
from tests.benchmarks.ours import make_catalogue
from tests.benchmarks.ping import pinged
from tests.benchmarks.processes import MIB, cpu_seconds, machine, resident, resident_peak
from tests.support.ports import free_port, host_and_port
from tests.support.served import Served, broker_core_command

__all__ = ["SCENES", "Beside", "main", "run"]

SIZE: Final = 50_000
#: Names in a request of 2 MB: each is 7 letters, its length, an id where the version has one, and a count of tags.
NAMES: Final = 240_000
_HOLD: Final = 4 << 20
#: Topics whose configs are 2.4 MB.
RELAYED: Final = 1150
_VERSIONS: Final = {"client_software_name": "neighbour", "client_software_version": "1"}


@dataclass(slots=True)
class Beside:
    """What was felt beside a scene. Seconds, and bytes."""

    seconds: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    #: Of PINGs, by :func:`~tests.benchmarks.ping.pinged`.
    felt: dict[str, list[float]] = field(default_factory=dict)
    #: What became of requests, by a word: answered, closed.
    ends: Counter[str] = field(default_factory=Counter)
    #: Seconds of some requests, by what they are.
    asked: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """A server, and what is noted beside it."""

    served: Served
    beside: Beside

    @property
    def kafka(self) -> tuple[str, int]:
        return host_and_port(self.served.ready["kafka"])

    async def ask(self, frame: bytes, word: str = "") -> bytes:
        """The answer over a connection of its own, empty if it was closed; noted."""
        begun = time.perf_counter()
        try:
            async with connected(self.kafka) as (reader, writer):
                writer.write(frame)
                answer = await message(reader)
        except OSError:
            answer = b""
        self.beside.ends["answered" if answer else "closed"] += 1
        if word:
            self.beside.asked.setdefault(word, []).append(time.perf_counter() - begun)
        return answer

    async def go_on_asking(self, frame: bytes, word: str, stop: asyncio.Event) -> None:
        """A good client, which asks the same again and again."""
        async with connected(self.kafka) as (reader, writer):
            while not stop.is_set():
                begun = time.perf_counter()
                writer.write(frame)
                answer = await message(reader)
                self.beside.asked.setdefault(word, []).append(time.perf_counter() - begun)
                self.beside.ends[f"{word} {'answered' if answer else 'closed'}"] += 1
                if not answer:
                    return
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def beside_good(self, frame: bytes, word: str, clients: int = 1) -> AsyncIterator[None]:
        """Good clients, which go on asking until the block ends."""
        stop = asyncio.Event()
        good = [asyncio.create_task(self.go_on_asking(frame, word, stop)) for _ in range(clients)]
        yield
        stop.set()
        await asyncio.gather(*good)


Scene: TypeAlias = Callable[[Place], Awaitable[None]]


@asynccontextmanager
async def connected(
    address: tuple[str, int], *, limit: int = 1 << 20
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*address, limit=limit)
    try:
        yield reader, writer
    finally:
        writer.close()


async def message(reader: asyncio.StreamReader) -> bytes:
    """The next answer without its length; empty if the connection was closed."""
    try:
        size = int.from_bytes(await reader.readexactly(4), "big")
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def asked(api: Api, version: int, value: Mapping[str, Any]) -> bytes:
    """The frame of a request."""
    return request_frame(api, version, 1, "neighbour", value)


def by_name(count: int) -> bytes:
    """Metadata of topics that are not there."""
    return asked(METADATA, 9, {"topics": [{"name": f"n{number:06d}"} for number in range(count)]})


def of_real(count: int) -> bytes:
    return asked(METADATA, 12, {"topics": [{"name": local_name(number, SIZE)} for number in range(count)]})


def creating(names: Sequence[str], **fields: Any) -> bytes:
    rows = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    return asked(CREATE_TOPICS, 7, {"topics": rows, "timeout_ms": 20_000, **fields})


def _config(name: str) -> dict[str, Any]:
    return {"resource_type": 2, "resource_name": name, "configuration_keys": None}


#: Large requests of every kind, alone.
LARGE: Final[Mapping[str, Callable[[], bytes]]] = {
    "Metadata": lambda: by_name(NAMES),
    "Metadata+ops": lambda: asked(
        METADATA,
        9,
        {
            "topics": [{"name": f"n{number:06d}"} for number in range(NAMES)],
            "include_topic_authorized_operations": True,
        },
    ),
    "Metadata real": lambda: of_real(SIZE),
    "DescribeGroups": lambda: asked(DESCRIBE_GROUPS, 5, {"groups": [f"g{n:06d}" for n in range(NAMES)]}),
    "FindCoordinator": lambda: asked(
        FIND_COORDINATOR, 4, {"coordinator_keys": [f"g{n:06d}" for n in range(NAMES)]}
    ),
    "DescribeConfigs": lambda: asked(
        DESCRIBE_CONFIGS, 4, {"resources": [_config(local_name(n, SIZE)) for n in range(SIZE)]}
    ),
    "DescribeConfigs same": lambda: asked(
        DESCRIBE_CONFIGS,
        4,
        {
            "resources": [_config(local_name(1, SIZE))] * SIZE,
            "include_documentation": True,
            "include_synonyms": True,
        },
    ),
    "CreateTopics": lambda: creating([f"c{n:06d}" for n in range(4_000)]),
    "CreateTopics dry": lambda: creating([f"d.{n:06d}" for n in range(4_000)], validate_only=True),
    "DeleteTopics": lambda: asked(
        DELETE_TOPICS, 5, {"topic_names": [f"c{n:06d}" for n in range(10_000)], "timeout_ms": 20_000}
    ),
    "AlterConfigs": lambda: asked(
        ALTER_CONFIGS,
        1,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": local_name(n, SIZE),
                    "configs": [{"name": "retention.ms", "value": "1"}],
                }
                for n in range(10_000)
            ]
        },
    ),
}


def _large(kind: str) -> Scene:
    async def scene(place: Place) -> None:
        frame = LARGE[kind]()
        async with place.beside_good(of_real(3), "by name"):
            for _ in range(2):
                await place.ask(frame, "large")

    return scene


async def many(place: Place) -> None:
    """Thirty requests of 240,000 names at once, beside a client that asks for three topics."""
    frame = by_name(NAMES)
    async with place.beside_good(of_real(3), "by name"):
        await asyncio.gather(*(place.ask(frame, "large") for _ in range(30)))


async def below(place: Place) -> None:
    """Sixteen clients with requests that are just small enough to be answered on the event loop, one after another."""
    keys = [f"{number:03x}" for number in range(4_000)]
    frame = asked(FIND_COORDINATOR, 4, {"coordinator_keys": keys})
    stop = asyncio.Event()
    await asyncio.gather(
        *(place.go_on_asking(frame, "16 kB", stop) for _ in range(16)),
        _later(stop, 5),
        return_exceptions=True,
    )


async def vanishing(place: Place) -> None:
    """Clients that send a large request and leave, again and again, beside one that needs threads."""
    frame = by_name(NAMES)
    stop = asyncio.Event()

    async def vanish() -> None:
        while not stop.is_set():
            async with connected(place.kafka) as (_, writer):
                writer.write(frame)
                await writer.drain()
                await asyncio.sleep(0.05)
            place.beside.ends["left"] += 1

    async with place.beside_good(of_real(100), "by name"):
        await asyncio.gather(*(vanish() for _ in range(10)), _later(stop, 8), return_exceptions=True)


async def unfinished(place: Place) -> None:
    """Seventeen clients hold 4 MiB of a frame that they never end; others ask for something large."""
    async with contextlib.AsyncExitStack() as stack:
        holders = []
        for _ in range(17):
            reader, writer = await stack.enter_async_context(connected(place.kafka))
            writer.write((16 << 20).to_bytes(4, "big") + bytes(_HOLD - 4))
            holders.append((reader, writer))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(writer.drain(), 2)
        await asyncio.sleep(0.5)
        for _ in range(5):
            await place.ask(by_name(1000), "large")
            await place.ask(of_real(3), "small")
        for reader, _ in holders:
            over = reader.at_eof() or reader.exception() is not None
            place.beside.ends["holder closed" if over else "holder open"] += 1


async def listings(place: Place) -> None:
    """Fifty clients ask for everything at once, with authorized operations and without."""
    frames = [
        asked(METADATA, 12, {"topics": None, "include_topic_authorized_operations": number % 2 == 1})
        for number in range(50)
    ]
    for _ in range(3):
        await asyncio.gather(*(place.ask(frame, "all") for frame in frames))


async def slow(place: Place) -> None:
    """Twenty clients read everything at 500 kB/s, beside one that asks for everything."""
    frame = asked(METADATA, 12, {"topics": None})
    async with place.beside_good(frame, "all"):
        await asyncio.gather(*(_read_slowly(place, frame) for _ in range(20)))


async def _read_slowly(place: Place, frame: bytes) -> None:
    """One answer, at 500 kB/s."""
    async with connected(place.kafka, limit=1 << 15) as (reader, writer):
        writer.write(frame)
        got, size = 0, None
        begun = time.perf_counter()
        while size is None or got < size + 4:
            data = await reader.read(1 << 14)
            if not data:
                place.beside.ends["slow closed"] += 1
                return
            if size is None:
                size = int.from_bytes(data[:4], "big")
            got += len(data)
            await asyncio.sleep(max(0.0, begun + got / 500_000 - time.perf_counter()))
        place.beside.ends["slow answered"] += 1
        place.beside.ends["slow bytes"] = got


async def relayed(place: Place) -> None:
    """Twenty-five clients of a gateway before a cluster read 2.4 MB of configs at 500 kB/s, beside one that asks for
    versions.
    """
    resources = [_config(local_name(number, SIZE)) for number in range(RELAYED)]
    frame = asked(DESCRIBE_CONFIGS, 4, {"resources": resources, "include_synonyms": True})
    async with place.beside_good(asked(API_VERSIONS, 3, _VERSIONS), "versions"):
        await asyncio.gather(*(_read_slowly(place, frame) for _ in range(25)))


async def changes(place: Place) -> None:
    """A hundred creates a second beside sixteen clients that list everything."""
    begun = time.perf_counter()
    async with (
        place.beside_good(asked(METADATA, 12, {"topics": None}), "all", clients=16),
        connected(place.kafka) as (reader, writer),
    ):
        for number in range(1000):
            start = time.perf_counter()
            writer.write(creating([f"storm-{number}"]))
            answer = await message(reader)
            place.beside.asked.setdefault("create", []).append(time.perf_counter() - start)
            fields = read_response(CREATE_TOPICS, 7, answer)[1] if answer else None
            good = fields is not None and not fields["topics"][0]["error_code"]
            place.beside.ends["created" if good else "not created"] += 1
            if not answer:
                break
            await asyncio.sleep(max(0.0, begun + number / 100 - time.perf_counter()))


async def configs(place: Place) -> None:
    """Forty clients ask for the configs of one topic three thousand times, in 16 kB, and read nothing."""
    frame = asked(
        DESCRIBE_CONFIGS,
        4,
        {
            "resources": [_config("t")] * 3000,
            "include_documentation": True,
            "include_synonyms": True,
        },
    )
    assert len(frame) <= 16 * 1024, len(frame)
    await place.ask(creating(["t"]))
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for _ in range(40):
            reader, writer = await stack.enter_async_context(connected(place.kafka, limit=1 << 14))
            writer.write(frame)
            clients.append(reader)
        await asyncio.sleep(8)
        for _ in range(5):
            await place.ask(of_real(3), "small")
        for reader in clients:
            place.beside.ends["closed unread" if reader.at_eof() or reader.exception() else "open"] += 1


async def descriptors(place: Place) -> None:
    """More Kafka clients than there are descriptors; HTTP and Pulsar's clients are there as before."""
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(100):
            with contextlib.suppress(OSError):
                reader, _ = await stack.enter_async_context(connected(place.kafka))
                try:
                    await asyncio.wait_for(reader.read(1), 0.05)
                    place.beside.ends["refused"] += 1
                except TimeoutError:
                    place.beside.ends["connected"] += 1
                except ConnectionError:
                    place.beside.ends["refused"] += 1
        for _ in range(5):
            async with connected(host_and_port(place.served.ready["http"])) as (reader, writer):
                writer.write(b"GET /-/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                said = await asyncio.wait_for(reader.read(), 10)
                place.beside.ends[f"ready {said[9:12].decode()}"] += 1
    await asyncio.sleep(0.5)
    await place.ask(of_real(3), "small")


async def _later(stop: asyncio.Event, seconds: float) -> None:
    await asyncio.sleep(seconds)
    stop.set()


SCENES: Final[Mapping[str, Scene]] = {
    **{f"one {kind}": _large(kind) for kind in LARGE},
    "many": many,
    "below": below,
    "vanishing": vanishing,
    "unfinished": unfinished,
    "listings": listings,
    "slow": slow,
    "relayed": relayed,
    "changes": changes,
    "configs": configs,
    "descriptors": descriptors,
}


def run(catalogue: Path, folder: Path, name: str) -> Beside:
    """One scene with a server of its own."""
    beside = Beside()
    settings: dict[str, dict[str, Any]] = {
        "catalog": {"path": str(catalogue)},
        "http": {"listen": "127.0.0.1:0"},
        "kafka": {"listen": "127.0.0.1:0", "namespace": namespace_of(SIZE)},
    }
    command = _few_files(folder) if name == "descriptors" else None
    with contextlib.ExitStack() as stack:
        if name == "relayed":
            cluster = stack.enter_context(Served(folder / "cluster", settings))
            ports = free_port()
            upstream = {"bootstrap_servers": [cluster.ready["kafka"]], "ports": f"{ports}-{ports}"}
            settings = {
                "http": {"listen": "127.0.0.1:0"},
                "catalog": {"path": str(folder / "gateway.sqlite")},
                "kafka": {"listen": "127.0.0.1:0", "upstream": upstream},
            }
        served = stack.enter_context(Served(folder, settings, command=command))
        beside.felt = stack.enter_context(pinged(served.address))
        place = Place(served, beside)
        asyncio.run(place.ask(asked(METADATA, 12, {"topics": None})))
        beside.ends.clear()
        _forget_peak(served.pid)
        rest, begun, cpu = resident(served.pid), time.perf_counter(), cpu_seconds(served.pid)
        asyncio.run(_scene(name, place))
        beside.seconds = time.perf_counter() - begun
        beside.cpu = cpu_seconds(served.pid) - cpu
        beside.memory = resident_peak(served.pid) - rest
        log = served.log.read_text(errors="replace")
        if "Traceback" in log:
            beside.ends["tracebacks"] = log.count("Traceback")
            print(log[log.index("Traceback") - 300 :][:3000], file=sys.stderr)
    return beside


async def _scene(name: str, place: Place) -> None:
    await SCENES[name](place)


def _few_files(folder: Path) -> Path:
    """A command whose process has 64 descriptors."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "few-files"
    program.write_text(f'#!/bin/sh\nulimit -n 64\nexec {broker_core_command()} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return program


def _forget_peak(pid: int) -> None:
    """Let the kernel measure the highest resident memory from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.kafka.neighbours", description=__doc__)
    parser.add_argument("--scenes", default=",".join(SCENES), help=f"some of: {', '.join(SCENES)}")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.scenes.split(",")) - set(SCENES))
    if unknown:
        parser.error(f"no scenes: {', '.join(unknown)}")
    print(machine())
    with tempfile.TemporaryDirectory(prefix="broker-core-bench-") as folder:
        for name in options.scenes.split(","):
            catalogue = make_catalogue(Path(folder) / f"of {name}", SIZE)
            beside = run(catalogue.path, Path(folder) / f"run {name}", name)
            print(f"\n{name}: {beside.seconds:.1f} s, CPU {beside.cpu:.1f} s, {beside.memory / MIB:+.0f} MiB")
            print("  " + ", ".join(f"{word} {count}" for word, count in sorted(beside.ends.items())))
            for word, values in (
                ("PONG", beside.felt["pings"]),
                ("the machine, late by", beside.felt["late"]),
            ):
                print(f"  {word}: {_shares(values)}")
            for word, values in beside.asked.items():
                print(f"  {word}: {_shares(values)} of {len(values)}", flush=True)


def _shares(values: Sequence[float]) -> str:
    shares = ((0.5, "p50"), (0.99, "p99"), (1, "most"))
    return ", ".join(f"{word} {1000 * percentile(values, part):.1f}" for part, word in shares) + " ms"


if __name__ == "__main__":
    main()
