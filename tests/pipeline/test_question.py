"""The question of a client: its pattern, compiled now or later, and the bounds on what it may send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Pipeline, PipelineOptions
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugins import Dispatcher, PluginRegistry
from broker_core.settings import LimitsSettings, PatternsSettings
from tests.support.memory_lister import MemoryLister

ASKER = Asker(role="r", client_version="v")
NAMESPACE = NamespaceName.parse("t/n")


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    options = PipelineOptions(PatternsSettings(max_length=30))
    made = Pipeline(MemoryLister(), Dispatcher(PluginRegistry.load()), Permits(), Metrics(), options)
    yield made
    made.close()


def read(
    pipeline: Pipeline, pattern: str | None = None, *properties: tuple[str, str], **limits: Any
) -> tuple[ListingRequest, str | None]:
    bounds = LimitsSettings(**limits)
    return pipeline.question(
        bounds, ASKER, NAMESPACE, Mode.ALL, pattern, properties, deadline=1e9, topics_hash="0a"
    )


async def test_what_a_client_sends(pipeline: Pipeline) -> None:
    request, uncompiled = read(pipeline, "persistent://t/n/x.*", ("a", "1"), ("b", "2"), ("a", "3"))
    assert (request.namespace, request.mode, request.asker) == (NAMESPACE, Mode.ALL, ASKER)
    assert (request.topics_hash, request.deadline) == ("0a", 1e9)
    assert (request.topics_pattern, uncompiled) == ("persistent://t/n/x.*", None)
    assert dict(request.properties) == {"a": "3", "b": "2"}, "the last of a repeated key counts"
    with pytest.raises(TypeError):
        request.properties["c"] = "4"  # type: ignore[index]


async def test_a_dear_pattern_is_compiled_later(pipeline: Pipeline) -> None:
    dear = r"t/n/(\pL|\pN){7}later"
    request, uncompiled = read(pipeline, dear)
    assert (request.pattern, uncompiled) == (None, dear)
    compiled = await pipeline.with_pattern(request, dear)
    assert compiled.pattern is not None
    assert (compiled.pattern.supported, compiled.topics_pattern) == (True, dear)
    again, uncompiled = read(pipeline, dear)  # and then it is remembered
    assert (again.pattern, uncompiled) == (compiled.pattern, None)


@pytest.mark.parametrize("pattern", ["(" * 31, "ftp://t/n/x-and-so-on-and-so-on"])
async def test_a_pattern_that_is_too_long_is_not_looked_at(pipeline: Pipeline, pattern: str) -> None:
    """The length counts first: docs/reference/pulsar-behaviour.md#the-order-of-a-brokers-steps"""
    request, _ = read(pipeline, pattern)
    assert request.pattern is not None
    assert not request.pattern.supported


@pytest.mark.parametrize(
    ("pattern", "properties", "cause", "says"),
    [
        ("(", [], Cause.PATTERN, "pattern"),
        ("ftp://t/n/x", [], Cause.PATTERN, "pattern"),
        (None, [("k", "v")] * 3, Cause.BAD_REQUEST, "3 properties in one request, at most 2 are allowed"),
        (None, [("k", "é" * 4)], Cause.BAD_REQUEST, "properties of 9 bytes in one request, at most 8"),
    ],
)
async def test_what_is_refused(
    pipeline: Pipeline, pattern: str | None, properties: list[tuple[str, str]], cause: Cause, says: str
) -> None:
    with pytest.raises(ListingFailed) as raised:
        read(pipeline, pattern, *properties, properties=2, property_bytes=8)
    assert raised.value.cause is cause
    assert says in raised.value.message


async def test_bounds_are_inclusive(pipeline: Pipeline) -> None:
    request, _ = read(pipeline, None, ("é", "é"), ("a", "bcd"), properties=2, property_bytes=8)
    assert dict(request.properties) == {"é": "é", "a": "bcd"}
