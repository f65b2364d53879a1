from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker_core.client import ClientError, ConnectionLost, UnexpectedAnswer
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.kafka_errors import (
    NotControllerException,
    RebootstrapRequiredException,
    TimeoutException,
    TopicExistsException,
)


class Cluster:
    """Stands for the connections of a client."""

    def __init__(self) -> None:
        self.is_closed = False
        self.pauses: list[float] = []
        self.heeded: list[str] = []

    async def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    def forget(self) -> None:
        self.heeded.append("forget")

    def rebootstrap(self) -> None:
        self.heeded.append("rebootstrap")


def attempts(cluster: Any, seconds: float = 60.0, *, retries: int | None = None) -> Attempts:
    return Attempts(cluster, seconds, 30.0, retries)


def failing(*failures: ClientError) -> Callable[[], Any]:
    left = list(failures)

    async def ask() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return ask


async def test_it_asks_again_with_longer_and_longer_pauses() -> None:
    cluster = Cluster()
    failures = [ConnectionLost("gone"), *(NotControllerException() for _ in range(5))]
    assert await attempts(cluster).until_answered(failing(*failures)) == "answer"
    assert cluster.heeded == ["forget"] * 5
    for pause, middle in zip(cluster.pauses, (0.1, 0.2, 0.4, 0.8, 1.0, 1.0), strict=True):
        assert 0.8 * middle <= pause <= 1.2 * middle


@pytest.mark.parametrize("failed", [TopicExistsException("there"), UnexpectedAnswer("odd")])
async def test_what_does_not_pass_is_raised_at_once(failed: ClientError) -> None:
    cluster = Cluster()
    with pytest.raises(type(failed)):
        await attempts(cluster).until_answered(failing(failed))
    assert cluster.pauses == []


async def test_so_many_retries() -> None:
    cluster = Cluster()
    with pytest.raises(ConnectionLost, match="third"):
        await attempts(cluster, retries=2).until_answered(
            failing(*map(ConnectionLost, ("1", "2", "third", "4")))
        )
    assert len(cluster.pauses) == 2


async def test_when_the_time_is_up_the_last_reason_is_told() -> None:
    async def ask() -> str:
        raise ConnectionLost("nobody there")

    with pytest.raises(TimeoutException, match=r"no answer within 0\.05 s: nobody there"):
        await attempts(Cluster(), 0.05).until_answered(ask)


async def test_the_time_is_that_of_all_requests_of_an_operation() -> None:
    operation = attempts(Cluster(), 0.05)

    async def ask() -> str:
        await asyncio.Event().wait()
        return ""

    for _ in range(2):
        with pytest.raises(TimeoutException):
            await operation.until_answered(ask)
    assert operation.timeout_ms == 1


async def test_a_server_may_take_as_long_as_its_answer_is_waited_for() -> None:
    assert attempts(Cluster()).timeout_ms == 30_000
    assert 1000 < attempts(Cluster(), 20.0).timeout_ms <= 20_000


async def test_a_client_that_is_closed_does_not_ask_again() -> None:
    cluster = Cluster()
    cluster.is_closed = True
    with pytest.raises(ConnectionLost):
        await attempts(cluster).until_answered(failing(ConnectionLost("closed")))


async def test_it_begins_again_where_the_server_says_so() -> None:
    cluster = Cluster()
    await attempts(cluster).until_answered(failing(RebootstrapRequiredException()))
    assert cluster.heeded == ["rebootstrap"]
