"""Part "namespaces": many small namespaces, each asked for once, then again, then after a restart."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.growth.asking import pipelined
from tests.benchmarks.growth.catalogues import many_namespace
from tests.benchmarks.growth.trees import RunningServer, Tree
from tests.benchmarks.processes import cpu_seconds, resident
from tests.benchmarks.wire_client import RawClient, get_topics_frame

__all__ = ["measure_namespaces"]

_SAMPLED: Final = 10


def measure_namespaces(tree: Tree, catalog: Path, count: int) -> dict[str, float]:
    """The figures of one tree; after the restart, each tenth namespace is asked for."""
    frames = [get_topics_frame(1, many_namespace(number)) for number in range(count)]
    figures: dict[str, float] = {}
    with tree.server(catalog) as server:
        before = resident(server.pid)
        begun = time.perf_counter()
        figures["first cpu"] = _cpu_each(server, frames)
        figures["first seconds"] = time.perf_counter() - begun
        figures["rss each"] = (resident(server.pid) - before) / count
        figures["warm cpu"] = min(_cpu_each(server, frames) for _ in range(2))
    with tree.server(catalog) as server:
        figures["again ready"] = server.ready_after
        figures["again first cpu"] = _cpu_each(server, frames[:: _SAMPLED if count > 1_000 else 1])
    return figures


def _cpu_each(server: RunningServer, frames: Sequence[bytes]) -> float:
    """Processor seconds of the server for each of these questions; all answers have the same size."""
    with contextlib.closing(RawClient(server.address)) as client:
        begun = cpu_seconds(server.pid)
        pipelined(client, frames)
        return (cpu_seconds(server.pid) - begun) / len(frames)
