"""A command becomes a question, or an error that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed, ServerError
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.names import Mode
from broker_core.pipeline import Pipeline, PipelineOptions
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugins import Dispatcher, PluginRegistry
from broker_core.servers.pulsar.listing_job import read_listing_request
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import CommandGetTopicsOfNamespace, KeyValue
from tests.support.memory_lister import MemoryLister

ASKER = Asker(role="r", client_version="v")


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    options = PipelineOptions(time_budget=5)
    made = Pipeline(MemoryLister(), Dispatcher(PluginRegistry.load()), Permits(), Metrics(), options)
    yield made
    made.close()


def read(pipeline: Pipeline, **fields: Any) -> ListingRequest:
    command = CommandGetTopicsOfNamespace(**{"request_id": 1, "namespace": "t/n", **fields})
    request, _ = read_listing_request(command, ASKER, pipeline, LimitsSettings(), 100.0)
    return request


async def test_the_least_that_a_client_sends(pipeline: Pipeline) -> None:
    request = read(pipeline)
    assert (str(request.namespace), request.mode) == ("t/n", Mode.PERSISTENT)
    assert (request.pattern, request.topics_hash, dict(request.properties)) == (None, None, {})
    assert (request.asker, request.deadline) == (ASKER, 105.0)


async def test_all_that_a_client_sends(pipeline: Pipeline) -> None:
    properties = [KeyValue(key="a", value="1"), KeyValue(key="b", value="2")]
    request = read(pipeline, mode=2, topics_pattern="x.*", topics_hash="01234567", properties=properties)
    assert (request.mode, request.topics_pattern, request.topics_hash) == (Mode.ALL, "x.*", "01234567")
    assert dict(request.properties) == {"a": "1", "b": "2"}


async def test_an_empty_pattern_is_a_pattern(pipeline: Pipeline) -> None:
    request = read(pipeline, topics_pattern="", topics_hash="")
    assert (request.topics_pattern, request.topics_hash) == ("", "")


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"namespace": "t"}, ServerError.InvalidTopicName, "bad_namespace"),
        ({"namespace": "t/n/x"}, ServerError.InvalidTopicName, "bad_namespace"),
        ({"namespace": "t/" + "n" * 5000}, ServerError.InvalidTopicName, "bad_namespace"),
        ({"mode": 3}, ServerError.NotAllowedError, "bad_request"),
        ({"mode": -1}, ServerError.NotAllowedError, "bad_request"),
    ],
)
async def test_what_is_refused(
    pipeline: Pipeline, fields: dict[str, Any], code: ServerError, reason: str
) -> None:
    with pytest.raises(ListingFailed) as raised:
        read(pipeline, **fields)
    assert (raised.value.code, raised.value.reason) == (code, reason)
    assert len(raised.value.message) < 2000
