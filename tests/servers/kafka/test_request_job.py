from __future__ import annotations

import asyncio

import pytest

from broker_core.servers.connection import Closing
from broker_core.servers.kafka.call import CloseClient, KafkaCall
from broker_core.servers.kafka.handler_row import HandlerRow
from broker_core.servers.kafka.request_job import RequestJob
from broker_core.wire.kafka import METADATA, Encoded, Fields, read_response
from tests.support.kafka_calls import call_of


async def answered(_: KafkaCall) -> Fields:
    return {"topics": Encoded(0, [])}


def job() -> RequestJob:
    return RequestJob(HandlerRow(METADATA, later=answered), answered, call_of(METADATA, 12))


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
