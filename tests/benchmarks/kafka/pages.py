"""Pages of KIP-1062 over many partitions: ``python -m tests.benchmarks.kafka.pages``.

A catalogue of ``--topics`` topics with ``--partitions`` each is asked for by Metadata in pages of 2,000 partitions: the
CPU of one page, at the beginning and at the end; the time of all; and what a pass adds to the resident memory of the
server and of our own client, in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from broker_core.client.kafka import AdminClient
from broker_core.wire.kafka import METADATA, read_response, request_frame
from tests.benchmarks.kafka.kafka_connection import KafkaConnection
from tests.benchmarks.ours import import_topics
from tests.benchmarks.processes import MIB, cpu_seconds, machine, resident, resident_peak
from tests.support.ports import host_and_port
from tests.support.served import Served

__all__ = ["Pages", "figures", "measure"]

#: Partitions of a page.
PAGE: Final = 2000
NAMESPACE: Final = "public/pages"


@dataclass(frozen=True, slots=True)
class Pages:
    """Seconds, and bytes. ``first`` and ``last`` are the CPU of the server for one page, ``client_topics`` what our
    client got in a pass.
    """

    first: float
    last: float
    passes: float
    server_growth: int
    client_topics: int
    client_growth: int
    client_seconds: float


def measure(folder: Path, topics: int, partitions: int, turns: int = 200) -> Pages:
    """The figures of a catalogue of so many topics."""
    rows = (json.dumps({"name": f"topic-{number:07d}", "partitions": partitions}) for number in range(topics))
    import_topics(folder / "catalogue", NAMESPACE, rows)
    settings = {
        # Snapshots are not stored meanwhile: that takes memory of its own.
        "catalog": {"path": str(folder / "catalogue" / "catalog.sqlite"), "snapshots": "off"},
        "kafka": {"listen": "127.0.0.1:0", "namespace": NAMESPACE},
    }
    with Served(folder, settings) as served:
        return figures(served.ready["kafka"], served.pid, turns)


def figures(address: str, pid: int, turns: int) -> Pages:
    """The figures of the server at an address, which is a process of this id."""
    with KafkaConnection(host_and_port(address)) as connection:
        connection.exchange(_frame(None))  # the table is made with the first question
        before = resident(pid)
        frames = list(_pass(connection))
        growth = max(0, resident_peak(pid) - before)
        seconds = [sum(connection.exchange(frame)[0] for frame in frames) for _ in range(5)]
        first, last = (_cpu(connection, pid, frame, turns) for frame in (frames[0], frames[-1]))
    client = _client_beside(address)
    return Pages(first, last, statistics.median(seconds), growth, **client)


def _frame(cursor: Any) -> bytes:
    body = {
        "topics": None,
        "allow_auto_topic_creation": False,
        "response_pagination_limit": PAGE,
        "cursor": cursor,
    }
    return request_frame(METADATA, 13, 7, "bench", body)


def _pass(connection: KafkaConnection) -> Iterator[bytes]:
    """The requests for all pages; each is sent as it is given."""
    cursor = None
    while True:
        frame = _frame(cursor)
        yield frame
        cursor = read_response(METADATA, 13, bytes(connection.exchange(frame)[1]))[1]["next_cursor"]
        if cursor is None:
            return


def _cpu(connection: KafkaConnection, pid: int, frame: bytes, turns: int) -> float:
    """The server's CPU for one request, of so many."""
    before = cpu_seconds(pid)
    for _ in range(turns):
        connection.exchange(frame)
    return (cpu_seconds(pid) - before) / turns


def _client_beside(address: str) -> dict[str, Any]:
    """What a process says whose client has listed all topics."""
    command = [sys.executable, "-m", "tests.benchmarks.kafka.pages", "--client", address]
    told: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return told


async def _client(address: str) -> dict[str, Any]:
    """What a pass adds to the memory of our client, behind one page."""
    pid, count = os.getpid(), 0
    async with AdminClient(address) as client:
        async for _ in client.list_topics_pages():
            break
        before, begun = resident_peak(pid), time.perf_counter()
        async for page in client.list_topics_pages():
            count += len(page)
        seconds = time.perf_counter() - begun
    return {
        "client_topics": count,
        "client_growth": resident_peak(pid) - before,
        "client_seconds": seconds,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.kafka.pages", description=__doc__)
    parser.add_argument("--topics", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.client:
        print(json.dumps(asyncio.run(_client(options.client))))
        return
    print(machine())
    with tempfile.TemporaryDirectory(prefix="broker-core-bench-") as folder:
        found = measure(Path(folder), options.topics, options.partitions)
    print(f"{options.topics:,} topics of {options.partitions} partitions, in pages of {PAGE:,} partitions")
    print(f"CPU of the first page {found.first * 1000:.2f} ms, of the last {found.last * 1000:.2f} ms")
    print(f"all pages {found.passes * 1000:.0f} ms; with our client {found.client_seconds:.2f} s")
    print(
        f"a pass adds {found.server_growth / MIB:.1f} MiB to the server, "
        f"{found.client_growth / MIB:.1f} MiB to the client"
    )


if __name__ == "__main__":
    main()
