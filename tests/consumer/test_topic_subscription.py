"""One topic and its consumer: opening, failing, closing, acknowledging, seeking, redelivery and new sizes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pulsar
import pytest
from pulsar.asyncio import PulsarException

from broker_core.consumer import topic_subscription
from broker_core.consumer.prefetch_budget import PrefetchBudget
from broker_core.consumer.ready_messages import ReadyMessages
from broker_core.consumer.topic_subscription import SharedParts, TopicSubscription
from tests.support.eventually import eventually
from tests.support.official_consumers import FakeBroker

_OK = pulsar.Result.Ok
_TIMEOUT = pulsar.Result.Timeout


class _Stage:
    """A topic ``t`` of a broker, with what it shares with no other."""

    def __init__(self, *, queue: int = 100) -> None:
        self.broker = FakeBroker()
        self.forgotten: list[str] = []
        self.others = 0
        self.shared = SharedParts(
            self.broker.open,
            ReadyMessages(),
            PrefetchBudget(queue),
            asyncio.Semaphore(2),
            lambda: 1 + self.others,
            lambda topic: self.forgotten.append(topic.topic),
        )
        self.topic = TopicSubscription("t", self.shared)

    async def open(self) -> None:
        assert await self.topic.want(True) is None
        await self.settle()

    async def settle(self) -> None:
        await eventually(lambda: self.topic.task is None)

    async def take(self) -> str:
        _, message = await self.shared.ready.get()
        self.topic.taken()
        return str(message.text)


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> _Stage:
    monkeypatch.setattr(topic_subscription, "_FIRST_PAUSE", 0.000_1)
    return _Stage()


async def test_one_message_is_here_and_the_others_stay_in_the_client(stage: _Stage) -> None:
    stage.broker.publish("t", "1", "2", "3")
    await stage.open()
    assert stage.topic.is_open
    assert len(stage.shared.ready) == 1
    assert len(stage.broker.messages["t"]) == 2
    assert [await stage.take() for _ in range(3)] == ["1", "2", "3"]
    assert not len(stage.shared.ready)
    stage.broker.publish("t", "4")
    assert await stage.take() == "4"


async def test_a_refused_topic_is_tried_again(stage: _Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.broker.refused["t"] = 3
    failure = await stage.topic.want(True)
    assert "ConsumerBusy" in str(failure)
    assert stage.topic.error is failure
    await eventually(lambda: stage.topic.is_open)
    assert stage.topic.error is None
    assert caplog.text.count("cannot consume from t") == 3
    assert stage.shared.budget.granted == stage.broker.opened[0][1]


async def test_whatever_opening_raises_is_a_failure(stage: _Stage) -> None:
    async def wrong(*_: object) -> None:
        raise TypeError("wrong options")

    shared = replace(stage.shared, open=wrong)
    topic = TopicSubscription("t", shared)
    assert str(await topic.want(True)) == "wrong options"
    assert shared.budget.granted == 0
    topic.give_up()
    await eventually(lambda: topic.task is None)


async def test_a_refused_topic_that_is_wanted_no_more_is_left(stage: _Stage) -> None:
    stage.broker.refused["t"] = 10**9
    await stage.topic.want(True)
    await stage.topic.want(False)
    await stage.settle()
    assert stage.forgotten == ["t"]
    assert stage.shared.budget.granted == 0


async def test_a_topic_that_is_gone_is_closed_and_its_messages_go_back(stage: _Stage) -> None:
    stage.broker.publish("t", "1", "2")
    await stage.open()
    await stage.topic.want(False)
    await stage.settle()
    assert stage.broker.closed == ["t"]
    assert not stage.broker.unsubscribed
    assert not len(stage.shared.ready)
    assert stage.forgotten == ["t"]
    assert [message.text for message in stage.broker.messages["t"]] == ["1", "2"]
    # It returns.
    await stage.open()
    assert [await stage.take(), await stage.take()] == ["1", "2"]


async def test_a_topic_that_leaves_while_it_is_opened_is_closed(stage: _Stage) -> None:
    stage.broker.gate.clear()
    stage.topic.want(True)
    await eventually(lambda: stage.broker.opening)
    stage.topic.want(False)
    stage.broker.gate.set()
    await stage.settle()
    assert not stage.topic.is_open
    assert stage.broker.closed == ["t"]
    assert stage.shared.budget.granted == 0


async def test_a_topic_that_returns_while_it_is_closed_is_opened(stage: _Stage) -> None:
    await stage.open()
    stage.topic.want(False)
    stage.topic.want(True)
    await stage.settle()
    assert stage.topic.is_open
    assert not stage.forgotten


async def test_a_consumer_that_the_client_gives_up_is_opened_again(stage: _Stage) -> None:
    await stage.open()
    stage.broker.consumers["t"].lose()
    assert not stage.topic.is_open
    await eventually(lambda: stage.topic.is_open)
    stage.broker.publish("t", "1")
    assert await stage.take() == "1"


async def test_acknowledgements_go_to_the_consumer_that_there_is(stage: _Stage) -> None:
    stage.broker.publish("t", *"1234")
    await stage.open()
    messages = []
    for _ in range(4):
        messages.append((await stage.shared.ready.get())[1])
        stage.topic.taken()
    assert await stage.topic.acknowledge(messages[3])
    assert await stage.topic.acknowledge_cumulative(messages[1])
    assert stage.topic.negative_acknowledge(messages[2])
    assert [each.text for each in stage.broker.acknowledged] == ["4", "1", "2"]
    assert [each.text for each in stage.broker.consumers["t"].nacked] == ["3"]
    stage.topic.want(False)
    await stage.settle()
    assert not await stage.topic.acknowledge(messages[2])
    assert not await stage.topic.acknowledge_cumulative(messages[2])
    assert not stage.topic.negative_acknowledge(messages[2])


async def test_redelivery_begins_with_what_is_here(stage: _Stage) -> None:
    stage.broker.publish("t", *"123")
    await stage.open()
    assert await stage.take() == "1"
    stage.topic.redeliver()
    assert [await stage.take() for _ in range(3)] == ["1", "2", "3"]


async def test_seeking_drops_what_came_before(stage: _Stage) -> None:
    stage.broker.publish("t", "old-1")
    await stage.open()
    consumer = stage.broker.consumers["t"]
    seeking = asyncio.create_task(stage.topic.seek(1234))
    await eventually(lambda: consumer.seeks)
    assert not len(stage.shared.ready)
    with pytest.raises(PulsarException, match="already"):
        await stage.topic.seek(5)
    position, sought = consumer.seeks.pop()
    assert position == 1234
    consumer.messages.clear()
    stage.broker.publish("t", "new-1", "new-2")
    sought(_OK)
    await seeking
    assert [await stage.take(), await stage.take()] == ["new-1", "new-2"]


async def test_seeking_drops_what_comes_meanwhile_and_keeps_what_comes_after(stage: _Stage) -> None:
    await stage.open()
    consumer = stage.broker.consumers["t"]
    seeking = asyncio.create_task(stage.topic.seek(pulsar.MessageId.earliest))
    await eventually(lambda: consumer.seeks)
    stage.broker.publish("t", "old")
    assert not len(stage.shared.ready)
    consumer.seeks.pop()[1](_OK)
    # Before the seek is told of it: the client calls back first for the seek, then for the message.
    stage.broker.publish("t", "new")
    await seeking
    assert await stage.take() == "new"


async def test_a_seek_that_fails_changes_nothing(stage: _Stage) -> None:
    stage.broker.publish("t", *"12")
    await stage.open()
    consumer = stage.broker.consumers["t"]
    seeking = asyncio.create_task(stage.topic.seek(1))
    await eventually(lambda: consumer.seeks)
    consumer.seeks.pop()[1](_TIMEOUT)
    with pytest.raises(PulsarException, match="Timeout"):
        await seeking
    assert [await stage.take(), await stage.take()] == ["1", "2"]


async def test_a_topic_that_is_not_open_cannot_seek(stage: _Stage) -> None:
    with pytest.raises(PulsarException, match="not open"):
        await stage.topic.seek(1)
    with pytest.raises(PulsarException, match="not open"):
        await stage.topic.last_message_id()
    await stage.topic.unsubscribe()
    stage.topic.redeliver()


async def test_a_seek_outlives_its_caller(stage: _Stage) -> None:
    await stage.open()
    consumer = stage.broker.consumers["t"]
    seeking = asyncio.create_task(stage.topic.seek(1))
    await eventually(lambda: consumer.seeks)
    seeking.cancel()
    await asyncio.wait([seeking])
    consumer.seeks.pop()[1](_OK)
    stage.broker.publish("t", "new")
    assert await stage.take() == "new"


async def test_a_new_size_is_taken_where_nobody_notices(stage: _Stage) -> None:
    await stage.open()
    assert stage.broker.opened == [("t", 50)]
    stage.others = 9
    stage.broker.publish("t", *"12")
    stage.topic.resize()  # one message is here
    assert await stage.take() == "1"
    assert await stage.take() == "2"
    stage.topic.resize()  # two are not settled
    for message in list(stage.broker.consumers["t"].unacked):
        await stage.topic.acknowledge(message)
    await stage.settle()
    assert len(stage.broker.opened) == 1
    stage.topic.resize()
    await stage.settle()
    assert stage.broker.opened == [("t", 50), ("t", 5)]
    assert stage.shared.budget.granted == 5
    stage.broker.publish("t", "3")
    assert await stage.take() == "3"


async def test_a_topic_that_was_given_up_is_opened_no_more(stage: _Stage) -> None:
    stage.broker.refused["t"] = 10**9
    await stage.topic.want(True)
    stage.topic.give_up()
    await stage.settle()
    assert not stage.topic.is_open


async def test_a_client_that_closes_is_no_failure(stage: _Stage, caplog: pytest.LogCaptureFixture) -> None:
    await stage.open()
    stage.topic.give_up()
    stage.broker.consumers["t"].lose()
    assert "broker_core.consumer" not in {record.name for record in caplog.records}
    assert stage.topic.task is None


async def test_the_end_waits_for_the_message_that_is_asked_for(stage: _Stage) -> None:
    await stage.open()
    stage.topic.give_up()
    consumer = stage.broker.consumers["t"]
    callback, consumer.waiting = consumer.waiting, None  # the client calls back later than it closes
    assert callback is not None
    ending = asyncio.create_task(stage.topic.end())
    await eventually(lambda: stage.broker.closed)
    assert not ending.done()
    callback(pulsar.Result.AlreadyClosed, None)
    await ending
    assert not stage.topic.is_open
    await stage.topic.end()


async def test_the_end_waits_for_no_message_where_one_is_here(stage: _Stage) -> None:
    stage.broker.publish("t", "1")
    await stage.open()
    stage.topic.give_up()
    await stage.topic.end()
    assert stage.broker.closed == ["t"]
