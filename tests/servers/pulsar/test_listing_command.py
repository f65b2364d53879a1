"""A command becomes a request, or an error that says what is wrong with it."""

from __future__ import annotations

import asyncio
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
from broker_core.servers.pulsar.listing_command import read_listing_request
from broker_core.settings import LimitsSettings, PatternsSettings
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import CommandGetTopicsOfNamespace, KeyValue
from tests.support.memory_lister import MemoryLister

ASKER = Asker(role="r", client_version="v")


async def read(
    options: PipelineOptions | None = None, bounds: LimitsSettings | None = None, **fields: Any
) -> ListingRequest:
    pipeline = Pipeline(
        MemoryLister(), Dispatcher(PluginRegistry.load()), Permits(), Metrics(), options or PipelineOptions()
    )
    try:
        command = CommandGetTopicsOfNamespace(**{"request_id": 1, "namespace": "t/n", **fields})
        request, uncompiled = read_listing_request(
            command, ASKER, pipeline, bounds or LimitsSettings(), 100.0
        )
        return request if uncompiled is None else await pipeline.with_pattern(request, uncompiled)
    finally:
        pipeline.close()


def pairs(*given: tuple[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=value) for key, value in given]


async def test_the_least_that_a_client_sends() -> None:
    request = await read()
    assert str(request.namespace) == "t/n"
    assert (request.mode, request.pattern, request.topics_hash) == (Mode.PERSISTENT, None, None)
    assert dict(request.properties) == {}
    assert request.asker is ASKER
    assert request.deadline == 128.0


async def test_all_that_a_client_sends() -> None:
    request = await read(
        PipelineOptions(time_budget=5),
        mode=2,
        topics_pattern="persistent://t/n/x.*",
        topics_hash="01234567",
        properties=pairs(("a", "1"), ("b", "2"), ("a", "3")),
    )
    assert request.mode is Mode.ALL
    assert request.topics_pattern == "persistent://t/n/x.*"
    assert request.pattern is not None
    assert request.topics_hash == "01234567"
    assert dict(request.properties) == {"a": "3", "b": "2"}
    assert request.deadline == 105.0
    with pytest.raises(TypeError):
        request.properties["c"] = "4"  # type: ignore[index]


async def test_a_dear_pattern_is_compiled_later() -> None:
    pipeline = Pipeline(MemoryLister(), Dispatcher(PluginRegistry.load()), Permits(), Metrics())
    try:
        dear = r"t/n/(\pL|\pN){7}later"
        command = CommandGetTopicsOfNamespace(request_id=1, namespace="t/n", topics_pattern=dear)
        now = asyncio.get_running_loop().time()
        request, uncompiled = read_listing_request(command, ASKER, pipeline, LimitsSettings(), now)
        assert (request.pattern, uncompiled) == (None, dear)
        compiled = await pipeline.with_pattern(request, dear)
        assert compiled.pattern is not None
        assert (compiled.pattern.supported, compiled.topics_pattern) == (True, dear)
        # And then it is remembered.
        again, uncompiled = read_listing_request(command, ASKER, pipeline, LimitsSettings(), now)
        assert (again.pattern, uncompiled) == (compiled.pattern, None)
    finally:
        pipeline.close()


async def test_an_empty_pattern_is_a_pattern() -> None:
    request = await read(topics_pattern="", topics_hash="")
    assert request.topics_pattern == ""
    assert request.topics_hash == ""


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"namespace": "t"}, ServerError.InvalidTopicName, "bad_namespace"),
        ({"namespace": "t/n/x"}, ServerError.InvalidTopicName, "bad_namespace"),
        ({"namespace": "t/" + "n" * 5000}, ServerError.InvalidTopicName, "bad_namespace"),
        ({"mode": 3}, ServerError.NotAllowedError, "bad_request"),
        ({"mode": -1}, ServerError.NotAllowedError, "bad_request"),
        ({"topics_pattern": "("}, ServerError.MetadataError, "bad_pattern"),
        ({"topics_pattern": "ftp://t/n/x"}, ServerError.MetadataError, "bad_pattern"),
        ({"properties": pairs(*[("k", "v")] * 65)}, ServerError.NotAllowedError, "bad_request"),
        ({"properties": pairs(("k", "v" * 16_384))}, ServerError.NotAllowedError, "bad_request"),
        ({"properties": pairs(("k", "é" * 8192))}, ServerError.NotAllowedError, "bad_request"),
    ],
)
async def test_what_is_refused(fields: dict[str, Any], code: ServerError, reason: str) -> None:
    with pytest.raises(ListingFailed) as raised:
        await read(**fields)
    assert (raised.value.code, raised.value.reason) == (code, reason)
    assert len(raised.value.message) < 2000


async def test_bounds_are_inclusive() -> None:
    request = await read(properties=pairs(*((f"{number:02d}", "v" * 254) for number in range(64))))
    assert len(request.properties) == 64
    small = LimitsSettings(properties=1, property_bytes=4)
    assert dict((await read(bounds=small, properties=pairs(("é", "é")))).properties) == {"é": "é"}


async def test_a_pattern_that_is_too_long_is_not_compiled() -> None:
    request = await read(PipelineOptions(PatternsSettings(max_length=10)), topics_pattern="(" * 11)
    assert request.pattern is not None
    assert not request.pattern.supported


async def test_a_pattern_that_is_too_long_is_not_looked_at_at_all() -> None:
    """The length counts first: docs/reference/pulsar-behaviour.md#the-order-of-a-brokers-steps"""
    request = await read(
        PipelineOptions(PatternsSettings(max_length=10)), topics_pattern="ftp://t/n/x-and-more"
    )
    assert request.pattern is not None
    assert not request.pattern.supported
