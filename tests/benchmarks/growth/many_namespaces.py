"""Part "namespaces": many small namespaces, each asked for once, then again, then after a restart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.growth.asking import pipelined
from tests.benchmarks.growth.catalogues import many_namespace
from tests.benchmarks.growth.process_usage import cpu_seconds, memory
from tests.benchmarks.growth.trees import RunningServer, Tree
from tests.benchmarks.wire_client import RawClient, get_topics_frame

__all__ = ["measure_namespaces"]


def measure_namespaces(tree: Tree, catalog: Path, count: int) -> dict[str, float]:
    """The figures of one tree."""
    frames = [get_topics_frame(1, many_namespace(number)) for number in range(count)]
    figures: dict[str, float] = {}
    with tree.server(catalog) as server:
        before = memory(server.pid)
        begun = time.perf_counter()
        figures["first cpu"] = _cpu_each(server, frames)
        figures["first seconds"] = time.perf_counter() - begun
        figures["rss each"] = (memory(server.pid) - before) / count
        figures["warm cpu"] = min(_cpu_each(server, frames) for _ in range(2))
    with tree.server(catalog) as server:
        figures["again ready"] = server.ready_after
        figures["again first cpu"] = _cpu_each(server, frames)
    return figures


def _cpu_each(server: RunningServer, frames: Sequence[bytes]) -> float:
    """Processor seconds of the server for each of these questions; all answers have the same size."""
    client = RawClient(server.address)
    try:
        begun = cpu_seconds(server.pid)
        pipelined(client, frames)
        return (cpu_seconds(server.pid) - begun) / len(frames)
    finally:
        client.close()
