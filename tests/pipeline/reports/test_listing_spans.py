"""The spans of whole listings: each stage and each call of a plugin, below the listing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from broker_core import TopicListingResult
from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed
from broker_core.listing.pages.page import Page
from broker_core.pipeline.answer import ReusableAnswer
from broker_core.pipeline.reports.event_sinks import EventSinks
from broker_core.pipeline.request.unsupported_patterns import PipelineOptions
from broker_core.settings import PatternsSettings
from broker_core.tracing import Tracing
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, Made, made, request
from tests.support.plugins import PluginOf


class Recorded:
    """A tracer with all that has ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.sinks = EventSinks(tracing=Tracing(provider))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def tree(self) -> set[tuple[str, str | None]]:
        """Each span with the one above it; calls of plugins by plugin and hook."""
        names = {span.context.span_id: name_of(span) for span in self.spans}
        return {
            (name_of(span), None if span.parent is None else names[span.parent.span_id])
            for span in self.spans
        }


def name_of(span: ReadableSpan) -> str:
    values = span.attributes or {}
    if span.name != "plugin":
        return span.name
    return ".".join(str(values[f"broker_core.{key}"]) for key in ("plugin", "hook"))


def shown(span: ReadableSpan) -> dict[str, Any]:
    return {key.removeprefix("broker_core."): value for key, value in (span.attributes or {}).items()}


async def test_all_stages_of_a_listing() -> None:
    recorded = Recorded()
    plugins = {
        "p": PluginOf(
            list_topics=lambda: TopicListingResult.success(FEW),
            visible=lambda topics: pa.array([name.as_py().endswith("1") for name in topics]),
            authorize=lambda: None,
        )
    }
    async with made(plugins=plugins, sinks=recorded.sinks) as m:
        asker = Asker(role="app", remote_address="192.0.2.7:1", client_version="x")
        answer = await m.ask(pattern="t/n/.*-0000.", asker=asker)
        assert "listing" not in {span.name for span in recorded.spans}
        answer.release()
    assert recorded.tree() == {
        ("listing", None),
        ("p.authorize", "listing"),
        ("permits", "listing"),
        ("list", "listing"),
        ("p.list_topics", "list"),
        ("verify", "list"),
        ("filter", "listing"),
        ("masks", "listing"),
        ("p.visible", "masks"),
        ("hash", "listing"),
        ("write", "listing"),
    }
    assert shown(recorded.named("listing")) == {
        "role": "app",
        "address": "192.0.2.7:1",
        "transport": "pulsar",
        "namespace": "t/n",
        "mode": "PERSISTENT",
        "pattern": "t/n/.*-0000.",
        "outcome": "served",
        "lister": "p",
        "plan": "range",
        "topics": 1,
        "bytes": answer.fields_size,
        "topics_hash": answer.topics_hash,
        "filtered": True,
    }


async def test_what_a_plugin_asks_behind_it_is_below_its_call() -> None:
    async def list_topics(request: Any) -> Any:
        rest = await request.rest()
        return TopicListingResult.success(rest.selection)

    recorded = Recorded()
    second = PluginOf(list_topics=lambda: TopicListingResult.success(FEW))
    plugins = {"first": PluginOf(list_topics=list_topics), "second": second}
    async with made(plugins=plugins, sinks=recorded.sinks) as m:
        (await m.ask()).release()
    assert {("first.list_topics", "list"), ("second.list_topics", "first.list_topics")} <= recorded.tree()


async def test_a_page_has_its_own_stage() -> None:
    recorded = Recorded()
    async with made(sinks=recorded.sinks) as m:
        (await m.ask(page=Page(None, 3), pattern="t/n/.*1")).release()
    assert {("page", "listing"), ("filter", "page"), ("write", "listing")} <= recorded.tree()
    assert shown(recorded.named("listing"))["page_limit"] == 3


async def test_a_refusal_is_told_without_texts() -> None:
    def fails() -> Any:
        raise RuntimeError("password=hunter2")

    recorded = Recorded()
    async with made(plugins={"p": PluginOf(list_topics=fails)}, sinks=recorded.sinks) as m:
        with pytest.raises(ListingFailed):
            await m.ask()
    assert ("write", "listing") not in recorded.tree()
    listing = recorded.named("listing")
    assert {key: shown(listing)[key] for key in ("outcome", "cause", "reason", "plugin")} == {
        "outcome": "refused",
        "cause": "PLUGIN",
        "reason": "plugin_error",
        "plugin": "p",
    }
    assert listing.status.description == "plugin_error"
    assert not any("hunter2" in span.to_json() for span in recorded.spans)


def answered_now(m: Made, **fields: Any) -> None:
    answer = m.pipeline.answer_now(request(**fields))
    assert answer is not None
    answer.release()


async def test_what_is_answered_at_once_is_one_span() -> None:
    recorded = Recorded()
    strict = PipelineOptions(PatternsSettings(unsupported="error"))
    async with made(MemoryLister(FEW), options=strict, sinks=recorded.sinks) as m:
        answered_now(m, pattern="t/n/0.*")
        question = request("t/n/0.*")
        answer = m.pipeline.answer_now(question)
        assert answer is not None
        answer.release()
        reusable = ReusableAnswer.of(question, answer)
        assert reusable is not None
        assert m.again(reusable, role="app")
        with pytest.raises(ListingFailed):
            m.pipeline.answer_now(request("(?!x)"))
    assert {span.name for span in recorded.spans} == {"listing"}
    again, refused = map(shown, recorded.spans[2:])
    assert (again["outcome"], again["role"], again["topics"]) == ("served", "app", 2)
    assert (refused["outcome"], refused["reason"]) == ("refused", "bad_pattern")


async def test_nothing_is_told_by_default() -> None:
    async with made(MemoryLister(FEW)) as m:
        assert not m.pipeline.sinks
        answered_now(m)
