"""Questions about single topics: shared by those that ask at a time, within permits and in time."""

from __future__ import annotations

import asyncio
import gc

import pyarrow as pa
import pytest

from broker_core import Asker, DescribeRequest, Details, TopicListingResult, TopicName
from broker_core.errors import ListingFailed
from broker_core.pipeline import PipelineOptions, TopicQuestions
from broker_core.plugin_api.listing_request import ListingRequest
from tests.support.eventually import eventually
from tests.support.pipelines import NAMESPACE, made
from tests.support.plugins import PluginOf

BASE = "persistent://t/n/"
X = TopicName.parse(f"{BASE}x")
WANTS = frozenset({"partitions"})


def question(questions: TopicQuestions, deadline: float | None = None) -> ListingRequest:
    return questions.request(NAMESPACE, "persistent", Asker(), WANTS, deadline)


async def test_it_takes_no_longer_than_a_lookup_may() -> None:
    async def never() -> TopicListingResult | None:
        await asyncio.Event().wait()
        return None

    options = PipelineOptions(time_budget=0.05)
    async with made(plugins={"p": PluginOf(list_topics=never)}, options=options) as m:
        questions = m.pipeline.topic_questions
        with pytest.raises(ListingFailed, match=r"The lookup took longer than 0\.05 s"):
            await questions.listed(question(questions), [X], ("p",))
        # What nobody waits for any more ends by itself, with all that it holds.
        await eventually(lambda: m.permits.heap.acquired == 0)
        assert question(questions, 1.0).deadline == 1.0, "no later than the caller's own"


async def test_what_was_listed_has_permits_as_long_as_it_lives() -> None:
    names = [f"{BASE}y{number:05d}" for number in range(5000)] + [f"{BASE}x"]
    plugin = PluginOf(list_topics=lambda: TopicListingResult.success(names), depends_on=lambda: ["principal"])
    async with made(plugins={"p": plugin}) as m:
        questions = m.pipeline.topic_questions
        accepted = await questions.listed(question(questions), [X], ("p",))
        assert accepted is not None
        assert accepted.selection is not None
        assert m.permits.heap.acquired > 0
        del accepted
        gc.collect()
        await eventually(lambda: m.permits.heap.acquired == 0)


async def test_a_lister_that_depends_on_the_pattern_is_asked_for_a_few_topics_alone() -> None:
    asked: list[str | None] = []

    def lists(request: ListingRequest) -> None:
        asked.append(request.topics_pattern)

    plugin = PluginOf(list_topics=lists, depends_on=lambda: ["pattern"])
    topics = [TopicName.parse(BASE + name) for name in ("b.c", "a-partition-3", "a")]
    async with made(plugins={"p": plugin}) as m:
        questions = m.pipeline.topic_questions
        for some in (topics[:1], topics, ()):
            assert await questions.listed(question(questions), some, ("p",)) is None
    assert asked == [rf"{BASE}b\.c", rf"{BASE}(?:a|b\.c)", None]


async def test_a_describer_is_asked_for_partitions_of_their_topics_too() -> None:
    asked: list[list[str]] = []

    def describe(request: DescribeRequest) -> Details:
        assert request.names is not None
        asked.append(request.names.to_pylist())
        return Details.of([f"{BASE}x"])

    async with made(plugins={"p": PluginOf(describe_topics=describe)}) as m:
        questions = m.pipeline.topic_questions
        with pytest.raises(ListingFailed, match="without the column 'partitions'"):
            await questions.described("p", question(questions), [TopicName.parse(f"{BASE}x-partition-1"), X])
    assert asked == [[f"{BASE}x-partition-1", f"{BASE}x"]]


async def test_all_of_a_namespace_with_details_whoever_lists_it() -> None:
    ids = [b"1" * 16, b"2" * 16]
    details = Details.of([f"{BASE}x", f"{BASE}y"], topic_id=ids)
    plugin = PluginOf(
        list_topics=lambda: TopicListingResult.success([f"{BASE}x", f"{BASE}y"], details=details)
    )
    async with made(plugins={"p": plugin}) as m:
        questions = m.pipeline.topic_questions
        request = questions.request(NAMESPACE, "persistent", Asker(), frozenset({"topic_id"}))
        found = await questions.detailed(request, lambda names, all_: (len(names), all_.column("topic_id")))
        assert found == (2, pa.array(ids, pa.binary(16)))
    assert m.permits.heap.acquired == 0
