"""The consumer without an event loop: the same as the other one, in a thread."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest

from broker_core.client import ClientError
from broker_core.consumer import BlockingRegexConsumer, ConsumerClosed, RegexConsumer, regex_consumer
from broker_core.testing import BlockingServer
from tests.support.official_consumers import FakeBroker
from tests.support.ports import free_ports

BASE = "persistent://public/default"
PATTERN = f"{BASE}/orders-.*"


class _Official:
    def __init__(self) -> None:
        self.broker: FakeBroker | None = None
        self._client = self

    async def subscribe(self, topic: str, *, receiver_queue_size: int, **_: Any) -> Any:
        if self.broker is None:
            self.broker = FakeBroker()
            self.broker.publish(f"{BASE}/orders-1", *"abcde")
        opened = await self.broker.open(topic, receiver_queue_size)
        return type("Opened", (), {"_consumer": opened})()

    def close_async(self, callback: Callable[..., None]) -> None:
        callback(pulsar.Result.Ok)


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    async def client(*_: Any, **__: Any) -> _Official:
        return _Official()

    monkeypatch.setattr(regex_consumer, "official_client", client)
    with BlockingServer(topics=[f"{BASE}/orders-1"]) as server:
        yield server.url


def test_messages_come_and_are_settled(url: str) -> None:
    with BlockingRegexConsumer(url, PATTERN, "sub", period=60) as consumer:
        assert consumer.topics == (f"{BASE}/orders-1",)
        assert consumer.failures == {}
        assert consumer.last_listing_error is None
        first = consumer.receive(10)
        assert first.data() == b"a"
        assert consumer.acknowledge(first)
        second, third = consumer.batch_receive(2)
        assert consumer.acknowledge_cumulative(second)
        assert consumer.negative_acknowledge(third)
        assert next(consumer).data() == b"d"
        consumer.redeliver_unacknowledged_messages()
        assert next(consumer).data() == b"c"
        assert str(consumer.last_message_id(f"{BASE}/orders-1")) == str(pulsar.MessageId.latest)
        consumer.refresh()
        with pytest.raises(KeyError):
            consumer.seek(1, f"{BASE}/unknown")
        assert len(consumer.batch_receive(10)) == 2
        with pytest.raises(TimeoutError):
            consumer.receive(0.001)
    assert "BlockingRegexConsumer" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(ConsumerClosed):
        consumer.receive()
    with pytest.raises(ConsumerClosed):
        _ = consumer.topics
    assert list(consumer) == []


def test_whoever_waits_is_told_of_the_end(url: str) -> None:
    with BlockingRegexConsumer(url, PATTERN, "sub", period=60) as consumer:
        consumer.batch_receive(10)
        outcome: list[Exception] = []

        def wait() -> None:
            try:
                consumer.receive()
            except ConsumerClosed as closed:
                outcome.append(closed)

        waiting = threading.Thread(target=wait)
        waiting.start()
    waiting.join(60)
    assert len(outcome) == 1


def test_unsubscribe_closes(url: str) -> None:
    with BlockingRegexConsumer(url, PATTERN, "sub", period=60) as consumer:
        consumer.unsubscribe()
        with pytest.raises(ConsumerClosed):
            consumer.receive()


def test_a_failed_start_leaves_no_thread() -> None:
    (port,) = free_ports(1)
    consumer = BlockingRegexConsumer(f"pulsar://127.0.0.1:{port}", PATTERN, "sub", operation_timeout=0.05)
    with pytest.raises(ClientError):
        consumer.start()
    assert "BlockingRegexConsumer" not in {thread.name for thread in threading.enumerate()}


def test_it_has_all_that_the_other_one_has() -> None:
    ours, theirs = (
        {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}
        for kind in (BlockingRegexConsumer, RegexConsumer)
    )
    assert ours == theirs
    for name in ours:
        if callable(method := getattr(RegexConsumer, name)):
            parameters = inspect.signature(method).parameters
            assert list(inspect.signature(getattr(BlockingRegexConsumer, name)).parameters) == list(
                parameters
            )
