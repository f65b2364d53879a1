from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.servers.connection import Closing
from broker_core.servers.kafka.callers.authorizer import Caller
from broker_core.servers.kafka.request_metrics import RequestMetrics
from broker_core.servers.kafka.requests.call import CloseClient, HandlerRow, KafkaCall, of_many
from broker_core.servers.kafka.requests.request_job import RequestJob
from broker_core.service import Quotas
from broker_core.settings import LimitsSettings, QuotaSettings
from broker_core.wire.kafka import METADATA, Encoded, Fields, MalformedMessage, read_response
from tests.support.eventually import eventually
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_calls import call_of, services_of


async def answered(_: KafkaCall) -> Fields:
    return {"topics": Encoded(0, [])}


def job() -> RequestJob:
    return RequestJob(HandlerRow(METADATA, answered), call_of(METADATA, 12))


def test_the_answer_is_one_frame() -> None:
    answer = asyncio.run(job().answer())
    assert not isinstance(answer.body, bytes | memoryview)
    data = b""
    while answer.body.left:
        data += answer.body.read(7)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert read_response(METADATA, 12, data[4:])[1]["topics"] == []


@pytest.mark.parametrize("error", [CloseClient("no"), CloseClient("no", "slow")])
def test_a_request_without_an_answer_closes_the_client(error: CloseClient) -> None:
    done = job().refusal(error)
    assert isinstance(done, Closing)
    assert done.reason == error.reason
    assert job().refusal(ValueError()) is None
    assert isinstance(job().no_place(), Closing)


async def test_the_authorizer_learns_of_changes_before_a_request_is_answered() -> None:
    asked: list[str] = []

    class Learning(AllowAll):
        async def refresh(self, _call: Caller) -> None:
            asked.append("refresh")

    def known(_call: KafkaCall) -> Fields:
        asked.append("known")
        return METADATA.response.defaults()

    async def waits(call: KafkaCall) -> Fields:
        return known(call)

    call = call_of(METADATA, 12, services=replace(services_of(), authorizer=Learning()))
    for answer in (known, waits):
        await RequestJob(HandlerRow(METADATA, answer), call).answer()
    begun = RequestJob(
        HandlerRow(METADATA, waits), call, waits(call)
    )  # which the authorizer is up to date for
    await begun.answer()
    assert asked == ["refresh", "known", "refresh", "known", "known"]


@pytest.mark.filterwarnings("error")
async def test_a_request_without_a_place_is_not_answered() -> None:
    row = HandlerRow(METADATA, answered)
    begun = RequestJob(row, call := call_of(METADATA, 12), coroutine := answered(call))
    begun.release()
    with pytest.raises(RuntimeError, match="cannot reuse"):
        await coroutine


async def test_acls_that_cannot_be_read_are_no_answer() -> None:
    class Broken(AllowAll):
        async def refresh(self, _call: Caller) -> None:
            raise ListingFailed("the disk is gone", cause=Cause.CATALOG, reason="catalog")

    call = call_of(METADATA, 12, services=replace(services_of(), authorizer=Broken()))
    with pytest.raises(CloseClient, match="the disk is gone"):
        await RequestJob(HandlerRow(METADATA, answered), call).answer()


async def test_a_large_request_is_read_in_a_thread() -> None:
    threads: list[int] = []

    def read() -> Fields:
        threads.append(threading.get_ident())
        return {"topics": ["read"]}

    def body_of(call: KafkaCall) -> Fields:
        assert call.body == {"topics": ["read"]}
        return METADATA.response.defaults()

    await RequestJob(HandlerRow(METADATA, body_of), call_of(METADATA, 12), read=read).answer()
    assert threads != [threading.get_ident()]


async def test_a_large_request_that_is_malformed_is_a_bad_frame() -> None:
    def read() -> Fields:
        raise MalformedMessage("too many elements")

    with pytest.raises(CloseClient, match="too many elements") as closed:
        await RequestJob(HandlerRow(METADATA, answered), call_of(METADATA, 12), read=read).answer()
    assert closed.value.reason == "bad_frame"


