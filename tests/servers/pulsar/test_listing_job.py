"""A listing as a frame: a small one at once, a large one later, or an error."""

from __future__ import annotations

import asyncio
from typing import Any

from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.servers.pulsar.listing_job import ListingJob, SmallListingJob
from broker_core.wire.pulsar import commands
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_handlers import Talk, decoded, talk

FEW = [f"persistent://t/n/{number}" for number in range(5)]
MANY = [f"persistent://t/n/{'x' * 100}-{number:04d}" for number in range(1000)]


def job_of(t: Talk, **question: Any) -> ListingJob:
    t.connect()
    job = t.say(commands.get_topics(7, "t/n", **question))
    assert isinstance(job, ListingJob)
    return job


def small_job_of(t: Talk, **question: Any) -> SmallListingJob:
    t.connect()
    t.say(commands.get_topics(7, "t/n", **question))
    job = t.say(commands.get_topics(7, "t/n", **question))
    assert isinstance(job, SmallListingJob)
    return job


def whole(job: ListingJob | SmallListingJob) -> bytes:
    small = job.small_answer()
    assert small is not None
    return small


async def test_a_small_answer_is_whole() -> None:
    job = job_of(talk(MemoryLister(FEW)))
    assert sorted(decoded(whole(job)).getTopicsOfNamespaceResponse.topics) == FEW
    job.release()
    job.release()  # once is enough, and more is harmless


async def test_a_large_answer_has_a_reader() -> None:
    begun = asyncio.get_running_loop().time()
    job = job_of(talk(MemoryLister(MANY)))
    assert job.small_answer() is None
    answer = await job.answer()
    assert not isinstance(answer.body, bytes | memoryview)
    parts = []
    while answer.body.left:
        parts.append(bytes(answer.body.read(10_000)))
    frame = answer.head + b"".join(parts) + answer.tail
    assert sorted(decoded(frame).getTopicsOfNamespaceResponse.topics) == MANY
    assert begun + 28 <= answer.deadline <= asyncio.get_running_loop().time() + 28
    job.release()


async def test_what_is_not_known_at_once_is_asked_for() -> None:
    begun = asyncio.get_running_loop().time()
    lister = MemoryLister(FEW, at_once=False)
    job = job_of(talk(lister))
    assert job.small_answer() is None
    job.release()  # of an answer that nobody has asked for yet
    answer = await job.answer()
    assert len(lister.asked) == 1
    assert begun + 28 <= answer.deadline <= asyncio.get_running_loop().time() + 28
    job.release()


async def test_unchanged_has_no_body() -> None:
    t = talk(MemoryLister(FEW))
    known = decoded(whole(small_job_of(t))).getTopicsOfNamespaceResponse.topics_hash
    job = t.say(commands.get_topics(8, "t/n", topics_hash=known))
    assert isinstance(job, ListingJob)
    answer = decoded(whole(job)).getTopicsOfNamespaceResponse
    assert (answer.changed, list(answer.topics)) == (False, [])
    assert (await job.answer()).body == b""


async def test_each_error_is_counted_and_a_bug_is_told_to_nobody() -> None:
    t = talk(MemoryLister(FEW))
    job: ListingJob | SmallListingJob
    for job in (job_of(t), small_job_of(t)):
        refuses(t, job)


async def test_a_listing_without_a_place_is_one_that_was_refused_unless_it_has_its_answer() -> None:
    t = talk(MemoryLister(FEW, at_once=False))
    job_of(t).no_place()
    assert rejected(t) == 1
    t = talk(MemoryLister(FEW))
    for job in (job_of(t), small_job_of(t)):
        job.no_place()
    assert rejected(t) == 0
    assert errors_sent(t)[1] == 2


def rejected(t: Talk) -> float | None:
    labels = {"reason": "lookups"}
    return t.metrics.registry.get_sample_value("broker_core_listing_rejected_total", labels)


def refuses(t: Talk, job: ListingJob | SmallListingJob) -> None:
    before = errors_sent(t)
    failure = ListingFailed("no", cause=Cause.CATALOG, reason="catalog")
    refusal = job.refusal(failure)
    assert refusal is not None
    assert decoded(refusal).error.message == "no"
    assert job.refusal(KeyError("bug")) is None
    assert decoded(job.no_place()).error.error == ServerError.TooManyRequests
    assert errors_sent(t) == [count + 1 for count in before]
    job.release()


def errors_sent(t: Talk) -> list[float]:
    return [
        t.metrics.registry.get_sample_value("broker_core_listing_errors_sent_total", {"reason": reason}) or 0
        for reason in ("catalog", "lookups")
    ]


async def test_an_answer_of_the_whole_namespace_holds_no_memory_of_its_own() -> None:
    t = talk(MemoryLister(FEW))
    job: ListingJob | SmallListingJob
    for job in (job_of(t), small_job_of(t)):
        assert not job.holds(t.pipeline.permits.heap)
        assert not job.holds(t.pipeline.permits.snapshots)
        job.release()


async def test_a_small_frame_that_cannot_be_sent_at_once_is_sent_later() -> None:
    begun = asyncio.get_running_loop().time()
    job = small_job_of(talk(MemoryLister(FEW)))
    answer = await job.answer()
    assert (answer.head, answer.body, answer.tail) == (b"", whole(job), b"")
    assert begun + 28 <= answer.deadline <= asyncio.get_running_loop().time() + 28


async def test_rows_that_are_gathered_hold_heap_permits() -> None:
    t = talk(MemoryLister(MANY))
    job = job_of(t, topics_pattern="t/n/x+-.*[02468]")
    await job.answer()
    assert job.holds(t.pipeline.permits.heap)
    assert not job.holds(t.pipeline.permits.direct)
    job.release()
    assert not job.holds(t.pipeline.permits.heap)
    assert t.pipeline.permits.heap.acquired == 0
