"""Spans of listings, as a real exporter in memory gets them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from broker_core.errors import Cause, ListingFailed
from broker_core.tracing import NO_SPAN, Tracing, stage


class Recorded:
    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False, **options)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(provider)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


def test_a_listing_has_its_stages_below_it_and_ends_when_it_is_written() -> None:
    recorded = Recorded()
    with recorded.tracing.listing({"namespace": "t/n", "pattern": None}) as listing:
        with stage("list", lister="catalog"), stage("verify") as verify:
            verify.note(topics=3)
        listing.note(outcome="served")
    assert set(recorded.spans) == {"list", "verify"}
    listing.written()
    listing.written()
    root, write = recorded.spans["listing"], recorded.spans["write"]
    assert root.kind is SpanKind.SERVER
    assert root.attributes == {"broker_core.namespace": "t/n", "broker_core.outcome": "served"}
    assert root.parent is None
    for name, above in (("list", root), ("verify", recorded.spans["list"]), ("write", root)):
        parent = recorded.spans[name].parent
        assert parent is not None
        assert parent.span_id == above.context.span_id
    assert recorded.spans["verify"].attributes == {"broker_core.topics": 3}
    assert write.end_time is not None
    assert root.end_time is not None
    assert root.end_time >= write.end_time
    assert stage("after") is NO_SPAN


def test_a_failure_is_its_reason_and_not_its_text() -> None:
    recorded = Recorded()
    with (
        pytest.raises(ListingFailed),
        recorded.tracing.listing({}),
        stage("list"),
    ):
        raise ListingFailed("password=hunter2", cause=Cause.PLUGIN, reason="plugin_error")
    with pytest.raises(RuntimeError), recorded.tracing.listing({}), stage("filter"):
        raise RuntimeError("hunter2")
    assert {name: span.status.description for name, span in recorded.spans.items()} == {
        "list": "plugin_error",
        "filter": "RuntimeError",
        "listing": "RuntimeError",
    }
    for span in recorded.spans.values():
        assert span.status.status_code is StatusCode.ERROR
        assert not span.events
        assert "hunter2" not in span.to_json()


def test_a_listing_at_once_is_one_span_of_the_time_that_it_took() -> None:
    recorded = Recorded()
    recorded.tracing.listed({"outcome": "served"}, 0.25)
    span = recorded.spans["listing"]
    assert span.end_time is not None
    assert span.start_time is not None
    assert span.end_time - span.start_time == 250_000_000
    assert span.status.status_code is StatusCode.UNSET
    recorded.tracing.listed({"outcome": "refused"}, 0.0, "bad_pattern")
    assert recorded.spans["listing"].status.description == "bad_pattern"


def test_the_parent_is_the_span_of_the_client() -> None:
    recorded = Recorded()
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with recorded.tracing.under({"traceparent": f"00-{trace_id}-{span_id}-01"}):
        recorded.tracing.listed({}, 0.0)
    span = recorded.spans["listing"]
    assert span.parent is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (trace_id, span_id)
    for wrong in ({}, {"traceparent": "nonsense"}, {"traceparent": "00-0-0-01"}):
        with recorded.tracing.under(wrong):
            recorded.tracing.listed({}, 0.0)
        assert recorded.spans["listing"].parent is None


def test_a_listing_that_is_not_sampled_has_no_stages() -> None:
    recorded = Recorded(sampler=ALWAYS_OFF)
    with recorded.tracing.listing({}) as listing:
        assert stage("list") is NO_SPAN
    listing.written()
    assert recorded.spans == {}


class Stuck(SpanExporter):
    """A collector that does not answer."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.go_on.wait(60)
        return SpanExportResult.FAILURE


def test_a_collector_that_hangs_stops_nobody_and_takes_no_memory() -> None:
    stuck = Stuck()
    provider = TracerProvider(shutdown_on_exit=False)
    processor = BatchSpanProcessor(stuck, max_queue_size=10, max_export_batch_size=5)
    provider.add_span_processor(processor)
    tracing = Tracing(provider)
    for _ in range(1000):
        tracing.listed({}, 0.0)
    assert len(processor._batch_processor._queue) <= 10
    begun = time.monotonic()
    tracing.close(0.05)
    assert time.monotonic() - begun < 60
    stuck.go_on.set()
