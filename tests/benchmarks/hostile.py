"""Hostile requests of HTTP against a server of its own: ``python -m tests.benchmarks.hostile --requests 100000``.

It ends with an error if the log has a traceback, an answer is a 5xx that is not documented, a good request is
refused, memory grew, or a permit or a place is not free in the end. It prints what was answered, the resident memory,
and how long PONG took over Pulsar's protocol meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.measure import percentile
from tests.benchmarks.ping import pinged
from tests.benchmarks.processes import MIB, cpu_seconds, machine, resident, resident_peak
from tests.servers.http.hostile.attack import Attacked, attack, may_be
from tests.servers.http.hostile.hostile_requests import hostile_requests
from tests.support.catalogue_topics import create_topics
from tests.support.ports import host_and_port
from tests.support.served import Served

__all__ = ["main"]

TOPICS: Final = 1000
#: Parts of a run; memory is compared from the end of the second part on: what is made once is there then.
PARTS: Final = 10
#: Bytes that may be resident more at the end; the allocator's heaps come and go.
GROWTH: Final = 24 * MIB
#: What must be 0 in the end.
_GAUGES: Final = (
    "broker_core_http_requests_under_way ",
    "broker_core_topic_list_heap_memory_used_bytes ",
    "broker_core_topic_list_direct_memory_used_bytes ",
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        wrong = _run(Path(folder), options.requests, options.seed, options.clients)
    if wrong:
        sys.exit("\n".join(wrong))


def _run(folder: Path, requests: int, seed: int, clients: int) -> list[str]:
    """What was wrong; the report is printed."""
    path = folder / "topics.sqlite"
    create_topics(
        path,
        *(f"persistent://public/default/orders-{number}" for number in range(TOPICS)),
        properties={"region": "eu"},
    )
    settings: dict[str, dict[str, Any]] = {
        "catalog": {"path": str(path), "property_keys": ["region"]},
        "http": {"listen": "127.0.0.1:0"},
    }
    attacked = Attacked()
    with Served(folder, settings) as served:
        http = served.ready["http"]
        hostile = hostile_requests(seed)
        begun, cpu, memory = time.monotonic(), cpu_seconds(served.pid), [resident(served.pid)]
        with pinged(served.address) as felt:
            for part in range(PARTS):
                some = islice(hostile, requests * (part + 1) // PARTS - requests * part // PARTS)
                more = asyncio.run(attack(host_and_port(http), some, clients=clients))
                attacked.statuses += more.statuses
                attacked.wrong += more.wrong
                memory.append(resident(served.pid))
                print(f"part {part + 1}: {memory[-1] / MIB:.1f} MiB", file=sys.stderr, flush=True)
            seconds, cpu = time.monotonic() - begun, cpu_seconds(served.pid) - cpu
        time.sleep(1)  # the last clients have left without a word
        metrics = urllib.request.urlopen(f"http://{http}/metrics", timeout=10).read().decode()
        peak = resident_peak(served.pid)
        log = served.log.read_text(errors="replace")
    print(f"{machine()}\n{requests} requests in {seconds:.0f} s, {cpu:.0f} s of CPU of the server")
    print(
        "memory after each part, MiB:",
        " ".join(f"{each / MIB:.0f}" for each in memory),
        f"peak {peak / MIB:.0f}",
    )
    for what, name in (("PONG", "pings"), ("the machine wakes a client late by", "late")):
        parts = ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"), (1, "most"))
        shares = (f"{word} {1000 * percentile(felt[name], part):.1f} ms" for part, word in parts)
        print(f"{what}:", ", ".join(shares))
    _print_statuses(attacked)
    return _wrong(attacked, metrics, log, memory)


def _print_statuses(attacked: Attacked) -> None:
    statuses = sorted({status for _, status in attacked.statuses})
    print(f"{'':17}" + "".join(f"{status or 'left':>7}" for status in statuses))
    for kind in sorted({kind for kind, _ in attacked.statuses}):
        print(f"{kind:17}" + "".join(f"{attacked.statuses[kind, status]:7}" for status in statuses))


def _wrong(attacked: Attacked, metrics: str, log: str, memory: Sequence[int]) -> list[str]:
    found = [
        f"{request.kind} {b''.join(request.pieces)[:300]!r}: {said[:600]!r}"
        for request, said in attacked.wrong
        if not may_be(request, said)
    ][:20]
    if "Traceback" in log or '"level": "error"' in log:
        found.append(
            f"the log: {log[log.index('Traceback') - 500 :][:3000] if 'Traceback' in log else log[-3000:]}"
        )
    if memory[-1] > memory[2] + GROWTH:
        found.append(f"resident memory grew from {memory[2] / MIB:.0f} to {memory[-1] / MIB:.0f} MiB")
    gauges = [line for line in metrics.splitlines() if line.startswith(_GAUGES)]
    assert len(gauges) == len(_GAUGES)
    found += [f"not free in the end: {line}" for line in gauges if float(line.rpartition(" ")[2]) != 0]
    return found


if __name__ == "__main__":
    main()
