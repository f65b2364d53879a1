"""The queue of one message a topic: turns, waiting, cancellation and the end."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.consumer.ready_messages import ReadyMessages


async def test_topics_take_turns() -> None:
    ready: ReadyMessages[str, int] = ReadyMessages()
    waiting = {"a": [1, 2, 3], "b": [4], "c": [5, 6]}
    for topic, numbers in waiting.items():
        ready.put(topic, numbers.pop(0))
    order = []
    while len(ready):
        topic, number = await ready.get()
        order.append(number)
        if waiting[topic]:
            ready.put(topic, waiting[topic].pop(0))
    assert order == [1, 4, 5, 2, 6, 3]
    assert ready.get_now() is None


async def test_what_is_put_back_comes_first_and_what_is_discarded_never() -> None:
    ready: ReadyMessages[str, int] = ReadyMessages()
    ready.put("a", 1)
    ready.put("b", 2)
    ready.put("c", 3, first=True)
    assert ready.discard("a") == 1
    assert ready.discard("a") is None
    assert [await ready.get(), await ready.get()] == [("c", 3), ("b", 2)]


async def test_one_message_wakes_one_and_a_cancelled_one_takes_none() -> None:
    ready: ReadyMessages[str, int] = ReadyMessages()
    first, second = asyncio.create_task(ready.get()), asyncio.create_task(ready.get())
    await asyncio.sleep(0)
    ready.put("a", 1)
    first.cancel()  # it was told of the message already
    assert await second == ("a", 1)
    assert first.cancelled() or (await asyncio.wait([first]) and first.cancelled())
    third = asyncio.create_task(ready.get())
    await asyncio.sleep(0)
    third.cancel()
    await asyncio.wait([third])
    ready.put("b", 2)
    assert await ready.get() == ("b", 2)


async def test_the_end_is_told_to_everybody() -> None:
    ready: ReadyMessages[str, int] = ReadyMessages()
    waiting = [asyncio.create_task(ready.get()) for _ in range(3)]
    await asyncio.sleep(0)
    ready.end(RuntimeError("over"))
    ready.end(RuntimeError("twice"))
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["over"] * 3
    ready.put("a", 1)
    with pytest.raises(RuntimeError, match="over"):
        ready.get_now()
