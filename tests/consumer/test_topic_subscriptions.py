"""All topics of a consumer: turns, bounds of what is opened at once and of what is held, one that fails."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.consumer import topic_subscription
from broker_core.consumer.topic_subscriptions import TopicSubscriptions
from tests.support.eventually import eventually
from tests.support.official_consumers import FakeBroker


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    monkeypatch.setattr(topic_subscription, "_FIRST_PAUSE", 0.000_1)
    return FakeBroker()


def _topics(broker: FakeBroker, *, queue_size: int = 1000, places: int = 4) -> TopicSubscriptions:
    return TopicSubscriptions(broker.open, queue_size=queue_size, places=places)


async def test_a_busy_topic_keeps_no_other_from_being_received(broker: FakeBroker) -> None:
    broker.publish("busy", *(f"busy-{number}" for number in range(100)))
    broker.publish("a", "a-1", "a-2")
    broker.publish("b", "b-1")
    topics = _topics(broker)
    await asyncio.gather(*topics.add(["busy", "a", "b"]))
    texts = [(await topics.take())[1].text for _ in range(6)]
    assert texts == ["busy-0", "a-1", "b-1", "busy-1", "a-2", "busy-2"]
    found = topics.take_now()
    assert found is not None
    assert found[1].text == "busy-3"


async def test_few_are_opened_at_once_and_all_share_one_queue(broker: FakeBroker) -> None:
    topics = _topics(broker, queue_size=1000, places=4)
    names = [f"t{number}" for number in range(50)]
    assert await asyncio.gather(*topics.add(names)) == [None] * 50
    assert broker.most_opening == 4
    assert {size for _, size in broker.opened} == {10}
    assert topics.budget.granted == 500


async def test_one_that_fails_stops_no_other(broker: FakeBroker) -> None:
    broker.refused["bad"] = 3
    topics = _topics(broker, places=1)
    outcomes = await asyncio.gather(*topics.add(["bad", "a", "b"]))
    assert [outcome is None for outcome in outcomes] == [False, True, True]
    await eventually(lambda: all(known.is_open for known in topics))


async def test_a_topic_that_is_gone_is_forgotten_once_it_is_closed(broker: FakeBroker) -> None:
    topics = _topics(broker)
    await asyncio.gather(*topics.add(["a", "b"]))
    topics.remove(["a", "unknown"])
    await eventually(lambda: topics.of("a") is None)
    assert len(topics) == 1
    assert broker.closed == ["a"]


async def test_topics_that_grow_many_get_smaller_queues(broker: FakeBroker) -> None:
    topics = _topics(broker, queue_size=1000)
    await asyncio.gather(*topics.add(["first"]))
    await asyncio.gather(*topics.add([f"t{number}" for number in range(99)]))
    topics.resize()
    await eventually(lambda: all(known.task is None and known.is_open for known in topics))
    assert topics.of("first") is not None
    assert broker.opened[0] == ("first", 500)
    assert broker.opened[-1] == ("first", 5)
    assert topics.budget.granted == 500


async def test_nothing_is_opened_once_it_was_given_up(broker: FakeBroker) -> None:
    broker.refused["bad"] = 10**9
    topics = _topics(broker)
    await asyncio.gather(*topics.add(["bad", "a"]))
    tasks = topics.give_up()
    assert len(tasks) == 1
    await asyncio.wait(tasks)
    await topics.end()
    assert not len(topics)
    assert broker.closed == ["a"]
    assert topics.budget.granted == 0
