"""Listings over HTTP: all names as text, "not modified", and pages while names come and go.

The client is in a process of its own. What it costs to move the same bytes is measured beside it
(:mod:`.floor`), so that figures of different machines can be compared by their ratio.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from tests.benchmarks.floor import floor
from tests.benchmarks.http_client import Work, do
from tests.benchmarks.names import namespace_of
from tests.benchmarks.processes import cpu_seconds, resident, resident_peak
from tests.support.ports import host_and_port
from tests.support.served import Served

__all__ = ["http_listings"]

#: Clients that read the whole listing at once, for the memory that it takes.
_AT_ONCE: Final = 4
#: Topics more than there were, while others come and go.
_THERE: Final = 100
#: Seconds between two changes of the catalogue while it is paged.
_PAUSE: Final = 0.005


def http_listings(served: Served, catalogue: Path, size: int, *, times: int) -> dict[str, Any]:
    """Measure a server of ``size`` topics of a benchmark (:mod:`.names`), which has ``[http]``.

    Seconds (p50, p99) and what was found; ``floor_seconds`` is what a socket and the client take for the text.
    """
    address = host_and_port(served.ready["http"])
    path = f"/v1/namespaces/{namespace_of(size)}/topics"
    _said(do(Work("text", address, path)))  # the snapshot is in memory then
    before, cpu = resident(served.pid), cpu_seconds(served.pid)
    text = _said(do(Work("text", address, path, times)))
    cpu = (cpu_seconds(served.pid) - cpu) / (times + 1)
    assert text["lines"] == size
    for client in [do(Work("text", address, path)) for _ in range(_AT_ONCE)]:
        _said(client)
    peak = resident_peak(served.pid)
    unchanged = _said(do(Work("unchanged", address, path, 50 * times)))
    limit = min(10_000, size // 10)
    with _changes(catalogue, size) as made:
        page_cpu = cpu_seconds(served.pid)
        paged = _said(do(Work("pages", address, path, 2, limit, size)))
        page_cpu = (cpu_seconds(served.pid) - page_cpu) / paged["count"]
    return {
        "topics": size,
        "text_bytes": text["bytes"],
        "text_p50": text["p50"],
        "text_cpu": cpu,
        "floor_seconds": floor(text["bytes"]),
        "resident_before": before,
        "resident_peak": peak,
        "unchanged_p50": unchanged["p50"],
        "unchanged_p99": unchanged["p99"],
        "page_p50": paged["p50"],
        "page_p99": paged["p99"],
        "page_cpu": page_cpu,
        "page_limit": limit,
        "pages": paged["count"],
        "changes": len(made),
        "twice": paged["twice"],
        "missed": paged["missed"],
    }


@contextmanager
def _changes(catalogue: Path, size: int) -> Iterator[list[TopicName]]:
    """Topics come and go, in a thread of this process, all over the namespace; at the end all of them are gone."""
    made: list[TopicName] = []
    there: deque[TopicName] = deque()
    ended = threading.Event()

    def change() -> None:
        with SqliteCatalog(catalogue) as catalog:
            while not ended.wait(_PAUSE):
                number = len(made) * 7_919 % size
                name = TopicName.parse(f"persistent://{namespace_of(size)}/device-{number:07d}-x-{len(made)}")
                catalog.create(name)
                made.append(name)
                there.append(name)
                if len(there) > _THERE:
                    catalog.delete(there.popleft())
            catalog.delete_all(there)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        yield made
    finally:
        ended.set()
        changing.join()


def _said(client: subprocess.Popen[str]) -> dict[str, Any]:
    said, _ = client.communicate()
    if client.returncode:
        raise RuntimeError("the client of the benchmark has failed")
    found: dict[str, Any] = json.loads(said)
    return found
