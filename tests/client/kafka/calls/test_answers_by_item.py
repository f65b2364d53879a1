from __future__ import annotations

from typing import Any

import pytest

from broker_core.client import ClientError, ConnectionLost, UnexpectedAnswer
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.calls.answers_by_item import answered_rows
from broker_core.client.kafka.kafka_errors import (
    NotControllerException,
    ThrottlingQuotaExceededException,
    TopicExistsException,
)
from broker_core.wire.kafka import DELETE_TOPICS, Api, Fields


class Cluster:
    is_closed = False
    forgotten = 0

    async def wait(self, _seconds: float) -> None:
        pass

    def forget(self) -> None:
        self.forgotten += 1


class Server:
    """Gives one answer after the other, and keeps what it was asked."""

    def __init__(self, *answers: dict[str, Any] | ClientError) -> None:
        self.answers = list(answers)
        self.asked: list[list[str]] = []

    async def ask(self, _api: Api, request: Fields, *, least: int) -> Fields:
        assert least == 7
        self.asked.append(request["items"])
        answer = self.answers.pop(0)
        if isinstance(answer, ClientError):
            raise answer
        return answer


async def rows(server: Server, *, retries: int | None = None, cluster: Any = None) -> dict[str, Any]:
    stand_in: Any = cluster or Cluster()

    async def connect(_attempts: Attempts) -> Any:
        return server

    return await answered_rows(
        Attempts(stand_in, 20, 20, retries),
        ["b", "a"],
        connect,
        DELETE_TOPICS,
        lambda some: {"items": some},
        lambda answer, _: answer,
        least=7,
    )


async def test_each_item_has_its_row_in_the_order_of_the_request() -> None:
    failed = TopicExistsException()
    found = await rows(Server({"a": None, "b": failed, "c": None}))
    assert list(found.items()) == [("b", failed), ("a", None)]


async def test_what_was_throttled_is_asked_again_alone() -> None:
    server = Server({"a": None, "b": ThrottlingQuotaExceededException()}, {"b": 1})
    assert await rows(server) == {"b": 1, "a": None}
    assert server.asked == [["b", "a"], ["b"]]


async def test_a_controller_that_moved_is_asked_again_for_all() -> None:
    cluster = Cluster()
    server = Server({"a": NotControllerException(), "b": NotControllerException()}, {"a": 1, "b": 2})
    assert await rows(server, cluster=cluster) == {"b": 2, "a": 1}
    assert cluster.forgotten == 1


async def test_an_item_without_a_row_has_an_error() -> None:
    found = await rows(Server({"a": 1}))
    assert found["a"] == 1
    assert isinstance(found["b"], UnexpectedAnswer)


async def test_an_error_of_the_request_is_raised() -> None:
    with pytest.raises(TopicExistsException):
        await rows(Server(TopicExistsException()))


async def test_what_was_answered_before_an_error_is_kept() -> None:
    failed = ConnectionLost("gone")
    found = await rows(Server({"a": 1, "b": ThrottlingQuotaExceededException()}, failed), retries=1)
    assert found == {"b": failed, "a": 1}
