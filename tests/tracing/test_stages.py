"""Stages are spans if something traces, and nothing otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from broker_core.tracing import NO_SPAN, stage
from broker_core.tracing.stages import traced_by


class Names:
    def __init__(self) -> None:
        self.made: list[tuple[str, Mapping[str, Any]]] = []

    def stage(self, name: str, values: Mapping[str, Any]) -> Any:
        self.made.append((name, values))
        return NO_SPAN


def test_without_a_tracer_there_is_one_span_for_all() -> None:
    with stage("filter", topics=1) as span:
        span.note(outcome="x")
    assert span is NO_SPAN


async def test_a_tracer_is_that_of_its_block_and_of_the_tasks_of_it() -> None:
    async def other(name: str) -> None:
        with stage(name):
            pass

    mine, yours = Names(), Names()
    with traced_by(mine):
        with stage("first", topics=1):
            pass
        task = asyncio.create_task(other("task"))
        with traced_by(yours):
            await other("inner")
        with traced_by(None):
            await other("nobody's")
    await task
    await other("after")
    assert mine.made == [("first", {"topics": 1}), ("task", {})]
    assert yours.made == [("inner", {})]
