"""The cost of one change, and of pages, in the process that answers: prints a JSON object.

Arguments (a JSON object): ``catalog``, ``namespace``, ``property_keys``, ``topics`` (a sample of local names that are
there), ``repeats``, ``pinned`` (how many old versions are held at a time).

A change is committed before the clock runs. The clock runs until the pipeline has answered with the whole namespace and
its hash: the change is found, the listing is made from the one before, and the hash computed. Memory is the highest
resident memory meanwhile, less what was resident before. The allocator is set as the server sets it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from broker_core import ListingRequest, NamespaceName, Page, Position, TopicName
from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.memory import keep_freed_memory
from broker_core.settings import Settings

PAGE = 1_000


class Probe:
    """A broker in this process, and the catalogue that it answers from, opened once more to change it."""

    def __init__(self, broker: Broker, catalog: SqliteCatalog, arguments: dict[str, Any]) -> None:
        self.broker = broker
        self.catalog = catalog
        self.namespace = NamespaceName.parse(arguments["namespace"])
        self.topics: list[str] = arguments["topics"]
        self.repeats: int = arguments["repeats"]
        self.turn = 0

    async def ask(self, page: Page | None = None) -> Any:
        """An answer of the pipeline; its hash is known."""
        loop = asyncio.get_running_loop()
        request = ListingRequest(self.namespace, page=page, deadline=loop.time() + 600)
        return await self.broker.pipeline.answer(request)

    async def cost(self, page: Page | None = None) -> tuple[float, int]:
        """Processor seconds of all threads, and bytes at most, of one answer."""
        before = resident("VmRSS")
        reset_peak()
        begun = time.process_time()
        answer = await self.ask(page)
        spent = time.process_time() - begun
        most = max(resident("VmHWM") - before, 0)
        answer.release()
        return spent, most

    def topic(self, local: str) -> TopicName:
        return TopicName("persistent", self.namespace, local)

    def changes(self) -> dict[str, Callable[[], object]]:
        """One change of each kind, somewhere in the namespace, the next time somewhere else."""
        self.turn += 1
        near = self.topics[self.turn % len(self.topics)]
        new = self.topic(f"{near}-new-{self.turn}")
        return {
            "create": lambda: self.catalog.create(new),
            "delete": lambda: self.catalog.delete(new),
            "property": lambda: self.catalog.set_properties(self.topic(near), {"region": f"r-{self.turn}"}),
        }

    async def one_change(self) -> AsyncIterator[tuple[str, tuple[float, int]]]:
        """What the first answer after each kind of change costs."""
        for kind, change in self.changes().items():
            change()
            yield kind, await self.cost()

    async def pinned(self, count: int) -> float:
        """Bytes that a held answer of an old version keeps, when a topic was created since."""
        (await self.ask()).release()
        gc.collect()
        before = resident("RssAnon")
        held = []
        for _ in range(count):
            held.append(await self.ask())
            self.changes()["create"]()
            (await self.ask()).release()
        gc.collect()
        kept = (resident("RssAnon") - before) / count
        for answer in held:
            answer.release()
        return max(kept, 0.0)


def reset_peak() -> None:
    """Let ``VmHWM`` begin at what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def resident(field: str) -> int:
    """Bytes of this process by a field of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field}")


@contextlib.asynccontextmanager
async def opened(arguments: dict[str, Any]) -> AsyncIterator[Probe]:
    """A probe; snapshots in files are off, if the tree has them: they are written later, by another thread."""
    catalog = {"path": arguments["catalog"], "property_keys": arguments["property_keys"]}
    tables: dict[str, Any] = {
        "pulsar": {"listen": "127.0.0.1:0"},
        "limits": {"snapshots": 64 * 1024**3},
        "catalog": {**catalog, "snapshots": "off"},
    }
    try:
        settings = Settings(**tables)
    except ValueError:  # a tree without this setting
        settings = Settings(**{**tables, "catalog": catalog})
    with SqliteCatalog(arguments["catalog"]) as changed:
        async with Broker(settings) as broker:
            yield Probe(broker, changed, arguments)


async def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything."""
    async with opened(arguments) as probe:
        figures: dict[str, Any] = {"load": await probe.cost()}
        gc.collect()
        for _ in range(probe.repeats):
            async for kind, cost in probe.one_change():
                figures.setdefault(kind, []).append(cost)
        figures["unchanged"] = [await probe.cost() for _ in range(probe.repeats)]
        figures["pinned"] = await probe.pinned(arguments["pinned"])
        middle = Position.of(str(probe.topic(sorted(probe.topics)[len(probe.topics) // 2])))
        await probe.cost(Page(None, PAGE))
        for name, page in (("first page", Page(None, PAGE)), ("middle page", Page(middle, PAGE))):
            figures[name] = [await probe.cost(page) for _ in range(probe.repeats)]
        figures["page after a change"] = []
        for _ in range(probe.repeats):
            probe.changes()["create"]()
            figures["page after a change"].append(await probe.cost(Page(middle, PAGE)))
        return figures


if __name__ == "__main__":
    keep_freed_memory()
    print(json.dumps(asyncio.run(measure(json.loads(sys.argv[1])))))