async def test_the_time_of_a_request_begins_with_the_turn_that_its_quota_gives_it() -> None:
    quotas = Quotas([QuotaSettings(name="q", requests=5, burst=0.2)], Metrics(), time.monotonic)
    asker = Asker("alice", remote_address="192.0.2.1:1")
    quotas.turn(asker)
    turn = quotas.turn(asker)
    assert turn is not None
    assert turn.wait > 0.1
    call = replace(call_of(METADATA, 12), turn=turn, deadline=asyncio.get_running_loop().time() + 0.01)

    async def waits(call: KafkaCall) -> Fields:
        await asyncio.sleep(0)
        return await answered(call)

    await RequestJob(HandlerRow(METADATA, waits), call).answer()


async def test_a_large_answer_holds_memory_until_it_is_written() -> None:
    permits = Permits(LimitsSettings(heap_permits=1024 * 1024))
    services = replace(services_of(), pipeline=SimpleNamespace(permits=permits))  # type: ignore[arg-type]

    async def large(_: KafkaCall) -> Fields:
        return {"topics": Encoded(1, [bytes(400_000), bytes(400_000)])}

    call = replace(call_of(METADATA, 12, services=services), deadline=asyncio.get_running_loop().time() + 60)
    first, second = (RequestJob(HandlerRow(METADATA, large), call) for _ in range(2))
    assert not first.holds(permits.heap)
    await first.answer()
    assert first.holds(permits.heap)
    assert not first.holds(permits.snapshots)
    assert 800_000 < permits.heap.acquired < 801_000
    waiting = asyncio.create_task(second.answer())
    await eventually(lambda: permits.heap.queue_size == 1)
    first.release()
    first.release()
    await waiting
    second.release()
    assert permits.heap.acquired == 0


async def test_no_memory_for_an_answer_closes_the_client() -> None:
    permits = Permits(LimitsSettings(heap_permits=1024 * 1024))
    permits.heap.close()
    services = replace(services_of(), pipeline=SimpleNamespace(permits=permits))  # type: ignore[arg-type]

    async def large(_: KafkaCall) -> Fields:
        return {"topics": Encoded(1, [bytes(400_000)])}

    call = call_of(METADATA, 12, services=services)
    with pytest.raises(CloseClient, match="no memory"):
        await RequestJob(HandlerRow(METADATA, large), call).answer()
    done = job().refusal(TooManyRequests("no permits", reason="direct"))
    assert isinstance(done, Closing)


async def test_a_large_request_is_handled_in_its_turn_and_encoded_in_a_thread() -> None:
    """What needs no waiting is made in a thread too: one request may ask for very much of it."""
    threads: list[int] = []
    services = services_of()

    def now(_call: KafkaCall) -> Fields:
        threads.append(threading.get_ident())
        return {}

    def read() -> Fields:
        threads.append(threading.get_ident())
        return METADATA.request.defaults()

    row = HandlerRow(METADATA, of_many(now))
    # The time that it had when it came is over: it has its time from its turn on.
    call = replace(call_of(METADATA, 12, services=services), size=10**6, deadline=0.0)
    async with services.large_requests.turn(10**6, Asker(remote_address="127.0.0.1:1")):
        answer = asyncio.create_task(RequestJob(row, call, read=read).answer())
        small = RequestJob(HandlerRow(METADATA, answered), call_of(METADATA, 12, services=services))
        await small.answer()  # it waits for nothing
        assert not threads
    assert (await answer).deadline > asyncio.get_running_loop().time()
    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_an_answer_that_is_no_frame_closes_the_client() -> None:
    async def vast(_call: KafkaCall) -> Fields:
        return {"topics": Encoded(1, [bytes(16 * 1024)] * 2**17)}

    with pytest.raises(CloseClient, match="is no frame"):
        await RequestJob(HandlerRow(METADATA, vast), call_of(METADATA, 12)).answer()


async def test_a_client_that_leaves_is_counted() -> None:
    services = replace(services_of(), requests=RequestMetrics(metrics := Metrics()))

    async def never(_: KafkaCall) -> Fields:
        return await asyncio.Future()

    task = asyncio.create_task(
        RequestJob(HandlerRow(METADATA, never), call_of(METADATA, 12, services=services)).answer()
    )
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    labels = {"api": "Metadata", "error": "cut"}
    assert metrics.registry.get_sample_value("broker_core_kafka_requests_total", labels) == 1
