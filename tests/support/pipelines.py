"""A pipeline without sockets, over a lister in memory: for tests of what it takes and of what it tells."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from broker_core import ListingRequest
from broker_core.access.asker import Asker
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.names import NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.pipeline import Answer, EventSinks, Pipeline, PipelineOptions, ReusableAnswer
from broker_core.plugins import Dispatcher, PluginRegistry
from broker_core.settings import LimitsSettings
from tests.support.memory_lister import MemoryLister

__all__ = ["FEW", "NAMES", "NAMESPACE", "Made", "made", "names", "request"]

NAMESPACE = NamespaceName("t", "n")
NAMES = [f"persistent://t/n/{number % 7}-{number:05d}" for number in range(20_000)]
FEW = NAMES[:10]


@dataclass
class Made:
    pipeline: Pipeline
    permits: Permits
    metrics: Metrics
    lister: Any

    async def ask(self, **fields: Any) -> Answer:
        return await self.pipeline.answer(request(**fields))

    def again(self, reusable: ReusableAnswer, **who: Any) -> bool:
        ended = self.pipeline.answer_again(reusable, Asker(**who))
        if ended is None:
            return False
        ended(None)
        return True

    def sample(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"broker_core_{name}", labels) or 0.0


def request(pattern: str | None = None, **fields: Any) -> ListingRequest:
    return ListingRequest(
        NAMESPACE, **{"pattern": None if pattern is None else compile_pattern(pattern), **fields}
    )


@asynccontextmanager
async def made(
    lister: Any = None,
    plugins: Mapping[str, object] | None = None,
    *,
    limits: LimitsSettings | None = None,
    options: PipelineOptions | None = None,
    tables: Mapping[str, Mapping[str, object]] | None = None,
    sinks: EventSinks | None = None,
) -> AsyncIterator[Made]:
    permits, metrics = Permits(limits), Metrics()
    dispatcher = Dispatcher(PluginRegistry.load(given=plugins or {}, tables=tables))
    lister = MemoryLister(NAMES, at_once=False) if lister is None else lister
    pipeline = Pipeline(lister, dispatcher, permits, metrics, options, sinks=sinks)
    await dispatcher.startup()
    try:
        yield Made(pipeline, permits, metrics, lister)
    finally:
        await dispatcher.shutdown()
        pipeline.close()
        assert permits.heap.acquired == permits.heap.queue_size == 0


def names(answer: Answer) -> list[str]:
    try:
        assert answer.selection is not None
        return list(answer.selection.names.to_pylist())
    finally:
        answer.release()
