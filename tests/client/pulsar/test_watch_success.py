"""The answer to WATCH_TOPIC_LIST: read without its topics, whatever its size, and never wrongly."""

from __future__ import annotations

import pytest

from broker_core.client.pulsar.topics_answer import peek_request_id
from broker_core.client.pulsar.watch_success import watch_success
from broker_core.wire.pulsar import FrameError
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand


def answer(topics: int, *, told: str = "0123abcd") -> bytes:
    command = BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST_SUCCESS)
    body = command.watchTopicListSuccess
    body.request_id, body.watcher_id, body.topics_hash = 300, 7, told
    body.topic.extend(f"persistent://t/n/topic-{number}" for number in range(topics))
    return command.SerializeToString()


@pytest.mark.parametrize(("topics", "kept"), [(0, 0), (3, 3), (10_000, 0)])
def test_what_is_needed_of_it(topics: int, kept: int) -> None:
    read = watch_success(memoryview(answer(topics)))
    body = read.watchTopicListSuccess
    assert read.type == BaseCommand.WATCH_TOPIC_LIST_SUCCESS
    assert (body.request_id, body.watcher_id, body.topics_hash) == (300, 7, "0123abcd")
    assert len(body.topic) == kept, "of a large one no topics are read"
    assert peek_request_id(answer(topics)) == 300


def test_one_in_another_order_is_decoded() -> None:
    read = watch_success(answer(10_000, told="another hash"))
    assert read.watchTopicListSuccess.topics_hash == "another hash"
    assert len(read.watchTopicListSuccess.topic) == 10_000


def test_what_is_none_is_an_error() -> None:
    whole = answer(10_000)
    with pytest.raises(FrameError):
        watch_success(whole[:-20])
    with pytest.raises(FrameError):
        watch_success(whole[:5000] + whole[-10:])
