"""The consumer with a real listing server and stand-ins for the brokers' consumers; real brokers: tests/interop."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pulsar
import pytest

from broker_core.client import ClientError, ConnectionLost, LookupClient, ServerRefused
from broker_core.consumer import ConsumerClosed, RegexConsumer, regex_consumer, topic_subscription
from broker_core.errors import InvalidPattern
from broker_core.testing import Server, serve
from tests.support.eventually import eventually
from tests.support.official_consumers import FakeBroker, FakeMessage
from tests.support.ports import free_ports

BASE = "persistent://public/default"
PATTERN = f"{BASE}/orders-.*"
_OK = pulsar.Result.Ok


class _Official:
    """The official client: subscribes at a :class:`FakeBroker`."""

    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self.options: list[dict[str, Any]] = []
        self.held: list[Callable[..., None]] | None = (
            None  # the ends that were asked for, where they are held back
        )
        self._client = self

    async def subscribe(self, topic: str, *, receiver_queue_size: int, **options: Any) -> Any:
        self.options.append(options)
        opened = await self.broker.open(topic, receiver_queue_size)
        return type("Opened", (), {"_consumer": opened})()

    def close_async(self, callback: Callable[..., None]) -> None:
        for consumer in self.broker.consumers.values():
            consumer.lose()
        if self.held is None:
            callback(_OK)
        else:
            self.held.append(callback)


class _Stage:
    def __init__(self, server: Server, broker: FakeBroker, official: _Official) -> None:
        self.server, self.broker, self.official = server, broker, official

    def consumer(self, pattern: Any = PATTERN, **options: Any) -> RegexConsumer:
        return RegexConsumer(self.server.url, pattern, "sub", **{"period": 0.01, **options})


@pytest.fixture
def new_stage(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractAsyncContextManager[_Stage]]:
    @asynccontextmanager
    async def made(*topics: str) -> AsyncIterator[_Stage]:
        broker = FakeBroker()
        official = _Official(broker)

        async def client(*_: Any, **__: Any) -> _Official:
            return official

        monkeypatch.setattr(regex_consumer, "official_client", client)
        monkeypatch.setattr(topic_subscription, "_FIRST_PAUSE", 0.000_1)
        async with serve(topics=[f"{BASE}/{topic}" for topic in topics]) as server:
            yield _Stage(server, broker, official)

    return made


Stages = Callable[..., AbstractAsyncContextManager[_Stage]]


@pytest.mark.filterwarnings("ignore::broker_core.client.ListingWarning")  # nothing selects by it here
async def test_a_server_that_tells_of_changes_is_not_asked_for_them(
    new_stage: Callable[..., AbstractAsyncContextManager[_Stage]],
) -> None:
    async with new_stage("orders-a") as stage:
        async with stage.consumer(period=3600.0, watch=True) as consumer:
            await eventually(lambda: consumer.is_watching)
            await stage.server.create(f"{BASE}/orders-b")
            await stage.server.create(f"{BASE}/clicks")
            await eventually(lambda: set(consumer.topics) == {f"{BASE}/orders-a", f"{BASE}/orders-b"})
            await stage.server.delete(f"{BASE}/orders-a")
            await eventually(lambda: consumer.topics == (f"{BASE}/orders-b",))
        assert not consumer.is_watching
        async with stage.consumer(watch=True, properties={"region": "eu"}) as consumer:
            assert not consumer.is_watching


@pytest.mark.filterwarnings("ignore::broker_core.client.ListingWarning")  # nothing selects by it here
async def test_it_consumes_what_matches_and_follows_it(new_stage: Stages) -> None:
    async with new_stage("orders-1", "orders-2", "other") as stage:
        stage.broker.publish(f"{BASE}/orders-1", "a", "b")
        stage.broker.publish(f"{BASE}/other", "hidden")
        async with stage.consumer(re.compile(PATTERN), properties={"team": "blue"}) as consumer:
            assert sorted(consumer.topics) == [f"{BASE}/orders-1", f"{BASE}/orders-2"]
            messages = [await consumer.receive(), await consumer.receive()]
            assert [message.data() for message in messages] == [b"a", b"b"]
            assert await consumer.acknowledge(messages[0])
            await stage.server.create(f"{BASE}/orders-3")
            stage.broker.publish(f"{BASE}/orders-3", "c")
            assert (await consumer.receive()).topic_name() == f"{BASE}/orders-3"
            await stage.server.delete(f"{BASE}/orders-1")
            await eventually(lambda: f"{BASE}/orders-1" not in consumer.topics)
            assert not await consumer.acknowledge(messages[1])
            assert not consumer.negative_acknowledge(messages[1])
            # It returns, and goes on where it was.
            await stage.server.create(f"{BASE}/orders-1")
            assert (await consumer.receive()).data() == b"b"
            assert consumer.failures == {}
            assert consumer.last_listing_error is None
        assert not stage.broker.unsubscribed
        options = stage.official.options[0]
        assert options["properties"] == {"team": "blue"}
        assert options["subscription_name"] == "sub"


async def test_nothing_is_lost_while_the_listing_fails(new_stage: Stages) -> None:
    async with new_stage("orders-1") as stage, stage.consumer() as consumer:

        async def fail(*_: Any, **__: Any) -> None:
            raise ClientError("no listing")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(consumer._lookups, "get_topics_under_namespace", fail)
            await eventually(lambda: str(consumer.last_listing_error) == "no listing")
            assert consumer.topics == (f"{BASE}/orders-1",)
            stage.broker.publish(f"{BASE}/orders-1", "a")
            assert (await consumer.receive()).data() == b"a"
        consumer.refresh()
        await eventually(lambda: consumer.last_listing_error is None)


async def test_batches_iteration_and_the_end(new_stage: Stages) -> None:
    async with new_stage("orders-1", "orders-2") as stage:
        for topic in ("orders-1", "orders-2"):
            stage.broker.publish(f"{BASE}/{topic}", *"abc")
        async with stage.consumer() as consumer:
            assert [message.data() for message in await consumer.batch_receive(4)] == [b"a", b"a", b"b", b"b"]
            rest = []
            async for message in consumer:
                rest.append(message.data())
                if len(rest) == 2:
                    await consumer.close()
            assert rest == [b"c", b"c"]
            with pytest.raises(ConsumerClosed):
                await consumer.receive()
            assert consumer.topics == ()
        with pytest.raises(RuntimeError, match="once"):
            await consumer.start()


async def test_no_message_within_the_time(new_stage: Stages) -> None:
    async with new_stage() as stage, stage.consumer() as consumer:
        assert consumer.topics == ()
        with pytest.raises(TimeoutError):
            await consumer.receive(0.001)
        assert await consumer.batch_receive(timeout=0.001) == []


async def test_topics_that_fail_are_tried_on(new_stage: Stages) -> None:
    async with new_stage("orders-1", "orders-2") as stage:
        stage.broker.refused[f"{BASE}/orders-1"] = 10**9
        async with stage.consumer() as consumer:
            assert consumer.topics == (f"{BASE}/orders-2",)
            assert list(consumer.failures) == [f"{BASE}/orders-1"]
            stage.broker.refused.clear()
            await eventually(lambda: len(consumer.topics) == 2)


async def test_it_does_not_start_where_no_topic_can_be_opened(
    new_stage: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with new_stage("orders-1", "orders-2") as stage:
        stage.broker.refused = {f"{BASE}/orders-1": 10**9, f"{BASE}/orders-2": 10**9}
        with pytest.raises(ServerRefused, match="This server lists topics and serves none"):
            await stage.consumer().start()

        async def lost(*_: Any, **__: Any) -> None:
            raise ConnectionLost("lost")

        monkeypatch.setattr(LookupClient, "lookup", lost)
        with pytest.raises(pulsar.asyncio.PulsarException, match="ConsumerBusy"):
            await stage.consumer().start()


async def test_it_does_not_start_without_a_listing(new_stage: Stages) -> None:
    (port,) = free_ports(1)
    async with new_stage() as stage:
        consumer = stage.consumer(lookup_url=f"pulsar://127.0.0.1:{port}", operation_timeout=0.05)
        with pytest.raises(ClientError):
            await consumer.start()
        with pytest.raises(RuntimeError, match="not started"):
            await RegexConsumer(stage.server.url, PATTERN, "sub").receive()


async def test_a_pattern_needs_a_namespace() -> None:
    with pytest.raises(InvalidPattern, match="namespace"):
        RegexConsumer("pulsar://a", "orders-.*", "sub")
    with pytest.raises(TypeError, match="queue_size"):
        RegexConsumer("pulsar://a", PATTERN, "sub", receiver_queue_size=5)


async def test_a_lost_discovery_is_told(
    new_stage: Stages, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with new_stage("orders-1") as stage, stage.consumer() as consumer:

        async def broken(*_: Any, **__: Any) -> None:
            raise LookupError("a bug")

        monkeypatch.setattr(consumer._lookups, "get_topics_under_namespace", broken)
        with pytest.raises(LookupError, match="a bug"):
            await consumer.receive()
        assert "not followed any more" in caplog.text


async def test_unsubscribe_is_for_all_that_are_open(new_stage: Stages) -> None:
    async with new_stage("orders-1", "orders-2") as stage:
        consumer = stage.consumer()
        await consumer.start()
        await consumer.unsubscribe()
        assert sorted(stage.broker.unsubscribed) == [f"{BASE}/orders-1", f"{BASE}/orders-2"]
        with pytest.raises(ConsumerClosed):
            await consumer.receive()


async def test_positions(new_stage: Stages) -> None:
    async with new_stage("orders-1", "orders-2") as stage, stage.consumer() as consumer:
        sought: list[Any] = []
        for opened in stage.broker.consumers.values():

            def seek(position: Any, callback: Callable[..., None]) -> None:
                sought.append(position)
                callback(_OK)

            opened.seek_async = seek  # type: ignore[method-assign]
        await consumer.seek(pulsar.MessageId.earliest)
        await consumer.seek(datetime(2026, 1, 1, tzinfo=UTC))
        one = pulsar.MessageId(0, 5, 7, -1)
        await consumer.seek(one, f"{BASE}/orders-1")
        assert list(map(str, sought)) == [
            *[str(pulsar.MessageId.earliest)] * 2,
            *["1767225600000"] * 2,
            str(one),
        ]
        with pytest.raises(ValueError, match="name it"):
            await consumer.seek(one)
        with pytest.raises(KeyError):
            await consumer.seek(1, f"{BASE}/unknown")
        assert str(await consumer.last_message_id(f"{BASE}/orders-1")) == str(pulsar.MessageId.latest)
        with pytest.raises(KeyError):
            await consumer.last_message_id(f"{BASE}/unknown")


async def test_all_is_delivered_again(new_stage: Stages) -> None:
    async with new_stage("orders-1") as stage, stage.consumer() as consumer:
        stage.broker.publish(f"{BASE}/orders-1", "a", "b")
        assert (await consumer.receive()).data() == b"a"
        consumer.redeliver_unacknowledged_messages()
        assert [(await consumer.receive()).data() for _ in range(2)] == [b"a", b"b"]


async def test_it_does_not_consume_its_own_dead_letters(new_stage: Stages) -> None:
    names = {"orders-1", "orders-1-sub-DLQ", "orders-1-other-DLQ"}
    policy = pulsar.ConsumerDeadLetterPolicy(1)
    async with new_stage(*names) as stage, stage.consumer(dead_letter_policy=policy) as consumer:
        assert {topic.removeprefix(f"{BASE}/") for topic in consumer.topics} == {
            "orders-1",
            "orders-1-other-DLQ",
        }


@pytest.mark.parametrize(
    ("policy", "own"),
    [
        (
            pulsar.ConsumerDeadLetterPolicy(1),
            {"orders-1-sub-DLQ", "orders-1-partition-0-sub-DLQ-partition-0"},
        ),
        (pulsar.ConsumerDeadLetterPolicy(1, f"{BASE}/dead"), {"dead", "dead-partition-3"}),
        (None, set()),
    ],
)
def test_dead_letters_are_known_by_name(policy: Any, own: set[str]) -> None:
    names = {
        *("orders-1", "orders-1-sub-DLQ", "orders-1-partition-0-sub-DLQ-partition-0", "orders-1-other-DLQ"),
        *("dead", "dead-partition-3", "dead-2", "undead"),
    }
    is_own = regex_consumer._own_dead_letters("sub", policy)
    assert {name for name in names if is_own(f"{BASE}/{name}")} == own


async def test_a_close_that_is_cancelled_goes_on_and_others_wait_for_its_end(new_stage: Stages) -> None:
    async with new_stage("orders-1") as stage:
        held: list[Callable[..., None]] = []
        stage.official.held = held
        consumer = stage.consumer()
        await consumer.start()
        cancelled = asyncio.create_task(consumer.close())
        await eventually(lambda: held)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        others = [asyncio.create_task(consumer.close()) for _ in range(2)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert not any(other.done() for other in others)
        (end,) = held
        end(_OK)
        await asyncio.gather(*others)
        with pytest.raises(ConnectionLost, match="is closed"):
            await consumer._lookups.get_topics_under_namespace("public/default")


async def test_a_topic_that_is_listed_as_a_whole_and_has_partitions_at_the_broker(new_stage: Stages) -> None:
    """Its messages have the names of the partitions."""
    topic, partition = f"{BASE}/orders-1", f"{BASE}/orders-1-partition-2"
    async with new_stage("orders-1") as stage:
        sent = [FakeMessage(partition, text) for text in "ab"]
        stage.broker.messages[topic] = deque(sent)
        async with stage.consumer() as consumer:
            first, second = await consumer.batch_receive(1) + await consumer.batch_receive(1)
            assert first.topic_name() == partition
            assert await consumer.acknowledge(first)
            assert consumer.negative_acknowledge(second)
            assert stage.broker.acknowledged == sent[:1]
            opened = stage.broker.consumers[topic]
            assert opened.nacked == sent[1:]
            with pytest.raises(ValueError, match=r"is consumed with the other partitions of .*/orders-1:"):
                await consumer.seek(pulsar.MessageId.earliest, partition)
            seeking = asyncio.create_task(consumer.seek(pulsar.MessageId(0, 1, 2, 3), partition))
            await eventually(lambda: opened.seeks)
            opened.seeks[0][1](_OK)
            await seeking
            assert await consumer.last_message_id(partition) is not None
            for other in (f"{BASE}/orders-2-partition-0", f"{BASE}/orders-1-partition-x"):
                with pytest.raises(KeyError):
                    await consumer.last_message_id(other)


@pytest.mark.parametrize("topic", ["dead", "public/default/dead", "persistent://public/default/dead"])
async def test_own_dead_letters_are_known_by_every_form_of_their_name(new_stage: Stages, topic: str) -> None:
    async with new_stage("dead", "dead-partition-0", "dead-2", "live") as stage:
        policy = pulsar.ConsumerDeadLetterPolicy(2, dead_letter_topic=topic)
        consumer = stage.consumer(
            f"{BASE}/.*", dead_letter_policy=policy, consumer_type=pulsar.ConsumerType.Shared
        )
        async with consumer:
            assert sorted(consumer.topics) == [f"{BASE}/dead-2", f"{BASE}/live"]


async def test_numbers_that_are_none(new_stage: Stages) -> None:
    with pytest.raises(ValueError, match="parallel is 1 topic at least"):
        RegexConsumer("pulsar://a", PATTERN, "sub", parallel=0)
    async with new_stage("orders-1") as stage, stage.consumer() as consumer:
        with pytest.raises(ValueError, match="max_messages is 1 at least"):
            await consumer.batch_receive(0)
        with pytest.raises(ValueError, match="timeout is a number of seconds"):
            await consumer.receive(float("nan"))
