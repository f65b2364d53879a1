"""Listings that are answered without waiting, and listings that are not."""

from __future__ import annotations

import pytest

from broker_core.errors import ListingFailed
from broker_core.pipeline import Answer, PipelineOptions, filter_hash_and_permits
from broker_core.settings import LimitsSettings, PatternsSettings
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, made, request
from tests.support.plugins import PluginOf


async def test_what_would_have_to_wait_is_not_answered_at_once() -> None:
    large = [f"persistent://t/n/{number:06d}-{'x' * 60}" for number in range(30_000)]
    async with made(MemoryLister(large)) as m:
        now = m.pipeline.answer_now
        assert now(request()) is None  # its hash is not known yet
        (await m.ask()).release()
        whole = now(request())
        assert whole is not None
        whole.release()
        scan = {"pattern": ".*[13579]-x*"}
        assert now(request(**scan)) is None  # a long scan
        (await m.ask(**scan)).release()
        assert now(request(**scan)) is None  # known now, but its bytes would have to be gathered
        short = now(request(pattern="t/n/0000.*"))
        assert short is not None
        short.release()
        m.lister.at_once = False
        assert now(request()) is None


async def test_scattered_rows_wait_for_heap_permits_and_slices_do_not() -> None:
    async with made(MemoryLister(FEW), limits=LimitsSettings(heap_permits=10_000)) as m:
        held = await m.permits.heap.acquire(10_000)
        slice_ = m.pipeline.answer_now(request(pattern="t/n/0.*"))
        assert slice_ is not None
        assert m.pipeline.answer_now(request(pattern="t/n/.*[02468]")) is None
        held.release()
        scattered = m.pipeline.answer_now(request(pattern="t/n/.*[02468]"))
        assert scattered is not None
        assert m.permits.heap.acquired > 0
        scattered.release()


async def test_where_plugins_have_a_say_nothing_is_answered_at_once() -> None:
    plugins = {
        "lists": PluginOf(list_topics=lambda: None),
        "masks": PluginOf(visible=lambda: None),
    }
    for name, plugin in plugins.items():
        async with made(MemoryLister(FEW), {name: plugin}) as m:
            assert m.pipeline.answer_now(request()) is None
        tables = {name: {"namespaces": ["other/*"]}}
        async with made(MemoryLister(FEW), {name: plugin}, tables=tables) as m:
            answer = m.pipeline.answer_now(request())
            assert answer is not None
            answer.release()


async def test_an_error_at_once() -> None:
    strict = PipelineOptions(PatternsSettings(unsupported="error"))
    async with made(MemoryLister(FEW), options=strict) as m:
        with pytest.raises(ListingFailed, match="Unsupported topics pattern") as raised:
            m.pipeline.answer_now(request(pattern="(?!x)"))
        assert raised.value.reason == "bad_pattern"
        assert m.sample("listing_rejected_total", reason="bad_pattern") == 1
        with pytest.raises(ListingFailed, match="Unsupported topics pattern"):
            await m.ask(pattern="(?!x)")


@pytest.mark.parametrize("rule", ["is_unchanged", "listing_plan"])
async def test_a_rule_that_changes_changes_both_ways(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step decides by one function, whether the answer is made at once or waits."""
    async with made(MemoryLister(FEW)) as m:
        whole = await m.ask()
        whole.release()
        asked = request(pattern="t/n/.*", topics_hash=whole.topics_hash)

        async def both() -> list[tuple[bool, str]]:
            at_once = m.pipeline.answer_now(asked)
            assert at_once is not None
            answers: list[Answer] = [at_once, await m.pipeline.answer(asked)]
            for answer in answers:
                answer.release()
            return [(answer.changed, answer.plan) for answer in answers]

        before = await both()
        monkeypatch.setattr(filter_hash_and_permits, rule, lambda *_, **__: "")
        after = await both()
        assert before[0] == before[1] != after[0] == after[1]
