"""The lookup client in a process of its own: a small question, and all topics of a namespace, by each protocol.

python -m tests.benchmarks.python_client URL NAMESPACE PATTERN     prints one protocol's figures as JSON
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from broker_core.client import LookupClient
from tests.benchmarks.names import Questions
from tests.benchmarks.processes import resident, resident_peak
from tests.support.served import Served

__all__ = ["client_figures"]

_SMALL = 500  # questions
_ALL = 5


def client_figures(catalogue: Path, folder: Path, size: int) -> dict[str, dict[str, float]]:
    """The figures by scheme, of a server of the catalogue's file.

    Seconds (wall, and CPU of the client's process) of one question, and bytes: ``small`` has ten topics, ``all`` the
    whole namespace. ``names`` is what its listing holds, ``peak`` the most that the process grew by while it was read,
    ``blocks`` the blocks of Python's memory that a listing takes, of which a string is one.
    """
    tables: dict[str, dict[str, object]] = {
        "catalog": {"path": str(catalogue)},
        "http": {"listen": "127.0.0.1:0"},
    }
    about = Questions(size)
    with Served(folder, tables, start_seconds=120) as served:
        found = {}
        for url in (served.service_url, f"http://{served.ready['http']}"):
            command = [sys.executable, "-m", __name__, url, about.namespace, about.prefix(0)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[url.partition(":")[0]] = json.loads(done.stdout)
        return found


async def _measure(url: str, namespace: str, pattern: str) -> dict[str, float]:
    async with LookupClient(url, operation_timeout=120) as client:
        listing = await client.get_topics_under_namespace(namespace, topics_pattern=pattern)
        assert len(listing) == 10
        seconds, began_cpu = [], time.process_time()
        for _ in range(_SMALL):
            began = time.perf_counter()
            await client.get_topics_under_namespace(namespace, topics_pattern=pattern)
            seconds.append(time.perf_counter() - began)
        small_cpu = (time.process_time() - began_cpu) / _SMALL
        del listing
        for module in (
            "pyarrow.compute",
            "broker_core.listing.fields.search_fields",
        ):  # what large answers take
            importlib.import_module(module)
        before, blocks = resident(os.getpid()), sys.getallocatedblocks()
        listing = await client.get_topics_under_namespace(namespace)
        blocks = sys.getallocatedblocks() - blocks
        peak = resident_peak(os.getpid()) - before
        topics, names = len(listing), listing.names.nbytes
        walls, cpus = [], []
        for _ in range(_ALL):
            del listing
            began, began_cpu = time.perf_counter(), time.process_time()
            listing = await client.get_topics_under_namespace(namespace)
            assert len(listing) == topics
            walls.append(time.perf_counter() - began)
            cpus.append(time.process_time() - began_cpu)
    return {
        "small": statistics.median(seconds),
        "small_cpu": small_cpu,
        "all": min(walls),
        "all_cpu": min(cpus),
        "topics": topics,
        "names": names,
        "peak": peak,
        "blocks": blocks,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(*sys.argv[1:]))))
